"""All that changes while a policy runs, as plain arrays.

Counts add where streams are merged, subtract where a window moves on and shrink where the past is
forgotten. The prior is not among them: it is added where a gradient is taken, so that it enters
once, however many states were added up.

Where the past decays, counts are in units (see ``omma.kernels.decay``): row i of a stream counts
for growth ** i. States whose rows came at the same time therefore add up as they are, and so does
what a batch adds to the state that it was decided on.

Compiled code reads the numbers of all labels as columns of one array (``omma.kernels.layout``):
``State.lay_out`` moves them there, and the arrays of the state become views of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omma.kernels.calibrate import (
    CURVE_BOTH,
    CURVE_INTERCEPT,
    CURVE_SLOPE,
    FLATTEST,
    INTERCEPT,
    LABELLED,
    SHARED,
    SLOPE,
    START_CURVE,
    START_PRECISION,
    STEEPEST,
)
from omma.kernels.layout import (
    BIAS,
    ERAS,
    FIELDS,
    GROWTH,
    JUDGED,
    KNOWN,
    LANES,
    LARGEST_UNIT,
    MISSED,
    OWN,
    POSITIVE,
    PRECISION,
    SETS,
    SUM_TP,
    TOTALS,
    TP,
    TRUE,
    UNIT,
    UNREPORTED,
    N,
)

Array = NDArray[Any]
START_PRICE = 1.0
START_SPREAD = 1e-12  # the first row moves a price by about one, whatever it missed by


def under(start: str, arrays: dict[str, Array]) -> dict[str, Array]:
    """The arrays whose names begin so, without that."""
    return {key.removeprefix(start): arrays[key] for key in arrays if key.startswith(start)}


def check_part(name: str, found: Any, shape: tuple[int, ...], *, signed: bool = True) -> None:
    """Refuse an array of a state that cannot be one: kernels believe what they are given."""
    wanted = f"{name} of a state must be finite numbers of shape {shape}"
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "fiu":
        raise ValueError(f"{wanted}, got {'nothing' if found is None else found.dtype}")
    if found.shape != shape or not np.isfinite(found).all():
        wrong = "what is not finite" if found.shape == shape else f"shape {found.shape}"
        raise ValueError(f"{wanted}, got {wrong}")
    if not signed and found.size and found.min() < -1e-9 * max(1.0, float(found.max())):
        raise ValueError(f"{name} of a state must be at least 0, got {found.min():g}")


def common_pace(first: Array | None, second: Array | None) -> tuple[float, Array | None]:
    """How often counts of both are divided, and the pace of the one that went on for longer."""
    if first is None or second is None:
        return 0.0, None
    later = max(first, second, key=lambda pace: (pace[ERAS], pace[UNIT]))
    return float(later[ERAS]), later.copy()


def check_pace(found: Any, wanted: Array) -> None:
    """Refuse a pace that no stream with this half-life can have."""
    check_part("pace", found, wanted.shape, signed=False)
    right = 1.0 <= found[UNIT] < LARGEST_UNIT and found[ERAS] == np.floor(found[ERAS])
    if not right or found[GROWTH] != wanted[GROWTH]:
        raise ValueError(
            f"pace of a state must have a weight of at least 1 that grows by {wanted[GROWTH]!r} a "
            f"row, got {found.tolist()}"
        )


@dataclass(eq=False)
class Part:
    """Arrays that go into a file, and come back from one."""

    SIGNED: ClassVar[tuple[str, ...]] = ()  # those that may hold numbers below zero

    def arrays(self) -> dict[str, Array]:
        """All of it as plain arrays, for a file."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def check(self, arrays: dict[str, Array]) -> None:
        """Refuse arrays that are not those of such a part."""
        for name, place in self.arrays().items():
            check_part(name, arrays.get(name), place.shape, signed=name in self.SIGNED)

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take over what ``arrays`` gave."""
        self.check(arrays)
        whole = type(self)(**arrays).arrays()
        for name, place in self.arrays().items():
            place[...] = whole[name]


@dataclass(eq=False)
class Calibration(Part):
    """What online calibration has learned: c = σ(a·logit(η) + b + b_j).

    Attributes
    ----------
    shared : ndarray
        a, b, the curvature by both (three numbers), and the weight of rows whose labels came.
    bias, precision : ndarray of shape (m,)
        b_j of each label, and how much was learned of it: what is known before the first row is not
        stored, so that both of them and the curvature add up.
    """

    SIGNED = ("shared", "bias")

    shared: NDArray[np.float64]
    bias: NDArray[np.float64]
    precision: NDArray[np.float64]

    @classmethod
    def start(cls, m: int) -> Calibration:
        """Nothing learned yet: probabilities pass as they are."""
        shared = np.zeros(SHARED)
        shared[SLOPE] = 1.0
        return cls(shared, np.zeros(m), np.zeros(m))

    @property
    def slope(self) -> float:
        """A, where it is neither flat nor a wall; a sum of calibrations may go past either."""
        return float(np.clip(self.shared[SLOPE], FLATTEST, STEEPEST))

    @property
    def offsets(self) -> NDArray[np.float64]:
        """B + b_j of each label."""
        found: NDArray[np.float64] = self.shared[INTERCEPT] + self.bias
        return found

    @property
    def rows(self) -> float:
        """The weight of the rows that it was learned from."""
        return float(self.shared[LABELLED])

    def take(self, slope: float, intercept: float, bias: Any) -> None:
        """Calibrate by these numbers, as if they had been learned."""
        self.shared[SLOPE], self.shared[INTERCEPT] = slope, intercept
        self.shared[LABELLED] = 1.0
        self.bias[...] = bias

    def _curve(self) -> NDArray[np.float64]:
        p, q, r = self.shared[CURVE_SLOPE : CURVE_INTERCEPT + 1]
        return np.array([[p, q], [q, r]])

    def combined(self, other: Calibration, sign: float, unit: float = 1.0) -> Calibration:
        """Both added: what was learned is weighed by how much is known; the start counts once."""
        start, first = START_CURVE * unit * np.eye(2), np.array([1.0, 0.0])
        curve = self._curve() + sign * other._curve()
        pulled = (start + self._curve()) @ self.shared[:2]
        pulled = pulled + sign * ((start + other._curve()) @ other.shared[:2] - start @ first)
        shared = np.empty(SHARED)
        shared[:2] = np.linalg.solve(start + curve, pulled)
        shared[CURVE_SLOPE], shared[CURVE_BOTH] = curve[0]
        shared[CURVE_INTERCEPT] = curve[1, 1]
        shared[LABELLED] = self.shared[LABELLED] + sign * other.shared[LABELLED]
        begin = START_PRECISION * unit
        precision = self.precision + sign * other.precision
        bias = (begin + self.precision) * self.bias
        bias = (bias + sign * (begin + other.precision) * other.bias) / (begin + precision)
        return Calibration(shared, bias, precision)

    def __add__(self, other: Calibration) -> Calibration:
        return self.combined(other, 1.0)

    def __sub__(self, other: Calibration) -> Calibration:
        return self.combined(other, -1.0)

    def scaled(self, factor: float) -> Calibration:
        """The same in another unit of weight."""
        shared = self.shared.copy()
        shared[CURVE_SLOPE : CURVE_INTERCEPT + 1] *= factor
        return Calibration(shared, self.bias.copy(), self.precision * factor)

    def __mul__(self, factor: float) -> Calibration:
        """Forget: what is known counts for less, what was learned stays."""
        found = self.scaled(factor)
        found.shared[LABELLED] *= factor
        return found


@dataclass(eq=False)
class Prices(Part):
    """What each limit costs now.

    Attributes
    ----------
    mu, spread : ndarray with a number for each limit
        The price, and the sum of squares of what rows missed the limit by.
    rates : ndarray
        Where a limit asks for the mean of recalls: the sum of those of labels that occurred, and
        how many these are. Else it is empty.
    mean : ndarray with a number for each limit
        The mean so far of where the price stood: the price up to one, and one more than its
        logarithm beyond. Row t weighs t ** 2, so that the start is soon forgotten.
    """

    mu: NDArray[np.float64]
    spread: NDArray[np.float64]
    rates: NDArray[np.float64]
    mean: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        if not len(self.mean):  # of an earlier release: where it stands
            self.mean = np.where(self.mu < 1.0, self.mu, 1.0 + np.log(np.maximum(self.mu, 1.0)))

    @property
    def settled(self) -> NDArray[np.float64]:
        """The price of a rule that will stand still: at the mean of where it stood.

        >>> prices = Prices.start(1)
        >>> prices.mean[:] = 1.0 + np.log(20.0)
        >>> prices.settled.round(6)
        array([20.])
        """
        return np.where(self.mean < 1.0, self.mean, np.exp(np.maximum(self.mean, 1.0) - 1.0))

    @classmethod
    def start(cls, limits: int, *, rates: bool = False) -> Prices:
        """The prices before the first row."""
        return cls(
            np.full(limits, START_PRICE),
            np.full(limits, START_SPREAD),
            np.zeros(2 if rates else 0),
        )

    def settle(self, cells: Array) -> None:
        """Work out the sum of recalls from counts."""
        if len(self.rates):
            some = cells[POSITIVE] > 0
            self.rates[:] = (cells[TP][some] / cells[POSITIVE][some]).sum(), some.sum()

    def __add__(self, other: Prices) -> Prices:
        """Both: a price weighs by how much it moved."""
        self._check_alike(other)
        spread = self.spread + other.spread
        mu, mean = (
            (mine * self.spread + theirs * other.spread) / spread
            for mine, theirs in ((self.mu, other.mu), (self.mean, other.mean))
        )
        return Prices(mu, spread, self.rates.copy(), mean)

    def __sub__(self, other: Prices) -> Prices:
        """Without those rows: the price stays, and moves as freely as before them."""
        self._check_alike(other)
        spread = np.maximum(self.spread - other.spread, START_SPREAD)
        return Prices(self.mu.copy(), spread, self.rates.copy(), self.mean.copy())

    def _check_alike(self, other: Prices) -> None:
        mine, theirs = len(self.mu), len(other.mu)
        if mine != theirs or len(self.rates) != len(other.rates):
            raise ValueError(
                f"states can be added for the same limits only, got {mine} and {theirs}"
                f"{'' if mine != theirs else ', of which one is on macro_recall'}"
            )

    def __mul__(self, factor: float) -> Prices:
        """Forget: the price stays, and moves more freely."""
        spread = np.maximum(factor * self.spread, START_SPREAD)
        return Prices(self.mu.copy(), spread, self.rates.copy(), self.mean.copy())

    def check(self, arrays: dict[str, Array]) -> None:
        super().check({"mean": self.mean, **arrays})  # an earlier release wrote no mean
        if (arrays["spread"] <= 0.0).any():
            raise ValueError("spread of prices must be positive")


# Soft labels and weights are fractions, and sums of fractions are rounded: as a part of all rows,
# and of sums over labels.
ROUNDING = 1e-9
SUM_ROUNDING = 1e-6

FILED_TOTALS = 7
Shapes = dict[str, tuple[int, ...] | None]


class Columns(NamedTuple):
    """The numbers of a state as compiled code reads them."""

    columns: NDArray[np.float64]  # (fields, labels in whole lanes)
    totals: NDArray[np.float64]  # (SETS, TOTALS)


def padded(m: int) -> int:
    """A number of labels rounded up to whole lanes."""
    return -(-m // LANES) * LANES


def aligned(rows: int, columns: int) -> NDArray[np.float64]:
    """Zeros that begin at a cache line: vector instructions then never straddle two."""
    room = np.zeros(rows * columns + LANES)
    start = -room.ctypes.data % 64 // room.itemsize
    return room[start : start + rows * columns].reshape(rows, columns)


@dataclass(eq=False)
class State:
    """What a policy has counted.

    Attributes
    ----------
    cells : ndarray of shape (3, m)
        True positives, predictions and occurrences of each label: what decisions look at. With
        ``feedback="estimates"`` they count probabilities in place of labels.
    totals : ndarray
        The number of rows, and sums over labels for the metrics that need them.
    labels : State or None
        Counts of true labels, where decisions look at others; of rows whose labels came.
    known : State or None
        With ``feedback="both"``, true positives and positives by probabilities over the rows
        whose labels came.
    calibration : Calibration or None
        What is known of how probabilities and labels differ.
    judged : State or None
        Where the past fades, the counts of true labels that do not: what decisions were worth.
    pace : ndarray or None
        Where the past fades: the weight of a row now, by what it grows after each, and how often
        all was divided by 2 ** 100.
    prices : Prices or None
        What the limits of the policy cost.
    missed : ndarray of shape (m,) or None
        Where rows were labelled in part, how much weight of rows each label was unknown in: the
        counts of a label are of the others.

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

    cells: NDArray[np.float64]
    totals: NDArray[np.float64]
    labels: State | None = None
    known: State | None = None
    calibration: Calibration | None = None
    judged: State | None = None
    pace: NDArray[np.float64] | None = None
    prices: Prices | None = None
    missed: NDArray[np.float64] | None = None
    _laid: Columns | None = field(default=None, init=False, repr=False)

    @classmethod
    def zeros(
        cls,
        m: int,
        *,
        soft: bool = False,
        both: bool = False,
        calibrated: bool = False,
        growth: float | None = None,
    ) -> State:
        """Nothing counted yet.

        ``soft`` counts probabilities, and true labels beside them; ``both`` also probabilities of
        the rows whose labels came; ``calibrated`` learns what probabilities are worth; ``growth``
        is by what the weight of rows grows from one to the next, where the past fades.
        """
        labels = State.zeros(m) if soft or both else None
        known = State.zeros(m) if both else None
        calibration = Calibration.start(m) if calibrated else None
        made = cls(np.zeros((3, m)), np.zeros(TOTALS), labels, known, calibration)
        if growth is not None:
            made.judged, made.pace = State.zeros(m), np.array([1.0, growth, 0.0])
        return made

    def lay_out(self) -> Columns:
        """Move the numbers of all labels into columns; the arrays of the state become views."""
        if self._laid is not None and self._is_laid_out:
            return self._laid
        m, columns = self.m, aligned(self._fields, padded(self.m))
        totals = np.zeros((SETS, TOTALS))
        sets = ((OWN, self), (TRUE, self.labels), (KNOWN, self.known), (JUDGED, self.judged))
        for which, counts in sets:
            if counts is not None:
                cells = columns[3 * which : 3 * which + 3, :m]
                cells[...], totals[which] = counts.cells, counts.totals
                counts.cells, counts.totals = cells, totals[which]
        if self.calibration is not None:
            for name, place in (("bias", BIAS), ("precision", PRECISION)):
                columns[place, :m] = getattr(self.calibration, name)
                setattr(self.calibration, name, columns[place, :m])
        for counts, place in ((self, MISSED), (self.truth, UNREPORTED)):
            if counts.missed is not None and (counts is self) == (place == MISSED):
                columns[place, :m] = counts.missed
                counts.missed = columns[place, :m]
        self._laid = Columns(columns, totals)
        return self._laid

    @property
    def _fields(self) -> int:
        """How many columns are needed: those in use lie before all others."""
        if self.judged is not None or self.missed is not None or self.truth.missed is not None:
            return FIELDS
        if self.calibration is not None:
            return PRECISION + 1
        last = OWN if self.labels is None else TRUE if self.known is None else KNOWN
        return 3 * (last + 1)

    @property
    def _is_laid_out(self) -> bool:
        """Whether all arrays are views of the columns still: each may be exchanged for another."""
        if self._laid is None or len(self._laid.columns) < self._fields:
            return False
        room, totals = self._laid.columns.base, self._laid.totals
        counted = [one for one in (self, self.labels, self.known, self.judged) if one is not None]
        views = [one.cells for one in counted]
        views += [one.missed for one in counted if one.missed is not None]
        if self.calibration is not None:
            views += (self.calibration.bias, self.calibration.precision)
        return all(view.base is room for view in views) and all(
            one.totals.base is totals for one in counted
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_laid": None}  # views would be unpacked as copies

    @property
    def m(self) -> int:
        """The number of labels."""
        return int(self.cells.shape[1])

    @property
    def rows(self) -> float:
        """The number of rows that decisions look at, or their weight, now."""
        return float(self.totals[N]) / self.unit

    @property
    def unit(self) -> float:
        """What a row counts for now: one, unless the past fades."""
        return 1.0 if self.pace is None else float(self.pace[UNIT])

    @property
    def clock(self) -> NDArray[np.float64] | None:
        """The pace at which calibration forgets."""
        return self.pace

    @property
    def in_proportion(self) -> NDArray[np.float64]:
        """The cells as if each label had been known in all rows: times rows / rows known."""
        return in_proportion(self.cells, float(self.totals[N]), self.missed)

    def take_parts(self) -> None:
        """Make room for what is missed of rows that are labelled in part."""
        for one in (self, self.truth) if self.labels is None else (self.truth,):
            if one.missed is None:
                one.missed = np.zeros(self.m)

    @property
    def truth(self) -> State:
        """The counts of true labels."""
        if self.judged is not None:
            return self.judged
        return self if self.labels is None else self.labels

    @property
    def limited(self) -> State:
        """The counts that limits are held on: estimates where these are all that is looked at."""
        return self if self.labels is None or self.known is None else self.labels

    def copy(self) -> State:
        """A state that goes its own way."""
        return type(self).from_arrays({name: one.copy() for name, one in self.arrays().items()})

    @property
    def parts(self) -> dict[str, State | Calibration | Prices]:
        """What is kept beside the counts that decisions look at, by its name."""
        found = {
            "labels": self.labels,
            "known": self.known,
            "calibration": self.calibration,
            "judged": self.judged,
            "prices": self.prices,
        }
        return {name: part for name, part in found.items() if part is not None}

    def arrays(self) -> dict[str, Array]:
        """All of it as plain arrays, for a file."""
        # Files have room for three more sums, which an earlier release kept.
        totals = np.concatenate((self.totals, np.zeros(FILED_TOTALS - TOTALS)))
        found: dict[str, Array] = {"cells": self.cells, "totals": totals}
        found |= {} if self.pace is None else {"pace": self.pace}
        found |= {} if self.missed is None else {"missed": self.missed}
        for start, part in self.parts.items():
            found |= {f"{start}_{name}": one for name, one in part.arrays().items()}
        return found

    def shapes(self) -> Shapes:
        """What ``arrays`` of such a state may give; None is any shape, of what grows with rows."""
        found: Shapes = {name: array.shape for name, array in self.arrays().items()}
        counted = [name for name in ("labels", "judged") if name in self.parts]
        return found | dict.fromkeys(("missed", *(f"{x}_missed" for x in counted)), (self.m,))

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> State:
        """What ``arrays`` gave."""
        made = cls(arrays["cells"], arrays["totals"][:TOTALS], pace=arrays.get("pace"))
        made.missed = arrays.get("missed")
        for name in ("labels", "known", "judged"):
            part = under(f"{name}_", arrays)
            setattr(made, name, State.from_arrays(part) if part else None)
        part = under("calibration_", arrays)
        made.calibration = Calibration(**part) if part else None
        part = under("prices_", arrays)
        made.prices = Prices(**part) if part else None
        made.take_own(arrays)
        return made

    def take_own(self, arrays: dict[str, Array]) -> None:
        """Take over what a state of its kind has beside counts."""

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take over what ``arrays`` of such a state gave, or nothing of it."""
        self.check(arrays)
        self.cells[...], self.totals[...] = arrays["cells"], arrays["totals"][:TOTALS]
        if self.pace is not None:
            self.pace[...] = arrays["pace"]
        self.missed = np.array(arrays["missed"], dtype=np.float64) if "missed" in arrays else None
        for name, part in self.parts.items():
            part.restore(under(f"{name}_", arrays))
        self.take_own(arrays)
        self._laid = None  # whoever runs on this state looks again

    def check(self, arrays: dict[str, Array]) -> None:
        """Refuse arrays that are not those of such a state."""
        check_part("cells", arrays.get("cells"), self.cells.shape, signed=False)
        check_part("totals", arrays.get("totals"), (FILED_TOTALS,), signed=False)
        if self.pace is not None:
            check_pace(arrays.get("pace"), self.pace)
        if "missed" in arrays:
            check_part("missed", arrays["missed"], (self.m,), signed=False)
        check_counts(arrays["cells"], arrays["totals"][:TOTALS], arrays.get("missed"))
        for name, part in self.parts.items():
            part.check(under(f"{name}_", arrays))

    def _together(self, other: Any, sign: float) -> State:
        if not isinstance(other, State):
            return NotImplemented  # type: ignore[no-any-return]
        if type(self) is not State or type(other) is not State:
            raise TypeError(
                f"states can be added where they are counts only, got {type(self).__name__} and "
                f"{type(other).__name__}"
            )
        if self.m != other.m or self.parts.keys() != other.parts.keys():
            raise ValueError(
                "states can be added for the same number of labels and kind of policy only, got "
                f"{self.m} and {other.m} labels, {sorted(self.parts)} and {sorted(other.parts)}"
            )
        if self.pace is not None and other.pace is not None:
            mine, others = self.pace[GROWTH], other.pace[GROWTH]
            if mine != others:
                raise ValueError(
                    "states can be added where both forget alike only, got half-lives of "
                    f"{1 / np.log2(mine):g} and {1 / np.log2(others):g} rows"
                )
        return self._combined(other, sign)

    def _combined(self, other: State, sign: float) -> State:
        """Both added, in one unit: that of the state whose rows went on for longer."""
        eras, pace = common_pace(self.pace, other.pace)
        first, second = self._in_era(eras), other._in_era(eras)
        totals = first.totals + sign * second.totals
        cells = first.cells + sign * second.cells
        if first.totals[SUM_TP:].any() or second.totals[SUM_TP:].any():
            totals[SUM_TP:] = sums_of(cells)
        made = State(cells, totals, pace=pace)
        if first.missed is not None or second.missed is not None:
            none = np.zeros(self.m)
            mine, others = (none if one.missed is None else one.missed for one in (first, second))
            made.missed = mine + sign * others
        for name, part in first.parts.items():
            with_it: Any = second.parts[name]
            if isinstance(part, Calibration):
                setattr(made, name, part.combined(with_it, sign, made.unit))
            elif isinstance(part, Prices):
                made.prices = part + with_it if sign > 0.0 else part - with_it
            else:
                setattr(made, name, part._combined(with_it, sign))
        if made.prices is not None:
            made.prices.settle(made.limited.cells)
        return made

    def _in_era(self, eras: float) -> State:
        """The same counts, divided as often as those of another state."""
        if self.pace is None or self.pace[ERAS] == eras:
            return self
        return self._scaled(float(np.exp2((self.pace[ERAS] - eras) * np.log2(LARGEST_UNIT))))

    def _scaled(self, factor: float) -> State:
        """What decisions look at in another unit; what they were worth stays."""
        parts: dict[str, Any] = {"judged": self.judged}
        for name, part in self.parts.items():
            if isinstance(part, Calibration):
                parts[name] = part.scaled(factor)
            elif isinstance(part, Prices):
                parts[name] = part  # they look at ratios of counts only
            elif name != "judged":
                parts[name] = part * factor
        totals = self.totals * factor
        missed = None if self.missed is None else self.missed * factor
        return State(self.cells * factor, totals, **parts, pace=self.pace, missed=missed)

    def now(self) -> State:
        """The same with a clock that starts again: what is counted is weighed as it is now.

        Where the past fades, row i of a stream counts for growth ** i, and sums of states weigh
        each row by its place in its own stream. Take both states ``now()`` first where the last
        row of each is to count alike, whatever came before it.
        """
        if self.pace is None:
            return self.copy()
        made = self.copy()._scaled(1.0 / self.unit)
        made.pace = np.array([1.0, self.pace[GROWTH], 0.0])
        return made

    def faded(self, rows: float) -> State:
        """What is left of it when so many rows have passed, with a clock that starts again.

        >>> import omma
        >>> state = omma.State.zeros(1, growth=omma.Forgetting(omma.OMMA("f1"), 10).growth)
        >>> state.cells[:] = 8.0
        >>> state.faded(20).cells[:, 0].round(9)
        array([2., 2., 2.])
        """
        made = self.now()
        if made.pace is None:
            return made
        faded = made._scaled(float(made.pace[GROWTH] ** -rows))
        faded.pace = made.pace
        return faded

    def __add__(self, other: Any) -> State:
        return self._together(other, 1.0)

    def __sub__(self, other: Any) -> State:
        return self._together(other, -1.0)

    def __mul__(self, factor: float) -> State:
        parts: dict[str, Any] = {name: part * factor for name, part in self.parts.items()}
        pace = None if self.pace is None else self.pace.copy()
        missed = None if self.missed is None else self.missed * factor
        totals = self.totals * factor
        return State(self.cells * factor, totals, **parts, pace=pace, missed=missed)

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, State):
            return NotImplemented
        mine, others = self.arrays(), other.arrays()
        return mine.keys() == others.keys() and all(
            np.array_equal(mine[name], others[name]) for name in mine
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.m} labels, {self.rows:g} rows>"


def check_counts(cells: Array, totals: Array, missed: Array | None) -> None:
    """Refuse counts that no stream has: tp <= predicted <= n, tp <= positive <= n for each label.

    >>> check_counts(np.array([[2.0], [1.0], [3.0]]), np.array([5.0, 0, 0, 0]), None)
    Traceback (most recent call last):
    ...
    ValueError: counts of a state must have tp <= predicted, got 2 of 1 in label 0
    """
    (tp, predicted, positive), n = cells, np.full(cells.shape[1], totals[N])
    slack = ROUNDING * max(1.0, float(totals[N]))
    for name, lower, bound, upper in (
        ("tp", tp, "predicted", predicted),
        ("tp", tp, "positive", positive),
        ("predicted", predicted, "n", n),
        ("positive", positive, "n", n),
        ("missed", n if missed is None else missed, "n", n),
    ):
        wrong = np.flatnonzero(lower > upper + slack)
        if len(wrong):
            j = wrong[0]
            raise ValueError(
                f"counts of a state must have {name} <= {bound}, got {lower[j]:g} of {upper[j]:g} "
                f"in label {j}"
            )
    expected = sums_of(cells)
    apart = np.abs(totals[SUM_TP:] - expected) > SUM_ROUNDING * np.maximum(1.0, expected)
    wrong = np.flatnonzero(apart & (totals[SUM_TP:] != 0.0))  # zero: a metric that needs no sums
    if len(wrong):
        raise ValueError(
            f"totals of a state must be sums over its counts, got {totals[SUM_TP + wrong[0]]:g} "
            f"in place of {expected[wrong[0]]:g}"
        )


def in_proportion(cells: Array, rows: float, missed: Array | None) -> Array:
    """Counts of labels as if each had been known in all rows: times rows / rows known.

    >>> cells = np.array([[2.0, 2.0], [3.0, 3.0], [4.0, 4.0]])
    >>> in_proportion(cells, 8.0, np.array([0.0, 4.0]))[:, 1]
    array([4., 6., 8.])
    """
    if missed is None:
        return cells
    known = rows - missed
    some = known > 0.0
    found: Array = np.where(some, rows / np.where(some, known, 1.0), 1.0) * cells
    return found


def sums_of(cells: Array) -> Array:
    """Σ tp, Σ predicted and Σ positive over labels."""
    found: Array = cells.sum(axis=1)
    return found
