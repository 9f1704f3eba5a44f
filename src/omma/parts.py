"""The parts of a state: what calibration has learned, what limits cost; and their arrays in a file.

Where the past fades, its pace is one: the weight of a row now, by what it grows, and how often all
was divided.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

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
from omma.kernels.layout import ERAS, GROWTH, LARGEST_UNIT, POSITIVE, TP, UNIT

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
