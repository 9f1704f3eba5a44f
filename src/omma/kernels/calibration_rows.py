"""Calibration of a block of rows, one after another, with no decision between.

The same functions as in a replay: a row is calibrated by what came before it, then learned from
where its labels are known. Without labels a block is calibrated and nothing changes.
"""

from __future__ import annotations

import numpy as np

from omma.kernels.calibrate import calibrate, fit
from omma.kernels.decide import widen
from omma.kernels.jit import entry
from omma.kernels.layout import PRESENT, VALUES
from omma.kernels.learn import fit_stored
from omma.kernels.pointer import EVERYTHING
from omma.kernels.replay import rising


@entry("calibration of dense rows")
def calibrate_dense(eta, rows, true, weights, calibrator, scratch, out):
    """Calibrate rows of every label; returns the number of good rows before the first wrong one."""
    values, present = scratch[VALUES], scratch[PRESENT]
    m = values.shape[0]
    for t in range(rows.shape[0]):
        if not widen(eta[rows[t]], values):
            return t
        calibrate(calibrator, EVERYTHING, m, scratch)
        for j in range(m):
            out[t, j] = values[j]
        if true.rows.shape[0] > 0 and (true.known.shape[0] == 0 or true.known[t] != 0):
            weight = weights[t] if weights.shape[0] > 0 else 1.0
            y = true.array[true.rows[t]]
            for j in range(m):
                present[j] = np.float64(y[j])
            fit(calibrator, EVERYTHING, m, scratch, present, weight)
    return rows.shape[0]


@entry("calibration of sparse rows")
def calibrate_sparse(indices, data, starts, ends, true, weights, calibrator, scratch, out):
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
        if true.starts.shape[0] > 0 and (true.known.shape[0] == 0 or true.known[t] != 0):
            weight = weights[t] if weights.shape[0] > 0 else 1.0
            present = true.ids[true.starts[t] : true.ends[t]]
            fit_stored(calibrator, labels, present, weight, scratch)
    return starts.shape[0]
