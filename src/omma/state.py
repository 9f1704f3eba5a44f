"""All that changes while a policy runs, as plain arrays.

Counts add where streams are merged, subtract where a window moves on and shrink where the past is
forgotten. The prior is not among them: it is added where a gradient is taken, so that it enters
once, however many states were added up.

Where the past fades, counts are in units (see ``omma.kernels.fade``): row i of a stream counts for
growth ** i. States whose rows came at the same time therefore add up as they are, and so does what
a batch adds to the state that it was decided on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from omma.kernels.layout import (
    ERAS,
    GROWTH,
    LARGEST_UNIT,
    POSITIVE,
    PREDICTED,
    SUM_CROSS,
    SUM_POSITIVE,
    SUM_POSITIVE_SQUARED,
    SUM_PREDICTED,
    SUM_PREDICTED_SQUARED,
    SUM_TP,
    TOTALS,
    TP,
    UNIT,
    N,
)
from omma.parts import Array, Calibration, Prices, check_pace, check_part, common_pace, under

# Soft labels and weights are fractions, and sums of fractions are rounded: as a part of all rows,
# and of sums over labels, whose products add up the error of every row.
ROUNDING = 1e-9
SUM_ROUNDING = 1e-6

Shapes = dict[str, tuple[int, ...] | None]
# How totals grow when every row counts for more: products grow with the square.
POWERS = np.array([1, 1, 1, 1, 2, 2, 2])


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

    def laid_out(self, order: Literal["C", "F"]) -> None:
        """Keep the counts of a cell ("C") or of a label ("F") side by side in memory.

        A sparse row touches few labels: with "F" all counts of one come in one cache line. Each
        kernel is compiled for one of the two.
        """
        self.cells = np.asarray(self.cells, order=order)
        for part in (self.labels, self.known, self.judged):
            if part is not None:
                part.laid_out(order)

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
    def side_by_side(self) -> NDArray[np.float64]:
        """The cells with those of one kind side by side, whatever the layout."""
        return np.ascontiguousarray(self.cells)

    @property
    def in_proportion(self) -> NDArray[np.float64]:
        """The cells as if each label had been known in all rows: times rows / rows known."""
        return in_proportion(self.cells, float(self.totals[N]), self.missed)

    @property
    def all_labelled(self) -> bool:
        """Whether probabilities of rows with labels are counted, and are those of all rows."""
        known, labels = self.known, self.labels
        if known is None or labels is None:
            return False
        alike = np.array_equal(known.cells, self.cells) and np.array_equal(
            known.totals, self.totals
        )
        return alike and np.array_equal(labels.cells[PREDICTED], self.cells[PREDICTED])

    def take_known(self) -> None:
        """Take over what was counted of all rows where they all had labels."""
        assert self.known is not None
        self.known.cells[:], self.known.totals[:] = self.cells, self.totals

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
        found: dict[str, Array] = {"cells": self.cells, "totals": self.totals}
        found |= {} if self.pace is None else {"pace": self.pace}
        found |= {} if self.missed is None else {"missed": self.missed}
        for start, part in self.parts.items():
            found |= {f"{start}_{name}": one for name, one in part.arrays().items()}
        return found

    def shapes(self) -> Shapes:
        """What ``arrays`` of such a state may give; None is any shape, of what grows with rows."""
        found: Shapes = {name: one.shape for name, one in self.arrays().items()}
        counted = [name for name in ("labels", "judged") if name in self.parts]
        return found | dict.fromkeys(("missed", *(f"{x}_missed" for x in counted)), (self.m,))

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> State:
        """What ``arrays`` gave."""
        made = cls(arrays["cells"], arrays["totals"], pace=arrays.get("pace"))
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
        self.cells[...], self.totals[...] = arrays["cells"], arrays["totals"]
        if self.pace is not None:
            self.pace[...] = arrays["pace"]
        self.missed = np.array(arrays["missed"], dtype=np.float64) if "missed" in arrays else None
        for name, part in self.parts.items():
            part.restore(under(f"{name}_", arrays))
        self.take_own(arrays)

    def check(self, arrays: dict[str, Array]) -> None:
        """Refuse arrays that are not those of such a state."""
        for name, place in (("cells", self.cells), ("totals", self.totals)):
            check_part(name, arrays.get(name), place.shape, signed=False)
        if self.pace is not None:
            check_pace(arrays.get("pace"), self.pace)
        if "missed" in arrays:
            check_part("missed", arrays["missed"], (self.m,), signed=False)
        check_counts(arrays["cells"], arrays["totals"], arrays.get("missed"))
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
        for sums in (slice(SUM_TP, SUM_CROSS), slice(SUM_CROSS, TOTALS)):
            if first.totals[sums].any() or second.totals[sums].any():
                totals[sums] = sums_of(cells)[sums.start - 1 : sums.stop - 1]
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
        totals = self.totals * factor**POWERS
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
        totals = self.totals * factor**POWERS
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

    >>> check_counts(np.array([[2.0], [1.0], [3.0]]), np.array([5.0, 0, 0, 0, 0, 0, 0]), None)
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
    with np.errstate(over="ignore", invalid="ignore"):  # products of counts near 1e154 and beyond
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
    """The sums over labels that go with some counts."""
    tp, predicted, positive = cells[TP], cells[PREDICTED], cells[POSITIVE]
    found = np.zeros(TOTALS)
    found[SUM_TP] = tp.sum()
    found[SUM_PREDICTED] = predicted.sum()
    found[SUM_POSITIVE] = positive.sum()
    found[SUM_CROSS] = predicted @ positive
    found[SUM_PREDICTED_SQUARED] = predicted @ predicted
    found[SUM_POSITIVE_SQUARED] = positive @ positive
    return found[1:]
