"""Rows whose decisions are given, counted one after another in all that a policy keeps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from omma.kernels.calibrate import calibrate, fit
from omma.kernels.decide import widen
from omma.kernels.fade import fade
from omma.kernels.jit import entry
from omma.kernels.layout import FLAGS, PRESENT, VALUES
from omma.kernels.learn import fit_stored, learn, learn_stored
from omma.kernels.partly import learn_part, learn_part_stored
from omma.kernels.pointer import EVERYTHING
from omma.kernels.price_steps import move, move_stored
from omma.kernels.steps import read_flags


class Chosen(NamedTuple):
    """Labels chosen for rows, as ids: those of row t are ``ids[starts[t]:ends[t]]``."""

    starts: Any
    ends: Any
    ids: Any


@entry("count rows dense")
def count_rows_dense(
    eta, rows, true, predictions, weights, feedback, sums, calibrator, prices, part, timed, scratch
):  # fmt: skip
    """Count rows of every label; ``predictions[t]`` are the indicators of row ``rows[t]``.

    Rows that are not ``timed`` were counted when they were decided, but for their labels.
    """
    values, flags, present = scratch[VALUES], scratch[FLAGS], scratch[PRESENT]
    m = flags.shape[0]
    for t in range(rows.shape[0]):
        widen(eta[rows[t]], values)
        calibrate(calibrator, EVERYTHING, m, scratch)
        found = read_flags(predictions[t], flags)
        weight = weights[t] if weights.shape[0] > 0 else 1.0
        known = true.rows.shape[0] > 0 and (true.known.shape[0] == 0 or true.known[t] != 0)
        if known:
            y = true.array[true.rows[t]]
            for j in range(m):
                present[j] = np.float64(y[j])
        if timed:
            learn(feedback, found, present, known, weight, sums, scratch)
            move(prices, present, known, found, weight, flags, values)
        if known:
            fit(calibrator, EVERYTHING, m, scratch, present, weight)
        if part is not None:
            known |= learn_part(part, true, t, found, weight, sums, calibrator, scratch)
        if timed:
            fade(feedback, calibrator, prices, known, weight, scratch)


@entry("count rows sparse")
def count_rows_sparse(
    indices, data, starts, ends, true, predictions, weights, feedback, sums, calibrator, prices,
    part, timed, scratch,
):  # fmt: skip
    """Count rows of stored labels, those of row t being ``starts[t]:ends[t]``."""
    values, flags = scratch[VALUES], scratch[FLAGS]
    for j in range(flags.shape[0]):
        flags[j] = 0.0
        scratch[PRESENT, j] = 0.0
    for t in range(starts.shape[0]):
        labels = indices[starts[t] : ends[t]]
        widen(data[starts[t] : ends[t]], values)
        calibrate(calibrator, labels, labels.shape[0], scratch)
        chosen = predictions.ids[predictions.starts[t] : predictions.ends[t]]
        found = chosen.shape[0]
        for i in range(found):
            flags[chosen[i]] = 1.0
        weight = weights[t] if weights.shape[0] > 0 else 1.0
        known = true.starts.shape[0] > 0 and (true.known.shape[0] == 0 or true.known[t] != 0)
        begin, end = (true.starts[t], true.ends[t]) if known else (np.int64(0), np.int64(0))
        present = true.ids[begin:end]
        if timed:
            learn_stored(feedback, labels, chosen, found, present, known, weight, sums, scratch)
            move_stored(
                prices, labels, values, true.ids, begin, end, known, found, weight, flags,
                scratch[PRESENT],
            )  # fmt: skip
        if known:
            fit_stored(calibrator, labels, present, weight, scratch)
        if part is not None:
            row = (labels, chosen, found, weight, sums, calibrator, scratch)
            known |= learn_part_stored(part, true, t, *row)
        for i in range(found):
            flags[chosen[i]] = 0.0
        if timed:
            fade(feedback, calibrator, prices, known, weight, scratch)
