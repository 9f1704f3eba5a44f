"""All that changes while a policy runs, as plain arrays.

Counts add where streams are merged, subtract where a window moves on and shrink where the past is
forgotten. The prior is not among them: it is added where a gradient is taken, so that it enters
once, however many states were added up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from omma.kernels.calibrate import (
    CURVE_BOTH,
    CURVE_INTERCEPT,
    CURVE_SLOPE,
    INTERCEPT,
    LABELLED,
    NARROWEST,
    SHARED,
    SLOPE,
    START_CURVE,
    START_PRECISION,
    STEEPEST,
)
from omma.kernels.layout import (
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
    N,
)

Array = NDArray[Any]
# How totals grow when every row counts for more: products grow with the square.
POWERS = np.array([1, 1, 1, 1, 2, 2, 2])


@dataclass(eq=False)
class Calibration:
    """What online calibration has learned: c = σ(a·logit(η) + b + b_j).

    Attributes
    ----------
    shared : ndarray
        a, b, the curvature by both (three numbers), and the weight of rows whose labels came.
    bias, precision : ndarray of shape (m,)
        b_j of each label, and how much is known of it.
    """

    shared: NDArray[np.float64]
    bias: NDArray[np.float64]
    precision: NDArray[np.float64]

    @classmethod
    def start(cls, m: int) -> Calibration:
        """Nothing learned yet: probabilities pass as they are."""
        shared = np.zeros(SHARED)
        shared[SLOPE] = 1.0
        shared[CURVE_SLOPE] = shared[CURVE_INTERCEPT] = START_CURVE
        return cls(shared, np.zeros(m), np.full(m, START_PRECISION))

    @property
    def slope(self) -> float:
        """A."""
        return float(self.shared[SLOPE])

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

    def _combined(self, other: Calibration, sign: float) -> Calibration:
        """Both added: precisions add, and what was learned is weighed by them."""
        begin = START_CURVE * np.eye(2)
        curve = self._curve() + sign * (other._curve() - begin)
        pulled = self._curve() @ self.shared[:2]
        pulled = pulled + sign * (other._curve() @ other.shared[:2] - begin @ np.array([1.0, 0.0]))
        shared = np.empty(SHARED)
        shared[:2] = np.linalg.solve(curve, pulled)
        shared[SLOPE] = np.clip(shared[SLOPE], NARROWEST, STEEPEST)
        shared[CURVE_SLOPE], shared[CURVE_BOTH] = curve[0]
        shared[CURVE_INTERCEPT] = curve[1, 1]
        shared[LABELLED] = self.shared[LABELLED] + sign * other.shared[LABELLED]
        precision = self.precision + sign * (other.precision - START_PRECISION)
        bias = (self.precision * self.bias + sign * other.precision * other.bias) / precision
        return Calibration(shared, bias, precision)

    def __add__(self, other: Calibration) -> Calibration:
        return self._combined(other, 1.0)

    def __sub__(self, other: Calibration) -> Calibration:
        return self._combined(other, -1.0)

    def __mul__(self, factor: float) -> Calibration:
        """Forget: what is known counts for less, what was learned stays."""
        shared, begin = self.shared.copy(), Calibration.start(1).shared
        curves = slice(CURVE_SLOPE, CURVE_INTERCEPT + 1)
        shared[curves] = begin[curves] + factor * (shared[curves] - begin[curves])
        shared[LABELLED] *= factor
        precision = START_PRECISION + factor * (self.precision - START_PRECISION)
        return Calibration(shared, self.bias.copy(), precision)

    def arrays(self) -> dict[str, Array]:
        """All of it as plain arrays, for a file."""
        return {"shared": self.shared, "bias": self.bias, "precision": self.precision}

    def check(self, arrays: dict[str, Array]) -> None:
        """Refuse arrays that are not those of such a calibration."""
        for name, place in self.arrays().items():
            check_part(name, arrays.get(name), place.shape, signed=name != "precision")
        if (arrays["precision"] < START_PRECISION / 2).any():
            raise ValueError("precision of a calibration must be positive")

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take over what ``arrays`` gave."""
        self.check(arrays)
        for name, place in self.arrays().items():
            place[...] = arrays[name]


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

    @classmethod
    def zeros(
        cls, m: int, *, soft: bool = False, both: bool = False, calibrated: bool = False
    ) -> State:
        """Nothing counted yet.

        ``soft`` counts probabilities, and true labels beside them; ``both`` also probabilities of
        the rows whose labels came; ``calibrated`` learns what probabilities are worth.
        """
        labels = State.zeros(m) if soft or both else None
        known = State.zeros(m) if both else None
        calibration = Calibration.start(m) if calibrated else None
        return cls(np.zeros((3, m)), np.zeros(TOTALS), labels, known, calibration)

    def laid_out(self, order: Literal["C", "F"]) -> None:
        """Keep the counts of a cell ("C") or of a label ("F") side by side in memory.

        A sparse row touches few labels: with "F" all counts of one come in one cache line. Each
        kernel is compiled for one of the two.
        """
        self.cells = np.asarray(self.cells, order=order)
        for part in (self.labels, self.known):
            if part is not None:
                part.laid_out(order)

    @property
    def m(self) -> int:
        """The number of labels."""
        return int(self.cells.shape[1])

    @property
    def rows(self) -> float:
        """The number of rows that decisions look at, or their weight."""
        return float(self.totals[N])

    @property
    def side_by_side(self) -> NDArray[np.float64]:
        """The cells with those of one kind side by side, whatever the layout."""
        return np.ascontiguousarray(self.cells)

    @property
    def truth(self) -> State:
        """The counts of true labels."""
        return self if self.labels is None else self.labels

    def copy(self) -> State:
        """A state that goes its own way."""
        return type(self).from_arrays({name: one.copy() for name, one in self.arrays().items()})

    @property
    def parts(self) -> dict[str, State | Calibration]:
        """What is kept beside the counts that decisions look at, by its name."""
        found = {"labels": self.labels, "known": self.known, "calibration": self.calibration}
        return {name: part for name, part in found.items() if part is not None}

    def arrays(self) -> dict[str, Array]:
        """All of it as plain arrays, for a file."""
        found: dict[str, Array] = {"cells": self.cells, "totals": self.totals}
        for start, part in self.parts.items():
            found |= {f"{start}_{name}": one for name, one in part.arrays().items()}
        return found

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> State:
        """What ``arrays`` gave."""
        made = cls(arrays["cells"], arrays["totals"])
        for name in ("labels", "known"):
            part = under(f"{name}_", arrays)
            setattr(made, name, State.from_arrays(part) if part else None)
        part = under("calibration_", arrays)
        made.calibration = Calibration(**part) if part else None
        return made

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take over what ``arrays`` of such a state gave, or nothing of it."""
        self.check(arrays)
        self.cells[...], self.totals[...] = arrays["cells"], arrays["totals"]
        for name, part in self.parts.items():
            part.restore(under(f"{name}_", arrays))

    def check(self, arrays: dict[str, Array]) -> None:
        """Refuse arrays that are not those of such a state."""
        for name, place in (("cells", self.cells), ("totals", self.totals)):
            check_part(name, arrays.get(name), place.shape, signed=False)
        for name, part in self.parts.items():
            part.check(under(f"{name}_", arrays))

    def _checked(self, other: Any) -> State:
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
        return other

    def _with(self, cells: Array, totals: Array, sums: bool, parts: dict[str, Any]) -> State:
        if sums:
            totals[1:] = sums_of(cells)
        return State(cells, totals, **parts)

    def __add__(self, other: Any) -> State:
        if not isinstance(other, State):
            return NotImplemented
        other = self._checked(other)
        parts = {name: part + other.parts[name] for name, part in self.parts.items()}
        sums = bool(self.totals[1:].any() or other.totals[1:].any())
        return self._with(self.cells + other.cells, self.totals + other.totals, sums, parts)

    def __sub__(self, other: Any) -> State:
        if not isinstance(other, State):
            return NotImplemented
        other = self._checked(other)
        parts = {name: part - other.parts[name] for name, part in self.parts.items()}
        sums = bool(self.totals[1:].any() or other.totals[1:].any())
        return self._with(self.cells - other.cells, self.totals - other.totals, sums, parts)

    def __mul__(self, factor: float) -> State:
        parts = {name: part * factor for name, part in self.parts.items()}
        return State(self.cells * factor, self.totals * factor**POWERS, **parts)  # type: ignore[arg-type]

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


def under(start: str, arrays: dict[str, Array]) -> dict[str, Array]:
    """The arrays whose names begin so, without that."""
    return {key.removeprefix(start): arrays[key] for key in arrays if key.startswith(start)}


def check_part(name: str, found: Any, shape: tuple[int, ...], *, signed: bool = True) -> None:
    """Refuse an array of a state that cannot be one: kernels believe what they are given."""
    wanted = f"{name} of a state must be finite numbers of shape {shape}"
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "fiu":
        raise ValueError(f"{wanted}, got {'nothing' if found is None else found.dtype}")
    if found.shape != shape or not np.isfinite(found).all():
        raise ValueError(f"{wanted}, got shape {found.shape} and what is not finite")
    if not signed and found.size and found.min() < -1e-9 * max(1.0, float(found.max())):
        raise ValueError(f"{name} of a state must be at least 0, got {found.min():g}")
