"""A whole block of rows, one after another: two thin loops over one shared step.

``rows`` says which rows of the given arrays come, in their order. ``feedback`` has the counts that
decisions look at and that rows add to; a ``calibrator`` may stand before them. Of several fixed
rules, ``picks[t]`` is the one for row t. Arrays of length zero stand for "not wanted".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from omma.kernels.calibrate import calibrate, fit
from omma.kernels.feedback import look, truth
from omma.kernels.jit import by_kind, entry, helper
from omma.kernels.layout import FLAGS, PRESENT, VALUES, N
from omma.kernels.step import (
    decide_stored,
    find_gains,
    fit_stored,
    learn,
    learn_stored,
    take,
    widen,
)


class Listed(NamedTuple):
    """True labels as ids, in the order of the replay: row t has ``ids[starts[t]:ends[t]]``.

    No starts at all stand for labels that are not known; ``known[t]`` is zero where those of row
    t are not, and empty where all are.
    """

    starts: Any
    ends: Any
    ids: Any
    known: Any


class Indicated(NamedTuple):
    """True labels as indicators: row t has ``array[rows[t]]``. No rows are labels not known."""

    array: Any
    rows: Any
    known: Any


class Marks(NamedTuple):
    """After how many rows to keep the counts, where, and how many are kept so far."""

    places: Any
    cells: Any
    rows: Any
    taken: Any


@helper
def mark(counted, marks, t):
    """Keep the counts of true labels where the caller wants to look back."""
    taken = marks.taken[0]
    if taken >= marks.places.shape[0] or marks.places[taken] != t + 1:
        return
    marks.taken[0] += 1
    for cell in range(3):
        for j in range(counted.cells.shape[1]):
            marks.cells[taken, cell, j] = counted.cells[cell, j]
    marks.rows[taken] = counted.totals[N]


@by_kind
def write_decision(budget, chosen, found, flags, row, out):
    """Write a dense decision, and leave no flags behind that the next would not overwrite."""


@write_decision.case(None)
def write_flags(budget, chosen, found, flags, row, out):
    if out.shape[0] > 0:
        for j in range(flags.shape[0]):
            out[row, j] = np.int8(flags[j])


@write_decision.case()
def write_chosen(budget, chosen, found, flags, row, out):
    if out.shape[0] > 0:
        for j in range(flags.shape[0]):
            out[row, j] = np.int8(flags[j])
    for i in range(found):
        flags[chosen[i]] = 0.0


@entry
def replay_dense(
    eta, rows, true, weights, decider, picks, feedback, sums, calibrator, marks, scratch, chosen,
    predictions,
):  # fmt: skip
    """Replay rows of every label; returns the number of good rows before the first wrong one."""
    values, flags = scratch[VALUES], scratch[FLAGS]
    m = flags.shape[0]
    for j in range(m):
        flags[j] = 0.0
    budget, counted = decider.budget, truth(feedback)
    for t in range(rows.shape[0]):
        if not widen(eta[rows[t]], values):
            return t
        calibrate(calibrator, None, m, scratch)
        pick = picks[t] if picks.shape[0] > 0 else 0
        find_gains(decider.term, decider.prior, pick, look(feedback, sums), scratch)
        found = take(budget, scratch, chosen)
        weight = weights[t] if weights.shape[0] > 0 else 1.0
        known = true.rows.shape[0] > 0 and (true.known.shape[0] == 0 or true.known[t] != 0)
        y = true.array[true.rows[t] if known else 0]
        learn(feedback, budget, chosen, found, y, known, weight, sums, scratch)
        if known:
            fit(calibrator, None, m, scratch, y, weight)
        write_decision(budget, chosen, found, flags, rows[t], predictions)
        mark(counted, marks, t)
    return rows.shape[0]


@helper
def rising(labels, m):
    """Whether label ids rise strictly and lie in [0, m)."""
    last = -1
    wrong = 0
    for position in range(labels.shape[0]):
        wrong += (labels[position] <= last) | (labels[position] >= m)
        last = labels[position]
    return wrong == 0


@helper
def list_chosen(listed, chosen, found, written, row, out):
    """Write a decision: a row of k labels, or with no fixed number one after another."""
    if listed is None:
        for i in range(found):
            out[row, i] = chosen[i]
    else:
        out[row, 0] = found
        for i in range(found):
            listed[written + i] = chosen[i]


@entry
def replay_sparse(
    indices, data, starts, ends, rows, true, weights, decider, picks, feedback, sums, calibrator,
    marks, scratch, chosen, listed, out,
):  # fmt: skip
    """Replay rows of stored labels; returns the number of good rows before the first wrong one.

    The stored entries of row t are ``starts[t]:ends[t]``. With an exact budget, ``listed`` is None
    and the decision goes into row ``rows[t]`` of ``out``. Otherwise the chosen labels are written
    one after another into ``listed``, and how many they are into ``out[rows[t], 0]``.
    """
    values, flags = scratch[VALUES], scratch[FLAGS]
    m = flags.shape[0]
    for j in range(m):
        flags[j] = 0.0
        scratch[PRESENT, j] = 0.0
    counted = truth(feedback)
    written = np.int64(0)  # not the constant, of which Numba would compile a copy
    for t in range(rows.shape[0]):
        labels = indices[starts[t] : ends[t]]
        if not rising(labels, m) or not widen(data[starts[t] : ends[t]], values):
            return t
        calibrate(calibrator, labels, labels.shape[0], scratch)
        pick = picks[t] if picks.shape[0] > 0 else 0
        found = decide_stored(
            decider.term, labels, decider.budget, decider.prior, pick, feedback, sums, scratch,
            chosen,
        )  # fmt: skip
        weight = weights[t] if weights.shape[0] > 0 else 1.0
        known = true.starts.shape[0] > 0 and (true.known.shape[0] == 0 or true.known[t] != 0)
        begin, end = (true.starts[t], true.ends[t]) if known else (np.int64(0), np.int64(0))
        learn_stored(
            feedback, labels, chosen, found, true.ids, begin, end, known, weight, sums, scratch
        )
        if known:
            fit_stored(calibrator, labels, true.ids, begin, end, weight, scratch)
        for i in range(found):
            flags[chosen[i]] = 0.0
        if out.shape[0] > 0:
            list_chosen(listed, chosen, found, written, rows[t], out)
            written += found
        mark(counted, marks, t)
    return rows.shape[0]
