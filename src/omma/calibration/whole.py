"""Calibration by all rows at once, for who has them: it depends on no order.

The same curve as that of ``OnlineCalibrator``, c = σ(a·logit(η) + b + b_j), and the same start,
which holds it back where there is little to learn from. Weights stand for repeated rows.

This is a logistic regression with a ridge. Newton's method solves it, as biases touch each other
through a and b alone: a step costs no more than a gradient, and SciPy's L-BFGS-B takes some thirty
times as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
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
from omma.state_parts import Calibration

Floats = NDArray[np.float64]
STEPS, HALVINGS = 50, 30  # at most: steps of Newton's method, and halvings of a step
ENDS = (FLATTEST, STEEPEST)
ENOUGH = 1e-10  # of the loss: less is not worth another step


def calibration_of(sample: Batch) -> Calibration:
    """Calibrate on all rows together; the labels of every row must be known.

    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=20, seed=0)
    >>> round(calibration_of(omma.Batch.of(eta ** 2 / (eta ** 2 + (1 - eta) ** 2), y)).slope, 1)
    0.5
    """
    entries = _Entries.of(sample)
    parameters = np.concatenate(([1.0, 0.0], np.zeros(sample.m)))  # a, b, and all b_j
    loss = entries.loss(parameters)
    for _ in range(STEPS):
        step = entries.newton_step(parameters)
        # Newton's step may overshoot where probabilities are confident and wrong.
        for halving in range(HALVINGS):
            tried = parameters - step / 2**halving
            tried[SLOPE] = np.clip(tried[SLOPE], *ENDS)
            tried_loss = entries.loss(tried)
            if tried_loss <= loss:
                break
        else:
            break  # no step gains any more
        gained, parameters, loss = loss - tried_loss, tried, tried_loss
        if gained <= ENOUGH * (1.0 + abs(loss)):
            break
    # As an online calibrator would keep it, so that one can go on from here.
    curve, crossed, own = entries.curvature(parameters)
    shared = np.empty(SHARED)
    shared[[SLOPE, INTERCEPT]] = parameters[:2]
    shared[CURVE_SLOPE] = float((curve * entries.logits**2).sum())
    shared[CURVE_BOTH], shared[CURVE_INTERCEPT] = crossed.sum(), own.sum()
    shared[LABELLED] = entries.rows
    return Calibration(shared, parameters[2:].copy(), own)


@dataclass(frozen=True)
class _Entries:
    """Logits of all candidates with their labels and weights: (rows, labels).

    Of sparse rows they are lists, and ``columns`` says of which label each entry is.
    """

    logits: Floats
    true: Floats
    weight: Floats
    columns: NDArray[Any] | None
    m: int
    rows: float

    @classmethod
    def of(cls, sample: Batch) -> _Entries:
        labels = sample.labels
        assert labels is not None
        row_weight = sample.weights if len(sample.weights) else np.ones(sample.n)
        columns = None
        if sample.is_sparse:
            matrix, indicators = sample.values, labels.values
            rows = np.repeat(np.arange(sample.n), np.diff(matrix.indptr))
            columns, values = np.asarray(matrix.indices), np.asarray(matrix.data, dtype=np.float64)
            present = indicators[rows] == columns if labels.class_ids else indicators[rows, columns]
            true, weight = np.asarray(present, dtype=np.float64).ravel(), row_weight[rows]
        else:
            values = np.asarray(sample.eta.array, dtype=np.float64)  # type: ignore[union-attr]
            indicators, places = labels.indicators(np.arange(sample.n, dtype=np.int64))
            true = indicators[places].astype(np.float64)
            weight = np.broadcast_to(row_weight[:, np.newaxis], values.shape)
        # A probability of zero is no candidate, and weighs nothing; one has no finite logit.
        near = np.clip(values, LEAST, MOST)
        logits, weight = np.log(near) - np.log1p(-near), weight * (values > 0.0)
        return cls(logits, true, weight, columns, sample.m, float(row_weight.sum()))

    def by_label(self, values: Floats) -> Floats:
        """Sums over the rows."""
        if self.columns is None:
            return np.asarray(values.sum(axis=0))
        return np.asarray(np.bincount(self.columns, values, self.m), dtype=np.float64)

    def calibrated(self, parameters: Floats) -> Floats:
        """Calibrated logits."""
        bias = parameters[2:] if self.columns is None else parameters[2:][self.columns]
        return np.asarray(parameters[SLOPE] * self.logits + (parameters[INTERCEPT] + bias))

    def loss(self, parameters: Floats) -> float:
        """Log-loss, and what it costs to be far from the start."""
        logits = self.calibrated(parameters)
        own = float((self.weight * (np.logaddexp(0.0, logits) - self.true * logits)).sum())
        away = float((parameters[SLOPE] - 1.0) ** 2 + parameters[INTERCEPT] ** 2)
        return own + 0.5 * (
            START_CURVE * away + START_PRECISION * float(parameters[2:] @ parameters[2:])
        )

    def curvature(self, parameters: Floats) -> tuple[Floats, Floats, Floats]:
        """The curvature at each entry, and its sums by label with and without the logit."""
        probability = expit(self.calibrated(parameters))
        curve = self.weight * probability * (1.0 - probability)
        return curve, self.by_label(curve * self.logits), self.by_label(curve)

    def newton_step(self, parameters: Floats) -> Floats:
        """A step of Newton's method: biases are eliminated, and a and b solved for."""
        error = self.weight * (expit(self.calibrated(parameters)) - self.true)
        curve, crossed, own = self.curvature(parameters)
        by_bias = self.by_label(error)
        by_slope = float((error * self.logits).sum()) + START_CURVE * (parameters[SLOPE] - 1.0)
        by_shared = np.array([by_slope, float(by_bias.sum()) + START_CURVE * parameters[INTERCEPT]])
        by_bias = by_bias + START_PRECISION * parameters[2:]
        square = float((curve * self.logits**2).sum())
        both = np.array([[square, crossed.sum()], [crossed.sum(), own.sum()]])
        # The Schur complement of the diagonal block of biases.
        sides, precision = np.stack((crossed, own)), own + START_PRECISION
        left = both + START_CURVE * np.eye(2) - (sides / precision) @ sides.T
        right = by_shared - (sides / precision) @ by_bias
        shared = np.linalg.solve(left, right)
        slope = parameters[SLOPE]
        if slope in ENDS and not FLATTEST < slope - shared[SLOPE] < STEEPEST:
            shared = np.array([0.0, right[1] / left[1, 1]])  # a stays where it may not go further
        return np.concatenate((shared, (by_bias - shared @ sides) / precision))
