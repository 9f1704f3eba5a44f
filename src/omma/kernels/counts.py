"""The counts of rows, and the counts that decisions use, for each kind of feedback.

If the feedback is None, one set of counts of labels serves both purposes: OMMA, Algorithm 1 of the
paper. With ``Estimates``, probabilities are counted instead of labels: OMMA(η̂), Algorithm 2.
Labels are counted as well, for reported values only. With ``Both``, counts of probabilities are
corrected by the ratio of labels to probabilities on the labelled rows.

Arrays are those of ``layout``: ``columns`` (fields, width), ``totals`` (SETS, TOTALS) and ``work``
(WORK, width). ``sums`` is 1 if sums over labels are kept, else 0. Sums over labels use fixed-point
numbers. Sums of integers do not depend on the order, so loops are vectorized, and dense rows,
sparse rows and single rows agree to the bit.
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
    """Labels, some of them unknown: each label's counts are scaled up to all rows."""


class Estimates(NamedTuple):
    """Decisions use counts of probabilities; true labels are counted for reported values."""


class Both(NamedTuple):
    """Counts of probabilities, corrected by labels: e becomes e (y + s) / (e + s).

    For labelled rows, e is the expected count (a sum of probabilities) and y the observed count (a
    sum of labels). (y + s) / (e + s) is the posterior mean of the ratio y/e under a Gamma prior of
    strength s. ``hits`` is the strength s for true positives, ``positives`` for positives.

    ``eager`` (λ, or 0 to switch it off) lowers the threshold of a label that was never predicted,
    as its positives accumulate; see ``corrected``. It has no effect before the first labelled row.
    ``patience`` is twice the number of positives after which the threshold starts to fall.

    Strengths were chosen on streams that are not among those reported (docs/auto.md). Values hardly
    depend on them: 3 to 10 for hits do as well.
    """

    hits: float = 5.0
    positives: float = 10.0
    eager: float = 0.0
    patience: float = 0.3


# Fixed point.

FINE: Final = 2.0**40  # units per 1.0; terms up to 2,000 fit, and sums up to 8 million
ROUND: Final = 6755399441055744.0  # adding 1.5·2⁵² puts the rounded float into its own low bits
ROUND_BITS: Final = np.float64(ROUND).view(np.int64)


@helper
def fixed(x):
    """Convert a float to a fixed-point number: an int64 in units of 1 / FINE."""
    return np.int64(bits_of(fma(x, FINE, ROUND))) - ROUND_BITS


@helper
def unfixed(total):
    """Convert a sum of fixed-point numbers to a float."""
    return np.float64(total) / FINE


# The counts that decisions use.


@by_kind
def in_units(feedback, unit, totals):
    """Return the feedback with its strengths in the current unit of the counts (see ``decay``).

    Without a labelled row, ``eager`` becomes 0.
    """


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
    """Correct expected counts of all rows by observed labels; returns true positives and positives.

    All arguments but ``both`` are counts of one label, or sums over labels. ``tp`` and ``positive``
    are observed on the labelled rows (set TRUE). ``known_*`` are expected on the same rows (KNOWN),
    and ``every_*`` on all rows (OWN). ``predicted`` is the number of predictions in all rows.
    Expected true positives of unlabelled rows are corrected by the ratio of true positives at the
    strength for positives. Both sides of each condition are computed and one is selected, because
    branches would prevent vectorization.
    """
    strength, slow = both.hits, both.positives
    # Three ratios share one division: a division takes as long as ten multiplications.
    by_positive, by_hits, by_tp = known_positive + slow, known_tp + strength, known_tp + slow
    inverse = 1.0 / (by_positive * by_hits * by_tp)
    p = every_positive * ((positive + slow) * (by_hits * by_tp * inverse))
    p = p if known_positive > 0.0 else positive + every_positive
    t = known_tp * ((tp + strength) * (by_positive * by_tp * inverse))
    t += (every_tp - known_tp) * ((tp + slow) * (by_positive * by_hits * inverse))
    t = t if known_tp > 0.0 else tp + every_tp
    # True positives cannot exceed positives or predictions, and cannot be negative.
    t = t if t < p else p
    t = t if t < predicted else predicted
    t = t if t > 0.0 else 0.0
    # With the prior alone (λ hits in 2 λ predictions), the first prediction of a label needs a
    # probability of 1/2, which many labels never reach. After p positives it needs 1 / (1 + u)
    # with u = 2 p / patience, if u > 1. Then λ + t is 2 λ / (1 + u): t = λ (1 − u) / (1 + u) ≤ 0.
    if both.eager > 0.0:  # constant over labels: the compiler makes two loops
        waited = p * (2.0 / both.patience)
        eager = both.eager * (1.0 - waited) / (1.0 + waited)
        t = eager if (predicted <= 0.0) & (waited > 1.0) else t
    return t, p


@by_kind
def decision_counts(feedback, columns, seen, rows, width):
    """Return the counts of a row's labels that decisions use, shape (3, width).

    ``rows`` is the weight of all rows. ``seen``, shape (3, width), is scratch space for counts that
    are not used as they are.
    """


@decision_counts.case()
def own_counts(feedback, columns, seen, rows, width):
    """Use the counts unchanged: the set OWN, which are the first columns."""
    return columns


@helper
def up_to_all_rows(columns, rows, i):
    """The number of rows, divided by the rows in which the label at position i was known."""
    known = rows - columns[MISSED, i]
    return rows / known if known > 0.0 else 1.0


@decision_counts.case(PartialLabels)
def scaled_counts(feedback, columns, seen, rows, width):
    for i in range(width):
        factor = up_to_all_rows(columns, rows, i)
        seen[TP, i] = factor * columns[TP, i]
        seen[PREDICTED, i] = factor * columns[PREDICTED, i]
        seen[POSITIVE, i] = factor * columns[POSITIVE, i]
    return seen


@decision_counts.case(Both)
def corrected_counts(feedback, columns, seen, rows, width):
    true_tp, true_positive = columns[3 * TRUE + TP], columns[3 * TRUE + POSITIVE]
    known_tp, known_positive = columns[3 * KNOWN + TP], columns[3 * KNOWN + POSITIVE]
    for i in range(width):
        predicted = columns[PREDICTED, i]
        seen[TP, i], seen[POSITIVE, i] = corrected(
            feedback, true_tp[i], true_positive[i], known_tp[i], known_positive[i],
            columns[TP, i], columns[POSITIVE, i], predicted,
        )  # fmt: skip
        seen[PREDICTED, i] = predicted
    return seen


@by_kind
def decision_totals(feedback, sums, columns, totals, seen, m):
    """Write the totals that decisions use to ``seen``, shape (TOTALS,) or longer.

    ``columns`` has the numbers of all m labels here. ``seen[N]`` is the number of rows.
    """


@decision_totals.case()
def own_totals(feedback, sums, columns, totals, seen, m):
    for i in range(TOTALS):
        seen[i] = totals[OWN, i]


@decision_totals.case(PartialLabels)
def scaled_totals(feedback, sums, columns, totals, seen, m):
    """Scale the counts of each label, then add them up.

    Each row changes the factor of every label, so the sums need a pass over all labels.
    """
    seen[N] = totals[OWN, N]
    seen[SUM_TP] = seen[SUM_PREDICTED] = seen[SUM_POSITIVE] = 0.0
    if sums > 0:
        for j in range(m):
            factor = up_to_all_rows(columns, seen[N], j)
            seen[SUM_TP] += factor * columns[TP, j]
            seen[SUM_PREDICTED] += factor * columns[PREDICTED, j]
            seen[SUM_POSITIVE] += factor * columns[POSITIVE, j]


@decision_totals.case(Both)
def corrected_totals(feedback, sums, columns, totals, seen, m):
    """Correct the sums over labels in the same way as one label."""
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


NO_SUMS: Final = np.int64(0)  # int64 as ``sums``: a Python constant would compile it twice

# Updates of counts: C_t = C_{t−1} + C(y_t, ŷ_t). The paper's Eq. (1) divides by t; here the
# division by the number of rows is done when a gradient is taken.


@helper
def row_sums(degrees, flags, width):
    """Return sums over a row's labels: Σ degree·flag, Σ flag, Σ degree."""
    hits, predicted, present = np.int64(0), np.int64(0), np.int64(0)
    for i in range(width):
        hits += fixed(degrees[i] * flags[i])
        predicted += fixed(flags[i])
        present += fixed(degrees[i])
    return unfixed(hits), unfixed(predicted), unfixed(present)


@helper
def count_set(cells, totals, sums, degrees, flags, weight, width):
    """Add a row to one set of counts: C_t = C_{t−1} + C(y_t, ŷ_t), or η̂_t in place of y_t.

    ``cells``, shape (3, width), and ``totals``, shape (TOTALS,), belong to the set and are updated;
    the sums in ``totals`` only if ``sums`` is 1. ``degrees``, shape (width,), says to what degree
    each label is present: 0 or 1, or its probability. ``flags``, shape (width,), is 1 for predicted
    labels. ``weight`` is the weight of the row, in the unit of the counts.
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
def count_estimates(feedback, sums, columns, totals, work, weight, width):
    """Count a decided row, before its labels arrive: the update of Algorithm 2."""


@count_estimates.case()
def count_no_estimates(feedback, sums, columns, totals, work, weight, width):
    pass


@count_estimates.case(Estimates)
@count_estimates.case(Both)
def count_values(feedback, sums, columns, totals, work, weight, width):
    own = columns[3 * OWN : 3 * OWN + 3]
    count_set(own, totals[OWN], sums, work[VALUES], work[FLAGS], weight, width)


@by_kind
def count_labels(feedback, sums, columns, totals, work, weight, width):
    """Count the labels of a decided row: the update of Algorithm 1."""


@count_labels.case()
def count_own_labels(feedback, sums, columns, totals, work, weight, width):
    own = columns[3 * OWN : 3 * OWN + 3]
    count_set(own, totals[OWN], sums, work[PRESENT], work[FLAGS], weight, width)


@count_labels.case(Estimates)
def count_labels_beside(feedback, sums, columns, totals, work, weight, width):
    true = columns[3 * TRUE : 3 * TRUE + 3]
    count_set(true, totals[TRUE], NO_SUMS, work[PRESENT], work[FLAGS], weight, width)


@count_labels.case(Both)
def count_labels_of_both(feedback, sums, columns, totals, work, weight, width):
    flags = work[FLAGS]
    true, known = columns[3 * TRUE : 3 * TRUE + 3], columns[3 * KNOWN : 3 * KNOWN + 3]
    count_set(true, totals[TRUE], sums, work[PRESENT], flags, weight, width)
    count_set(known, totals[KNOWN], sums, work[VALUES], flags, weight, width)


@by_kind
def needs_labels(feedback):
    """Whether rows without labels are ignored."""


@needs_labels.case()
def needs_labels_only(feedback):
    return True


@needs_labels.case(Estimates)
@needs_labels.case(Both)
def needs_no_labels(feedback):
    return False
