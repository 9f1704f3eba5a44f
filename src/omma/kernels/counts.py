"""What decisions look at, and what is counted of a row, for each kind of feedback.

Where it is None, one set of counts of labels does both: OMMA, Algorithm 1 of the paper. With
``Estimates`` probabilities are counted in place of labels: OMMA(η̂), Algorithm 2; labels are counted
beside them, for reported values. With ``Both``, counts of probabilities are corrected by the ratio
of labels to probabilities on the rows whose labels came.

Sums over labels are in fixed point: whole numbers add up to the same in any order, so loops are
vectorized, and dense rows, sparse ones and single ones agree to the bit.
"""

from typing import Final, NamedTuple

import numpy as np

from omma.kernels.jit import bits_of, by_kind, fma, helper
from omma.kernels.layout import (
    FLAGS,
    KNOWN,
    MISSED,
    OWN,
    POSITIVE,
    PREDICTED,
    PRESENT,
    SUM_POSITIVE,
    SUM_PREDICTED,
    SUM_TP,
    TOTALS,
    TP,
    TRUE,
    VALUES,
    N,
)


class PartialLabels(NamedTuple):
    """Labels where single ones were unknown: counts are scaled up to all rows."""


class Estimates(NamedTuple):
    """Probabilities are counted and looked at; true labels are counted beside them."""


class Both(NamedTuple):
    """Probabilities, corrected by labels: e becomes e (y + s) / (e + s).

    e is what was expected of rows with labels, y what was observed, s the strength: the mean of a
    Gamma posterior of y/e. ``hits`` and ``positives`` are the strengths for true positives and for
    positives. ``eager`` is the prior where a label that was never predicted needs less and less
    probability as its positives go by, else 0; before the first row with labels it has no effect.
    ``patience`` is how many positives may go by until then, times two.
    """

    hits: float
    positives: float
    eager: float
    patience: float


# Fixed point.

FINE: Final = 2.0**40  # parts of one; numbers up to 2,000 fit, and a sum up to 8 million
ROUND: Final = 6755399441055744.0  # adding 1.5·2⁵² leaves a float as a whole number in its low bits
ROUND_BITS: Final = np.float64(ROUND).view(np.int64)


@helper
def fixed(x):
    """A number as a whole number of parts."""
    return np.int64(bits_of(fma(x, FINE, ROUND))) - ROUND_BITS


@helper
def unfixed(total):
    """The sum of such numbers, as a float."""
    return np.float64(total) / FINE


# What decisions look at.


@by_kind
def in_units(feedback, unit, totals):
    """Feedback with the strengths of its correction in the unit of the counts (see ``decay``)."""


@in_units.case()
def scale_nothing(feedback, unit, totals):
    return feedback


@in_units.case(Both)
def scale_both(feedback, unit, totals):
    return Both(
        feedback.hits * unit,
        feedback.positives * unit,
        feedback.eager * unit if totals[TRUE, N] > 0.0 else 0.0,
        feedback.patience * unit,
    )


@helper
def corrected(both, tp, positive, known_tp, known_positive, every_tp, every_positive, predicted):
    """True positives and positives of all rows: expected counts, corrected by observed labels.

    ``tp`` and ``positive`` were observed on rows with labels; ``known_*`` were expected of these
    rows, ``every_*`` of all rows. Expectations of rows without labels are corrected by the same
    ratio, at the strength for positives. Both sides of each case are worked out and one is taken:
    branches would keep the loop from being vectorized.
    """
    strength, slow = both.hits, both.positives
    # Three ratios share one division, which takes as long as ten multiplications.
    by_positive, by_hits, by_tp = known_positive + slow, known_tp + strength, known_tp + slow
    inverse = 1.0 / (by_positive * by_hits * by_tp)
    p = every_positive * ((positive + slow) * (by_hits * by_tp * inverse))
    p = p if known_positive > 0.0 else positive + every_positive
    t = known_tp * ((tp + strength) * (by_positive * by_tp * inverse))
    t += (every_tp - known_tp) * ((tp + slow) * (by_positive * by_hits * inverse))
    t = t if known_tp > 0.0 else tp + every_tp
    # True positives are no more than positives, and no more than predictions.
    t = t if t < p else p
    t = t if t < predicted else predicted
    t = t if t > 0.0 else 0.0
    # The first prediction of a label: by the prior alone, λ hits of 2 λ predictions, it needs a
    # probability of a half, which many labels never have. After p positives ``eager`` takes from λ
    # what makes that 1 / (1 + u) with u = 2 p / patience, where it is less: λ (1 − u) / (1 + u).
    if both.eager > 0.0:  # the same for all labels: compilers make two loops of it
        waited = p * (2.0 / both.patience)
        eager = both.eager * (1.0 - waited) / (1.0 + waited)
        t = eager if (predicted <= 0.0) & (waited > 1.0) else t
    return t, p


@by_kind
def see(feedback, columns, rows, i):
    """The counts at position i that decisions look at: tp, predicted, positive."""


@see.case()
def see_own(feedback, columns, rows, i):
    return columns[TP, i], columns[PREDICTED, i], columns[POSITIVE, i]


@see.case(PartialLabels)
def see_scaled(feedback, columns, rows, i):
    known = rows - columns[MISSED, i]
    factor = rows / known if known > 0.0 else 1.0
    return factor * columns[TP, i], factor * columns[PREDICTED, i], factor * columns[POSITIVE, i]


@see.case(Both)
def see_corrected(feedback, columns, rows, i):
    observed = columns[3 * TRUE + TP, i], columns[3 * TRUE + POSITIVE, i]
    known = columns[3 * KNOWN + TP, i], columns[3 * KNOWN + POSITIVE, i]
    predicted = columns[PREDICTED, i]
    expected = columns[TP, i], columns[POSITIVE, i]
    t, p = corrected(feedback, *observed, *known, *expected, predicted)
    return t, predicted, p


@by_kind
def see_totals(feedback, sums, columns, totals, seen, m):
    """Write the totals that decisions look at into ``seen``; ``sums`` is as in ``row.Spec``."""


@see_totals.case()
def see_own_totals(feedback, sums, columns, totals, seen, m):
    for i in range(TOTALS):
        seen[i] = totals[OWN, i]


@see_totals.case(PartialLabels)
def see_scaled_totals(feedback, sums, columns, totals, seen, m):
    """Every row changes every label's factor: the sums take a pass over all labels."""
    seen[N] = totals[OWN, N]
    seen[SUM_TP] = seen[SUM_PREDICTED] = seen[SUM_POSITIVE] = 0.0
    if sums > 0:
        for j in range(m):
            tp, predicted, positive = see(feedback, columns, seen[N], j)
            seen[SUM_TP] += tp
            seen[SUM_PREDICTED] += predicted
            seen[SUM_POSITIVE] += positive


@see_totals.case(Both)
def see_corrected_totals(feedback, sums, columns, totals, seen, m):
    """Sums are corrected as one label is."""
    seen[N] = totals[OWN, N]
    if sums > 0:
        observed = totals[TRUE, SUM_TP], totals[TRUE, SUM_POSITIVE]
        known = totals[KNOWN, SUM_TP], totals[KNOWN, SUM_POSITIVE]
        expected = totals[OWN, SUM_TP], totals[OWN, SUM_POSITIVE]
        predicted = totals[OWN, SUM_PREDICTED]
        seen[SUM_TP], seen[SUM_POSITIVE] = corrected(
            feedback, *observed, *known, *expected, predicted
        )
        seen[SUM_PREDICTED] = predicted


NO_SUMS: Final = np.int64(0)  # of the type that others have: a constant compiles it twice

# What is counted of a row: C_t = C_{t−1} + C(y_t, ŷ_t), as counts in place of the paper's means.


@helper
def row_sums(degrees, flags, width):
    """Sums over a row's labels: Σ degree·flag, Σ flag, Σ degree."""
    hits, predicted, present = np.int64(0), np.int64(0), np.int64(0)
    for i in range(width):
        hits += fixed(degrees[i] * flags[i])
        predicted += fixed(flags[i])
        present += fixed(degrees[i])
    return unfixed(hits), unfixed(predicted), unfixed(present)


@helper
def count_set(cells, totals, sums, degrees, flags, weight, width):
    """Add a row to a set of counts, to its number of rows and, where wanted, to its sums.

    ``cells``, shape (3, width), and ``totals``, shape (TOTALS,), are those of the set. ``degrees``
    is to what degree each label is present: 0 or 1, or its probability.
    """
    tp, predicted, positive = cells[TP], cells[PREDICTED], cells[POSITIVE]
    for i in range(width):
        added = weight * degrees[i]
        tp[i] += added * flags[i]
        predicted[i] += weight * flags[i]
        positive[i] += added
    totals[N] += weight
    if sums > 0:
        hits, chosen, present = row_sums(degrees, flags, width)
        totals[SUM_TP] += weight * hits
        totals[SUM_PREDICTED] += weight * chosen
        totals[SUM_POSITIVE] += weight * present


@by_kind
def expect(feedback, sums, columns, totals, work, weight, width):
    """Count a decided row before its labels come."""


@expect.case()
def expect_nothing(feedback, sums, columns, totals, work, weight, width):
    pass


@expect.case(Estimates)
@expect.case(Both)
def expect_values(feedback, sums, columns, totals, work, weight, width):
    own = columns[3 * OWN : 3 * OWN + 3]
    count_set(own, totals[OWN], sums, work[VALUES], work[FLAGS], weight, width)


@by_kind
def observe(feedback, sums, columns, totals, work, weight, width):
    """Count the labels of a row."""


@observe.case()
def observe_labels(feedback, sums, columns, totals, work, weight, width):
    own = columns[3 * OWN : 3 * OWN + 3]
    count_set(own, totals[OWN], sums, work[PRESENT], work[FLAGS], weight, width)


@observe.case(Estimates)
def observe_beside(feedback, sums, columns, totals, work, weight, width):
    true = columns[3 * TRUE : 3 * TRUE + 3]
    count_set(true, totals[TRUE], NO_SUMS, work[PRESENT], work[FLAGS], weight, width)


@observe.case(Both)
def observe_both(feedback, sums, columns, totals, work, weight, width):
    flags = work[FLAGS]
    true, known = columns[3 * TRUE : 3 * TRUE + 3], columns[3 * KNOWN : 3 * KNOWN + 3]
    count_set(true, totals[TRUE], sums, work[PRESENT], flags, weight, width)
    count_set(known, totals[KNOWN], sums, work[VALUES], flags, weight, width)


@by_kind
def needs_labels(feedback):
    """Whether a row without labels is not counted at all."""


@needs_labels.case()
def needs_labels_only(feedback):
    return True


@needs_labels.case(Estimates)
@needs_labels.case(Both)
def needs_no_labels(feedback):
    return False
