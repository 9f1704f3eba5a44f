"""Decisions that wait for their labels, in bounded memory."""

import copy
from collections import deque
from collections.abc import Hashable
from hashlib import blake2b
from typing import Any, NamedTuple

from omma.online.waiting import Waiting

Labels = tuple[Hashable, ...]


class Decision(NamedTuple):
    """What was decided for a row: the labels it got, and what there was to choose from.

    ``chosen`` is None where nothing could be decided, because no label was known yet. ``tuned``
    are the labels that the policy would have given, ``plain`` those of the model itself, and
    ``row`` the probabilities, where somebody needs them.
    """

    chosen: Labels | None
    tuned: Labels = ()
    plain: Labels = ()
    row: tuple[float, ...] | None = None


class Found(NamedTuple):
    """A decision that waits; ``key`` is None for the one that was made last."""

    key: bytes | None
    decision: Decision


class Pending(Waiting[tuple[bytes, Decision]]):
    """Decisions by the content of their row; once there are ``limit``, the oldest is forgotten.

    Labels come with a row of the same content, often a copy of the one that was decided. Rows of
    equal content wait in line. Of a row only its key is kept, the 16 bytes of ``content_of``; but
    most labels come before the next row, so the last one is kept as it is, and compared.

    >>> pending = Pending(limit=2)
    >>> for value, chosen in ((1.0, "a"), (2.0, "b"), (3.0, "c")):
    ...     pending.put({"x": value}, Decision((chosen,)))
    >>> pending.find({"x": 3.0}).decision.chosen
    ('c',)
    >>> pending.find({"x": 1.0}) is None
    True
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._next = 0
        self._last: tuple[Any, Decision] | None = None
        self._lines: dict[bytes, deque[int]] = {}

    def __len__(self) -> int:
        return super().__len__() + (self._last is not None)

    def put(self, x: Any, decision: Decision) -> None:
        """Remember what was decided for a row."""
        if self._last is not None:
            self._line_up()
        self.forget_beyond(self.limit - 1)
        self._last = (dict(x) if type(x) is dict else copy.copy(x), decision)

    def find(self, x: Any) -> Found | None:
        """The oldest decision for a row of this content; it goes on waiting."""
        last = self._last
        if last is not None:
            if not self._waiting and _same(x, last[0]):
                return Found(None, last[1])
            self._line_up()
        if not self._waiting:
            return None
        key = content_of(x)
        line = self._lines.get(key)
        return None if line is None else Found(key, self._waiting[line[0]][1])

    def drop(self, found: Found) -> None:
        """Forget a decision that was found just now."""
        if found.key is None:
            self._last = None
        else:
            del self._waiting[self._first(found.key)]

    def _line_up(self) -> None:
        """Put the last decision in line by its key."""
        if self._last is not None:
            key = content_of(self._last[0])
            self._lines.setdefault(key, deque()).append(self._next)
            self.line_up(self._next, (key, self._last[1]))
            self._next += 1
            self._last = None

    def has_left(self, key: int, record: tuple[bytes, Decision]) -> None:
        """The oldest of all is the first in its line."""
        self._first(record[0])

    def _first(self, key: bytes) -> int:
        """Take out the number of the decision that is first in its line."""
        line = self._lines[key]
        number = line.popleft()
        if not line:
            del self._lines[key]
        return number


def _same(x: Any, kept: Any) -> bool:
    """Whether two rows are equal; those that cannot say so are told apart by their content."""
    try:
        return bool(x == kept)
    except ValueError:  # arrays among the features
        return False


def content_of(x: Any) -> bytes:
    """A row's content in 16 bytes, whatever the order of its features.

    >>> content_of({"a": 1, "b": 2.5}) == content_of({"b": 2.5, "a": 1})
    True
    """
    text = "\0".join(sorted(map(repr, x.items()))) if hasattr(x, "items") else repr(x)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
