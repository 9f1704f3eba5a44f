"""Streams whose true label probabilities are known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._validate import check_number, check_positive_int


def long_tail(
    n: int = 20_000,
    m: int = 50,
    *,
    labels_per_row: float = 2.5,
    tail: float = 1.0,
    noise: float = 1.5,
    seed: int | None = 0,
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """A multi-label stream with a long tail of rare labels.

    Label j occurs about in proportion to ``1 / (j + 1)**tail``. Each row has its own log-odds,
    spread around those of the label by a normal distribution; its probabilities are exact, and
    its labels are drawn from them.

    Parameters
    ----------
    n, m : int
        Rows and labels.
    labels_per_row : float
        How many labels a row has on average, nearly.
    tail : float
        How fast labels become rare; 0 makes them all alike.
    noise : float
        Standard deviation of log-odds around the label's own: how much a row tells.
    seed : int, optional

    Returns
    -------
    eta : ndarray of shape (n, m)
        Probability of each label in each row.
    y : int8 ndarray of shape (n, m)
        Labels drawn from eta.

    Examples
    --------
    >>> from omma.datasets import long_tail
    >>> eta, y = long_tail(n=1000, m=5, seed=1)
    >>> eta.shape, y.shape
    ((1000, 5), (1000, 5))
    >>> bool(y.mean(axis=0)[0] > y.mean(axis=0)[-1])
    True
    """
    check_positive_int("long_tail", "n", n)
    check_positive_int("long_tail", "m", m)
    check_number("long_tail", "labels_per_row", labels_per_row, low=0.0, high=float(m))
    check_number("long_tail", "tail", tail, low=0.0)
    check_number("long_tail", "noise", noise, low=0.0)
    rng = np.random.default_rng(seed)
    popularity = 1.0 / np.arange(1, m + 1) ** tail
    # No label is in all rows, and none is so rare that its logarithm would be lost.
    frequency = np.clip(popularity * labels_per_row / popularity.sum(), 1e-6, 0.8)
    log_odds = np.log(frequency / (1.0 - frequency))
    # A normal spread of log-odds raises the mean probability of a rare label; this undoes most
    # of it (for rare labels the logistic function is nearly exponential).
    log_odds -= noise**2 / 2 * (1.0 - frequency)
    eta = 1.0 / (1.0 + np.exp(-(log_odds + noise * rng.standard_normal((n, m)))))
    y = (rng.random((n, m)) < eta).astype(np.int8)
    return eta, y
