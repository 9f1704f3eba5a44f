"""Dense rows that all have labels, calibrated and corrected by these, eight labels at a time.

What ``omma.kernels.eights`` is to counts of labels, this is to counts of probabilities corrected by
labels, behind calibration. Values, counts and calibration are worked out by the functions that all
other loops use, so all bits are the same. Several short loops are faster than one: a processor
looks some hundred instructions ahead only, and finds the next eight labels there.

``space`` has what is kept of each label, and what is worked out of a row, in rows of whole eights.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from omma.kernels.calibrate import (
    INTERCEPT,
    LABELLED,
    SLOPE,
    START_CURVE,
    START_PRECISION,
    add_sums,
    held,
    no_sums,
    with_eight,
)
from omma.kernels.eights import any_of
from omma.kernels.feedback import asked_for, shrunk_counts_of_all
from omma.kernels.jit import helper
from omma.kernels.lanes import (
    LANES,
    eight_at,
    eight_of,
    larger,
    put_bytes,
    put_eight,
    spread,
    total,
    where,
)
from omma.kernels.layout import SUM_POSITIVE, SUM_PREDICTED, SUM_TP, N
from omma.kernels.logistic import logit, sigmoid
from omma.kernels.signs import doubt

# What is kept of a label: counts of probabilities, of labels, and calibration.
TP: Final = 0
PREDICTED: Final = 1
POSITIVE: Final = 2
TRUE_TP: Final = 3
TRUE_POSITIVE: Final = 4
BIAS: Final = 5
PRECISION: Final = 6
KEPT: Final = 7
# What is worked out of a row.
LOGITS: Final = 7
VALUES: Final = 8  # calibrated
FLAGS: Final = 9  # one where a label is chosen
PRESENT: Final = 10  # one where it is true
FIELDS: Final = 11


class Strengths(NamedTuple):
    """How much labels correct counts; see ``omma.kernels.feedback.FromBoth``."""

    hits: float
    positives: float
    unhit: float
    lucky: float
    eager: float


@helper
def look_at_sums(by, own, labels, level, seen):
    """Sums over labels that decisions look at."""
    seen[N] = own[N]
    if level > 0:
        true, every = (labels[SUM_TP], labels[SUM_POSITIVE]), (own[SUM_TP], own[SUM_POSITIVE])
        seen[SUM_TP], seen[SUM_POSITIVE] = shrunk_counts_of_all(
            by, *true, *every, own[SUM_PREDICTED]
        )
        seen[SUM_PREDICTED] = own[SUM_PREDICTED]


@helper
def take_row(eta, row, true, true_row, m, shared, space):
    """Copy a row, and calibrate its probabilities; returns whether each lies in [0, 1]."""
    logits, values, bias = space[LOGITS], space[VALUES], space[BIAS]
    wrong = spread(0.0)
    for at in range(0, values.shape[0], LANES):
        value = eight_of(eta, row, at, m - at)
        wrong = doubt(value, wrong)
        put_eight(values, at, value)
        put_eight(logits, at, logit(value))
        put_eight(space[PRESENT], at, eight_of(true, true_row, at, m - at))
    if shared[LABELLED] > 0.0:
        a, b = held(shared[SLOPE]), shared[INTERCEPT]
        for at in range(0, values.shape[0], LANES):
            value = sigmoid((a * eight_at(logits, at) + b) + eight_at(bias, at))
            put_eight(values, at, where(eight_at(values, at) > 0.0, value, 0.0))
    return not any_of(wrong)


@helper
def see_eight(by, space, at):
    """The counts of eight labels that decisions look at: tp, predicted, positive."""
    predicted = eight_at(space[PREDICTED], at)
    tp, positive = shrunk_counts_of_all(
        by,
        eight_at(space[TRUE_TP], at),
        eight_at(space[TRUE_POSITIVE], at),
        eight_at(space[TP], at),
        eight_at(space[POSITIVE], at),
        predicted,
    )
    if by.eager > 0.0:
        tp = asked_for(by, tp, predicted, positive)
    return tp, predicted, positive


@helper
def count_eight(space, at, flag):
    """Count a decided row, by its probabilities and by its labels."""
    value, present = eight_at(space[VALUES], at), eight_at(space[PRESENT], at)
    put_eight(space[TP], at, eight_at(space[TP], at) + value * flag)
    put_eight(space[PREDICTED], at, eight_at(space[PREDICTED], at) + flag)
    put_eight(space[POSITIVE], at, eight_at(space[POSITIVE], at) + value)
    put_eight(space[TRUE_TP], at, eight_at(space[TRUE_TP], at) + present * flag)
    put_eight(space[TRUE_POSITIVE], at, eight_at(space[TRUE_POSITIVE], at) + present)


@helper
def learn_eight(space, at, share, sums):
    """Learn the calibration of eight labels; returns the sums with what they say of a and b."""
    value, present = eight_at(space[VALUES], at), eight_at(space[PRESENT], at)
    stored, error = where(value > 0.0, 1.0, 0.0), value - present
    curve = stored * larger(value * (1.0 - value), error * error)
    error = error * stored
    precision = eight_at(space[PRECISION], at) + curve
    put_eight(space[PRECISION], at, precision)
    step = share * error / (START_PRECISION + precision)
    put_eight(space[BIAS], at, eight_at(space[BIAS], at) - step)
    return with_eight(sums, eight_at(space[LOGITS], at), error, curve)


@helper
def add_up(space, own, labels):
    """Add a row to the sums over labels."""
    hits = everywhere = found = true_hits = all_true = spread(0.0)
    for at in range(0, space.shape[1], LANES):
        value, flag = eight_at(space[VALUES], at), eight_at(space[FLAGS], at)
        present = eight_at(space[PRESENT], at)
        hits, everywhere = hits + value * flag, everywhere + value
        true_hits, all_true, found = true_hits + present * flag, all_true + present, found + flag
    own[SUM_TP] += total(hits)
    own[SUM_POSITIVE] += total(everywhere)
    own[SUM_PREDICTED] += total(found)
    labels[SUM_TP] += total(true_hits)
    labels[SUM_POSITIVE] += total(all_true)
    labels[SUM_PREDICTED] += total(found)


@helper
def count_and_learn(space, shared, own, labels, level, m, out, row):
    """Count a decided row in all that is kept, and write the decision where one is wanted."""
    share, sums = 1.0 - 1.0 / m, no_sums()
    for at in range(0, space.shape[1], LANES):
        flag = eight_at(space[FLAGS], at)
        count_eight(space, at, flag)
        if out.shape[0] > 0:
            put_bytes(out, row, at, m - at, flag)
    for at in range(0, space.shape[1], LANES):
        sums = learn_eight(space, at, share, sums)
    if level > 0:
        add_up(space, own, labels)
    own[N] += 1.0
    labels[N] += 1.0
    shared[LABELLED] += 1.0
    add_sums(shared, START_CURVE, sums)


@helper
def keep_true(space, kept):
    """Keep the counts of true labels where the caller wants to look back."""
    for j in range(kept.shape[1]):
        kept[0, j] = space[TRUE_TP, j]
        kept[1, j] = space[PREDICTED, j]
        kept[2, j] = space[TRUE_POSITIVE, j]
