"""Sparse rows: numbers of a row's labels are gathered into columns, and scattered back.

A row that stores few of many labels gathers their numbers side by side, so that the same loops run
on it as on a dense row. In a replay the numbers of one label lie together in memory (``table`` is
transposed), so that gathering a label touches one or two cache lines.
"""

from omma.kernels.counts import Both, Estimates, PartialLabels
from omma.kernels.jit import by_kind, helper
from omma.kernels.layout import (
    BIAS,
    ENTRIES,
    JUDGED,
    KNOWN,
    MEAN,
    MISSED,
    OWN,
    POSITIVE,
    PRECISION,
    PREDICTED,
    TP,
    TRUE,
)


@helper
def gather_set(which, table, labels, columns, start):
    """Gather one set of counts of the labels from position ``start`` on."""
    first = 3 * which
    tp, predicted, positive = (
        columns[first + TP],
        columns[first + PREDICTED],
        columns[first + POSITIVE],
    )
    for i in range(start, labels.shape[0]):
        j = labels[i]
        tp[i] = table[first + TP, j]
        predicted[i] = table[first + PREDICTED, j]
        positive[i] = table[first + POSITIVE, j]


@helper
def scatter_set(which, table, labels, columns):
    first = 3 * which
    tp, predicted, positive = (
        columns[first + TP],
        columns[first + PREDICTED],
        columns[first + POSITIVE],
    )
    for i in range(labels.shape[0]):
        j = labels[i]
        table[first + TP, j] = tp[i]
        table[first + PREDICTED, j] = predicted[i]
        table[first + POSITIVE, j] = positive[i]


@by_kind
def gather_counts(feedback, table, labels, columns, start):
    """Gather the sets of counts that a kind of feedback has."""


@gather_counts.case()
def gather_own(feedback, table, labels, columns, start):
    gather_set(OWN, table, labels, columns, start)


@gather_counts.case(PartialLabels)
def gather_partial(feedback, table, labels, columns, start):
    gather_set(OWN, table, labels, columns, start)
    for i in range(start, labels.shape[0]):
        columns[MISSED, i] = table[MISSED, labels[i]]


@gather_counts.case(Estimates)
def gather_estimates(feedback, table, labels, columns, start):
    gather_set(OWN, table, labels, columns, start)
    gather_set(TRUE, table, labels, columns, start)


@gather_counts.case(Both)
def gather_both(feedback, table, labels, columns, start):
    gather_set(OWN, table, labels, columns, start)
    gather_set(TRUE, table, labels, columns, start)
    gather_set(KNOWN, table, labels, columns, start)


@by_kind
def scatter_counts(feedback, table, labels, columns):
    """Put the sets of counts back; MISSED is written where it is kept."""


@scatter_counts.case()
def scatter_own(feedback, table, labels, columns):
    scatter_set(OWN, table, labels, columns)


@scatter_counts.case(Estimates)
def scatter_estimates(feedback, table, labels, columns):
    scatter_set(OWN, table, labels, columns)
    scatter_set(TRUE, table, labels, columns)


@scatter_counts.case(Both)
def scatter_both(feedback, table, labels, columns):
    scatter_set(OWN, table, labels, columns)
    scatter_set(TRUE, table, labels, columns)
    scatter_set(KNOWN, table, labels, columns)


@helper
def gather(feedback, calibrator, pace, columns, table, labels, start):
    """Gather all numbers of a row's labels, from position ``start`` on."""
    gather_counts(feedback, table, labels, columns, start)
    if pace is not None:
        gather_set(JUDGED, table, labels, columns, start)
    if calibrator is not None:
        gather_calibration(table, labels, columns, start)


@helper
def gather_calibration(table, labels, columns, start):
    for i in range(start, labels.shape[0]):
        j = labels[i]
        columns[BIAS, i], columns[PRECISION, i] = table[BIAS, j], table[PRECISION, j]
        columns[MEAN, i], columns[ENTRIES, i] = table[MEAN, j], table[ENTRIES, j]


@helper
def scatter(feedback, calibrator, pace, columns, table, labels):
    """Put all numbers of a row's labels back."""
    scatter_counts(feedback, table, labels, columns)
    if pace is not None:
        scatter_set(JUDGED, table, labels, columns)
    if calibrator is not None:
        scatter_calibration(columns, table, labels)


@helper
def scatter_calibration(columns, table, labels):
    for i in range(labels.shape[0]):
        j = labels[i]
        table[BIAS, j], table[PRECISION, j] = columns[BIAS, i], columns[PRECISION, i]
        table[MEAN, j], table[ENTRIES, j] = columns[MEAN, i], columns[ENTRIES, i]
