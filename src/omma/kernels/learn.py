"""Counting a row after its decision, in all that a policy keeps.

``present`` are the true labels where they are ``known``: of a dense row over all labels; of a
sparse one ``true`` lists those that it has.
"""

from __future__ import annotations

from omma.kernels.calibrate import Calibrator, Settled, fit
from omma.kernels.count import NO_SUMS, count_row, count_stored
from omma.kernels.fade import Fading
from omma.kernels.feedback import FromAll, FromBoth, FromEstimates, FromLabels, FromSome
from omma.kernels.jit import by_kind
from omma.kernels.layout import FLAGS, ONES, PRESENT, UNIT, VALUES
from omma.kernels.slide import Sliding, remember, remember_stored


@by_kind
def learn(feedback, found, present, known, weight, sums, scratch):
    """Count a decided dense row."""


@learn.case(FromSome)
@learn.case(FromLabels)
def learn_labels(feedback, found, present, known, weight, sums, scratch):
    own = feedback.own
    if known:
        count_row(found, present, scratch[FLAGS], weight, sums, own.cells, own.totals)


@learn.case(FromEstimates)
def learn_estimates(feedback, found, present, known, weight, sums, scratch):
    own, labels, values = feedback.own, feedback.labels, scratch[VALUES]
    for part in range(2 if known else 1):  # in a loop, so that it is compiled once
        counted, degrees = (own, values) if part == 0 else (labels, present)
        kept = sums if part == 0 else NO_SUMS
        count_row(found, degrees, scratch[FLAGS], weight, kept, counted.cells, counted.totals)


@learn.case(FromBoth)
def learn_both(feedback, found, present, known, weight, sums, scratch):
    values = scratch[VALUES]
    for part in range(3 if known else 1):
        counted, degrees = feedback.own, values
        if part == 1:
            counted, degrees = feedback.labels, present
        elif part == 2:
            counted = feedback.known
        count_row(found, degrees, scratch[FLAGS], weight, sums, counted.cells, counted.totals)


@learn.case(FromAll)
def learn_all(feedback, found, present, known, weight, sums, scratch):
    for part in range(2):
        if part == 0:
            counted, degrees = feedback.own, scratch[VALUES]
        else:
            counted, degrees = feedback.labels, present
        count_row(found, degrees, scratch[FLAGS], weight, sums, counted.cells, counted.totals)


@learn.case(Fading)
def learn_fading(feedback, found, present, known, weight, sums, scratch):
    """The row counts for more than all before it; how good decisions are forgets nothing."""
    counted, judged = weight * feedback.pace[UNIT], feedback.judged
    learn(feedback.of, found, present, known, counted, sums, scratch)
    if known:
        count_row(found, present, scratch[FLAGS], weight, NO_SUMS, judged.cells, judged.totals)


@learn.case(Sliding)
def learn_sliding(feedback, found, present, known, weight, sums, scratch):
    """What the row adds is kept, to be taken off when it leaves the window."""
    judged = feedback.judged
    learn(feedback.of, found, present, known, weight, sums, scratch)
    if known:
        count_row(found, present, scratch[FLAGS], weight, NO_SUMS, judged.cells, judged.totals)
    remember(feedback, present, known, weight, scratch)


@by_kind
def learn_stored(feedback, labels, chosen, found, true, known, weight, sums, scratch):
    """Count a decided row of stored labels."""


@learn_stored.case(FromSome)
@learn_stored.case(FromLabels)
def learn_stored_labels(feedback, labels, chosen, found, true, known, weight, sums, scratch):
    own, ones, flags = feedback.own, scratch[ONES], scratch[FLAGS]
    if known:
        count_stored(chosen, found, true, ones, flags, weight, sums, own.cells, own.totals)


@learn_stored.case(FromEstimates)
def learn_stored_estimates(feedback, labels, chosen, found, true, known, weight, sums, scratch):
    own, beside, flags = feedback.own, feedback.labels, scratch[FLAGS]
    ones, values = scratch[ONES], scratch[VALUES]
    for part in range(2 if known else 1):
        counted, ids, degrees = (own, labels, values) if part == 0 else (beside, true, ones)
        kept, counts = sums if part == 0 else NO_SUMS, (counted.cells, counted.totals)
        count_stored(chosen, found, ids, degrees, flags, weight, kept, *counts)


@learn_stored.case(FromBoth)
def learn_stored_both(feedback, labels, chosen, found, true, known, weight, sums, scratch):
    flags, ones, values = scratch[FLAGS], scratch[ONES], scratch[VALUES]
    for part in range(3 if known else 1):
        counted, ids, degrees = feedback.own, labels, values
        if part == 1:
            counted, ids, degrees = feedback.labels, true, ones
        elif part == 2:
            counted = feedback.known
        counts = counted.cells, counted.totals
        count_stored(chosen, found, ids, degrees, flags, weight, sums, *counts)


@learn_stored.case(FromAll)
def learn_stored_all(feedback, labels, chosen, found, true, known, weight, sums, scratch):
    flags, ones, values = scratch[FLAGS], scratch[ONES], scratch[VALUES]
    for part in range(2):
        if part == 0:
            counted, ids, degrees = feedback.own, labels, values
        else:
            counted, ids, degrees = feedback.labels, true, ones
        counts = counted.cells, counted.totals
        count_stored(chosen, found, ids, degrees, flags, weight, sums, *counts)


@learn_stored.case(Fading)
def learn_stored_fading(feedback, labels, chosen, found, true, known, weight, sums, scratch):
    counted, judged = weight * feedback.pace[UNIT], feedback.judged
    learn_stored(feedback.of, labels, chosen, found, true, known, counted, sums, scratch)
    if known:
        ones, flags, counts = scratch[ONES], scratch[FLAGS], (judged.cells, judged.totals)
        count_stored(chosen, found, true, ones, flags, weight, NO_SUMS, *counts)


@learn_stored.case(Sliding)
def learn_stored_sliding(feedback, labels, chosen, found, true, known, weight, sums, scratch):
    judged = feedback.judged
    learn_stored(feedback.of, labels, chosen, found, true, known, weight, sums, scratch)
    if known:
        ones, flags, counts = scratch[ONES], scratch[FLAGS], (judged.cells, judged.totals)
        count_stored(chosen, found, true, ones, flags, weight, NO_SUMS, *counts)
    remember_stored(feedback, labels, chosen, found, true, known, weight, scratch)


@by_kind
def fit_stored(calibrator, labels, true, weight, scratch):
    """Learn calibration from a row of stored labels."""


@fit_stored.case(Settled)
@fit_stored.case(None)
def fit_stored_not(calibrator, labels, true, weight, scratch):
    pass


@fit_stored.case(Calibrator)
def fit_stored_row(calibrator, labels, true, weight, scratch):
    present = scratch[PRESENT]
    for i in range(true.shape[0]):
        present[true[i]] = 1.0
    fit(calibrator, labels, labels.shape[0], scratch, present, weight)
    for i in range(true.shape[0]):
        present[true[i]] = 0.0
