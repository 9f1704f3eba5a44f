"""Decisions that wait for their labels, by id, in bounded memory."""

from __future__ import annotations

import json
import math
import struct
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma import npz
from omma._validate import check_number, check_positive_int, repeated, shown
from omma.online.codec import SPOILED, Decision, Id, check_id, join, pack, split, unpack


class AlreadyWaitingError(ValueError):
    """A second decision for an id whose first decision still waits for its labels."""

    counted_as = "still_waiting"


class LabelledTwiceError(ValueError):
    """Labels for an id that is already labelled."""

    counted_as = "labelled_twice"


class UnknownIdError(ValueError):
    """Labels for an id under which nothing was decided, or which was forgotten."""

    counted_as = "unknown"


class ForgottenIdError(UnknownIdError):
    """Labels for an id whose decision was forgotten before they came."""

    counted_as = "forgotten"


TIME = struct.Struct("<d")
# How refused calls are counted; "unsound" is any other ValueError or TypeError.
REFUSALS = ("still_waiting", "labelled_twice", "forgotten", "unknown", "unsound")


class Waiting:
    """Decisions by id, in the order they were made; too many or too old ones are forgotten.

    A waiting row of 46 labels takes 130 to 180 bytes and its id (a number 32, a short text 55);
    where its probabilities are kept, 370 more. Ids that have gone are remembered, to tell a second
    label from an unknown one: as many as ``limit``, some 120 bytes and the id each.

    It holds no lock: threads that share it take one of their own around every call. Ids are those
    that ``check_id`` returned.

    Parameters
    ----------
    n_labels : int
    limit : int
        How many decisions wait at most; one more, and the oldest is forgotten.
    max_age : int, optional
        Decisions are forgotten, too, when more rows than that were decided since.
    max_seconds : float, optional
        Or when they have waited for longer than that. Time in files does not count: after loading,
        ages continue from where they were. Nothing gets younger if the clock is set back.
    evicted : function of a Decision, optional
        Called with each decision that is forgotten, after it has gone.

    Examples
    --------
    >>> import numpy as np
    >>> waiting = Waiting(n_labels=3, limit=2)
    >>> for name in ("a", "b", "c"):
    ...     waiting.put(name, Decision(np.array([1, 0, 1], dtype=np.int8)))
    >>> list(waiting), waiting.forgotten
    (['b', 'c'], 1)
    >>> waiting.get("b").prediction
    array([1, 0, 1], dtype=int8)
    >>> waiting.drop("b")
    >>> waiting.get("b")
    Traceback (most recent call last):
    ...
    omma.online.waiting.LabelledTwiceError: id 'b' is already labelled
    """

    def __init__(
        self,
        n_labels: int,
        *,
        limit: int = 10_000,
        max_age: float | None = None,
        max_seconds: float | None = None,
        evicted: Callable[[Decision], None] | None = None,
    ) -> None:
        owner = "OnlineClassifier"
        self.n_labels = n_labels
        self.limit = check_positive_int(owner, "max_waiting", limit)
        for name, age in (("max_age", max_age), ("max_seconds", max_seconds)):
            if age is not None:
                check_number(owner, name, age, low=0.0)
        if max_age is not None and max_seconds is not None:
            raise ValueError(f"{owner} must be given max_age (rows) or max_seconds, got both")
        self.max_age = max_age
        self.max_seconds = None if max_seconds is None else float(max_seconds)
        self.evicted = evicted
        self.decided = 0  # decisions so far, which are the clock of max_age
        self.forgotten = 0
        # The last reading of the clock of max_seconds, and the seconds that had passed by then.
        self._reading = time.monotonic()
        self.seconds = 0.0
        # Records, each with the time of its decision before it. Not a plain dictionary: taking the
        # first out of one again and again is quadratic.
        self._records: OrderedDict[Id, bytes] = OrderedDict()
        self._gone: OrderedDict[Id, bool] = OrderedDict()  # True: labelled, False: forgotten

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, key: object) -> bool:
        return key in self._records

    def __iter__(self) -> Iterator[Id]:
        """The ids that wait, oldest first."""
        return iter(self._records)

    def put(self, key: Id, decision: Decision) -> None:
        """Let the decision on one row wait until its labels come."""
        self.check_free(key)
        record = TIME.pack(self._now) + pack(decision)
        self.decided += 1
        self._gone.pop(key, None)  # an id that has gone may be used again
        self._records[key] = record
        self._forget_old()

    def get(self, key: Id) -> Decision:
        """The decision that waits under an id; it keeps waiting."""
        self._check_waits(key)
        return unpack(self._records[key][TIME.size :], self.n_labels)

    def drop(self, key: Id) -> None:
        """Remove the decision under an id: its labels have come."""
        self._check_waits(key)
        del self._records[key]
        self._remember(key, labelled=True)

    def check_free(self, key: Id) -> None:
        """Refuse an id under which a decision still waits."""
        if key in self._records:
            raise AlreadyWaitingError(f"id {shown(key)} still waits for its labels")

    def _check_waits(self, key: Id) -> None:
        """Refuse an id under which no decision waits."""
        if key in self._records:
            return
        is_labelled = self._gone.get(key)
        if is_labelled:
            raise LabelledTwiceError(f"id {shown(key)} is already labelled")
        if is_labelled is not None:
            raise ForgottenIdError(
                f"id {shown(key)} is not known: its decision was forgotten before the labels came"
            )
        raise UnknownIdError(f"id {shown(key)} is not known: no decision waits for its labels")

    def _forget_old(self) -> None:
        """Forget decisions that are too many or too old, the oldest first."""
        max_age = self.max_age if self.max_seconds is None else self.max_seconds
        while self._records:
            decided_at = TIME.unpack_from(next(iter(self._records.values())))[0]
            is_old = max_age is not None and self._now - decided_at > max_age
            if not is_old and len(self._records) <= self.limit:
                return
            key, record = self._records.popitem(last=False)
            self.forgotten += 1
            self._remember(key, labelled=False)
            if self.evicted is not None:
                self.evicted(unpack(record[TIME.size :], self.n_labels))

    def _remember(self, key: Id, labelled: bool) -> None:
        self._gone[key] = labelled
        if len(self._gone) > self.limit:
            self._gone.popitem(last=False)

    # Time

    @property
    def _now(self) -> float:
        """The present time, in rows or in seconds."""
        return float(self.decided) if self.max_seconds is None else self.seconds

    def tick(self, moment: float | None = None) -> None:
        """Let time pass, and forget decisions that are too old by then.

        ``moment`` is the time of an event in a journal; default that of the clock.
        """
        self._read_clock(moment)
        self._forget_old()

    def _read_clock(self, moment: float | None = None) -> None:
        """Look how many seconds have passed; they stand at 0 where rows are the clock."""
        if self.max_seconds is None:
            return
        if moment is None:
            reading = time.monotonic()
            moment = self.seconds + (reading - self._reading)
            self._reading = reading
        self.seconds = max(self.seconds, moment)  # never back, so that the oldest is the first

    # Files

    def __getstate__(self) -> dict[str, Any]:
        self._read_clock()  # ages stop here, and continue where this is unpickled
        return {**self.__dict__, "evicted": None, "_reading": 0.0}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reading = time.monotonic()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All decisions that wait and all ids that are remembered, as plain arrays for a file."""
        self._read_clock()  # ages stop when they are saved
        contents = {
            # Ids as JSON: an array of texts would be as wide as the longest.
            "ids": json.dumps(list(self._records)).encode(),
            "gone": json.dumps(list(self._gone.items())).encode(),
            "records": join(self._records.values()),
        }
        arrays = {name: np.frombuffer(content, np.uint8) for name, content in contents.items()}
        return {**arrays, "numbers": np.array([self.decided, self.forgotten, self.seconds])}

    def restore(
        self, arrays: dict[str, NDArray[Any]], check: Callable[[Decision], None] | None = None
    ) -> None:
        """Continue from what ``arrays`` gave; ``ValueError`` if no learner can have written it.

        ``check`` is called with each decision, and raises ``ValueError``.

        >>> import numpy as np
        >>> waiting, again = Waiting(n_labels=2), Waiting(n_labels=2)
        >>> waiting.put(7, Decision(np.array([1, 0]), np.array([0.9, 0.2])))
        >>> again.restore(waiting.arrays())
        >>> again.get(7).eta
        array([0.9, 0.2])
        """
        with npz.told("the decisions that wait", "are damaged", SPOILED):
            ids, gone = (json.loads(arrays[name].tobytes()) for name in ("ids", "gone"))
            decided, forgotten, seconds = arrays["numbers"].tolist()
            # Every decision waits, was labelled or was forgotten; up to 2**53 a float counts them.
            fits = decided.is_integer() and forgotten.is_integer() and decided <= 2**53
            fits = fits and 0 <= forgotten <= decided - len(ids)
            clock = seconds == 0.0 if self.max_seconds is None else 0.0 <= seconds < math.inf
            if not fits or not clock:
                raise ValueError(
                    f"{decided:g} decisions, {forgotten:g} forgotten, and the time {seconds:g}"
                )
            self.decided, self.forgotten, self.seconds = int(decided), int(forgotten), seconds
            self._gone.update((check_id(key), bool(is_labelled)) for key, is_labelled in gone)
            before = 0.0  # decisions are in the order in which they were made
            for key, record in zip(ids, split(arrays["records"].tobytes()), strict=True):
                decision = unpack(record[TIME.size :], self.n_labels, check=True)
                if check is not None:
                    check(decision)
                (decided_at,) = TIME.unpack_from(record)
                if not before <= decided_at <= self._now:
                    raise ValueError("its times are out of order")
                before = decided_at
                self._records[check_id(key)] = record
            if len(self._records) < len(ids) or self._records.keys() & self._gone.keys():
                raise ValueError("an id that occurs twice")


def read_ids(owner: str, single: Any, several: Any) -> list[Id]:
    """The ids of ``id=`` or ``ids=``, checked; they must differ."""
    if several is None:
        return [check_id(single)]
    if single is not None:
        raise ValueError(f"{owner} must be given id or ids, got both")
    if isinstance(several, str | bytes) or not isinstance(several, Iterable):
        raise TypeError(f"ids of {owner} must be a sequence of ids, got {shown(several)}")
    keys = [check_id(key) for key in several]
    twice = repeated(keys)
    if twice is not None:
        raise ValueError(f"ids of {owner} must differ, got {shown(twice)} twice")
    return keys
