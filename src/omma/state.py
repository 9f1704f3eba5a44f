"""All that changes while a policy runs, as plain arrays.

Counts add where streams are merged, subtract where a window moves on and shrink where the past is
forgotten. The prior is not among them: it is added where a gradient is taken, so that it enters
once, however many states were added up.

Where the past decays, counts are in units (see ``omma.kernels.decay``): row i of a stream counts
for growth ** i. States whose rows came at the same time therefore add up as they are, and so does
what a batch adds to the state that it was decided on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from omma.kernels.calibrate import COUNTED, CURVES, LABELLED, SPREAD, SQUASH, TRUST
from omma.kernels.layout import (
    BIAS,
    ENTRIES,
    ERAS,
    FIELDS,
    GROWTH,
    JUDGED,
    KNOWN,
    LANES,
    LARGEST_UNIT,
    MISSED,
    OWN,
    PRECISION,
    SETS,
    SUM_TP,
    TOTALS,
    TRUE,
    UNIT,
    UNREPORTED,
    UNSEEN,
    N,
)
from omma.kernels.limits import MEAN
from omma.plan import Plan
from omma.sliding_window import SlidingWindow
from omma.state_parts import (
    UNLEARNED,
    Array,
    Calibration,
    CountSet,
    Prices,
    Unseen,
    check_pace,
    is_earlier,
)

SETS_BESIDE = ("labels", "known", "judged")
Shapes = dict[str, tuple[int, ...] | None]
Kind = TypeVar("Kind", bound="State")


def padded(m: int) -> int:
    """A number of labels rounded up to whole lanes."""
    return -(-m // LANES) * LANES


def aligned(rows: int, columns: int) -> NDArray[np.float64]:
    """Zeros that begin at a cache line: vector instructions then never straddle two."""
    try:
        room = np.zeros(rows * columns + LANES)
    except MemoryError:
        needed = 8 * rows * columns / 2**30
        raise MemoryError(
            f"{columns:,} labels take {needed:,.0f} GiB of space to work in, more than there is"
        ) from None
    start = -room.ctypes.data % 64 // room.itemsize
    return room[start : start + rows * columns].reshape(rows, columns)


class State:
    """What a policy has counted.

    Attributes
    ----------
    m : int
        The number of labels.
    columns : ndarray of shape (fields, m rounded up to whole lanes)
        All numbers of each label, as compiled code reads them (``omma.kernels.layout``). All below
        that has a number for each label is a view of it.
    set_totals : ndarray of shape (SETS, TOTALS)
        The totals of all sets of counts.
    cells : ndarray of shape (3, m)
        True positives, predictions and occurrences of each label: what decisions look at. With
        ``feedback="estimates"`` they count probabilities in place of labels.
    totals : ndarray
        The number of rows, and sums over labels for the metrics that need them.
    labels : CountSet or None
        Counts of true labels, where decisions look at others; of rows whose labels came.
    known : CountSet or None
        With ``feedback="both"``, true positives and positives by probabilities over the rows
        whose labels came.
    judged : CountSet or None
        Where the past fades, the counts of true labels that do not: what decisions were worth.
    missed : ndarray of shape (m,) or None
        Of ``cells``, as of a ``CountSet``.
    own, truth : CountSet
        ``cells``, ``totals`` and ``missed`` together; and the counts of true labels.
    calibration : Calibration or None
        What is known of how probabilities and labels differ.
    pace : ndarray or None
        Where the past fades: the weight of a row now, by what it grows after each, and how often
        all was divided by 2 ** 100.
    prices : Prices or None
        What the limits of the policy cost.
    window : SlidingWindow or None
        The rows that decisions look at, where these are the last ones alone.
    unseen : Unseen or None
        What is known of labels that nobody saw, where labels are seen only where predicted.

    Examples
    --------
    >>> import omma
    >>> policy = omma.OMMA("macro_f1")
    >>> eta, y = omma.datasets.long_tail(n=100, m=3, seed=0)
    >>> first, second = (omma.replay(policy, eta[part], y[part]).state
    ...                  for part in (slice(0, 50), slice(50, 100)))
    >>> (first + second).rows
    100.0
    """

    def __init__(
        self,
        m: int,
        sets: Iterable[str] = (),
        *,
        partial: bool = False,
        shared: Array | None = None,
        pace: Array | None = None,
        prices: Prices | None = None,
        window: SlidingWindow | None = None,
        audits: Array | None = None,
    ) -> None:
        self.m, self.sets, self.partial, self.audits = m, tuple(sets), partial, audits
        # Of calibration, ``shared`` has the numbers that belong to no label.
        self.shared, self.pace, self.prices, self.window = shared, pace, prices, window
        self.columns, self.set_totals = np.empty((0, padded(m))), np.zeros((SETS, TOTALS))
        self._lay_out()

    @classmethod
    def start(cls, plan: Plan, m: int) -> State:
        """What a plan counts, before the first of rows with m labels."""
        shared = prices = None
        if plan.calibrated:
            shared = UNLEARNED.copy()
            shared[SQUASH] = plan.squash
        if plan.limits is not None:
            has_rates = bool((plan.limits.kinds == MEAN).any())
            prices = Prices.start(len(plan.limits.labels), rates=has_rates)
        state = State(
            m,
            plan.sets,
            shared=shared,
            pace=None if plan.growth is None else np.array([1.0, plan.growth, 0.0]),
            prices=prices,
            window=None if plan.window is None else SlidingWindow.start(plan.window),
        )
        if plan.settled is not None and state.calibration is not None:
            state.calibration.take(*plan.settled)
        return state

    def widened(self, m: int) -> State:
        """The same with room for m labels, of which the further ones have occurred in no row.

        It takes the place of this state.
        """
        wider = self.copy()
        wider.m = m
        new = ((0, 0), (0, padded(m) - self.m))
        wider.columns = np.pad(wider.columns[:, : self.m], new)
        wider._lay_out()
        return wider

    def _lay_out(self) -> None:
        """Make all columns in use, with the numbers counted so far, and the views of them."""
        has_labels, has_judged = "labels" in self.sets, "judged" in self.sets
        # Columns in use lie before all others: with three million labels each takes 24 MB.
        fields = max(
            3 * (1 + len(self.sets)),  # the sets in use are the first ones
            (ENTRIES + 1) * (self.shared is not None),
            UNSEEN * (self.partial or has_judged),
            FIELDS * (self.audits is not None),
        )
        columns = aligned(fields, self.columns.shape[1])
        columns[: len(self.columns)] = self.columns
        self.columns, labels = columns, columns[:, : self.m]

        def count_set(place: int, missed: int | None) -> CountSet:
            cells, totals = labels[3 * place : 3 * place + 3], self.set_totals[place]
            unknown = labels[missed] if self.partial and missed is not None else None
            return CountSet(cells, totals, unknown, place)

        self.own = count_set(OWN, None if has_labels else MISSED)
        self.cells, self.totals, self.missed, _ = self.own
        # What is missed is noted once, for the counts that values are reported from.
        self.labels = count_set(TRUE, None if has_judged else UNREPORTED) if has_labels else None
        self.known = count_set(KNOWN, None) if "known" in self.sets else None
        self.judged = count_set(JUDGED, UNREPORTED) if has_judged else None
        self.truth = self.judged or self.labels or self.own
        self.unseen = None if self.audits is None else Unseen(labels[UNSEEN:FIELDS], self.audits)
        self.calibration = None
        if self.shared is not None:
            self.calibration = Calibration(self.shared, *labels[BIAS : ENTRIES + 1])

    @property
    def reported(self) -> NDArray[np.float64]:
        """The cells that values are reported from, where labels were unknown: shape (3, m).

        Labels that were unknown by chance count in proportion; what nobody saw because it was not
        predicted is estimated.
        """
        if not self.partial:
            return self.truth.cells
        return self.truth.in_proportion if self.unseen is None else self.unseen.estimate(self.truth)

    @property
    def limited(self) -> CountSet:
        """The counts that limits are held on: estimates where these are all that is looked at."""
        return self.labels or self.own if "known" in self.sets else self.own

    @property
    def rows(self) -> float:
        """The number of rows that decisions look at, or their weight, now."""
        return float(self.totals[N]) / self.unit

    @property
    def unit(self) -> float:
        """What a row counts for now: one, unless the past fades."""
        return 1.0 if self.pace is None else float(self.pace[UNIT])

    def allow_partial_labels(self) -> None:
        """Make room for what is missed of rows that are labelled in part."""
        if not self.partial:
            self.partial = True
            self._lay_out()

    def allow_unseen(self) -> None:
        """Make room for what is known of labels that nobody saw."""
        if self.audits is None:
            # A prediction whose label never comes is missed, as in rows labelled in part.
            self.partial, self.audits = True, np.zeros(2)
            self._lay_out()

    # Files.

    def arrays(self) -> dict[str, Array]:
        """All of it as plain arrays, for a file."""
        arrays: dict[str, Array] = {} if self.pace is None else {"pace": self.pace}
        for start, part in self._parts.items():
            arrays |= {f"{start}{name}": array for name, array in part.arrays().items()}
        return arrays

    @property
    def _parts(self) -> dict[str, Any]:
        """All parts in use, by how the names of their arrays begin in files."""
        parts = {
            **self._count_sets,
            "unseen_": self.unseen,
            "calibration_": self.calibration,
            "prices_": self.prices,
            "recent_": self.window,
        }
        return {start: part for start, part in parts.items() if part is not None}

    @property
    def _count_sets(self) -> dict[str, CountSet]:
        """The sets of counts among them."""
        return {"": self.own, **{f"{name}_": getattr(self, name) for name in self.sets}}

    def shapes(self) -> Shapes:
        """What ``arrays`` of such a state may give; None is any shape, of what grows with rows."""
        shapes: Shapes = {name: array.shape for name, array in self.arrays().items()}
        shapes |= {f"{start}missed": (self.m,) for start in self._count_sets}
        shapes |= {"unseen_cells": (3, self.m), "unseen_rows": (2,)}
        # Numbers for all labels may be of an earlier release, which ``check`` explains.
        grown = {name for name in shapes if name.startswith("recent_")} | {"calibration_shared"}
        return shapes | {name: None for name in shapes if name in grown}

    @classmethod
    def from_arrays(cls: type[Kind], arrays: dict[str, Array]) -> Kind:
        """What ``arrays`` gave, copied."""
        prices, window = _under("prices_", arrays), _under("recent_", arrays)
        state = cls(
            arrays["cells"].shape[1],
            [name for name in SETS_BESIDE if f"{name}_cells" in arrays],
            partial=any(name.endswith("missed") for name in arrays),
            shared=UNLEARNED.copy() if "calibration_shared" in arrays else None,
            pace=np.array(arrays["pace"]) if "pace" in arrays else None,
            prices=Prices(**{name: np.array(array) for name, array in prices.items()})
            if prices
            else None,
            window=SlidingWindow(window) if window else None,
            audits=np.array(arrays["unseen_rows"]) if "unseen_rows" in arrays else None,
        )
        for start, part in state._parts.items():
            if not isinstance(part, Prices | SlidingWindow):  # these have their arrays already
                part.fill(_under(start, arrays))
        state.take_own(arrays)
        return state

    def take_own(self, arrays: dict[str, Array]) -> None:
        """Take over what a state of its kind has beside counts."""

    def copy(self: Kind) -> Kind:
        """A state that goes its own way."""
        return type(self).from_arrays(self.arrays())

    def __reduce__(self) -> Any:
        return type(self).from_arrays, (self.arrays(),)  # views would be unpacked as copies

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take over what ``arrays`` of such a state gave, or nothing of it."""
        # All or nothing: from_arrays makes new arrays, and engines look for these.
        arrays = self._with_rule(arrays)
        self.check(arrays)
        self.__dict__.update(type(self).from_arrays(arrays).__dict__)

    def _with_rule(self, arrays: dict[str, Array]) -> dict[str, Array]:
        """Arrays of an earlier release with the calibration of this state, where a rule gave it.

        The rule has all of it; what such a release had learned otherwise, ``check`` refuses.
        """
        own = self.calibration
        if own is None or not own.rows > 0 or not is_earlier(_under("calibration_", arrays)):
            return arrays
        return arrays | {f"calibration_{name}": array for name, array in own.arrays().items()}

    def check(self, arrays: dict[str, Array]) -> None:
        """Refuse arrays that are not those of such a state."""
        unseen = Unseen(np.empty((3, self.m)), np.empty(2))
        for start, part in {**self._parts, "unseen_": unseen}.items():
            own = _under(start, arrays)
            # A state has these from the first row on whose labels were seen only where predicted.
            if own or part is not unseen:
                part.check(own)
        if self.pace is not None:
            check_pace(arrays.get("pace"), self.pace)
        if self.window is not None:
            self.window.check_labels(arrays, self.m)

    # Sums.

    def __add__(self, other: Any) -> State:
        return self._together(other, 1.0)

    def __sub__(self, other: Any) -> State:
        return self._together(other, -1.0)

    def _together(self, other: Any, sign: float) -> State:
        """Both added, in one unit: that of the state whose rows went on for longer."""
        if not isinstance(other, State):
            return NotImplemented  # type: ignore[no-any-return]
        for state in (self, other):
            if not state.adds_up:
                raise TypeError(f"states can be added where they are counts only, got {state!r}")
        if self.m != other.m or self.kind != other.kind:
            raise ValueError(
                "states can be added for the same number of labels and kind of policy only, got "
                f"{self.m} and {other.m} labels, {sorted(self.kind)} and {sorted(other.kind)}"
            )
        pace = self.pace
        if self.pace is not None and other.pace is not None:
            mine, others = self.pace[GROWTH], other.pace[GROWTH]
            if mine != others:
                raise ValueError(
                    "states can be added where both forget alike only, got half-lives of "
                    f"{1 / np.log2(mine):g} and {1 / np.log2(others):g} rows"
                )
            # Both count in the unit of the stream that went on for longer.
            pace = max(self.pace, other.pace, key=lambda pace: (pace[ERAS], pace[UNIT]))
        first, second = (state._in_era(pace) for state in (self, other))
        both = first.copy()
        both.pace = None if pace is None else pace.copy()
        if second.partial:
            both.allow_partial_labels()
        if second.audits is not None:
            both.allow_unseen()
            assert both.audits is not None
            both.audits += sign * second.audits
        both.columns[: len(second.columns)] += sign * second.columns
        both.set_totals += sign * second.set_totals
        for counted in both._count_sets.values():
            if counted.totals[SUM_TP:].any():  # where sums over labels are kept at all
                counted.totals[SUM_TP:] = counted.cells.sum(axis=1)
        if first.calibration and second.calibration and both.calibration:
            learned = first.calibration.combined(second.calibration, sign, both.unit)
            both.calibration.fill(learned.arrays())
        if self.prices is not None and other.prices is not None:
            both.prices = self.prices + other.prices if sign > 0.0 else self.prices - other.prices
            both.prices.settle(both.limited.cells)
        return both

    @property
    def adds_up(self) -> bool:
        """Whether it can be added to another: drawn rules, and rows of a window, cannot."""
        return type(self) is State and self.window is None

    @property
    def kind(self) -> set[str]:
        """The names of what is kept beside the counts that decisions look at."""
        return {start.removesuffix("_") for start in self._parts} - {"", "unseen"}

    def _in_era(self, pace: Array | None) -> State:
        """The same counts, divided by 2 ** 100 as often as those of another pace."""
        if pace is None or self.pace is None or self.pace[ERAS] == pace[ERAS]:
            return self
        return self._scaled(float(np.exp2((self.pace[ERAS] - pace[ERAS]) * np.log2(LARGEST_UNIT))))

    def _scaled(self, factor: float, *, all_counts: bool = False) -> State:
        """What decisions look at in another unit; what they were worth, unless ``all_counts``."""
        scaled = self.copy()
        # A bias b_j and a mean z̄_j have no unit; how much is known of them has.
        places = [*range(3 * JUDGED), PRECISION, ENTRIES, MISSED]
        if all_counts or "judged" not in self.sets:
            places += [*range(3 * JUDGED, 3 * JUDGED + 3), UNREPORTED, *range(UNSEEN, FIELDS)]
            if scaled.audits is not None:
                scaled.audits *= factor
        scaled.columns[[place for place in places if place < len(self.columns)]] *= factor
        scaled.set_totals[: None if all_counts else JUDGED] *= factor
        if scaled.shared is not None:
            scaled.shared[[*range(CURVES, LABELLED), SPREAD, COUNTED]] *= factor
            if all_counts:
                scaled.shared[LABELLED] *= factor
                # κ = T / (T + 2) where T is multiplied; that of a rule is 1, and stays.
                trust = scaled.shared[TRUST]
                if trust < 1.0:
                    evidence = factor * trust
                    scaled.shared[TRUST] = evidence / (evidence + 1.0 - trust)
        return scaled

    def __mul__(self, factor: float) -> State:
        if self.window is not None:
            raise TypeError("the state of an omma.Window cannot be multiplied: its rows are whole")
        scaled = self._scaled(factor, all_counts=True)
        # A price has no unit either, but moves more freely where less is known.
        scaled.prices = None if self.prices is None else self.prices * factor
        return scaled

    __rmul__ = __mul__

    def now(self) -> State:
        """The same with a clock that starts again: what is counted is weighed as it is now.

        Where the past fades, row i of a stream counts for growth ** i, and sums of states weigh
        each row by its place in its own stream. Take both states ``now()`` first where the last
        row of each is to count alike, whatever came before it.
        """
        if self.pace is None:
            return self.copy()
        state = self._scaled(1.0 / self.unit)
        state.pace = np.array([1.0, self.pace[GROWTH], 0.0])
        return state

    def faded(self, rows: float) -> State:
        """What is left of it when so many rows have passed, with a clock that starts again.

        >>> import omma
        >>> state = omma.Forgetting(omma.OMMA("f1"), half_life=10).init(1)
        >>> state.cells[:] = 8.0
        >>> state.faded(20).cells[:, 0].round(9)
        array([2., 2., 2.])
        """
        state = self.now()
        return state if state.pace is None else state._scaled(float(state.pace[GROWTH] ** -rows))

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, State):
            return NotImplemented
        mine, others = self.arrays(), other.arrays()
        return mine.keys() == others.keys() and all(
            np.array_equal(mine[name], others[name]) for name in mine
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        window = "" if self.window is None else f" in a window of {self.window.length}"
        return f"<{type(self).__name__} of {self.m} labels, {self.rows:g} rows{window}>"


def _under(start: str, arrays: dict[str, Array]) -> dict[str, Array]:
    """The arrays whose names begin so, without that."""
    return {key.removeprefix(start): arrays[key] for key in arrays if key.startswith(start)}
