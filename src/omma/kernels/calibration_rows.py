"""Online calibration of a block of rows, without decisions.

It uses the same functions as a replay. Each row is calibrated by the rows before it. Then its
logits update the mean logits, and its labels, if they are known, update the calibrator. A
``Settled`` calibrator learns nothing.

``rows``, ``true``, ``extras`` and the lists of sparse rows are as in ``replay``. ``columns`` has
the fields up to ENTRIES, and ``work`` the shape (WORK, width).
"""

from omma.kernels.calibrate import calibrate, fit, update_means
from omma.kernels.gather import gather_calibration, scatter_calibration
from omma.kernels.jit import entry, helper
from omma.kernels.layout import PRESENT, VALUES, padded
from omma.kernels.limits import position_in
from omma.kernels.replay import (
    FIRST,
    clear_rest,
    read_present,
    read_sparse,
    read_values,
    row_at,
)


@helper
def forget_unknown(gaps, work, place, labels):
    """Set the probabilities of unknown labels to zero, so that nothing is learned from them."""
    if gaps is not None:
        for i in range(gaps.unknown.shape[0]):
            at = position_in(place, labels, gaps.unknown[i])
            if at >= 0:
                work[VALUES, at] = 0.0


@entry
def calibrate_dense(eta, rows, true, true_rows, extras, calibrator, columns, work, out):
    """Calibrate dense rows into ``out``, shape (rows, m).

    Returns the number of rows before the first one with a value that is not a probability.
    """
    width, m = padded(work.shape[1]), eta.shape[1]
    for t in range(rows.shape[0]):
        if read_values(eta[rows[t]], work[VALUES]) > 0:
            return t
        calibrate(calibrator, columns, work, width)
        for j in range(m):
            out[t, j] = work[VALUES, j]
        row = row_at(extras, t, False)
        update_means(calibrator, columns, work, row.weight, width)
        if row.labelled:
            read_present(true[true_rows[t]], work[PRESENT])
            forget_unknown(row.gaps, work, None, None)
            fit(calibrator, columns, work, row.weight, 1.0, width, m)
    return rows.shape[0]


@entry
def calibrate_sparse(
    indices, data, starts, ends, true_ids, true_starts, true_ends, extras, sparse, calibrator,
    columns, table, work, out,
):  # fmt: skip
    """Calibrate sparse rows; ``out``, shape (stored entries,), has the rows one after another.

    ``columns`` is scratch space for one row; ``table``, shape (ENTRIES + 1, m), is updated. Returns
    the number of rows before the first invalid one (see ``read_sparse``).
    """
    written, m = 0, sparse.place.shape[0]
    for t in range(starts.shape[0]):
        labels, values = indices[starts[t] : ends[t]], data[starts[t] : ends[t]]
        count = read_sparse(labels, values, sparse, work, m)
        if count < 0:
            return t
        width = padded(count)
        clear_rest(work[VALUES], count, width)
        gather_calibration(table, labels, columns, FIRST)
        calibrate(calibrator, columns, work, width)
        for i in range(count):
            out[written + i] = work[VALUES, i]
        written += count
        row = row_at(extras, t, False)
        update_means(calibrator, columns, work, row.weight, width)
        if row.labelled:
            clear_rest(work[PRESENT], FIRST, width)
            for i in range(true_starts[t], true_ends[t]):
                at = position_in(sparse.place, labels, true_ids[i])
                if at >= 0:
                    work[PRESENT, at] = 1.0
            forget_unknown(row.gaps, work, sparse.place, labels)
            fit(calibrator, columns, work, row.weight, 1.0, width, m)
        scatter_calibration(columns, table, labels)
    return starts.shape[0]
