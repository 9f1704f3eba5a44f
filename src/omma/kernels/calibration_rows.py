"""Calibration of a block of rows, one after another, with no decision between.

The same functions as in a replay: a row is calibrated by what came before it, then learned from
where its labels are known. Without labels a block is calibrated and nothing changes.
"""

from omma.kernels.calibrate import calibrate, fit
from omma.kernels.jit import entry, helper
from omma.kernels.layout import BIAS, PRECISION, PRESENT, VALUES
from omma.kernels.limits import position_in
from omma.kernels.replay import (
    clear_rest,
    padded,
    read_present,
    read_sparse,
    read_values,
    row_at,
)


@helper
def fit_known(row, calibrator, columns, work, place, labels, width, m):
    """Learn from a row, less its labels that are unknown."""
    for i in range(row.unknown.shape[0]):
        at = position_in(place, labels, row.unknown[i])
        if at >= 0:
            work[VALUES, at] = 0.0  # of which nothing is learned
    fit(calibrator, columns, work, row.weight, 1.0, width, m)


@entry
def calibrate_dense(eta, rows, true, true_rows, extras, calibrator, columns, work, out):
    """Calibrate rows of every label into ``out[t]``; returns the number of good rows."""
    width, m = work.shape[1], eta.shape[1]
    for t in range(rows.shape[0]):
        if read_values(eta[rows[t]], work[VALUES]) > 0:
            return t
        calibrate(calibrator, columns, work, width)
        for j in range(m):
            out[t, j] = work[VALUES, j]
        row = row_at(extras, t, False)
        if row.labelled:
            read_present(true[true_rows[t]], work[PRESENT])
            fit_known(row, calibrator, columns, work, None, None, width, m)
    return rows.shape[0]


@entry
def calibrate_sparse(
    indices, data, starts, ends, true_ids, true_starts, true_ends, extras, sparse, calibrator,
    columns, table, work, out,
):  # fmt: skip
    """Calibrate rows of stored labels, into ``out`` one after another."""
    written, m = 0, sparse.place.shape[0]
    for t in range(starts.shape[0]):
        labels, values = indices[starts[t] : ends[t]], data[starts[t] : ends[t]]
        count = read_sparse(labels, values, sparse, work, m)
        if count < 0:
            return t
        width = padded(count)
        clear_rest(work[VALUES], count, width)
        for i in range(count):
            columns[BIAS, i], columns[PRECISION, i] = (
                table[BIAS, labels[i]],
                table[PRECISION, labels[i]],
            )
        calibrate(calibrator, columns, work, width)
        for i in range(count):
            out[written + i] = work[VALUES, i]
        written += count
        row = row_at(extras, t, False)
        if row.labelled:
            clear_rest(work[PRESENT], 0, width)
            for i in range(true_starts[t], true_ends[t]):
                at = position_in(sparse.place, labels, true_ids[i])
                if at >= 0:
                    work[PRESENT, at] = 1.0
            fit_known(row, calibrator, columns, work, sparse.place, labels, width, m)
            for i in range(count):
                table[BIAS, labels[i]] = columns[BIAS, i]
                table[PRECISION, labels[i]] = columns[PRECISION, i]
    return starts.shape[0]
