"""Calibration on all rows at once, so that their order does not matter.

The same curve as that of ``OnlineCalibrator``, c = σ(a (z − z̄_j) + e z̄_j + b + b_j), and the same
start, which holds it back where there is little to learn from. Weights stand for repeated rows.

This is a logistic regression with a ridge, 3 v (a − 1)² + 30 (e − 1)² + b² + 10 Σ b_j² over two,
for the variance v of logits within labels. Newton's method solves it, as biases touch each other
through a, e and b alone: a step costs little more than a gradient, and SciPy's L-BFGS-B takes more
than ten times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from omma.kernels.calibrate import (
    COUNTED,
    CURVES,
    FLATTEST,
    INTERCEPT,
    LABELLED,
    LEAST_VARIANCE,
    SPREAD,
    START_BETWEEN,
    START_INTERCEPT,
    START_PRECISION,
    START_SLOPE,
    STEEPEST,
    STRAIGHT,
    SURE,
)
from omma.kernels.layout import LEAST, MOST
from omma.rows.arrays import stored_in
from omma.rows.batch import Batch
from omma.rule import squashed
from omma.state_parts import HALF, IDENTITY, Calibration

Floats = NDArray[np.float64]
STEPS, HALVINGS = 50, 30  # at most: steps of Newton's method, and halvings of a step
ENDS = (FLATTEST, STEEPEST)
ENOUGH = 1e-10  # of the loss: less is not worth another step


def calibration_of(sample: Batch, *, classes: bool = False) -> Calibration:
    """Calibrate on all rows together; the labels of every row must be known.

    ``classes`` says that each row has one class, as for ``OnlineCalibrator``.

    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=20, seed=0)
    >>> round(calibration_of(omma.Batch.of(eta ** 2 / (eta ** 2 + (1 - eta) ** 2), y)).slope, 1)
    0.5
    """
    entries = _Entries(sample, STRAIGHT if classes else SURE)
    parameters = np.concatenate((IDENTITY, np.zeros(sample.m)))  # a, e, b, and all b_j
    loss = entries.loss(parameters)
    for _ in range(STEPS):
        step = entries.newton_step(parameters)
        # Newton's step may overshoot where probabilities are confident and wrong.
        for halving in range(HALVINGS):
            tried = parameters - step / 2**halving
            tried[:INTERCEPT] = np.clip(tried[:INTERCEPT], *ENDS)
            tried_loss = entries.loss(tried)
            if tried_loss <= loss:
                break
        else:
            break  # no step gains any more
        gained, parameters, loss = loss - tried_loss, tried, tried_loss
        if gained <= ENOUGH * (1.0 + abs(loss)):
            break
    # As an online calibrator would keep it, so that one can go on from here.
    learned = Calibration.start(sample.m, classes=classes)
    curvature, _, own = entries.curvature(parameters)
    learned.shared[:CURVES], learned.bias = parameters[:CURVES], parameters[CURVES:].copy()
    learned.shared[CURVES:LABELLED], learned.precision = curvature[HALF], own
    learned.shared[[LABELLED, SPREAD, COUNTED]] = entries.rows, entries.spread, entries.count.sum()
    learned.mean, learned.entries = entries.mean, entries.count
    learned.set_trust()
    return learned


class _Entries:
    """Logits of all candidates, one entry each, with their labels and weights.

    ``columns`` says of which label each entry is. ``shared``, shape (3, entries), has its
    x = (z − z̄_j, z̄_j, 1), which a, e and b are multiplied by. Entries of a label weigh ``count``
    n_j together, and z̄_j is the ``mean`` of their logits; ``spread`` is W, the sum of (z − z̄_j)².
    """

    def __init__(self, sample: Batch, squash: float) -> None:
        labels, row_weight = sample.labels, sample.row_weights
        assert labels is not None
        self.m, self.rows = sample.m, float(row_weight.sum())
        eta: Any = sample.eta.matrix if sample.is_sparse else sample.eta.array  # type: ignore[union-attr]
        # A probability of zero is no candidate. SciPy has no matrices of float16.
        matrix = sparse.csr_array(eta.astype(np.float64))
        self.columns, values = matrix.indices, matrix.data
        self.true = stored_in(labels.matrix, matrix).astype(np.float64)
        self.weight = np.repeat(row_weight, np.diff(matrix.indptr)) * (values > 0.0)
        near = np.clip(values, LEAST, MOST)  # zero and one have no finite logit
        logits = squashed(np.log(near) - np.log1p(-near), squash)
        self.count = self.by_label(self.weight)
        occurs = np.where(self.count > 0.0, self.count, 1.0)
        self.mean = self.by_label(self.weight * logits) / occurs
        means = self.mean[self.columns]
        self.shared = np.stack((logits - means, means, np.ones_like(logits)))
        self.spread = float(self.weight @ self.shared[0] ** 2)

    def by_label(self, values: Floats) -> Floats:
        """Sums over the rows, for each label."""
        return np.bincount(self.columns, values, self.m).astype(np.float64)

    @property
    def start(self) -> Floats:
        """The ridge of a, e and b."""
        total = float(self.count.sum())
        variance = max(self.spread / total if total else 0.0, LEAST_VARIANCE)
        return np.array([START_SLOPE * variance, START_BETWEEN, START_INTERCEPT])

    def calibrated(self, parameters: Floats) -> Floats:
        """Calibrated logits."""
        return np.asarray(parameters[:CURVES] @ self.shared + parameters[CURVES:][self.columns])

    def loss(self, parameters: Floats) -> float:
        """Log-loss plus the ridge."""
        logits = self.calibrated(parameters)
        own = float((self.weight * (np.logaddexp(0.0, logits) - self.true * logits)).sum())
        away = float(self.start @ (parameters[:CURVES] - IDENTITY) ** 2)
        bias = parameters[CURVES:]
        return own + 0.5 * (away + START_PRECISION * float(bias @ bias))

    def curvature(self, parameters: Floats) -> tuple[Floats, Floats, Floats]:
        """The curvature by a, e and b; by these and each bias, shape (3, m); by each bias."""
        probability = expit(self.calibrated(parameters))
        curve = self.weight * probability * (1.0 - probability)
        curved = curve * self.shared
        crossed = np.stack([self.by_label(values) for values in curved])
        return curved @ self.shared.T, crossed, self.by_label(curve)

    def newton_step(self, parameters: Floats) -> Floats:
        """A step of Newton's method: biases are eliminated, and a, e and b solved for."""
        error = self.weight * (expit(self.calibrated(parameters)) - self.true)
        curvature, crossed, own = self.curvature(parameters)
        by_shared = self.shared @ error + self.start * (parameters[:CURVES] - IDENTITY)
        by_bias = self.by_label(error) + START_PRECISION * parameters[CURVES:]
        # The Schur complement of the diagonal block of biases.
        precision = own + START_PRECISION
        left = curvature + np.diag(self.start) - (crossed / precision) @ crossed.T
        right = by_shared - (crossed / precision) @ by_bias
        shared = np.linalg.solve(left, right)
        slopes = parameters[:INTERCEPT]
        target = slopes - shared[:INTERCEPT]
        at_end = np.isin(slopes, ENDS) & ~((target > FLATTEST) & (target < STEEPEST))
        if at_end.any():  # a slope stays where it may not go further
            free = np.flatnonzero(~np.append(at_end, False))
            shared = np.zeros(CURVES)
            shared[free] = np.linalg.solve(left[np.ix_(free, free)], right[free])
        return np.concatenate((shared, (by_bias - shared @ crossed) / precision))
