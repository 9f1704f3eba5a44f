"""Calibration while rows come: c = σ(a·logit(η) + b + b_j), fitted to labels one row at a time.

Two numbers for all labels, a and b, follow by Newton's method with the curvature added up so far; a
bias b_j for each label by a step of its own. The weight of an entry in the curvature is at least
its squared error: an entry that is confident and wrong has hardly any curvature of its own, and
steps would overshoot. Until a label has come, probabilities pass as they are, to the bit.

Entries of probability zero are no candidates, and are left alone; so dense and sparse rows agree.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from omma.kernels.jit import by_kind, helper

# Numbers for all labels: a, b, and the curvature by both.
SLOPE: Final = 0
INTERCEPT: Final = 1
CURVE_SLOPE: Final = 2
CURVE_BOTH: Final = 3
CURVE_INTERCEPT: Final = 4
LABELLED: Final = 5  # the weight of rows whose labels came
SHARED: Final = 6

START_CURVE: Final = 3.0  # of a and b, before anything is seen
START_PRECISION: Final = 4.0  # of each bias
NARROWEST: Final = 0.05
STEEPEST: Final = 20.0
SINGULAR: Final = 1e-9
NEAR: Final = 1e-7  # probabilities closer to 0 or 1 are taken to be there


class Calibrator(NamedTuple):
    """What calibration knows: the numbers for all labels, and two for each."""

    shared: Any
    bias: Any
    precision: Any


@by_kind
def calibrate(calibrator, labels, count, values, logits):
    """Put calibrated probabilities in place of ``values``, and keep the logits of those given."""


@calibrate.case(None)
def calibrate_not(calibrator, labels, count, values, logits):
    pass


@calibrate.case(Calibrator)
def calibrate_row(calibrator, labels, count, values, logits):
    shared, bias = calibrator.shared, calibrator.bias
    begun = shared[LABELLED] > 0.0
    a, b = shared[SLOPE], shared[INTERCEPT]
    for position in range(count):
        value = values[position]
        near = min(max(value, NEAR), 1.0 - NEAR)
        logits[position] = np.log(near / (1.0 - near))
    if begun:
        for position in range(count):
            j = position if labels is None else labels[position]
            found = 1.0 / (1.0 + np.exp(-(a * logits[position] + b + bias[j])))
            values[position] = found if values[position] > 0.0 else 0.0


@by_kind
def fit(calibrator, labels, count, values, logits, present, weight):
    """Learn from a row: ``present[j]`` is one where label j is true."""


@fit.case(None)
def fit_not(calibrator, labels, count, values, logits, present, weight):
    pass


@fit.case(Calibrator)
def fit_row(calibrator, labels, count, values, logits, present, weight):
    shared, bias, precision = calibrator.shared, calibrator.bias, calibrator.precision
    by_slope, by_intercept = 0.0, 0.0
    curve_slope, curve_both, curve_intercept = 0.0, 0.0, 0.0
    for position in range(count):
        value = values[position]
        j = position if labels is None else labels[position]
        stored = weight if value > 0.0 else 0.0
        error = value - present[j]
        curve = stored * max(value * (1.0 - value), error * error)
        error *= stored
        z = logits[position]
        by_slope += error * z
        by_intercept += error
        curve_slope += curve * z * z
        curve_both += curve * z
        curve_intercept += curve
        precision[j] += curve
        bias[j] -= error / precision[j]
    shared[CURVE_SLOPE] += curve_slope
    shared[CURVE_BOTH] += curve_both
    shared[CURVE_INTERCEPT] += curve_intercept
    shared[LABELLED] += weight
    follow(shared, by_slope, by_intercept)


@helper
def follow(shared, by_slope, by_intercept):
    """A step of Newton's method for a and b."""
    p, q, r = shared[CURVE_SLOPE], shared[CURVE_BOTH], shared[CURVE_INTERCEPT]
    det = p * r - q * q
    if det > SINGULAR * p * r:
        shared[SLOPE] -= (r * by_slope - q * by_intercept) / det
        shared[INTERCEPT] -= (p * by_intercept - q * by_slope) / det
        shared[SLOPE] = min(max(shared[SLOPE], NARROWEST), STEEPEST)
