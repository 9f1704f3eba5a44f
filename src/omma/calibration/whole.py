"""Calibration by all rows at once, for who has them: it depends on no order.

The same curve as that of ``OnlineCalibrator``, c = σ(a·logit(η) + b + b_j), and the same start,
which holds it back where there is little to learn from. Weights stand for repeated rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

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
from omma.kernels.layout import LEAST, MOST
from omma.rows.batch import Batch
from omma.state import Calibration

Floats = NDArray[np.float64]
STEPS, HALVINGS = 50, 30
ENDS = (FLATTEST, STEEPEST)
ENOUGH = 1e-10  # of the loss: less is not worth another step


def calibration_of(sample: Batch) -> Calibration:
    """What labels say of probabilities, all rows together; labels of every row must be known.

    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=20, seed=0)
    >>> round(calibration_of(omma.Batch.of(eta ** 2 / (eta ** 2 + (1 - eta) ** 2), y)).slope, 1)
    0.5
    """
    entries = _Entries.of(sample)
    at = np.concatenate(([1.0, 0.0], np.zeros(sample.m)))
    loss = entries.loss(at)
    for _ in range(STEPS):
        step = entries.newton(at)
        for halving in range(HALVINGS):
            tried = at - step / 2**halving
            tried[SLOPE] = np.clip(tried[SLOPE], *ENDS)
            found = entries.loss(tried)
            if found <= loss:
                break
        else:
            break
        gained, at, loss = loss - found, tried, found
        if gained <= ENOUGH * (1.0 + abs(loss)):
            break
    return entries.learned(at)


@dataclass(frozen=True)
class _Entries:
    """Logits of all candidates with their labels and weights; dense, or a list with places."""

    logits: Floats
    true: Floats
    weight: Floats
    places: NDArray[Any] | None
    m: int
    rows: float

    @classmethod
    def of(cls, sample: Batch) -> _Entries:
        assert sample.labels is not None
        of_row = sample.weights if len(sample.weights) else np.ones(sample.n)
        if sample.thin:
            matrix = sample.values
            rows = np.repeat(np.arange(sample.n), np.diff(matrix.indptr))
            places, values = np.asarray(matrix.indices), np.asarray(matrix.data, dtype=np.float64)
            true, weight = _looked_up(sample.labels.given, rows, places), of_row[rows]
        else:
            places, values = None, np.asarray(sample.eta.array, dtype=np.float64)  # type: ignore[union-attr]
            read, wanted = sample.labels.indicators(np.arange(sample.n, dtype=np.int64))
            true = read[wanted].astype(np.float64)
            weight = np.broadcast_to(of_row[:, np.newaxis], values.shape)
        near = np.clip(values, LEAST, MOST)
        logits = np.log(near) - np.log1p(-near)
        return cls(logits, true, weight * (values > 0.0), places, sample.m, float(of_row.sum()))

    def by_label(self, values: Floats) -> Floats:
        """Sums over the rows."""
        if self.places is None:
            return np.asarray(values.sum(axis=0))
        return np.asarray(np.bincount(self.places, values, self.m), dtype=np.float64)

    def lifted(self, at: Floats) -> Floats:
        """Calibrated logits."""
        bias = at[2:] if self.places is None else at[2:][self.places]
        return np.asarray(at[SLOPE] * self.logits + (at[INTERCEPT] + bias))

    def loss(self, at: Floats) -> float:
        """Log-loss, and what it costs to be far from the start."""
        lifted = self.lifted(at)
        own = float((self.weight * (np.logaddexp(0.0, lifted) - self.true * lifted)).sum())
        away = float((at[SLOPE] - 1.0) ** 2 + at[INTERCEPT] ** 2)
        return own + 0.5 * (START_CURVE * away + START_PRECISION * float(at[2:] @ at[2:]))

    def curves(self, at: Floats) -> tuple[Floats, Floats, Floats]:
        """The curvature at each entry, and its sums by label with and without the logit."""
        found = expit(self.lifted(at))
        curve = self.weight * found * (1.0 - found)
        return curve, self.by_label(curve * self.logits), self.by_label(curve)

    def newton(self, at: Floats) -> Floats:
        """A step of Newton's method; biases touch each other through a and b alone."""
        error = self.weight * (expit(self.lifted(at)) - self.true)
        curve, crossed, own = self.curves(at)
        of_bias = self.by_label(error)
        of_slope = float((error * self.logits).sum()) + START_CURVE * (at[SLOPE] - 1.0)
        of_both = np.array([of_slope, float(of_bias.sum()) + START_CURVE * at[INTERCEPT]])
        of_bias = of_bias + START_PRECISION * at[2:]
        square = float((curve * self.logits**2).sum())
        both = np.array([[square, crossed.sum()], [crossed.sum(), own.sum()]])
        sides, precision = np.stack((crossed, own)), own + START_PRECISION
        left = both + START_CURVE * np.eye(2) - (sides / precision) @ sides.T
        right = of_both - (sides / precision) @ of_bias
        shared = np.linalg.solve(left, right)
        if not FLATTEST < at[SLOPE] - shared[SLOPE] < STEEPEST and at[SLOPE] in ENDS:
            shared = np.array([0.0, right[1] / left[1, 1]])  # a stays where it may not go further
        return np.concatenate((shared, (of_bias - shared @ sides) / precision))

    def learned(self, at: Floats) -> Calibration:
        """As an online calibrator would keep it, so that one can go on from here."""
        curve, crossed, own = self.curves(at)
        shared = np.empty(SHARED)
        shared[[SLOPE, INTERCEPT]] = at[:2]
        shared[CURVE_SLOPE] = float((curve * self.logits**2).sum())
        shared[CURVE_BOTH], shared[CURVE_INTERCEPT] = crossed.sum(), own.sum()
        shared[LABELLED] = self.rows
        return Calibration(shared, at[2:].copy(), own)


def _looked_up(given: Any, rows: Any, places: Any) -> Floats:
    """Labels at some entries."""
    if not sparse.issparse(given) and given.ndim == 1:
        return np.asarray(given[rows] == places, dtype=np.float64)
    return np.asarray(given[rows, places], dtype=np.float64).ravel()
