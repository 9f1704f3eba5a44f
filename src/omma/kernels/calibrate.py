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
from omma.kernels.lanes import (
    LANES,
    eight_among,
    eight_of,
    eight_to,
    larger,
    put_among,
    put_eight_of,
    put_eight_to,
    spread,
    times_plus,
    total,
    where,
)
from omma.kernels.layout import CHOSEN_GAINS, GAINS, LOGITS, UNIT, VALUES
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
        times_plus(error, z, by_slope),
        by_intercept + error,
        times_plus(bent, z, slope),
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
        by_slope = where(here, times_plus(error, z, by_slope), by_slope)
        by_intercept = plus_in(by_intercept, here, error)
        slope = where(here, times_plus(bent, z, slope), slope)
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


@helper
def numbers_of(numbers, labels, at, left):
    """Numbers of eight labels of a row; without ``labels`` it has all in their order."""
    if labels.shape[0] > 0:
        return eight_among(numbers, labels, at, left)
    return eight_to(numbers, at, left)


@helper
def put_numbers(numbers, labels, at, left, new):
    """Write them."""
    if labels.shape[0] > 0:
        put_among(numbers, labels, at, left, new)
    else:
        put_eight_to(numbers, at, left, new)


@pointed("calibration")
def calibrate_by(shared, bias, labels, count, scratch):
    """Put calibrated probabilities in place of a row's, and keep the logits of those given.

    Eights may go past the last of so many positions, where nothing looks.
    """
    m = scratch.shape[1]
    for at in range(0, count, LANES):  # two loops: a processor has more under way at once
        put_eight_of(scratch, LOGITS, at, m - at, logit(eight_of(scratch, VALUES, at, m - at)))
    if shared[LABELLED] > 0.0:
        a, b = held(shared[SLOPE]), shared[INTERCEPT]
        for at in range(0, count, LANES):
            value, z = eight_of(scratch, VALUES, at, m - at), eight_of(scratch, LOGITS, at, m - at)
            moved = times_plus(a, z, b) + numbers_of(bias, labels, at, count - at)
            put_eight_of(scratch, VALUES, at, m - at, where(value > 0.0, sigmoid(moved), 0.0))
    return 0


@pointed("learning calibration")
def fit_by(shared, bias, precision, unit, labels, count, scratch, present, weight):
    """Learn from a row: ``present[j]`` is one where label j is true."""
    m, counted, start = scratch.shape[1], weight * unit, START_PRECISION * unit
    share = 1.0 - 1.0 / bias.shape[0]
    for at in range(0, count, LANES):
        value, left = eight_of(scratch, VALUES, at, m - at), count - at
        stored = where(value > 0.0, counted, 0.0)
        error = value - numbers_of(present, labels, at, left)
        # That is v (1 - v), or the squared error where it is more: of v and 1 - v one is the error.
        curve = stored * (abs(error) * larger(value, 1.0 - value))
        error = error * stored
        known = numbers_of(precision, labels, at, left) + curve
        put_numbers(precision, labels, at, left, known)
        put_eight_of(scratch, GAINS, at, m - at, error)
        put_eight_of(scratch, CHOSEN_GAINS, at, m - at, curve)
        step = error / (start + known)
        moved = times_plus(-share, step, numbers_of(bias, labels, at, left))
        put_numbers(bias, labels, at, left, moved)
    sums = sums_of_stored(labels, scratch) if labels.shape[0] > 0 else sums_of_all(count, scratch)
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
