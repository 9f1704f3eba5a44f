"""All that changes while a policy runs, as plain arrays.

Counts add up when streams are merged, are subtracted when a window moves on, and shrink when the
past decays. They do not contain the prior: it is added where a gradient is taken, so it enters
once, however many states were added up.

With decay, counts are in units (see ``omma.kernels.decay``): row i of a stream counts growth ** i.
So states of the same time add up as they are, and so do a state and the counts of a batch that was
decided by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from omma.kernels.calibrate import COUNTED, CURVES, LABELLED, SPREAD, SQUASH, TRUST
from omma.kernels.layout import (
    BIAS,
    ENTRIES,
    ERAS,
    FIELDS,
    GROWTH,
    KNOWN,
    LANES,
    LARGEST_UNIT,
    LIFETIME,
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
    check_array,
    check_pace,
)

# Arrays with numbers of each label, and where ``columns`` has them.
PLACES = {
    "cells": slice(3 * OWN, 3 * OWN + 3),
    "labels_cells": slice(3 * TRUE, 3 * TRUE + 3),
    "known_cells": slice(3 * KNOWN, 3 * KNOWN + 3),
    "lifetime_cells": slice(3 * LIFETIME, 3 * LIFETIME + 3),
    "calibration": slice(BIAS, ENTRIES + 1),
    "missed": slice(MISSED, UNREPORTED + 1),
    "unseen_cells": slice(UNSEEN, FIELDS),
}
# A state gets these with its first row that is labelled in part, or only where it was predicted.
ADDED_LATER = {"missed", "unseen_cells"}
SIGNED = {"calibration", "calibration_shared"}  # arrays that may have numbers below zero
Shapes = dict[str, tuple[int, ...] | None]


def padded(m: int) -> int:
    """A number of labels rounded up to whole lanes."""
    return -(-m // LANES) * LANES


def aligned(rows: int, columns: int) -> NDArray[np.float64]:
    """Zeros that begin at a cache line: vector instructions then never straddle two."""
    try:
        room = np.zeros(rows * columns + LANES)
    except MemoryError:
        raise MemoryError(
            f"{columns:,} labels take {8 * rows * columns / 2**30:,.0f} GiB of space to work in, "
            "more than there is"
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
        All numbers of each label, as kernels read them (``omma.kernels.layout``). The arrays below
        that have a number for each label are views of it.
    set_totals : ndarray of shape (SETS, TOTALS)
        The totals of all sets of counts.
    own : CountSet
        The counts that decisions use; ``cells``, ``totals`` and ``missed`` are its arrays. With
        ``feedback="estimates"`` they count probabilities in place of labels.
    labels : CountSet or None
        Counts of true labels over rows with labels, if ``own`` counts probabilities.
    known : CountSet or None
        With ``feedback="both"``: true positives and positives by probabilities, over rows with
        labels.
    lifetime : CountSet or None
        With decay or a window: counts of true labels over all rows, for reported values.
    truth : CountSet
        The set among these that reported values are from.
    calibration : Calibration or None
        How labels differ from probabilities.
    pace : ndarray or None
        With decay: the weight of a row at present, its growth per row, and how often all numbers
        were divided by 2 ** 100.
    prices : Prices or None
        The prices of the policy's limits.
    window : SlidingWindow or None
        The latest rows, if decisions use only these.
    unseen : Unseen or None
        If labels are seen only where they were predicted: what is known of the others.

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
        names: Iterable[str] = ("cells",),
        *,
        shared: Array | None = None,
        pace: Array | None = None,
        prices: Prices | None = None,
        window: SlidingWindow | None = None,
    ) -> None:
        self.m, self.names = m, tuple(names)  # the arrays in use, in the order of PLACES
        # ``shared`` has the numbers of a calibration that are common to all labels.
        self.shared, self.pace, self.prices, self.window = shared, pace, prices, window
        self.columns, self.set_totals = np.empty((0, 0)), np.zeros((SETS, TOTALS))
        self.audits = np.zeros(2)  # the rows of ``unseen``
        self._lay_out()

    @classmethod
    def start(cls, plan: Plan, m: int) -> State:
        """The state of a plan for m labels before the first row."""
        shared = prices = None
        if plan.calibrated:
            shared = UNLEARNED.copy()
            shared[SQUASH] = plan.squash
        if plan.limits is not None:
            prices = Prices.start(
                len(plan.limits.kinds), rates=bool((plan.limits.kinds == MEAN).any())
            )
        state = State(
            m,
            plan.arrays,
            shared=shared,
            pace=None if plan.growth is None else np.array([1.0, plan.growth, 0.0]),
            prices=prices,
            window=None if plan.window is None else SlidingWindow.start(plan.window),
        )
        if plan.settled is not None and state.calibration is not None:
            state.calibration.take(*plan.settled)
        return state

    def widened(self, m: int) -> State:
        """A copy with room for m labels; the new ones have occurred in no row."""
        wider = self.copy()
        wider.m = m
        wider._lay_out()
        return wider

    def _lay_out(self) -> None:
        """Make room for the arrays in use, copy the present numbers, and make the views of them."""
        # Only as many columns as are in use: with three million labels each takes 24 MB.
        fields: int = PLACES[self.names[-1]].stop
        if "lifetime_cells" in self.names:
            fields = max(fields, UNSEEN)  # decay scales MISSED, too
        columns, totals = aligned(fields, padded(self.m)), self.set_totals
        columns[: len(self.columns), : self.columns.shape[1]] = self.columns
        self.columns = columns
        arrays = {name: columns[PLACES[name], : self.m] for name in self.names}
        missed, unreported = arrays.get("missed", (None, None))
        self.lifetime = self.labels = self.known = None
        # The weight of unknown labels is kept once, beside the counts of reported values.
        if "lifetime_cells" in arrays:
            cells = arrays["lifetime_cells"]
            self.lifetime = CountSet(cells, totals[LIFETIME], unreported, LIFETIME)
        if "labels_cells" in arrays:
            unknown = None if self.lifetime else unreported
            self.labels = CountSet(arrays["labels_cells"], totals[TRUE], unknown, TRUE)
        if "known_cells" in arrays:
            self.known = CountSet(arrays["known_cells"], totals[KNOWN], None, KNOWN)
        self.own = CountSet(arrays["cells"], totals[OWN], None if self.labels else missed)
        self.cells, self.totals, self.missed, _ = self.own
        self.truth = self.lifetime or self.labels or self.own
        unseen = arrays.get("unseen_cells")
        self.unseen = None if unseen is None else Unseen(unseen, self.audits)
        shared = self.shared
        self.calibration = None if shared is None else Calibration(shared, *arrays["calibration"])

    @property
    def reported(self) -> NDArray[np.float64]:
        """The cells of reported values, corrected for unknown labels: shape (3, m).

        Labels that are unknown by chance count in proportion. Labels that are unknown because they
        were not predicted are estimated.
        """
        if "missed" not in self.names:
            return self.truth.cells
        return self.truth.in_proportion if self.unseen is None else self.unseen.estimate(self.truth)

    @property
    def limited(self) -> CountSet:
        """The counts that limits are held on: estimates if decisions use estimates only."""
        return self.own if self.labels is None or self.known is None else self.labels

    @property
    def rows(self) -> float:
        """The number (or weight) of rows that decisions use at present."""
        return float(self.totals[N]) / self.unit

    @property
    def unit(self) -> float:
        """The weight of a row in the counts at present: 1 without decay, and in a window."""
        return 1.0 if self.pace is None or self.window is not None else float(self.pace[UNIT])

    def allow_partial_labels(self) -> None:
        """Add the columns for rows with partial labels."""
        self._add_arrays("missed")

    def allow_unseen(self) -> None:
        """Add the columns for labels that are seen only where they were predicted."""
        # A prediction whose label never comes is unknown, as in rows with partial labels.
        self._add_arrays("missed", "unseen_cells")

    def _add_arrays(self, *names: str) -> None:
        """Add arrays of PLACES that are not in use; their numbers are zero."""
        if not set(names) <= set(self.names):
            self.names = tuple(name for name in PLACES if name in (*self.names, *names))
            self._lay_out()

    # Files.

    def arrays(self) -> dict[str, Array]:
        """All of it as plain arrays, for a file."""
        arrays = {name: self.columns[PLACES[name], : self.m] for name in self.names}
        arrays |= {"totals": self.set_totals, "audits": self.audits}
        optional = {"calibration_shared": self.shared, "pace": self.pace}
        arrays |= {name: array for name, array in optional.items() if array is not None}
        if self.prices is not None:
            arrays |= {f"prices_{name}": array for name, array in vars(self.prices).items()}
        if self.window is not None:
            arrays |= {f"recent_{name}": array for name, array in self.window.arrays().items()}
        return arrays

    def shapes(self) -> Shapes:
        """The shapes that ``arrays`` may have; None is any shape, for what grows with rows."""
        shapes: Shapes = {name: array.shape for name, array in self.arrays().items()}
        shapes |= {"missed": (2, self.m), "unseen_cells": (3, self.m)}
        return shapes | {name: None for name in shapes if name.startswith("recent_")}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> Self:
        """A state with copies of these arrays, as ``arrays`` returns them."""
        shared, pace = (
            np.array(arrays[name], dtype=np.float64) if name in arrays else None
            for name in ("calibration_shared", "pace")
        )
        prices, window = _under("prices_", arrays), _under("recent_", arrays)
        state = cls(
            arrays["cells"].shape[1],
            [name for name in PLACES if name in arrays],
            shared=shared,
            pace=pace,
            prices=Prices(**{name: np.array(prices[name]) for name in prices}) if prices else None,
            window=SlidingWindow(window) if window else None,
        )
        for name in state.names:
            state.columns[PLACES[name], : state.m] = arrays[name]
        state.set_totals[...], state.audits[...] = arrays["totals"], arrays["audits"]
        state.take_own(arrays)
        return state

    def take_own(self, arrays: dict[str, Array]) -> None:
        """For subclasses: read their own arrays."""

    def copy(self) -> Self:
        """An independent copy."""
        return type(self).from_arrays(self.arrays())

    def __reduce__(self) -> Any:
        return type(self).from_arrays, (self.arrays(),)  # views would be unpacked as copies

    def restore(self, arrays: dict[str, Array]) -> None:
        """Replace everything by these arrays; if they are wrong, raise and change nothing."""
        # ``from_arrays`` makes new arrays, by which engines notice the change.
        self.check(arrays)
        self.__dict__.update(type(self).from_arrays(arrays).__dict__)

    def check(self, arrays: dict[str, Array]) -> None:
        """Refuse arrays that such a state cannot have."""
        expected = self.arrays().keys() | arrays.keys() & ADDED_LATER
        for name, shape in self.shapes().items():
            if name in expected and shape is not None:
                check_array(name, arrays.get(name), shape, signed=name in SIGNED)
        if self.window is not None:
            self.window.check(_under("recent_", arrays), self.m)
        if self.pace is not None:
            check_pace(arrays["pace"], self.pace)
        # Every array by itself can be one of such a state. Do they fit together?
        state = State.from_arrays(arrays)
        for part in (*state._count_sets, state.calibration, state.prices):
            if part is not None:
                part.check()
        if state.window is not None and state.rows > 0.0 and not len(arrays["recent_rows"]):
            raise ValueError("the counts of a window are of rows that are not in it")

    # Sums.

    def __add__(self, other: Any) -> State:
        return self._together(other, 1.0)

    def __sub__(self, other: Any) -> State:
        return self._together(other, -1.0)

    def _together(self, other: Any, sign: float) -> State:
        """The sum or difference, in the unit of the state with the longer stream."""
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
            pace = max(self.pace, other.pace, key=lambda pace: (pace[ERAS], pace[UNIT]))
        first, second = (state._in_era(pace) for state in (self, other))
        both = first.copy()
        both.pace = None if pace is None else pace.copy()
        both._add_arrays(*second.names)
        both.audits += sign * second.audits
        both.columns[: len(second.columns)] += sign * second.columns
        both.set_totals += sign * second.set_totals
        for counted in both._count_sets:
            if counted.totals[SUM_TP:].any():  # where sums over labels are kept at all
                counted.totals[SUM_TP:] = counted.cells.sum(axis=1)
        if first.calibration and second.calibration and both.calibration:
            learned = first.calibration.combined(second.calibration, sign, both.unit)
            both.calibration.fill(learned)
        if self.prices is not None and other.prices is not None:
            both.prices = self.prices.combined(other.prices, sign)
            both.prices.settle(both.limited.cells)
        return both

    @property
    def adds_up(self) -> bool:
        """Whether it can be added to another state: drawn rules and windows cannot."""
        return type(self) is State and self.window is None

    @property
    def kind(self) -> set[str]:
        """What the policy keeps beside its own counts; the same for states that can be added."""
        prefixes = {name.partition("_")[0] for name in self.arrays().keys() - ADDED_LATER}
        return prefixes - {"cells", "totals", "audits", "pace"}

    @property
    def _count_sets(self) -> list[CountSet]:
        """The sets of counts in use."""
        return list(filter(None, (self.own, self.labels, self.known, self.lifetime)))

    def _in_era(self, pace: Array | None) -> State:
        """The same counts, divided by 2 ** 100 as often as those of ``pace``."""
        if pace is None or self.pace is None or self.pace[ERAS] == pace[ERAS]:
            return self
        return self._scaled(float(np.exp2((self.pace[ERAS] - pace[ERAS]) * np.log2(LARGEST_UNIT))))

    def _scaled(self, factor: float, *, all_counts: bool = False) -> State:
        """A copy in another unit; counts of reported values only with ``all_counts``."""
        scaled = self.copy()
        # A bias b_j and a mean z̄_j have no unit, but their precision and weight have.
        places = [*range(3 * LIFETIME), PRECISION, ENTRIES, MISSED]
        if all_counts or self.lifetime is None:
            places += [*range(3 * LIFETIME, 3 * LIFETIME + 3), UNREPORTED, *range(UNSEEN, FIELDS)]
            scaled.audits *= factor
        scaled.columns[[place for place in places if place < len(self.columns)]] *= factor
        scaled.set_totals[: None if all_counts else LIFETIME] *= factor
        if scaled.shared is not None:
            scaled.shared[[*range(CURVES, LABELLED), SPREAD, COUNTED]] *= factor
            if all_counts:
                scaled.shared[LABELLED] *= factor
                # κ = T / (T + 2) with T multiplied. The κ of a rule is 1 and stays.
                trust = scaled.shared[TRUST]
                if trust < 1.0:
                    evidence = factor * trust
                    scaled.shared[TRUST] = evidence / (evidence + 1.0 - trust)
        return scaled

    def __mul__(self, factor: float) -> State:
        if self.window is not None:
            raise TypeError("the state of an omma.Window cannot be multiplied: its rows are whole")
        scaled = self._scaled(factor, all_counts=True)
        if self.prices is not None:
            # A price has no unit, but it moves more freely when less is known.
            scaled.prices = self.prices.with_spread(factor * self.prices.spread)
        return scaled

    __rmul__ = __mul__

    def now(self) -> State:
        """A copy in the present unit, in which the next row is row 0 again.

        With decay, row i of a stream counts growth ** i, so sums of states weigh each row by its
        place in its own stream. If the last rows of two streams shall count alike, add their
        ``now()``.
        """
        state = self._scaled(1.0 / self.unit)
        if self.pace is not None and self.window is None:
            state.pace = np.array([1.0, self.pace[GROWTH], 0.0])
        return state

    def faded(self, rows: float) -> State:
        """``now()`` after so many further rows have passed.

        >>> import omma
        >>> state = omma.Forgetting(omma.OMMA("f1"), half_life=10).init(1)
        >>> state.cells[:] = 8.0
        >>> state.faded(20).cells[:, 0].round(9)
        array([2., 2., 2.])
        """
        growth = 1.0 if self.pace is None or self.window is not None else self.pace[GROWTH]
        return self.now()._scaled(float(growth**-rows))

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
    """The arrays whose names begin with ``start``, by the rest of their names."""
    return {key.removeprefix(start): arrays[key] for key in arrays if key.startswith(start)}
