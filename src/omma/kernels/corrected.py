"""Dense rows that all have labels, calibrated and corrected by these, eight labels at a time.

What ``omma.kernels.eights`` is to counts of labels, this is to counts of probabilities corrected by
labels, behind calibration. Values, counts and calibration are worked out by the functions that all
other loops use, so all bits are the same. Several short loops are faster than one where each
number waits for the one before it: a processor looks some hundred instructions ahead only, and
finds the next eight labels there. Multiplications, comparisons and divisions share what is scarce.

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
    as_word,
    bits_of,
    eight_at,
    eight_of,
    fetch,
    larger,
    put_eight,
    spread,
    times_plus,
    total,
    where,
)
from omma.kernels.layout import SUM_POSITIVE, SUM_PREDICTED, SUM_TP, N
from omma.kernels.logistic import logit_by, sigmoid_by, sigmoid_of_mild

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
FIELDS: Final = 10

OFTEN: Final = 64  # rows after which biases are looked at
MILD: Final = 60.0  # of a bias, and of what all share; slope times logit is less than 560


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
def probabilities(eta, row):
    """Whether each of a row lies in [0, 1]."""
    wrong = 0
    for j in range(eta.shape[1]):
        wrong += not ((eta[row, j] >= 0.0) & (eta[row, j] <= 1.0))
    return wrong == 0


@helper
def mild(space):
    """Whether biases stay within what sigmoids take, as they are and for ``OFTEN`` rows.

    A row moves one by a quarter at most: its error over a precision that starts at four, to which
    rows add, and which may be less in a difference of states.
    """
    far = spread(0.0)
    for at in range(0, space.shape[1], LANES):
        known = eight_at(space[PRECISION], at) >= 0.0
        far = where((abs(eight_at(space[BIAS], at)) < MILD) & known, far, 1.0)
    return not any_of(far)


@helper
def moved_logit(a, b, space, at):
    """Logits of eight labels, corrected."""
    return times_plus(a, eight_at(space[LOGITS], at), b) + eight_at(space[BIAS], at)


@helper
def put_value(space, at, value):
    """Put calibrated probabilities in place of those that are not zero."""
    put_eight(space[VALUES], at, where(eight_at(space[VALUES], at) > 0.0, value, 0.0))


@helper
def take_row(eta, row, after, m, series, shared, calm, space):
    """Copy a row, and calibrate its probabilities; returns whether each lies in [0, 1].

    ``after`` is the row that comes next, ``calm`` whether biases are mild.
    """
    logits, values = space[LOGITS], space[VALUES]
    largest = bits_of(spread(0.0))
    for at in range(0, values.shape[0], LANES):
        value = eight_of(eta, row, at, m - at)
        fetch(eta, after, at)
        largest = larger(largest, bits_of(value))
        put_eight(values, at, value)
        put_eight(logits, at, logit_by(series, value))
    if shared[LABELLED] > 0.0:
        a, b = held(shared[SLOPE]), shared[INTERCEPT]
        # Outside of the loop, which is shorter by two comparisons then. What all labels share is
        # looked at in every row: one may move it by any number.
        if calm & (abs(b) < MILD):
            for at in range(0, values.shape[0], LANES):
                put_value(space, at, sigmoid_of_mild(series, moved_logit(a, b, space, at)))
        else:
            for at in range(0, values.shape[0], LANES):
                put_value(space, at, sigmoid_by(series, moved_logit(a, b, space, at)))
    # Bits in [0, 1] are no more than those of one; those of -0.0 are, and it is as good.
    return as_word(largest > bits_of(1.0)) == 0 or probabilities(eta, row)


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
def count_eight(space, at, value, present, flag):
    """Count a decided row, by its probabilities and by its labels."""
    put_eight(space[TP], at, times_plus(value, flag, eight_at(space[TP], at)))
    put_eight(space[PREDICTED], at, eight_at(space[PREDICTED], at) + flag)
    put_eight(space[POSITIVE], at, eight_at(space[POSITIVE], at) + value)
    put_eight(space[TRUE_TP], at, times_plus(present, flag, eight_at(space[TRUE_TP], at)))
    put_eight(space[TRUE_POSITIVE], at, eight_at(space[TRUE_POSITIVE], at) + present)


@helper
def learn_eight(space, at, value, present, share, sums):
    """Learn the calibration of eight labels; returns the sums with what they say of a and b."""
    error = where(value > 0.0, value - present, 0.0)
    # That is v (1 - v), or the squared error where it is more: of v and 1 - v one is the error.
    curve = abs(error) * larger(value, 1.0 - value)
    precision = eight_at(space[PRECISION], at) + curve
    put_eight(space[PRECISION], at, precision)
    step = error / (START_PRECISION + precision)
    put_eight(space[BIAS], at, times_plus(-share, step, eight_at(space[BIAS], at)))
    return with_eight(sums, eight_at(space[LOGITS], at), error, curve)


@helper
def add_up(space, own, labels, true, true_row, m):
    """Add a row to the sums over labels: a loop of its own, for there is no room for all sums."""
    hits = everywhere = found = true_hits = all_true = spread(0.0)
    for at in range(0, space.shape[1], LANES):
        value, flag = eight_at(space[VALUES], at), eight_at(space[FLAGS], at)
        present = eight_of(true, true_row, at, m - at)
        hits, everywhere = times_plus(value, flag, hits), everywhere + value
        true_hits, all_true = times_plus(present, flag, true_hits), all_true + present
        found = found + flag
    own[SUM_TP] += total(hits)
    own[SUM_POSITIVE] += total(everywhere)
    own[SUM_PREDICTED] += total(found)
    labels[SUM_TP] += total(true_hits)
    labels[SUM_POSITIVE] += total(all_true)
    labels[SUM_PREDICTED] += total(found)


@helper
def count_and_learn(space, shared, own, labels, level, true, true_row, m):
    """Count a decided row in all that is kept."""
    share, sums = 1.0 - 1.0 / m, no_sums()
    for at in range(0, space.shape[1], LANES):
        value, flag = eight_at(space[VALUES], at), eight_at(space[FLAGS], at)
        present = eight_of(true, true_row, at, m - at)
        count_eight(space, at, value, present, flag)
        sums = learn_eight(space, at, value, present, share, sums)
    if level > 0:
        add_up(space, own, labels, true, true_row, m)
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
