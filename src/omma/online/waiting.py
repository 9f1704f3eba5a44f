"""What waits in the order it came, in bounded memory."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

Record = TypeVar("Record")


class Waiting(Generic[Record]):
    """Records by key; once there are more than ``limit``, the oldest are forgotten, and counted.

    Both that of a learner, whose rows have ids, and that of river's classifier, whose rows are
    known by their content, are one of these.

    >>> waiting = Waiting(limit=2)
    >>> for name in "abc":
    ...     waiting.line_up(name, name.upper())
    >>> list(waiting), waiting.forgotten
    (['b', 'c'], 1)
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.forgotten = 0  # how many so far
        # Not a plain dictionary: taking the first out of one again and again is quadratic.
        self._waiting: OrderedDict[Any, Record] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, key: object) -> bool:
        return key in self._waiting

    def __iter__(self) -> Iterator[Any]:
        """The keys of what waits, oldest first."""
        return iter(self._waiting)

    def line_up(self, key: Any, record: Record) -> None:
        """Let a record wait as the last one."""
        self._waiting[key] = record
        self.forget_beyond(self.limit)

    def forget_beyond(self, most: int) -> None:
        """Forget the oldest until no more wait than that."""
        while len(self._waiting) > most:
            self.forget()

    def forget(self) -> None:
        """Let the oldest go."""
        key, record = self._waiting.popitem(last=False)
        self.forgotten += 1
        self.has_left(key, record)

    def has_left(self, key: Any, record: Record) -> None:
        """Told of each that was forgotten, after it has gone."""
