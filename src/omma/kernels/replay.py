"""A whole block of rows, one after another: two thin loops over one shared step.

``rows`` says which rows of the given arrays come, in their order. ``feedback`` has the counts that
decisions look at and that rows add to; a ``calibrator`` may stand before them, and ``prices`` of
limits beside them. Of several fixed rules, ``picks[t]`` is the one for row t. Arrays of length
zero stand for "not wanted". Where labels of some rows are known in part, ``part`` says which.
"""

from typing import Any, NamedTuple

import numpy as np

from omma.kernels.calibrate import calibrate, fit
from omma.kernels.decide import CHOSEN, decide_row, decide_stored, widen
from omma.kernels.fade import fade, prior_now
from omma.kernels.feedback import truth
from omma.kernels.jit import entry, helper
from omma.kernels.layout import FLAGS, PRESENT, VALUES, N
from omma.kernels.learn import fit_stored, learn, learn_stored
from omma.kernels.partly import learn_part, learn_part_stored
from omma.kernels.pointer import EVERYTHING
from omma.kernels.price_steps import move, move_stored


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
        now, kept = counted.cells[cell], marks.cells[3 * taken + cell]
        for j in range(now.shape[0]):
            kept[j] = now[j]
    marks.rows[taken] = counted.totals[N]


@entry("the dense replay")
def replay_dense(
    eta, rows, true, weights, decider, picks, feedback, sums, calibrator, prices, part, marks,
    scratch, ids, predictions,
):  # fmt: skip
    """Replay rows of every label; returns the number of good rows before the first wrong one."""
    values, flags, present = scratch[VALUES], scratch[FLAGS], scratch[PRESENT]
    m, chosen, counted = flags.shape[0], ids[CHOSEN], truth(feedback)
    for j in range(m):
        flags[j] = 0.0
    for t in range(rows.shape[0]):
        if not widen(eta[rows[t]], values):
            return t
        if calibrator is not None:  # here, what is None costs no compilation
            calibrate(calibrator, EVERYTHING, m, scratch)
        pick = picks[t] if picks.shape[0] > 0 else 0
        prior = prior_now(feedback, decider.prior)
        found = decide_row(decider, prior, pick, feedback, sums, prices, scratch, ids)
        weight = weights[t] if weights.shape[0] > 0 else 1.0
        known = true.rows.shape[0] > 0 and (true.known.shape[0] == 0 or true.known[t] != 0)
        y = true.array[true.rows[t] if known else 0]
        for j in range(m if known else 0):
            present[j] = 1.0 if y[j] != 0 else 0.0
        learn(feedback, found, present, known, weight, sums, scratch)
        if prices is not None:
            move(prices, present, known, found, weight, flags, values)
        if calibrator is not None and known:
            fit(calibrator, EVERYTHING, m, scratch, present, weight)
        if predictions.shape[0] > 0:
            out = predictions[rows[t]]  # once: the loop must not look again where it writes
            for j in range(m):
                out[j] = np.int8(flags[j])
        if part is not None:
            known |= learn_part(part, true, t, found, weight, sums, calibrator, scratch)
        fade(feedback, calibrator, prices, known, weight, scratch)
        if decider.select != 0:  # without a budget all flags will be overwritten
            for i in range(found):
                flags[chosen[i]] = 0.0
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


@entry("the sparse replay")
def replay_sparse(
    indices, data, starts, ends, rows, true, weights, decider, picks, feedback, sums, calibrator,
    prices, part, marks, scratch, ids, listed, out,
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
    counted, chosen = truth(feedback), ids[CHOSEN]
    written = np.int64(0)  # not the constant, of which Numba would compile a copy
    for t in range(rows.shape[0]):
        labels = indices[starts[t] : ends[t]]
        if not rising(labels, m) or not widen(data[starts[t] : ends[t]], values):
            return t
        if calibrator is not None:
            calibrate(calibrator, labels, labels.shape[0], scratch)
        pick = picks[t] if picks.shape[0] > 0 else 0
        prior = prior_now(feedback, decider.prior)
        found = decide_stored(decider, labels, prior, pick, feedback, sums, prices, scratch, ids)
        weight = weights[t] if weights.shape[0] > 0 else 1.0
        known = true.starts.shape[0] > 0 and (true.known.shape[0] == 0 or true.known[t] != 0)
        begin, end = (true.starts[t], true.ends[t]) if known else (np.int64(0), np.int64(0))
        present = true.ids[begin:end]
        learn_stored(feedback, labels, chosen, found, present, known, weight, sums, scratch)
        if prices is not None:
            move_stored(
                prices, labels, values, true.ids, begin, end, known, found, weight, flags,
                scratch[PRESENT],
            )  # fmt: skip
        if calibrator is not None and known:
            fit_stored(calibrator, labels, present, weight, scratch)
        if out.shape[0] > 0:
            list_chosen(listed, chosen, found, written, rows[t], out)
            written += found
        if part is not None:
            row = (labels, chosen, found, weight, sums, calibrator, scratch)
            known |= learn_part_stored(part, true, t, *row)
        fade(feedback, calibrator, prices, known, weight, scratch)
        for i in range(found):
            flags[chosen[i]] = 0.0
        mark(counted, marks, t)
    return rows.shape[0]
