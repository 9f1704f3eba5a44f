"""Sparse rows: gather the numbers of a row's labels into columns, and scatter them back.

This is the sparse variant of the paper (Section 5): O(stored entries) per row. Gathering puts the
numbers of the row's labels side by side, so that the same loops run on sparse and dense rows.

``table``, shape (fields, m), has the numbers of all labels; ``columns``, shape (fields, width),
those of the row's labels; ``labels`` lists their ids, so that ``columns[:, i]`` belongs to
``table[:, labels[i]]``. In a replay ``table`` is transposed in memory: the numbers of one label are
contiguous, and gathering a label touches one or two cache lines.
"""

from omma.kernels.counts import Both, Estimates, PartialLabels
from omma.kernels.jit import by_kind, helper
from omma.kernels.layout import (
    BIAS,
    ENTRIES,
    KNOWN,
    LIFETIME,
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
    """Gather one set of counts (OWN, TRUE, …) of ``labels[start:]`` into ``columns``."""
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
    """Gather the sets of counts that a kind of feedback uses."""


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
    """Write the sets of counts that a kind of feedback uses back to ``table``.

    MISSED is not scattered: ``row.hide`` writes it directly to ``table``.
    """


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
    """Gather all numbers that a policy stores for ``labels[start:]`` into ``columns``."""
    gather_counts(feedback, table, labels, columns, start)
    if pace is not None:
        gather_set(LIFETIME, table, labels, columns, start)
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
    """Write all numbers of a row's labels from ``columns`` back to ``table``."""
    scatter_counts(feedback, table, labels, columns)
    if pace is not None:
        scatter_set(LIFETIME, table, labels, columns)
    if calibrator is not None:
        scatter_calibration(columns, table, labels)


@helper
def scatter_calibration(columns, table, labels):
    for i in range(labels.shape[0]):
        j = labels[i]
        table[BIAS, j], table[PRECISION, j] = columns[BIAS, i], columns[PRECISION, i]
        table[MEAN, j], table[ENTRIES, j] = columns[MEAN, i], columns[ENTRIES, i]
