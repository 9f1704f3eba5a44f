"""Calibration of a block of rows, one after another, with no decision between.

The same functions as in a replay: a row is calibrated by what came before it, then learned from
where its labels are known. Without labels a block is calibrated and nothing changes. Where rows
are labelled in part, ``unknown`` lists what is not known: starts, ends and ids, as labels are.
"""

import numpy as np

from omma.kernels.calibrate import calibrate, fit
from omma.kernels.decide import widen
from omma.kernels.jit import entry, helper
from omma.kernels.layout import PRESENT, VALUES
from omma.kernels.learn import fit_stored
from omma.kernels.pointer import EVERYTHING
from omma.kernels.replay import rising


@helper
def hide(unknown, t, labels, values):
    """Take stored labels off a row that are unknown in it; returns whether there are unknown ones.

    Both lists rise.
    """
    starts, ends, ids = unknown
    position = 0
    for i in range(starts[t], ends[t]):
        while position < labels.shape[0] and labels[position] < ids[i]:
            position += 1
        if position < labels.shape[0] and labels[position] == ids[i]:
            values[position] = 0.0
    return starts[t] < ends[t]


@entry("calibration of dense rows")
def calibrate_dense(eta, rows, true, unknown, weights, calibrator, scratch, out):
    """Calibrate rows of every label; returns the number of good rows before the first wrong one."""
    values, present = scratch[VALUES], scratch[PRESENT]
    m = values.shape[0]
    for t in range(rows.shape[0]):
        if not widen(eta[rows[t]], values):
            return t
        calibrate(calibrator, EVERYTHING, m, scratch)
        for j in range(m):
            out[t, j] = values[j]
        known = true.rows.shape[0] > 0 and (true.known.shape[0] == 0 or true.known[t] != 0)
        if unknown is not None:
            starts, ends, ids = unknown
            for i in range(starts[t], ends[t]):
                values[ids[i]] = 0.0  # of which nothing is learned
                known = True
        if known:
            weight = weights[t] if weights.shape[0] > 0 else 1.0
            y = true.array[true.rows[t]]
            for j in range(m):
                present[j] = np.float64(y[j])
            fit(calibrator, EVERYTHING, m, scratch, present, weight)
    return rows.shape[0]


@entry("calibration of sparse rows")
def calibrate_sparse(indices, data, starts, ends, true, unknown, weights, calibrator, scratch, out):
    """Calibrate rows of stored labels, into ``out`` one after another."""
    values, m = scratch[VALUES], scratch.shape[1]
    written = 0
    for t in range(starts.shape[0]):
        labels = indices[starts[t] : ends[t]]
        count = labels.shape[0]
        if not rising(labels, m) or not widen(data[starts[t] : ends[t]], values):
            return t
        calibrate(calibrator, labels, count, scratch)
        for position in range(count):
            out[written + position] = values[position]
        written += count
        known = true.starts.shape[0] > 0 and (true.known.shape[0] == 0 or true.known[t] != 0)
        if unknown is not None:
            known |= hide(unknown, t, labels, values)
        if known:
            weight = weights[t] if weights.shape[0] > 0 else 1.0
            present = true.ids[true.starts[t] : true.ends[t]]
            fit_stored(calibrator, labels, present, weight, scratch)
    return starts.shape[0]
