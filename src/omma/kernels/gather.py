"""Sparse rows: numbers of a row's labels are gathered into columns, and scattered back.

A row that stores few of many labels gathers their numbers side by side, so that the same loops run
on it as on a dense row. In a replay the numbers of one label lie together in memory (``kept`` is
transposed), so that gathering a label touches one or two cache lines.
"""

from omma.kernels.counts import Both, Estimates, PartialLabels
from omma.kernels.jit import by_kind, helper
from omma.kernels.layout import (
    BIAS,
    JUDGED,
    KNOWN,
    MISSED,
    OWN,
    POSITIVE,
    PRECISION,
    PREDICTED,
    TP,
    TRUE,
)


@helper
def gather_set(which, kept, labels, columns, start):
    """Gather one set of counts of the labels from position ``start`` on."""
    first = 3 * which
    tp, predicted, positive = (
        columns[first + TP],
        columns[first + PREDICTED],
        columns[first + POSITIVE],
    )
    for i in range(start, labels.shape[0]):
        j = labels[i]
        tp[i] = kept[first + TP, j]
        predicted[i] = kept[first + PREDICTED, j]
        positive[i] = kept[first + POSITIVE, j]


@helper
def scatter_set(which, kept, labels, columns):
    first = 3 * which
    tp, predicted, positive = (
        columns[first + TP],
        columns[first + PREDICTED],
        columns[first + POSITIVE],
    )
    for i in range(labels.shape[0]):
        j = labels[i]
        kept[first + TP, j] = tp[i]
        kept[first + PREDICTED, j] = predicted[i]
        kept[first + POSITIVE, j] = positive[i]


@by_kind
def gather_counts(feedback, kept, labels, columns, start):
    """Gather the sets of counts that a kind of feedback has."""


@gather_counts.case()
def gather_own(feedback, kept, labels, columns, start):
    gather_set(OWN, kept, labels, columns, start)


@gather_counts.case(PartialLabels)
def gather_partial(feedback, kept, labels, columns, start):
    gather_set(OWN, kept, labels, columns, start)
    for i in range(start, labels.shape[0]):
        columns[MISSED, i] = kept[MISSED, labels[i]]


@gather_counts.case(Estimates)
def gather_estimates(feedback, kept, labels, columns, start):
    gather_set(OWN, kept, labels, columns, start)
    gather_set(TRUE, kept, labels, columns, start)


@gather_counts.case(Both)
def gather_both(feedback, kept, labels, columns, start):
    gather_set(OWN, kept, labels, columns, start)
    gather_set(TRUE, kept, labels, columns, start)
    gather_set(KNOWN, kept, labels, columns, start)


@by_kind
def scatter_counts(feedback, kept, labels, columns):
    """Put the sets of counts back; MISSED is written where it is kept."""


@scatter_counts.case()
def scatter_own(feedback, kept, labels, columns):
    scatter_set(OWN, kept, labels, columns)


@scatter_counts.case(Estimates)
def scatter_estimates(feedback, kept, labels, columns):
    scatter_set(OWN, kept, labels, columns)
    scatter_set(TRUE, kept, labels, columns)


@scatter_counts.case(Both)
def scatter_both(feedback, kept, labels, columns):
    scatter_set(OWN, kept, labels, columns)
    scatter_set(TRUE, kept, labels, columns)
    scatter_set(KNOWN, kept, labels, columns)


@helper
def gather(feedback, memory, labels, start):
    """Gather all numbers of a row's labels, from position ``start`` on."""
    columns, kept = memory.columns, memory.kept
    gather_counts(feedback, kept, labels, columns, start)
    gather_judged(memory.pace, kept, labels, columns, start)
    gather_calibration(memory.calibrator, kept, labels, columns, start)


@helper
def gather_judged(pace, kept, labels, columns, start):
    if pace is not None:
        gather_set(JUDGED, kept, labels, columns, start)


@helper
def gather_calibration(calibrator, kept, labels, columns, start):
    if calibrator is not None:
        for i in range(start, labels.shape[0]):
            columns[BIAS, i] = kept[BIAS, labels[i]]
            columns[PRECISION, i] = kept[PRECISION, labels[i]]


@helper
def scatter(place, feedback, calibrator, pace, columns, kept, labels):
    """Put all numbers of a row's labels back; a dense row (no ``place``) has nothing to put."""
    if place is None:
        return
    scatter_counts(feedback, kept, labels, columns)
    if pace is not None:
        scatter_set(JUDGED, kept, labels, columns)
    if calibrator is not None:
        for i in range(labels.shape[0]):
            kept[BIAS, labels[i]] = columns[BIAS, i]
            kept[PRECISION, labels[i]] = columns[PRECISION, i]
