"""Scores whose sign, or whose largest, is the decision of a rule: for ``decision_function``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma.calibration.online import OnlineCalibrator
from omma.rule import Rule
from omma.sklearn._target import CLASSES, YES, Target
from omma.state import Calibration

Floats = NDArray[np.float64]
HAIR = np.finfo(np.float64).tiny  # a score of zero counts as no


def decision_scores(rule: Rule, eta: Any, target: Target) -> Floats:
    """(n,) for two classes, else a column for each class or label."""
    dense = eta.toarray() if sparse.issparse(eta) else np.asarray(eta, dtype=np.float64)
    decided = np.asarray(rule.predict(dense)).reshape(len(dense), target.m)
    eta = dense.reshape(decided.shape).astype(np.float64)
    seats = rule.at_most if rule.k is None else rule.k
    if seats is None:
        scores = _above_thresholds(rule, eta, decided)
    else:
        gains = _gains(rule, eta)
        if target.kind == CLASSES:
            two = gains.shape[1] == 2
            return _signed((gains[:, 1] - gains[:, 0]) / 2, decided[:, 1]) if two else gains
        last = np.sort(gains, axis=1)[:, [-seats]]
        # Up to at_most labels are predicted if they gain, exactly k whatever they gain.
        scores = _signed(gains - (last if rule.k else np.maximum(last, 0.0)), decided)
    if target.kind != YES:
        return scores
    if target.positive == 1:
        return scores[:, 0]
    return _signed(-scores[:, 0], 1 - decided[:, 0])  # the second class is the negative one


def _gains(rule: Rule, eta: Floats) -> Floats:
    """Gains in the units of a probability; labels of probability zero are behind all others."""
    values = eta
    if rule.calibration is not None:
        learned = Calibration.start(rule.m)
        learned.take(*rule.calibration)
        calibrated = OnlineCalibrator.from_arrays(learned.arrays()).predict(eta)
        values = np.asarray(calibrated, dtype=np.float64).reshape(eta.shape)
    gains = values * rule.slope + rule.offset
    if rule.matrix is not None:
        gains, unit = gains + values @ rule.matrix, np.abs(rule.matrix).max()
    else:
        gains, unit = np.where(eta > 0, gains, gains.min() - 1.0), np.abs(rule.slope).max()
    return np.asarray(gains / (unit or 1.0), dtype=np.float64)


def _above_thresholds(rule: Rule, eta: Floats, decided: Any) -> Floats:
    """How far each probability is above its threshold; where there is none, yes above every no."""
    thresholds = rule.thresholds
    plain = np.isfinite(thresholds) & (rule.slope > 0)
    distance = eta - np.where(plain, thresholds, 0.0)
    return _signed(np.where(plain, distance, eta - 2 + 3 * decided), decided)


def _signed(scores: Floats, decided: Any) -> Floats:
    """Above zero where the rule says yes, at most zero elsewhere: ties and roundings may differ."""
    return np.where(decided == 1, np.maximum(scores, HAIR), np.minimum(scores, 0.0))
