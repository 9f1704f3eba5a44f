"""Decisions that wait for their labels, in bounded memory."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any


@dataclass(frozen=True)
class Decision:
    """What was decided for a row: the labels it got, and their probabilities where needed.

    ``chosen`` is None where nothing could be decided, because no label was known yet.
    """

    chosen: tuple[Hashable, ...] | None
    eta: dict[Hashable, float] | None = None


class Pending:
    """Decisions by the content of their row; once there are ``limit``, the oldest is forgotten.

    Labels come with a row of the same content, often a copy of the one that was decided. Rows of
    equal content wait in line. Of a row only its key is kept, the 16 bytes of ``content_of``.

    >>> pending = Pending(limit=2)
    >>> for value, chosen in ((1.0, "a"), (2.0, "b"), (3.0, "c")):
    ...     pending.put(content_of({"x": value}), Decision((chosen,)))
    >>> pending.first(content_of({"x": 3.0})).chosen
    ('c',)
    >>> pending.first(content_of({"x": 1.0})) is None
    True
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._next = 0
        self._waiting: OrderedDict[int, tuple[bytes, Decision]] = OrderedDict()
        self._lines: dict[bytes, deque[int]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, key: bytes, decision: Decision) -> None:
        """Remember what was decided for a row."""
        if len(self) == self.limit:
            oldest, (of, _) = next(iter(self._waiting.items()))
            self._forget(of, oldest)
        self._waiting[self._next] = (key, decision)
        self._lines.setdefault(key, deque()).append(self._next)
        self._next += 1

    def first(self, key: bytes) -> Decision | None:
        """The oldest decision for a row of this content."""
        line = self._lines.get(key)
        return None if line is None else self._waiting[line[0]][1]

    def drop(self, key: bytes) -> None:
        """Forget the oldest decision for a row of this content, if there is one."""
        if key in self._lines:
            self._forget(key, self._lines[key][0])

    def _forget(self, key: bytes, number: int) -> None:
        """Take out the decision that is first in its line."""
        del self._waiting[number]
        line = self._lines[key]
        line.popleft()
        if not line:
            del self._lines[key]


def content_of(x: Any) -> bytes:
    """A row's content in 16 bytes, whatever the order of its features.

    >>> content_of({"a": 1, "b": 2.5}) == content_of({"b": 2.5, "a": 1})
    True
    """
    text = "\0".join(sorted(map(repr, x.items()))) if hasattr(x, "items") else repr(x)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
