"""What is counted of a row, and what decisions look at.

With labels as feedback one set of counts does both. With estimates, probabilities are counted in
place of labels, and true labels beside them. With both, a label's counts of probabilities are
corrected by the ratio of labels to probabilities on the rows whose labels came: a Gamma posterior
of that ratio, of strength s, so that s → 0 is labels and s → ∞ is estimates.
"""

from functools import cache
from typing import Any, Final, NamedTuple

from omma.kernels.jit import by_kind, helper, pointed
from omma.kernels.lanes import larger, smaller, where
from omma.kernels.layout import (
    CHOSEN_GAINS,
    GAINS,
    GATHERED,
    POSITIVE,
    PREDICTED,
    SUM_CROSS,
    SUM_POSITIVE,
    SUM_POSITIVE_SQUARED,
    SUM_PREDICTED,
    SUM_PREDICTED_SQUARED,
    SUM_TP,
    TP,
    N,
)
from omma.kernels.pointer import CELLS, NUMBERS, address_of, called

OF_A_ROW: Final = 0  # decisions look at the counts of a row's labels
OF_NO_LABEL: Final = -1  # and at sums over labels alone


class Counted(NamedTuple):
    """Counts of every label, and totals over them."""

    cells: Any
    totals: Any


class FromLabels(NamedTuple):
    """True labels are counted, and looked at."""

    own: Counted


class FromSome(NamedTuple):
    """The same where some rows were labelled in part.

    ``missed`` has the weight of rows in which a label was not known. Decisions look at what was
    counted of each label in proportion: times rows / rows in which it was known. ``seen`` has room
    for that.
    """

    own: Counted
    missed: Any
    seen: Counted


class FromEstimates(NamedTuple):
    """Probabilities are counted and looked at, true labels counted beside them."""

    own: Counted
    labels: Counted


class FromBoth(NamedTuple):
    """Probabilities of all rows, true labels and, of the rows with labels, probabilities.

    Strengths are those of the correction of true positives, of positives, and of true positives
    where none was ever hit; ``lucky`` is one where a label's hits so far bound its true positives
    from below; ``eager`` is the prior where a label that was never predicted asks for less and less
    as its positives go by, and zero elsewhere. ``seen`` has room for the counts that decisions look
    at; ``whole`` says of which labels they are needed: those of a row, none, or all, for what it is
    the address of.
    """

    own: Counted
    labels: Counted
    known: Counted
    hits: float
    positives: float
    unhit: float
    lucky: float
    eager: float
    seen: Counted
    whole: Any


class FromAll(NamedTuple):
    """The same where all rows had labels: their probabilities are those of all rows."""

    own: Counted
    labels: Counted
    hits: float
    positives: float
    unhit: float
    lucky: float
    eager: float
    seen: Counted
    whole: Any


@helper
def corrected_counts(both, tp, positive, known_tp, known_positive, every_positive):
    """True positives of rows with labels, and positives of all rows, corrected by labels.

    With s the strength, e what was expected of rows with labels and y what was found, e becomes
    e (y + s) / (e + s); what was expected of other rows is corrected by the same ratio, more
    slowly. Positives have one strength for both. Branches would keep loops from being vector
    instructions: both sides are worked out, and one is taken. Both ratios share a division.
    """
    first = where((tp <= 0.0) & (positive > 0.0), both.unhit, both.hits)
    slow = both.positives
    by_tp, by_positive = known_tp + first, known_positive + slow
    inverse = 1.0 / (by_tp * by_positive)
    p = every_positive * ((positive + slow) * (by_tp * inverse))
    p = where(known_positive > 0.0, p, positive + every_positive)
    corrected = known_tp * ((tp + first) * (by_positive * inverse))
    lucky = both.lucky * tp
    return larger(corrected, lucky), p


@helper
def bounded(t, p, most):
    """True positives are no more than positives, and no more than predictions."""
    return larger(smaller(smaller(t, p), most), 0.0)


@helper
def shrunk_counts(both, tp, positive, known_tp, known_positive, every_tp, every_positive, most):
    """True positives and positives that decisions look at."""
    t, p = corrected_counts(both, tp, positive, known_tp, known_positive, every_positive)
    slow = both.positives
    t += (every_tp - known_tp) * ((tp + slow) / (known_tp + slow))
    return bounded(where(known_tp > 0.0, t, tp + every_tp), p, most), p


@helper
def shrunk_counts_of_all(both, tp, positive, every_tp, every_positive, most):
    """The same where all rows had labels, to the bit."""
    t, p = corrected_counts(both, tp, positive, every_tp, every_positive, every_positive)
    return bounded(where(every_tp > 0.0, t, tp), p, most), p


@helper
def asked_for(both, tp, predicted, positive):
    """Lower what the first prediction of a label asks for as its positives go by.

    By the prior alone, λ hits of 2 λ predictions, it asks for a probability of a half, which many
    labels never have. After p positives ``eager`` takes from λ what makes that 1 / (1 + 2 p / s),
    where it is less. Without a branch: which labels wait is hard to foresee.
    """
    waited = positive * (2.0 / both.positives)
    asked = both.eager * (1.0 - waited) / (1.0 + waited)
    return where((predicted <= 0.0) & (waited > 1.0), asked, tp)


@helper
def ask_for_less(both, tp, predicted, positive, count):
    """The same for so many labels."""
    if both.eager > 0.0:
        for i in range(count):
            tp[i] = asked_for(both, tp[i], predicted[i], positive[i])


@by_kind
def shrink_label(both, j):
    """What decisions look at of label j."""


@shrink_label.case(FromBoth)
def shrink_label_of_both(both, j):
    own, labels, known = both.own.cells, both.labels.cells, both.known.cells
    true, expected = (labels[TP, j], labels[POSITIVE, j]), (known[TP, j], known[POSITIVE, j])
    every = own[TP, j], own[POSITIVE, j]
    return shrunk_counts(both, *true, *expected, *every, own[PREDICTED, j])


@shrink_label.case(FromAll)
def shrink_label_of_all(both, j):
    own, labels = both.own.cells, both.labels.cells
    true, every = (labels[TP, j], labels[POSITIVE, j]), (own[TP, j], own[POSITIVE, j])
    return shrunk_counts_of_all(both, *true, *every, own[PREDICTED, j])


@by_kind
def shrink_sums(both):
    """The same of the sums over labels."""


@shrink_sums.case(FromBoth)
def shrink_sums_of_both(both):
    own, labels, known = both.own.totals, both.labels.totals, both.known.totals
    true, expected = (labels[SUM_TP], labels[SUM_POSITIVE]), (known[SUM_TP], known[SUM_POSITIVE])
    every = own[SUM_TP], own[SUM_POSITIVE]
    return shrunk_counts(both, *true, *expected, *every, own[SUM_PREDICTED])


@shrink_sums.case(FromAll)
def shrink_sums_of_all(both):
    own, labels = both.own.totals, both.labels.totals
    true, every = (labels[SUM_TP], labels[SUM_POSITIVE]), (own[SUM_TP], own[SUM_POSITIVE])
    return shrunk_counts_of_all(both, *true, *every, own[SUM_PREDICTED])


@helper
def shrink_totals(both, sums):
    """Totals that decisions look at: the sums over labels are corrected as one label is."""
    own, seen = both.own.totals, both.seen.totals
    seen[N] = own[N]
    if sums.level > 0:
        seen[SUM_TP], seen[SUM_POSITIVE] = shrink_sums(both)
        seen[SUM_PREDICTED] = own[SUM_PREDICTED]


@helper
def shrink_all(both, sums):
    """What decisions look at, of all labels."""
    seen, own = both.seen.cells, both.own.cells
    shrink_totals(both, sums)
    for j in range(own.shape[1] if both.whole != OF_NO_LABEL else 0):
        seen[TP, j], seen[POSITIVE, j] = shrink_label(both, j)
        seen[PREDICTED, j] = own[PREDICTED, j]
    ask_for_less(both, seen[TP], seen[PREDICTED], seen[POSITIVE], own.shape[1])
    if both.whole != OF_A_ROW and both.whole != OF_NO_LABEL:
        called(both.whole, (both.seen.cells, both.seen.totals))


@helper
def shrink_beside(both, labels, sums):
    """What decisions on a sparse row look at beside its labels; returns how many of these, too."""
    if both.whole != OF_A_ROW and both.whole != OF_NO_LABEL:
        shrink_all(both, sums)
    else:
        shrink_totals(both, sums)
    return labels.shape[0] if both.whole != OF_NO_LABEL else 0


@pointed("sums of products")
def add_products(cells, totals):
    """Sums of products over classes; they cannot be corrected as sums are."""
    totals[SUM_TP] = totals[SUM_POSITIVE] = 0.0
    totals[SUM_CROSS] = totals[SUM_PREDICTED_SQUARED] = totals[SUM_POSITIVE_SQUARED] = 0.0
    for j in range(cells.shape[1]):
        predicted, positive = cells[PREDICTED, j], cells[POSITIVE, j]
        totals[SUM_TP] += cells[TP, j]
        totals[SUM_POSITIVE] += positive
        totals[SUM_CROSS] += predicted * positive
        totals[SUM_PREDICTED_SQUARED] += predicted * predicted
        totals[SUM_POSITIVE_SQUARED] += positive * positive
    return 0


@cache
def products() -> Any:
    """Where ``add_products`` lies."""
    return address_of(add_products, CELLS, NUMBERS)


@helper
def proportion(some, j):
    """By how much more label j would be counted, were it known in all rows."""
    rows = some.own.totals[N]
    known = rows - some.missed[j]
    return rows / known if known > 0.0 else 1.0


@helper
def complete_all(some):
    """What decisions look at, of all labels and of the sums over them."""
    own, seen, totals = some.own.cells, some.seen.cells, some.seen.totals
    totals[N] = some.own.totals[N]
    totals[SUM_TP] = totals[SUM_PREDICTED] = totals[SUM_POSITIVE] = 0.0
    for j in range(own.shape[1]):
        factor = proportion(some, j)
        seen[TP, j] = factor * own[TP, j]
        seen[PREDICTED, j] = factor * own[PREDICTED, j]
        seen[POSITIVE, j] = factor * own[POSITIVE, j]
        totals[SUM_TP] += seen[TP, j]
        totals[SUM_PREDICTED] += seen[PREDICTED, j]
        totals[SUM_POSITIVE] += seen[POSITIVE, j]


@by_kind
def look(feedback, sums):
    """The counts of all labels that decisions on a dense row look at."""


@look.case()
def look_at_own(feedback, sums):
    return feedback.own


@look.case(FromAll)
@look.case(FromBoth)
def look_at_both(feedback, sums):
    shrink_all(feedback, sums)
    return feedback.seen


@look.case(FromSome)
def look_at_some(feedback, sums):
    complete_all(feedback)
    return feedback.seen


@helper
def gathered(scratch):
    """Where counts of stored labels come side by side."""
    return scratch[GATHERED + TP], scratch[GATHERED + PREDICTED], scratch[GATHERED + POSITIVE]


@by_kind
def gather(feedback, labels, sums, scratch):
    """Put the counts of stored labels side by side; returns those that all labels share."""


@gather.case()
def gather_own(feedback, labels, sums, scratch):
    tp, predicted, positive = gathered(scratch)
    cells = feedback.own.cells
    for position in range(labels.shape[0]):
        j = labels[position]
        tp[position] = cells[TP, j]
        predicted[position] = cells[PREDICTED, j]
        positive[position] = cells[POSITIVE, j]
    return feedback.own


@gather.case(FromBoth)
def gather_both(feedback, labels, sums, scratch):
    tp, predicted, positive = gathered(scratch)
    count = shrink_beside(feedback, labels, sums)
    own = feedback.own.cells
    for position in range(count):
        j = labels[position]
        tp[position], positive[position] = shrink_label(feedback, j)
        predicted[position] = own[PREDICTED, j]
    ask_for_less(feedback, tp, predicted, positive, count)
    return feedback.seen


@gather.case(FromAll)
def gather_all(feedback, labels, sums, scratch):
    tp, predicted, positive = gathered(scratch)
    true_tp, true_positive = scratch[GAINS], scratch[CHOSEN_GAINS]
    count = shrink_beside(feedback, labels, sums)
    own, true = feedback.own.cells, feedback.labels.cells
    for position in range(count):
        j = labels[position]
        tp[position] = own[TP, j]
        predicted[position] = own[PREDICTED, j]
        positive[position] = own[POSITIVE, j]
        true_tp[position] = true[TP, j]
        true_positive[position] = true[POSITIVE, j]
    for i in range(count):
        every = tp[i], positive[i], predicted[i]
        tp[i], positive[i] = shrunk_counts_of_all(feedback, true_tp[i], true_positive[i], *every)
    ask_for_less(feedback, tp, predicted, positive, count)
    return feedback.seen


@gather.case(FromSome)
def gather_some(feedback, labels, sums, scratch):
    tp, predicted, positive = gathered(scratch)
    if sums.level > 0:  # every sum changes with every row: that is a pass over all labels
        complete_all(feedback)
    feedback.seen.totals[N] = feedback.own.totals[N]
    own = feedback.own.cells
    for position in range(labels.shape[0]):
        j = labels[position]
        factor = proportion(feedback, j)
        tp[position] = factor * own[TP, j]
        predicted[position] = factor * own[PREDICTED, j]
        positive[position] = factor * own[POSITIVE, j]
    return feedback.seen


@by_kind
def truth(feedback):
    """The counts of true labels."""


@truth.case()
def truth_beside(feedback):
    return feedback.labels


@truth.case(FromSome)
@truth.case(FromLabels)
def truth_itself(feedback):
    return feedback.own
