"""Calibration while rows come: c = σ(a·logit(η) + b + b_j), fitted to labels one row at a time.

Two numbers for all labels, a and b, follow by Newton's method with the curvature added up so far; a
bias b_j for each label by a step of its own, of which the part 1 / m is left out: b corrects all
labels by it already, and with one label there would be two corrections of the same. The weight of
an entry in the curvature is at least its squared error: an entry that is confident and wrong has
hardly any curvature of its own, and steps would overshoot. Until a label has come, probabilities
pass as they are, to the bit.

Entries of probability zero are no candidates, and are left alone; so dense and sparse rows agree.

What was known before the first row, START, is not stored: it is added where it is used, in the
present unit of weight (see ``omma.kernels.fade``). So curvatures and precisions of several streams
add up.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from numba.core import types

from omma.kernels.eights import lane_of, plus_in
from omma.kernels.jit import by_kind, helper, pointed
from omma.kernels.lanes import LANES, eight_of, spread, total
from omma.kernels.layout import CHOSEN_GAINS, GAINS, GATHERED, LOGITS, UNIT, VALUES
from omma.kernels.logistic import logit, sigmoid
from omma.kernels.pointer import COUNT, IDS, NUMBERS, ROWS, address_of, called

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


class Calibrator(NamedTuple):
    """What calibration knows: the numbers for all labels, and two for each; and the unit."""

    shared: Any
    bias: Any
    precision: Any
    pace: Any
    calibrate: Any  # addresses of the two functions below
    fit: Any


class Settled(NamedTuple):
    """The same of a rule that stands still: it calibrates, and learns no more."""

    shared: Any
    bias: Any
    precision: Any
    pace: Any
    calibrate: Any
    fit: Any


@helper
def held(slope):
    """A slope that is neither flat nor a wall; sums of calibrators may go past either."""
    return min(max(slope, NARROWEST), STEEPEST)


@helper
def follow(shared, start, by_slope, by_intercept):
    """A step of Newton's method for a and b."""
    p, q, r = start + shared[CURVE_SLOPE], shared[CURVE_BOTH], start + shared[CURVE_INTERCEPT]
    det = p * r - q * q
    if det > SINGULAR * p * r:
        shared[SLOPE] = held(shared[SLOPE] - (r * by_slope - q * by_intercept) / det)
        shared[INTERCEPT] -= (p * by_intercept - q * by_slope) / det


@helper
def no_sums():
    """Sums over labels before the first one: what errors and curvature say of a and b."""
    nothing = spread(0.0)
    return nothing, nothing, nothing, nothing, nothing


@helper
def with_eight(sums, z, error, curve):
    """The sums with what eight labels say."""
    by_slope, by_intercept, slope, both, intercept = sums
    bent = curve * z
    return (
        by_slope + error * z,
        by_intercept + error,
        slope + bent * z,
        both + bent,
        intercept + curve,
    )


@helper
def sums_of_all(count, scratch):
    """The sums over all labels, in their order."""
    sums = no_sums()
    for at in range(0, count, LANES):
        z, error = (
            eight_of(scratch, LOGITS, at, count - at),
            eight_of(scratch, GAINS, at, count - at),
        )
        sums = with_eight(sums, z, error, eight_of(scratch, CHOSEN_GAINS, at, count - at))
    return sums


@helper
def sums_of_stored(labels, scratch):
    """The same bits of a row that stores some: each adds to its lane, as it does among all."""
    logits, errors, curves = scratch[LOGITS], scratch[GAINS], scratch[CHOSEN_GAINS]
    by_slope, by_intercept, slope, both, intercept = no_sums()
    for i in range(labels.shape[0]):
        here, z, error, curve = lane_of(labels[i]), logits[i], errors[i], curves[i]
        bent = curve * z
        by_slope = plus_in(by_slope, here, error * z)
        by_intercept = plus_in(by_intercept, here, error)
        slope = plus_in(slope, here, bent * z)
        both = plus_in(both, here, bent)
        intercept = plus_in(intercept, here, curve)
    return by_slope, by_intercept, slope, both, intercept


@helper
def add_sums(shared, start, sums):
    """Add what a row's labels say, and follow it."""
    shared[CURVE_SLOPE] += total(sums[2])
    shared[CURVE_BOTH] += total(sums[3])
    shared[CURVE_INTERCEPT] += total(sums[4])
    follow(shared, start, total(sums[0]), total(sums[1]))


@pointed("calibration")
def calibrate_by(shared, bias, labels, count, scratch):
    """Put calibrated probabilities in place of a row's, and keep the logits of those given."""
    values, logits, moved = scratch[VALUES], scratch[LOGITS], scratch[GAINS]
    for i in range(count):  # two loops: the processor has more of them under way at once
        logits[i] = logit(values[i])
    if shared[LABELLED] > 0.0:
        a, b = held(shared[SLOPE]), shared[INTERCEPT]
        for i in range(labels.shape[0]):
            moved[i] = bias[labels[i]]
        added = moved if labels.shape[0] > 0 else bias
        for i in range(count):
            calibrated = sigmoid((a * logits[i] + b) + added[i])
            values[i] = calibrated if values[i] > 0.0 else 0.0
    return 0


@pointed("learning calibration")
def fit_by(shared, bias, precision, unit, labels, count, scratch, present, weight):
    """Learn from a row: ``present[j]`` is one where label j is true."""
    values, thin = scratch[VALUES], labels.shape[0] > 0
    errors, curves = scratch[GAINS], scratch[CHOSEN_GAINS]
    steps, known, true = scratch[GATHERED], scratch[GATHERED + 1], scratch[GATHERED + 2]
    counted, start = weight * unit, START_PRECISION * unit
    share = 1.0 - 1.0 / bias.shape[0]
    for i in range(labels.shape[0]):  # side by side, so that what divides is vector instructions
        known[i] = precision[labels[i]]
        true[i] = present[labels[i]]
    known = known if thin else precision
    true = true if thin else present
    # Two loops: one would write to so many arrays that it is no vector instructions any more.
    for i in range(count):
        stored = counted if values[i] > 0.0 else 0.0
        error = values[i] - true[i]
        errors[i] = error * stored
        curves[i] = stored * max(values[i] * (1.0 - values[i]), error * error)
    for i in range(count):
        known[i] += curves[i]
        steps[i] = share * errors[i] / (start + known[i])
    for i in range(labels.shape[0]):
        precision[labels[i]] = known[i]
        bias[labels[i]] -= steps[i]
    for i in range(0 if thin else count):
        bias[i] -= steps[i]
    sums = sums_of_stored(labels, scratch) if thin else sums_of_all(count, scratch)
    shared[LABELLED] += weight
    add_sums(shared, START_CURVE * unit, sums)
    return 0


@by_kind
def calibrate(calibrator, labels, count, scratch):
    """Put calibrated probabilities in place of a row's; no ``labels`` are all in their order."""


@calibrate.case(None)
def calibrate_not(calibrator, labels, count, scratch):
    pass


@calibrate.case()
def calibrate_row(calibrator, labels, count, scratch):
    if calibrator.calibrate != 0:  # a loop that others share may be without
        row = (labels, np.int64(count), scratch)
        called(calibrator.calibrate, (calibrator.shared, calibrator.bias, *row))


@by_kind
def fit(calibrator, labels, count, scratch, present, weight):
    """Learn from a row: ``present[j]`` is one where label j is true."""


@fit.case()
def fit_not(calibrator, labels, count, scratch, present, weight):
    pass


@fit.case(Calibrator)
def fit_row(calibrator, labels, count, scratch, present, weight):
    if calibrator.fit != 0:
        learned = (calibrator.shared, calibrator.bias, calibrator.precision, calibrator.pace[UNIT])
        row = (labels, np.int64(count), scratch, present, np.float64(weight))
        called(calibrator.fit, (*learned, *row))


@cache
def calibrating(settled: bool) -> tuple[Any, Any]:
    """Where the functions that calibrate a row, and learn from one, lie."""
    work = (IDS, COUNT, ROWS)
    found = address_of(calibrate_by, NUMBERS, NUMBERS, *work)
    if settled:
        return found, 0
    learned = (NUMBERS, NUMBERS, NUMBERS, types.float64)
    return found, address_of(fit_by, *learned, *work, NUMBERS, types.float64)
