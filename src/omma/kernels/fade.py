"""Forgetting: the past fades because the present counts for more.

To shrink all counts after each row would be a pass over all labels. Instead the unit grows: a row
counts for ``pace[UNIT]`` times its weight, and after it the unit is multiplied by ``pace[GROWTH]``,
2 ** (1 / half-life). What is added where a gradient is taken, the prior and the strengths of a
correction, is given in the same unit: only ratios decide. Before the unit is too large for a
number, all is divided by a power of two, which changes no bit of any ratio.
"""

from typing import Any, NamedTuple

from omma.kernels.calibrate import CURVE_BOTH, CURVE_INTERCEPT, CURVE_SLOPE, Calibrator
from omma.kernels.feedback import (
    Counted,
    FromBoth,
    FromEstimates,
    FromLabels,
    FromSome,
    gather,
    look,
    truth,
)
from omma.kernels.jit import by_kind, entry, helper
from omma.kernels.layout import ERAS, GROWTH, LARGEST_UNIT, SUM_CROSS, UNIT
from omma.kernels.price_steps import fade_spread


class Fading(NamedTuple):
    """Feedback whose past fades, and beside it the counts of true labels that do not."""

    of: Any  # FromLabels, FromSome, FromEstimates or FromBoth
    judged: Counted
    pace: Any


@by_kind
def prior_now(feedback, prior):
    """The prior in the unit of the counts that decisions look at."""


@prior_now.case()
def prior_as_it_is(feedback, prior):
    return prior


@prior_now.case(Fading)
def prior_in_units(feedback, prior):
    return prior * feedback.pace[UNIT]


@helper
def in_units(both, unit):
    """Strengths of the correction in the unit of the counts."""
    return FromBoth(
        both.own,
        both.labels,
        both.known,
        both.hits * unit,
        both.positives * unit,
        both.unhit * unit,
        both.lucky,
        both.eager * unit,
        both.seen,
        both.whole,
    )


@look.case(Fading)
def look_at_faded(feedback, sums):
    return look(feedback.of, sums)


@look.case(Fading, FromBoth)
def look_at_both_faded(feedback, sums):
    return look(in_units(feedback.of, feedback.pace[UNIT]), sums)


@gather.case(Fading)
def gather_faded(feedback, labels, sums, scratch):
    return gather(feedback.of, labels, sums, scratch)


@gather.case(Fading, FromBoth)
def gather_both_faded(feedback, labels, sums, scratch):
    both = in_units(feedback.of, feedback.pace[UNIT])
    return gather(both, labels, sums, scratch)


@truth.case(Fading)
def truth_unfaded(feedback):
    return feedback.judged


@by_kind
def fade(feedback, calibrator, prices, known, weight, scratch):
    """After a row: all that was counted is worth a little less."""


@fade.case()
def fade_not(feedback, calibrator, prices, known, weight, scratch):
    pass


@fade.case(Fading)
def fade_row(feedback, calibrator, prices, known, weight, scratch):
    if weight > 0.0:
        grow(feedback, calibrator, prices)


@fade.case(Fading, FromSome)
@fade.case(Fading, FromLabels)
def fade_labelled(feedback, calibrator, prices, known, weight, scratch):
    """A row whose labels are not known is not counted, and so makes nothing older."""
    if known and weight > 0.0:
        grow(feedback, calibrator, prices)


@helper
def grow(feedback, calibrator, prices):
    """The unit of the next row."""
    pace = feedback.pace
    fade_spread(prices, pace[GROWTH])
    pace[UNIT] *= pace[GROWTH]
    while pace[UNIT] >= LARGEST_UNIT:
        pace[UNIT] /= LARGEST_UNIT
        pace[ERAS] += 1.0
        divide(feedback.of)
        divide_calibrator(calibrator)


@helper
def divide_counted(counted):
    """Divide counts by the largest unit, and sums of products by its square."""
    cells, totals = counted.cells, counted.totals
    for cell in range(cells.shape[0]):
        for j in range(cells.shape[1]):
            cells[cell, j] /= LARGEST_UNIT
    for total in range(totals.shape[0]):
        totals[total] /= LARGEST_UNIT
        if total >= SUM_CROSS:
            totals[total] /= LARGEST_UNIT


@by_kind
def divide(feedback):
    """Divide all counts by the largest unit."""


@divide.case(FromLabels)
def divide_labels(feedback):
    divide_counted(feedback.own)


@divide.case(FromSome)
def divide_some(feedback):
    divide_counted(feedback.own)
    for j in range(feedback.missed.shape[0]):
        feedback.missed[j] /= LARGEST_UNIT


@divide.case(FromEstimates)
def divide_estimates(feedback):
    divide_counted(feedback.own)
    divide_counted(feedback.labels)


@divide.case(FromBoth)
def divide_both(feedback):
    divide_counted(feedback.own)
    divide_counted(feedback.labels)
    divide_counted(feedback.known)


@by_kind
def divide_calibrator(calibrator):
    """Divide what calibration knows by the largest unit; what it learned stays."""


@divide_calibrator.case(Calibrator)
def divide_known(calibrator):
    shared, precision = calibrator.shared, calibrator.precision
    for which in (CURVE_SLOPE, CURVE_BOTH, CURVE_INTERCEPT):
        shared[which] /= LARGEST_UNIT
    for j in range(precision.shape[0]):
        precision[j] /= LARGEST_UNIT


@entry("seen")
def seen(feedback, sums):
    """Work out what decisions look at, of all labels, into the room that the feedback has."""
    look(feedback, sums)
