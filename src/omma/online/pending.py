"""Decisions that wait for their labels, by id, in bounded memory."""

from __future__ import annotations

import json
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._validate import check_number, check_positive_int, repeated, shown
from omma.online.packed import Decision, Eta, check_unpacked, pack, time_of, unpack
from omma.online.waiting import Waiting

Id = str | int
LONGEST = 1_000  # signs of an id: memory is bounded by the number of rows only if ids are, too
WIDEST = 2**128  # as large as a UUID
# What is raised where a file was spoiled.
SPOILED = (KeyError, TypeError, IndexError, ValueError, OverflowError, RecursionError)


class AlreadyWaitingError(ValueError):
    """A second decision for an id whose first one still waits for its labels."""


class UnknownIdError(ValueError):
    """Labels for an id under which nothing was decided, or which was forgotten."""


class ForgottenIdError(UnknownIdError):
    """Labels for an id whose decision was forgotten before they came."""


class LabelledTwiceError(ValueError):
    """Labels for an id that had its labels before."""


# What each is called where it is counted; the first that fits is taken.
KINDS: tuple[tuple[type[Exception], str], ...] = (
    (AlreadyWaitingError, "still_waiting"),
    (LabelledTwiceError, "labelled_twice"),
    (ForgottenIdError, "forgotten"),
    (UnknownIdError, "unknown"),
    (ValueError, "unsound"),
    (TypeError, "unsound"),
)


class Refusals:
    """Counts what is refused within a ``with``, by its kind, and lets the error pass.

    >>> refusals = Refusals()
    >>> try:
    ...     with refusals:
    ...         raise UnknownIdError("who?")
    ... except ValueError:
    ...     refusals.counts["unknown"]
    1
    """

    def __init__(self) -> None:
        self.counts = {name: 0 for _, name in KINDS}

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *others: Any) -> None:
        if kind is not None:
            for error, name in KINDS:
                if issubclass(kind, error):
                    self.counts[name] += 1
                    return

    def restore(self, counts: Any) -> None:
        """Take over what was counted before, as a file says it."""
        if not isinstance(counts, dict) or set(counts) != set(self.counts):
            raise ValueError(f"refused must count {', '.join(self.counts)}, got {shown(counts)}")
        for number in counts.values():
            if type(number) is not int or number < 0:
                raise ValueError(f"refused must hold numbers of at least 0, got {shown(number)}")
        self.counts = dict(counts)


def age_and_clock(owner: str, max_age: float | None, max_seconds: float | None) -> dict[str, Any]:
    """Rows or seconds after which a decision is forgotten, and what counts them."""
    if max_seconds is None:
        return {"max_age": max_age, "clock": None}
    if max_age is not None:
        raise ValueError(f"{owner} must be given max_age (rows) or max_seconds, got both")
    check_number(owner, "max_seconds", max_seconds, low=0.0)
    return {"max_age": float(max_seconds), "clock": time.monotonic}


class Pending(Waiting[bytes]):
    """Decisions by id, in the order they were made; too many or too old ones are forgotten.

    A waiting row of 46 labels takes 130 to 180 bytes and its id (a number 32, a short text 55);
    where its probabilities are kept, 370 more (190 as 32-bit numbers). Ids that have gone are
    remembered, to tell a second label from an unknown one: as many as ``limit``, some 120 bytes
    and the id each.

    It holds no lock: threads that share it take one of their own around every call.

    Parameters
    ----------
    n_labels : int
    limit : int
        How many decisions wait at most; one more, and the oldest is forgotten.
    max_age : float, optional
        Decisions older than that are forgotten. It counts rows decided since, or what ``clock``
        counts.
    clock : function, optional
        Counts up, for example ``time.monotonic`` for seconds. Only how far it has come since the
        last look is added to the age of what waits: ages go on where they were after loading, and
        time that goes back stands still.
    evicted : function of an id and a Decision, optional
        Called with each decision that is forgotten, after it has gone.

    Examples
    --------
    >>> import numpy as np
    >>> pending = Pending(n_labels=3, limit=2)
    >>> for name in ("a", "b", "c"):
    ...     pending.put(name, None, np.array([1, 0, 1], dtype=np.int8))
    >>> list(pending), pending.forgotten
    (['b', 'c'], 1)
    >>> pending.take("b").prediction
    array([1, 0, 1], dtype=int8)
    >>> pending.take("b")
    Traceback (most recent call last):
    ...
    omma.online.pending.LabelledTwiceError: the id 'b' had its labels before
    """

    def __init__(
        self,
        n_labels: int,
        *,
        limit: int = 10_000,
        max_age: float | None = None,
        clock: Callable[[], float] | None = None,
        evicted: Callable[[Id, Decision], None] | None = None,
    ) -> None:
        self.n_labels = check_positive_int("Pending", "n_labels", n_labels)
        super().__init__(check_positive_int("Pending", "limit", limit))
        if max_age is not None:
            check_number("Pending", "max_age", max_age, low=0.0)
        self.max_age = max_age
        self.clock = clock
        self.evicted = evicted
        self._put = 0  # the clock of those who gave none: rows so far
        self._time = 0.0  # by which decisions grow old
        self._reading = 0.0 if clock is None else clock()  # of the clock, when that was looked at
        self._gone: OrderedDict[Id, bool] = OrderedDict()  # whether labels came, else forgotten

    @property
    def decided(self) -> int:
        """How many decisions were put so far."""
        return self._put

    def put(
        self,
        key: Id,
        eta: Eta | None,
        prediction: NDArray[Any],
        weight: float = 1.0,
        *,
        sparse: bool = False,
        moved: bool = False,
    ) -> None:
        """Remember a decision until its labels come.

        Of a ``sparse`` row, whose values are not checked again here, ``eta`` is places and values,
        and ``prediction`` the places of labels; of others, there is a number for each label.
        ``eta`` is None where it is not needed to learn. The row has ``moved`` if it came in a frame
        with its columns in another order.
        """
        key = self.check_free(key)
        made = Decision(eta, prediction, weight, sparse, moved)
        record = pack(made, self._now(), self.n_labels)
        self._put += 1
        self._gone.pop(key, None)
        self.line_up(key, record)
        self._forget_old()

    def get(self, key: Id) -> Decision:
        """The decision that waits under an id; it goes on waiting."""
        self._forget_old()
        return unpack(self._waiting[self._known(key)], self.n_labels)

    def take(self, key: Id) -> Decision:
        """The decision that waited under an id, whose labels have come."""
        decision = self.get(key)
        self.drop(key)
        return decision

    def drop(self, key: Id) -> None:
        """Let the decision under an id go, whose labels have come."""
        known = self._known(key)
        del self._waiting[known]
        self._remember(known, labelled=True)

    def check_free(self, key: Id) -> Id:
        """Refuse an id under which a decision still waits; returns the id as it is kept."""
        key = check_id(key)
        self._forget_old()
        if key in self._waiting:
            raise AlreadyWaitingError(f"the id {shown(key)} still waits for its labels")
        return key

    def _known(self, key: Id) -> Id:
        key = check_id(key)
        if key in self._waiting:
            return key
        labelled = self._gone.get(key)
        if labelled:
            raise LabelledTwiceError(f"the id {shown(key)} had its labels before")
        start = f"the id {shown(key)} is not known:"
        if labelled is not None:
            raise ForgottenIdError(f"{start} its decision was forgotten before the labels came")
        raise UnknownIdError(f"{start} no decision waits for its labels")

    def _now(self) -> float:
        """The present time; it never goes back, so that the oldest decision is the first."""
        if self.clock is None:
            self._time = max(self._time, float(self._put))
        else:
            reading = self.clock()
            self._time += max(0.0, reading - self._reading)
            self._reading = reading
        return self._time

    @property
    def now(self) -> float:
        """The present time, for a journal; zero where rows are the clock."""
        return 0.0 if self.clock is None else self._now()

    @contextmanager
    def at(self, moment: float) -> Iterator[None]:
        """Meanwhile it is as late as it was when a journal was written."""
        clock = self.clock
        if clock is not None:
            self._time, reading = max(self._time, moment), self._reading
            self.clock = lambda: reading
        try:
            yield
        finally:
            self.clock = clock

    def _forget_old(self) -> None:
        if self.max_age is None:
            return
        now = self._now()
        while self._waiting:
            record = next(iter(self._waiting.values()))
            if now - time_of(record) <= self.max_age:
                return
            self.forget()

    def has_left(self, key: Id, record: bytes) -> None:
        """Remember the id of a decision that was forgotten, and tell who wants to know."""
        self._remember(key, labelled=False)
        if self.evicted is not None:
            self.evicted(key, unpack(record, self.n_labels))

    def _remember(self, key: Id, labelled: bool) -> None:
        self._gone[key] = labelled
        if len(self._gone) > self.limit:
            self._gone.popitem(last=False)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that waits and all that is remembered, as plain arrays for a file."""
        records = list(self._waiting.values())
        return {
            "ids": _as_json(list(self._waiting)),
            "gone": _as_json([list(self._gone), list(self._gone.values())]),
            "records": np.frombuffer(b"".join(records), np.uint8),
            "ends": np.cumsum([len(one) for one in records], dtype=np.int64),
            "numbers": np.array([self._put, self.forgotten, self._time]),
        }

    @classmethod
    def from_arrays(
        cls,
        arrays: dict[str, NDArray[Any]],
        n_labels: int,
        *,
        check: Callable[[Decision], None] | None = None,
        **options: Any,
    ) -> Pending:
        """What ``arrays`` gave, with everything checked; ``ValueError`` where it is no such thing.

        ``check`` is asked about each decision, too, and raises ``ValueError``; ``options`` are
        those of a new one.

        >>> import numpy as np
        >>> pending = Pending(n_labels=2)
        >>> pending.put(7, np.array([0.9, 0.2]), np.array([1, 0]))
        >>> again = Pending.from_arrays(pending.arrays(), n_labels=2)
        >>> again.take(7).eta
        array([0.9, 0.2])
        """
        found = cls(n_labels, **options)
        try:
            found._restore(arrays)
            found._check_records(check)
        except SPOILED as error:
            raise ValueError(f"the decisions that wait are damaged: {shown(error)}") from error
        found.forget_beyond(found.limit)
        return found

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        ids = [check_id(one) for one in _from_json(arrays["ids"])]
        gone, labelled = _from_json(arrays["gone"])
        ends = np.concatenate([[0], _plain(arrays["ends"], "i")])
        records = _plain(arrays["records"], "u").astype(np.uint8).tobytes()
        numbers = _plain(arrays["numbers"], "f")
        whole = bool((numbers[:2] == np.floor(numbers[:2])).all())
        fits = whole and len(ends) == len(ids) + 1 and ends[-1] == len(records)
        fits = fits and bool((np.diff(ends) > 0).all())
        if not fits or len(set(ids)) < len(ids) or len(gone) != len(labelled) or len(numbers) != 3:
            raise ValueError("its parts do not fit together")
        for key, start, end in zip(ids, ends[:-1], ends[1:], strict=True):
            self._waiting[key] = records[start:end]
        self._gone.update(
            {check_id(key): bool(one) for key, one in zip(gone, labelled, strict=True)}
        )
        self._put, self.forgotten = int(numbers[0]), int(numbers[1])
        self._time = max(0.0, float(numbers[2]))  # it began at minus infinity in older files

    def _check_records(self, check: Callable[[Decision], None] | None) -> None:
        """Every decision can be read, and was made no earlier than the one before it."""
        before = -math.inf
        for record in self._waiting.values():
            found = unpack(record, self.n_labels)
            check_unpacked(found, self.n_labels)
            if check is not None:
                check(found)
            if not before <= time_of(record) <= self._time:
                raise ValueError("its times are out of order")
            before = time_of(record)
        if self.forgotten < 0 or self.forgotten + len(self) > self._put or self._put > 2**53:
            raise ValueError(f"{self._put:g} decisions, of which {self.forgotten:g} were forgotten")
        # Without a clock, time is the number of decisions; before the first it is -inf.
        if self._time > self._put if self.clock is None else not self._time < math.inf:
            raise ValueError(f"the time {self._time:g} is none of its clock")
        if any(key in self._waiting for key in self._gone):
            raise ValueError("its parts do not fit together")


def check_id(key: Any) -> Id:
    """An id as it is kept: a text, or a whole number.

    >>> check_id(2.5)
    Traceback (most recent call last):
    ...
    TypeError: an id must be a text or a whole number, got 2.5
    """
    if isinstance(key, str):
        if len(key) > LONGEST:
            raise ValueError(f"an id must have at most {LONGEST:,} signs, got {len(key):,}")
        return str(key)
    if isinstance(key, bool) or not isinstance(key, int | np.integer):
        raise TypeError(f"an id must be a text or a whole number, got {shown(key)}")
    number = int(key)
    if not -WIDEST < number < WIDEST:
        raise ValueError(f"an id must be a number of at most 128 bits, got {hex(number)[:20]}…")
    return number


def read_ids(owner: str, one: Any, several: Any) -> list[Id]:
    """The ids of an id or of several, each as it is kept; none may come twice."""
    if several is None:
        return [check_id(one)]
    if one is not None:
        raise ValueError(f"{owner} must be given id or ids, got both")
    if isinstance(several, str | bytes) or not isinstance(several, Iterable):
        raise TypeError(f"ids of {owner} must be a sequence of ids, got {shown(several)}")
    keys = [check_id(key) for key in several]
    twice = repeated(keys)
    if twice is not None:
        raise ValueError(f"ids of {owner} must differ, got {shown(twice)} twice")
    return keys


def _as_json(content: Any) -> NDArray[np.uint8]:
    """Text and numbers of any length, where an array of texts would be as wide as the longest."""
    return np.frombuffer(json.dumps(content).encode(), np.uint8)


def _from_json(text: NDArray[Any]) -> Any:
    return json.loads(_plain(text, "u").astype(np.uint8).tobytes())


def _plain(array: NDArray[Any], kind: str) -> NDArray[Any]:
    if array.ndim != 1 or array.dtype.kind != kind:
        raise ValueError(f"expected a vector of kind {kind!r}, got {array.dtype} {array.shape}")
    return array
