"""Scores whose sign, or whose largest, says what the rule decides: what meta-estimators go by.

``OneVsRestClassifier`` and the like never ask a classifier to predict: they compare its scores with
zero. A score here is how far a probability is above the rule's threshold.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma.calibrated import Calibration
from omma.calibration.online import OnlineCalibrator
from omma.rule import Rule
from omma.sklearn._target import CLASSES, YES, Target

Floats = NDArray[np.float64]
HAIR = np.finfo(np.float64).tiny  # a score of zero counts as no


def decision_scores(rule: Rule, eta: Any, target: Target) -> Floats:
    """(n,) for two classes, else a column for each class or label."""
    dense = eta.toarray() if sparse.issparse(eta) else np.asarray(eta, dtype=np.float64)
    decided = np.asarray(rule.predict(dense)).reshape(len(dense), target.m)
    eta = dense.reshape(decided.shape).astype(np.float64)
    gains = _gains(rule, eta)
    if target.kind == CLASSES:
        return _of_classes(gains, decided)
    seats = rule.at_most if rule.k is None else rule.k
    if seats is None:
        scores = _above(rule, eta, decided)
    else:
        last = np.sort(gains, axis=1)[:, [-seats]]
        scores = _signed(gains - (last if rule.k else np.maximum(last, 0.0)), decided)
    if target.kind != YES:
        return scores
    if target.positive == 1:
        return scores[:, 0]
    return _signed(-scores[:, 0], 1 - decided[:, 0])  # the second class is the one that says no


def _gains(rule: Rule, eta: Floats) -> Floats:
    """Gains in the units of a probability; labels of probability zero are behind all others."""
    values = _calibrated(rule, eta)
    gains = values * rule.slope + rule.offset
    if rule.matrix is not None:
        gains = gains + values @ rule.matrix
    else:
        gains = np.where(eta > 0, gains, gains.min() - 1.0)
    unit = np.abs(rule.slope).max() if rule.matrix is None else np.abs(rule.matrix).max()
    return np.asarray(gains / (unit or 1.0), dtype=np.float64)


def _calibrated(rule: Rule, eta: Floats) -> Floats:
    """Probabilities as the rule takes them."""
    if rule.calibration is None:
        return eta
    found = Calibration.start(rule.m)
    found.take(*rule.calibration)
    calibrated = OnlineCalibrator.from_arrays(found.arrays()).predict(eta)
    return np.asarray(calibrated, dtype=np.float64).reshape(eta.shape)


def _above(rule: Rule, eta: Floats, decided: Any) -> Floats:
    """How far each probability is above its threshold; where there is none, yes above every no."""
    cuts = rule.thresholds
    plain = np.isfinite(cuts) & (rule.slope > 0)
    return _signed(
        np.where(plain, eta - np.where(plain, cuts, 0.0), eta - 2 + 3 * decided), decided
    )


def _of_classes(gains: Floats, decided: Any) -> Floats:
    if gains.shape[1] == 2:
        return _signed((gains[:, 1] - gains[:, 0]) / 2, decided[:, 1])
    return gains


def _signed(scores: Floats, decided: Any) -> Floats:
    """Above zero where the rule says yes, at most zero elsewhere: ties and roundings may differ."""
    return np.where(decided == 1, np.maximum(scores, HAIR), np.minimum(scores, 0.0))
