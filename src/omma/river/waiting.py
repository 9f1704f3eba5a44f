"""Decisions that wait for their labels by the content of their row, in bounded memory."""

import copy
from collections import OrderedDict, deque
from hashlib import blake2b
from typing import Any


class WaitingRows:
    """Decisions by the content of their row; beyond ``limit``, the oldest is forgotten.

    Labels come with a row of the same content, often a copy of the row that was decided. Decisions
    on rows of equal content wait in line. Only the 16 bytes of ``content_key`` are stored of a row.
    But most labels come before the next row, and the key takes half as long as a linear model: so
    the last row is stored whole, and compared.

    >>> waiting = WaitingRows(limit=2)
    >>> for value, label in ((1.0, "a"), (2.0, "b"), (3.0, "c")):
    ...     waiting.put({"x": value}, f"decided {label}")
    >>> key, decision = waiting.find({"x": 3.0})
    >>> decision
    'decided c'
    >>> waiting.find({"x": 1.0}) is None
    True
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._last: tuple[Any, Any] | None = None
        # By number, oldest first; and the numbers of each content in line.
        self._decisions: OrderedDict[int, tuple[bytes, Any]] = OrderedDict()
        self._lines: dict[bytes, deque[int]] = {}
        self._number = 0  # of the next decision that gets in line

    def __len__(self) -> int:
        return len(self._decisions) + (self._last is not None)

    def put(self, x: Any, decision: Any) -> None:
        """Remember the decision on a row."""
        self._line_up_last()
        while len(self._decisions) >= self.limit:
            _, (key, _) = next(iter(self._decisions.items()))
            self.drop(key)  # the oldest of all is the first in its line
        self._last = (dict(x) if type(x) is dict else copy.copy(x), decision)

    def find(self, x: Any) -> tuple[bytes | None, Any] | None:
        """The oldest decision on a row of this content, and its key for ``drop``.

        The key of the last decision is None. It goes on waiting until it is dropped.
        """
        if self._last is not None:
            row, decision = self._last
            if not self._decisions and _are_equal(x, row):
                return None, decision
            self._line_up_last()
        if not self._decisions:
            return None
        key = content_key(x)
        line = self._lines.get(key)
        return None if line is None else (key, self._decisions[line[0]][1])

    def drop(self, key: bytes | None) -> None:
        """Forget the oldest decision with this key."""
        if key is None:
            self._last = None
            return
        line = self._lines[key]
        del self._decisions[line.popleft()]
        if not line:
            del self._lines[key]

    def _line_up_last(self) -> None:
        """Put the last decision in line by its key."""
        if self._last is not None:
            row, decision = self._last
            key = content_key(row)
            self._lines.setdefault(key, deque()).append(self._number)
            self._decisions[self._number] = key, decision
            self._number += 1
            self._last = None


def _are_equal(x: Any, row: Any) -> bool:
    """Whether two rows are equal; False if they cannot be compared, as their keys then decide."""
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
