"""What online calibration has learned, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
from omma.parts import Array, check_part


@dataclass(eq=False)
class Calibration:
    """What online calibration has learned: c = σ(a·logit(η) + b + b_j).

    Attributes
    ----------
    shared : ndarray
        a, b, the curvature by both (three numbers), and the weight of rows whose labels came.
    bias, precision : ndarray of shape (m,)
        b_j of each label, and how much was learned of it: what is known before the first row is not
        stored, so that both of them and the curvature add up.
    """

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
        return float(np.clip(self.shared[SLOPE], NARROWEST, STEEPEST))

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

    def arrays(self) -> dict[str, Array]:
        """All of it as plain arrays, for a file."""
        return {"shared": self.shared, "bias": self.bias, "precision": self.precision}

    def check(self, arrays: dict[str, Array]) -> None:
        """Refuse arrays that are not those of such a calibration."""
        for name, place in self.arrays().items():
            check_part(name, arrays.get(name), place.shape, signed=name != "precision")

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take over what ``arrays`` gave."""
        self.check(arrays)
        for name, place in self.arrays().items():
            place[...] = arrays[name]
