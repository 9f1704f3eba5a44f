"""A power of n fitted to a measured curve, with its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
DRAWS = 500


@dataclass(frozen=True)
class Rate:
    """A curve that goes as n to the ``exponent``, and the 95% interval of that."""

    exponent: float
    low: float
    high: float


def fitted_rate(
    rows: NDArray[np.int64], curves: Vector, *, start: int = 1000, seed: int = 0
) -> Rate | None:
    """Fit a line to the logarithm of the mean curve, and refit it to redrawn curves.

    Parameters
    ----------
    rows : ndarray of shape (c,)
    curves : ndarray of shape (s, c)
        A curve of each sequence.
    start : int
        Leave out what comes before so many rows.
    seed : int
        Of the redrawing.

    Returns
    -------
    Rate or None
        None where the curve is not clearly above zero, so that it has no logarithm.

    Examples
    --------
    >>> import numpy as np
    >>> from omma.study.theory.rates import fitted_rate
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
