"""Decisions that wait for their labels, by id, in bounded memory."""

from __future__ import annotations

import json
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma import npz
from omma._validate import check_number, check_positive_int, repeated, shown
from omma.online.codec import HEAD, SPOILED, Decision, Id, check_id, pack, unpack


class AlreadyWaitingError(ValueError):
    """A second decision for an id whose first one still waits for its labels."""

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
        Or when they have waited for longer than that. Only the time that passes here counts: ages
        go on where they were after loading, and a clock that goes back stands still.
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
        # The last reading of the clock of max_seconds, and the time that had passed by then.
        self._reading = time.monotonic()
        self._time = 0.0
        # Not a plain dictionary: taking the first out of one again and again is quadratic.
        self._records: OrderedDict[Id, bytes] = OrderedDict()
        self._gone: OrderedDict[Id, bool] = OrderedDict()  # True: labelled, False: forgotten

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, key: object) -> bool:
        return key in self._records

    def __iter__(self) -> Iterator[Id]:
        """The ids that wait, oldest first."""
        return iter(self._records)

    def put(self, key: Id, decision: Decision, moment: float | None = None) -> None:
        """Let the decision on one row wait until its labels come.

        ``moment`` is the time that a journal tells; default that of the clock.
        """
        self.check_free(key, moment)
        record = pack(decision, self.n_labels, self._now(moment))
        self.decided += 1
        self._gone.pop(key, None)  # an id that has gone may be used again
        self._records[key] = record
        self.forget_beyond(self.limit)
        self._forget_old(moment)

    def get(self, key: Id, moment: float | None = None) -> Decision:
        """The decision that waits under an id, and goes on waiting; ``moment`` as of ``put``."""
        self._forget_old(moment)
        self._check_waits(key)
        return unpack(self._records[key], self.n_labels)[0]

    def drop(self, key: Id) -> None:
        """Let the decision under an id go, whose labels have come."""
        self._check_waits(key)
        del self._records[key]
        self._remember(key, labelled=True)

    def check_free(self, key: Id, moment: float | None = None) -> None:
        """Refuse an id under which a decision still waits."""
        self._forget_old(moment)
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

    def forget_beyond(self, limit: int) -> None:
        """Forget the oldest until no more than that wait."""
        while len(self._records) > limit:
            self._forget()

    def _forget_old(self, moment: float | None) -> None:
        max_age = self.max_age if self.max_seconds is None else self.max_seconds
        if max_age is None:
            return
        now = self._now(moment)
        while self._records:
            decided_at = HEAD.unpack_from(next(iter(self._records.values())))[0]
            if now - decided_at <= max_age:
                return
            self._forget()

    def _forget(self) -> None:
        key, record = self._records.popitem(last=False)
        self.forgotten += 1
        self._remember(key, labelled=False)
        if self.evicted is not None:
            self.evicted(unpack(record, self.n_labels)[0])

    def _remember(self, key: Id, labelled: bool) -> None:
        self._gone[key] = labelled
        if len(self._gone) > self.limit:
            self._gone.popitem(last=False)

    # Time

    def _now(self, moment: float | None = None) -> float:
        """The present time; it never goes back, so that the oldest decision is the first."""
        if self.max_seconds is None:  # rows are the clock
            self._time = max(self._time, float(self.decided))
        elif moment is not None:
            self._time = max(self._time, moment)
        else:
            reading = time.monotonic()
            self._time += max(0.0, reading - self._reading)
            self._reading = reading
        return self._time

    @property
    def now(self) -> float:
        """The present time, for a journal; zero where rows are the clock."""
        return 0.0 if self.max_seconds is None else self._now()

    # Files

    def __getstate__(self) -> dict[str, Any]:
        if self.max_seconds is not None:
            self._now()  # ages end here, and go on where this is unpickled
        return {**self.__dict__, "evicted": None, "_reading": 0.0}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reading = time.monotonic()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that waits and all that is remembered, as plain arrays for a file."""
        records = list(self._records.values())
        # Ages end when they are saved.
        time_now = self._time if self.max_seconds is None else self._now()
        # Ids as JSON: an array of texts would be as wide as the longest.
        texts = {"ids": list(self._records), "gone": [list(self._gone), list(self._gone.values())]}
        return {
            **{n: np.frombuffer(json.dumps(ids).encode(), np.uint8) for n, ids in texts.items()},
            "records": np.frombuffer(b"".join(records), np.uint8),
            "ends": np.cumsum([len(record) for record in records], dtype=np.int64),
            "numbers": np.array([self.decided, self.forgotten, time_now]),
        }

    def restore(
        self, arrays: dict[str, NDArray[Any]], check: Callable[[Decision], None] | None = None
    ) -> None:
        """Go on from what ``arrays`` gave; ``ValueError`` where no learner has written that.

        ``check`` is called with each decision, and raises ``ValueError``.

        >>> import numpy as np
        >>> waiting, again = Waiting(n_labels=2), Waiting(n_labels=2)
        >>> waiting.put(7, Decision(np.array([1, 0]), np.array([0.9, 0.2])))
        >>> again.restore(waiting.arrays())
        >>> again.get(7).eta
        array([0.9, 0.2])
        """
        with npz.told("the decisions that wait", "are damaged", SPOILED):
            kinds = {"ids": "u", "gone": "u", "records": "u", "ends": "i", "numbers": "f"}
            for name, kind in kinds.items():
                array = arrays[name]
                if array.ndim != 1 or array.dtype.kind != kind:
                    got = f"{array.dtype} {array.shape}"
                    raise ValueError(f"expected a vector of kind {kind!r} in {name!r}, got {got}")
            texts = {name: arrays[name].astype(np.uint8).tobytes() for name in ("ids", "gone")}
            ids = [check_id(key) for key in json.loads(texts["ids"])]
            gone, labelled = json.loads(texts["gone"])
            self._gone.update(
                (check_id(key), bool(flag)) for key, flag in zip(gone, labelled, strict=True)
            )
            records = arrays["records"].astype(np.uint8).tobytes()
            ends = [0, *arrays["ends"].tolist()]
            decided, forgotten, time_now = arrays["numbers"].tolist()
            fits = len(ends) == len(ids) + 1 and ends[-1] == len(records)
            fits = fits and len(set(ids)) == len(ids) and not set(ids) & set(self._gone)
            if not fits or not decided.is_integer() or not forgotten.is_integer():
                raise ValueError("its parts do not fit together")
            before = -math.inf
            # Decisions are in the order in which they were made.
            self._time = max(0.0, time_now)  # older files begin at minus infinity
            for key, start, end in zip(ids, ends[:-1], ends[1:], strict=True):
                self._records[key] = records[start:end]
                decision, decided_at, _ = unpack(records[start:end], self.n_labels, check=True)
                if check is not None:
                    check(decision)
                if not before <= decided_at <= self._time:
                    raise ValueError("its times are out of order")
                before = decided_at
            self.decided, self.forgotten = int(decided), int(forgotten)
            # Every decision waits, was labelled or was forgotten; up to 2**53 a float counts them.
            if not 0 <= forgotten <= decided - len(ids) or decided > 2**53:
                raise ValueError(f"{decided:g} decisions, of which {forgotten:g} were forgotten")
            if self._time > decided if self.max_seconds is None else not self._time < math.inf:
                raise ValueError(f"the time {self._time:g} is none of its clock")
        self.forget_beyond(self.limit)


def read_ids(owner: str, single: Any, several: Any) -> list[Id]:
    """The ids of ``id=`` or of ``ids=``, each as it is kept; none may come twice."""
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
