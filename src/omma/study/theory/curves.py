"""Curves over sequences: where they are looked at, their mean and error, and the power of n."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
DRAWS = 500


def until(last: int) -> list[int]:
    """Numbers of rows from 100 on, three to each power of ten.

    >>> until(10_000)
    [100, 215, 464, 1000, 2154, 4642, 10000]
    """
    powers = np.arange(6, 3 * np.log10(last) + 0.5) / 3
    return [round(10**power) for power in powers.tolist()]


def standard_error(curves: Vector) -> Vector:
    """Of the mean over sequences."""
    return curves.std(axis=0, ddof=1) / np.sqrt(len(curves))  # type: ignore[no-any-return]


def averaged(name: str, curves: Vector) -> dict[str, list[float]]:
    """The mean of curves and its standard error, as records keep them.

    >>> averaged("regret", np.array([[1.0, 2.0], [3.0, 2.0]]))
    {'regret': [2.0, 2.0], 'regret_error': [1.0, 0.0]}
    """
    errors = standard_error(curves).tolist()
    return {name: curves.mean(axis=0).tolist(), f"{name}_error": errors}


class Rate(NamedTuple):
    """A curve that goes as n to the ``exponent``, and the 95% interval of that."""

    exponent: float
    low: float
    high: float


def fitted_rate(
    rows: NDArray[np.int64], curves: Vector, *, start: int = 1000, seed: int = 0
) -> Rate | None:
    """Fit a line to the logarithm of the mean curve, and refit it to redrawn curves.

    There is a row of ``curves`` for each sequence. What comes before ``start`` rows is left out.
    None where the curve is not clearly above zero, so that it has no logarithm.

    >>> rows = np.array([1000, 10_000, 100_000])
    >>> fitted_rate(rows, np.array([5.0 / rows, 7.0 / rows])).exponent
    -1.0
    """
    late = rows >= start
    logs = np.log(rows[late])
    values = curves[:, late]
    picks = np.random.default_rng(seed).integers(len(curves), size=(DRAWS, len(curves)))
    means = values[picks].mean(axis=1)
    usable = (means > 0).all(axis=1)
    if not (values.mean(axis=0) > 0).all() or usable.mean() < 0.95:
        return None
    weights = logs - logs.mean()
    weights = weights / (weights @ weights)
    low, high = np.quantile(np.log(means[usable]) @ weights, (0.025, 0.975))
    exponent = float(np.log(values.mean(axis=0)) @ weights)
    return Rate(round(exponent, 12), float(low), float(high))
