"""Exponential decay of past rows, by increasing the weight of new rows.

Multiplying all counts by a factor below one after each row would need a pass over all labels.
Instead the unit grows: a row counts for ``pace[UNIT]`` times its weight, and after each row the
unit is multiplied by ``pace[GROWTH]`` = 2 ** (1 / half-life in rows), or exp(2 / length) for the
calibration of a sliding window. The prior λ and the strengths of corrections are multiplied by the
same unit, and decisions depend only on ratios, so the result is the same. Before the unit
overflows, all counts are divided by LARGEST_UNIT. It is a power of two, so no ratio changes by a
single bit.
"""

from typing import Final

from omma.kernels.calibrate import COUNTED, CURVES, LABELLED, SPREAD, TRUST, Learning
from omma.kernels.jit import by_kind, helper
from omma.kernels.layout import (
    ENTRIES,
    ERAS,
    GROWTH,
    LARGEST_UNIT,
    LIFETIME,
    MISSED,
    PRECISION,
    UNIT,
)

LEAST_SPREAD: Final = 1e-12  # lower bound of ``limits.spread``, which divides steps of prices


@helper
def unit_of(pace):
    """The weight that calibration gives to a row of weight 1 now."""
    return 1.0 if pace is None else pace[UNIT]


@helper
def counted_unit(pace, window):
    """The weight that counts give to a row of weight 1 now.

    It is 1 with a sliding window, which removes rows from the counts instead of letting them decay.
    """
    return 1.0 if pace is None or window is not None else pace[UNIT]


@helper
def grow(pace, window, calibrator, limits, table, totals):
    """Increase the unit after a counted row; writes ``pace`` and rescales counts if necessary."""
    decay_spread(limits, pace[GROWTH])
    decay_trust(calibrator, pace[GROWTH])
    pace[UNIT] *= pace[GROWTH]
    while pace[UNIT] >= LARGEST_UNIT:
        pace[UNIT] /= LARGEST_UNIT
        pace[ERAS] += 1.0
        divide_counts(window, table, totals)
        divide_calibrator(calibrator, table)


@helper
def decay_spread(limits, growth):
    """Decay the sums of squared excesses in ``limits.spread``, shape (limits,).

    They divide the steps of prices, so prices keep adapting.
    """
    if limits is not None:
        for i in range(limits.spread.shape[0]):
            limits.spread[i] = max(limits.spread[i] / growth, LEAST_SPREAD)


@by_kind
def decay_trust(calibrator, growth):
    """Decay the evidence for calibration: write κ = T / (T + 2·unit) for the next unit.

    With κ = T / (T + 2·unit) now, growth of the unit by g gives κ / (κ + (1 − κ) g).
    """


@decay_trust.case()
def decay_no_trust(calibrator, growth):
    pass


@decay_trust.case(Learning)
def decay_learned_trust(calibrator, growth):
    trust = calibrator.shared[TRUST]
    calibrator.shared[TRUST] = trust / (trust + (1.0 - trust) * growth)


@by_kind
def divide_counts(window, table, totals):
    """Divide all decaying counts by LARGEST_UNIT: ``table`` (fields, m), ``totals`` (SETS, TOTALS).

    The set LIFETIME and UNREPORTED do not decay. With a window, no counts do.
    """


@divide_counts.case()
def divide_no_counts(window, table, totals):
    pass


@divide_counts.case(None)
def divide_decaying_counts(window, table, totals):
    for field in range(3 * LIFETIME):
        for j in range(table.shape[1]):
            table[field, j] /= LARGEST_UNIT
    for j in range(table.shape[1]):
        table[MISSED, j] /= LARGEST_UNIT
    for which in range(LIFETIME):
        for i in range(totals.shape[1]):
            totals[which, i] /= LARGEST_UNIT


@by_kind
def divide_calibrator(calibrator, table):
    """Divide the sums of calibration (curvatures, spread, precisions, entries) by LARGEST_UNIT.

    The parameters that it learned (θ, biases, mean logits) stay.
    """


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
