"""What limits cost, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from omma.kernels.layout import POSITIVE, TP
from omma.parts import Array, check_part

START_PRICE = 1.0
START_SPREAD = 1e-12  # the first row moves a price by about one, whatever it missed by


@dataclass(eq=False)
class Prices:
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

    def arrays(self) -> dict[str, Array]:
        """All of it as plain arrays, for a file."""
        return {"mu": self.mu, "spread": self.spread, "rates": self.rates, "mean": self.mean}

    def check(self, arrays: dict[str, Array]) -> None:
        """Refuse arrays that are not those of such prices."""
        for name, place in self.arrays().items():
            if name != "mean" or name in arrays:
                check_part(name, arrays.get(name), place.shape, signed=False)
        if (arrays["spread"] <= 0.0).any():
            raise ValueError("spread of prices must be positive")

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take over what ``arrays`` gave."""
        self.check(arrays)
        whole = Prices(**arrays).arrays()
        for name, place in self.arrays().items():
            place[...] = whole[name]
