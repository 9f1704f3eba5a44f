"""Choosing one number of a model by cross-validated log-loss."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._validate import check_number, check_positive_int, check_seed, shown
from omma_study.estimators._shared import check_standardise

Rows = NDArray[np.int64]

GRID = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


@dataclass(frozen=True)
class Choice:
    """The value with the least log-loss, and what the others had."""

    value: float
    losses: dict[float, float]
    at_edge: bool

    @property
    def report(self) -> dict[str, Any]:
        """For JSON: losses by value, and whether the best lies at an end of the grid."""
        finite = {value: loss for value, loss in self.losses.items() if math.isfinite(loss)}
        return {
            "log_loss": finite.get(self.value),
            "grid": {f"{value:g}": loss for value, loss in finite.items()},
            "at_edge": self.at_edge,
        }


def choose(grid: Sequence[float], loss: Callable[[float], float]) -> Choice:
    """Walk from the middle of the grid to where the loss is least.

    Log-loss first falls and then rises with the strength of regularization, so the walk stops
    at the first value that is no better.

    >>> choice = choose((1.0, 2.0, 3.0, 4.0, 5.0), lambda value: (value - 3.8) ** 2)
    >>> choice.value, sorted(choice.losses)
    (4.0, [3.0, 4.0, 5.0])
    """
    values = sorted({float(value) for value in grid})
    losses: dict[float, float] = {}

    def at(place: int) -> float:
        value = values[place]
        if value not in losses:
            losses[value] = float(np.nan_to_num(loss(value), nan=math.inf))
        return losses[value]

    best = (len(values) - 1) // 2
    for step in (1, -1):
        while 0 <= best + step < len(values) and at(best + step) < at(best):
            best += step
    at(best)
    ends = values[0], values[-1]
    return Choice(values[best], dict(sorted(losses.items())), values[best] in ends)


def sample(n: int, most: int, rng: np.random.Generator) -> Rows:
    """All rows where there are few, else a drawn part, in rising order."""
    if n <= most:
        return np.arange(n)
    return np.sort(rng.permutation(n)[:most])


def folds(n: int, count: int, rng: np.random.Generator) -> list[tuple[Rows, Rows]]:
    """Drawn parts of n rows: (to fit on, to judge by) for each fold."""
    parts = np.array_split(rng.permutation(n), count)
    return [(np.setdiff1d(np.arange(n), held), np.sort(held)) for held in parts]


def check_regularized(owner: str, estimator: Any, *whole: str) -> None:
    """Options that logistic models share, C and how it is chosen, and further whole numbers."""
    if estimator.C is not None:
        check_number(owner, "C", estimator.C, low=0.0, strict=True)
    object.__setattr__(estimator, "grid", check_grid(owner, "grid", estimator.grid))
    for name in ("folds", "max_rows", *whole):
        check_positive_int(owner, name, getattr(estimator, name))
    check_number(owner, "folds", estimator.folds, low=2)
    check_standardise(owner, estimator.standardise)
    check_number(owner, "tol", estimator.tol, low=0.0, strict=True)
    check_seed(owner, estimator.seed)


def check_grid(owner: str, parameter: str, grid: Any) -> tuple[float, ...]:
    """A few numbers above zero."""
    if isinstance(grid, str) or not isinstance(grid, Sequence | np.ndarray) or not len(grid):
        raise ValueError(f"{parameter} of {owner} must hold numbers above 0, got {shown(grid)}")
    return tuple(check_number(owner, parameter, value, low=0.0, strict=True) for value in grid)
