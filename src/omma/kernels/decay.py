"""Decay: what came before counts for less, because the present counts for more.

Shrinking all counts after each row would be a pass over all labels. Instead the unit grows: a row
counts for ``pace[UNIT]`` times its weight, and after it the unit is multiplied by ``pace[GROWTH]``,
2 ** (1 / half-life). The prior and the strengths of a correction are given in the same unit, so
only ratios decide. Before the unit is too large for a number, all is divided by a power of two,
which changes no bit of any ratio.
"""

from omma.kernels.calibrate import COUNTED, CURVES, LABELLED, SPREAD, TRUST, Learning
from omma.kernels.jit import by_kind, helper
from omma.kernels.layout import (
    ENTRIES,
    ERAS,
    GROWTH,
    JUDGED,
    LARGEST_UNIT,
    MISSED,
    PRECISION,
    UNIT,
)

LEAST_SPREAD = 1e-12  # of squares of excesses, where all have decayed


@helper
def unit_of(pace):
    """What a row counts for now."""
    return 1.0 if pace is None else pace[UNIT]


@helper
def counted_unit(pace, window):
    """The same in counts; a sliding window takes rows off in place of letting them decay."""
    return 1.0 if pace is None or window is not None else pace[UNIT]


@helper
def grow(pace, window, calibrator, limits, table, totals):
    """After a row that counts: the next one counts for more."""
    decay_spread(limits, pace[GROWTH])
    decay_trust(calibrator, pace[GROWTH])
    pace[UNIT] *= pace[GROWTH]
    while pace[UNIT] >= LARGEST_UNIT:
        pace[UNIT] /= LARGEST_UNIT
        pace[ERAS] += 1.0
        if window is None:
            divide_counts(table, totals)
        divide_calibrator(calibrator, table)


@helper
def decay_spread(limits, growth):
    """What prices moved by so far counts for less, so they move more freely."""
    if limits is not None:
        for i in range(limits.spread.shape[0]):
            limits.spread[i] = max(limits.spread[i] / growth, LEAST_SPREAD)


@by_kind
def decay_trust(calibrator, growth):
    """The evidence for a correction decays: κ = T / (T + 2 unit) for the next unit."""


@decay_trust.case()
def decay_no_trust(calibrator, growth):
    pass


@decay_trust.case(Learning)
def decay_learned_trust(calibrator, growth):
    trust = calibrator.shared[TRUST]
    calibrator.shared[TRUST] = trust / (trust + (1.0 - trust) * growth)


@helper
def divide_counts(table, totals):
    """Divide all counts that decay by the largest unit; what is judged does not decay."""
    for field in range(3 * JUDGED):
        for j in range(table.shape[1]):
            table[field, j] /= LARGEST_UNIT
    for j in range(table.shape[1]):
        table[MISSED, j] /= LARGEST_UNIT
    for which in range(JUDGED):
        for i in range(totals.shape[1]):
            totals[which, i] /= LARGEST_UNIT


@by_kind
def divide_calibrator(calibrator, table):
    """Divide how much calibration knows by the largest unit; what it learned stays."""


@divide_calibrator.case()
def divide_no_calibrator(calibrator, table):
    pass


@divide_calibrator.case(Learning)
def divide_known(calibrator, table):
    shared = calibrator.shared
    for i in range(CURVES, LABELLED):
        shared[i] /= LARGEST_UNIT
    shared[SPREAD] /= LARGEST_UNIT
    shared[COUNTED] /= LARGEST_UNIT
    for j in range(table.shape[1]):
        table[PRECISION, j] /= LARGEST_UNIT
        table[ENTRIES, j] /= LARGEST_UNIT
