"""Scores for ``decision_function``: their sign, or the largest, is the decision of a rule."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, logit

from omma.kernels.layout import LEAST, MOST
from omma.rule import Rule, squashed
from omma.sklearn._problem import BINARY, MULTICLASS, Problem

Floats = NDArray[np.float64]
ABOVE_ZERO = np.finfo(np.float64).tiny  # scikit-learn takes a score of zero for a no


def decision_scores(rule: Rule, eta: Any, problem: Problem) -> Floats:
    """(n,) for two classes, else a column for each class or label."""
    dense = eta.toarray() if sparse.issparse(eta) else np.asarray(eta, dtype=np.float64)
    decided = np.asarray(rule.predict(dense)).reshape(len(dense), problem.m)
    eta = dense.reshape(decided.shape).astype(np.float64)
    seats = rule.at_most if rule.k is None else rule.k
    if seats is None:
        thresholds = rule.thresholds
        plain = np.isfinite(thresholds) & (rule.slope > 0)
        distance = eta - np.where(plain, thresholds, 0.0)
        # Where a label has no threshold, every yes is above every no.
        scores = np.where(plain, distance, eta - 2 + 3 * decided)
    else:
        gains = _gains(rule, eta)
        if problem.kind == MULTICLASS:
            two = gains.shape[1] == 2
            return _signed((gains[:, 1] - gains[:, 0]) / 2, decided[:, 1]) if two else gains
        last = np.sort(gains, axis=1)[:, [-seats]]
        # Up to at_most labels are predicted if they gain, exactly k whatever they gain.
        scores = gains - (last if rule.k else np.maximum(last, 0.0))
    scores = _signed(scores, decided)
    if problem.kind != BINARY:
        return scores
    if problem.positive == 1:
        return scores[:, 0]
    return _signed(-scores[:, 0], 1 - decided[:, 0])  # the second class is the negative one


def _gains(rule: Rule, eta: Floats) -> Floats:
    """Gains in the units of a probability; labels of probability zero are behind all others."""
    values = eta
    if rule.curve is not None:
        a, b, biases, s = rule.curve
        calibrated = expit(a * squashed(logit(np.clip(eta, LEAST, MOST)), s) + b + biases)
        values = np.where(eta > 0, calibrated, 0.0)
    gains = values * rule.slope + rule.offset
    if rule.matrix is not None:
        gains, unit = gains + values @ rule.matrix, np.abs(rule.matrix).max()
    else:
        gains, unit = np.where(eta > 0, gains, gains.min() - 1.0), np.abs(rule.slope).max()
    return np.asarray(gains / (unit or 1.0), dtype=np.float64)


def _signed(scores: Floats, decided: Any) -> Floats:
    """Above zero where the rule says yes, at most zero elsewhere: ties and roundings may differ."""
    return np.where(decided == 1, np.maximum(scores, ABOVE_ZERO), np.minimum(scores, 0.0))
