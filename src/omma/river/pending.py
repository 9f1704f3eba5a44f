"""Decisions that wait for their labels, in bounded memory."""

import copy
from collections import deque
from collections.abc import Hashable
from hashlib import blake2b
from typing import Any, NamedTuple

from omma.online.waiting import Waiting

Labels = tuple[Hashable, ...]


class HedgedDecision(NamedTuple):
    """The decision on a row: the labels predicted, and what there was to choose from.

    ``predicted`` is None where nothing could be decided, because no label was known yet. ``tuned``
    are the labels that the policy would predict, ``own`` those of the model itself, and ``eta`` the
    probabilities, where the policy counts them.
    """

    predicted: Labels | None
    tuned: Labels = ()
    own: Labels = ()
    eta: tuple[float, ...] | None = None


class Pending(Waiting[tuple[bytes, HedgedDecision]]):
    """Decisions by the content of their row; once there are ``limit``, the oldest is forgotten.

    Labels come with a row of the same content, often a copy of the one that was decided. Rows of
    equal content wait in line. Of a row only the 16 bytes of ``content_key`` are stored; but most
    labels come before the next row, so the last row is stored as it is, and compared.

    >>> pending = Pending(limit=2)
    >>> for value, label in ((1.0, "a"), (2.0, "b"), (3.0, "c")):
    ...     pending.put({"x": value}, HedgedDecision((label,)))
    >>> key, decision = pending.find({"x": 3.0})
    >>> decision.predicted
    ('c',)
    >>> pending.find({"x": 1.0}) is None
    True
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._number = 0  # of the next decision that gets in line
        self._last: tuple[Any, HedgedDecision] | None = None
        self._lines: dict[bytes, deque[int]] = {}

    def __len__(self) -> int:
        return super().__len__() + (self._last is not None)

    def put(self, x: Any, decision: HedgedDecision) -> None:
        """Remember the decision on a row."""
        self._line_up_last()
        self.forget_beyond(self.limit - 1)
        self._last = (dict(x) if type(x) is dict else copy.copy(x), decision)

    def find(self, x: Any) -> tuple[bytes | None, HedgedDecision] | None:
        """The oldest decision on a row of this content, and its key for ``drop``.

        The key of the last decision is None. It goes on waiting until it is dropped.
        """
        if self._last is not None:
            row, decision = self._last
            if not self._waiting and _are_equal(x, row):
                return None, decision
            self._line_up_last()
        if not self._waiting:
            return None
        key = content_key(x)
        line = self._lines.get(key)
        return None if line is None else (key, self._waiting[line[0]][1])

    def drop(self, key: bytes | None) -> None:
        """Forget the oldest decision with this key."""
        if key is None:
            self._last = None
        else:
            del self._waiting[self._leave_line(key)]

    def has_left(self, key: int, record: tuple[bytes, HedgedDecision]) -> None:
        """The oldest of all is the first in its line."""
        self._leave_line(record[0])

    def _line_up_last(self) -> None:
        """Put the last decision in line by its key."""
        if self._last is not None:
            key = content_key(self._last[0])
            self._lines.setdefault(key, deque()).append(self._number)
            self.line_up(self._number, (key, self._last[1]))
            self._number += 1
            self._last = None

    def _leave_line(self, key: bytes) -> int:
        """Take out the number of the decision that is first in its line."""
        line = self._lines[key]
        number = line.popleft()
        if not line:
            del self._lines[key]
        return number


def _are_equal(x: Any, row: Any) -> bool:
    """Whether two rows are equal; rows that cannot say so are told apart by their content."""
    try:
        return bool(x == row)
    except ValueError:  # arrays among the features
        return False


def content_key(x: Any) -> bytes:
    """A row's content in 16 bytes, whatever the order of its features.

    >>> content_key({"a": 1, "b": 2.5}) == content_key({"b": 2.5, "a": 1})
    True
    """
    text = "\0".join(sorted(map(repr, x.items()))) if hasattr(x, "items") else repr(x)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
