"""Loops over blocks of rows; they call the same ``decide`` and ``learn`` as single rows.

Dense rows: ``eta`` (all rows, m), float32 or float64, has probabilities, and ``rows`` (n,), int64,
selects the rows of the block. ``true`` (all rows, m), uint8, has 0/1 labels, and ``true_rows`` (n,)
selects its rows.

Sparse rows: row t stores the label ids ``indices[starts[t]:ends[t]]``, rising, with the
probabilities ``data`` at the same positions. Its true labels are
``true_ids[true_starts[t]:true_ends[t]]``. Ids are int32; starts and ends are int64, shape (n,).

Arrays of length zero mean "not given": then weights are 1, labels are known, and the first fixed
rule decides.
"""

from typing import Any, Final, NamedTuple

import numpy as np

from omma.kernels.calibrate import calibrate
from omma.kernels.gather import gather
from omma.kernels.jit import entry, helper
from omma.kernels.layout import (
    FLAGS,
    PRESENT,
    VALUES,
    N,
    padded,
)
from omma.kernels.row import Gaps, Row, decide, learn

# The first position. Not a Python constant, for which Numba would compile functions again.
FIRST: Final = np.int64(0)


class Extras(NamedTuple):
    """What comes with a block of n rows besides probabilities and labels."""

    known: Any  # (n,) uint8: 1 if all labels of a row are known; empty: as ``labelled`` says
    labelled: bool  # whether the block has labels at all
    gaps: Any  # BlockGaps; None if every row has all of its labels or none of them
    weights: Any  # (n,) float64: weights of rows; empty if all are 1
    picks: Any  # (n,) integers: index of the fixed rule that decides; empty if always 0


class BlockGaps(NamedTuple):
    """The unknown labels of a block of n rows."""

    starts: Any  # (n,) int64: row t does not know ``ids[starts[t]:ends[t]]``; may be empty
    ends: Any  # (n,) int64
    ids: Any  # (unknown labels,) int32
    audits: Any  # (n,): see ``Gaps.audit``; empty if labels do not depend on decisions


class Marks(NamedTuple):
    """Checkpoints of a replay: where to copy the counts of true labels, and after how many rows."""

    counted: int  # the set with the counts of true labels (OWN, TRUE or LIFETIME)
    places: Any  # (marks,) int64: numbers of rows, rising
    cells: Any  # (marks, 3, m) float64: copies of the counts
    rows: Any  # (marks,) float64: copies of the weight of the rows


@helper
def row_at(extras, t, late):
    """Return the ``row.Row`` of row t of a block."""
    weight = extras.weights[t] if extras.weights.shape[0] > 0 else 1.0
    known = extras.known.shape[0] == 0 or extras.known[t] != 0
    gaps = gaps_at(extras.gaps, t)
    # A partly labelled row is labelled, although ``known`` is 0.
    labelled = extras.labelled and (known or has_unknown(gaps))
    return Row(weight, labelled, late, gaps)


@helper
def gaps_at(gaps, t):
    if gaps is None:
        return None
    begin, end = np.int64(0), np.int64(0)
    if gaps.starts.shape[0] > 0:
        begin, end = gaps.starts[t], gaps.ends[t]
    audit = gaps.audits[t] if gaps.audits.shape[0] > 0 else 0.0
    return Gaps(gaps.ids[begin:end], audit)


@helper
def has_unknown(gaps):
    return False if gaps is None else gaps.unknown.shape[0] > 0


@helper
def mark(marks, taken, done, table, totals):
    """Copy the counts of true labels if ``done`` rows are a checkpoint.

    ``taken`` is the number of checkpoints already copied; returns the new number. Writes
    ``marks.cells`` and ``marks.rows``.
    """
    if taken >= marks.places.shape[0] or marks.places[taken] != done:
        return taken
    for cell in range(3):
        for j in range(marks.cells.shape[2]):
            marks.cells[taken, cell, j] = table[3 * marks.counted + cell, j]
    marks.rows[taken] = totals[marks.counted, N]
    return taken + 1


# Dense rows.


@helper
def read_values(eta, values):
    """Copy probabilities as float64; returns how many values are not in [0, 1]."""
    wrong = 0
    for j in range(eta.shape[0]):
        value = np.float64(eta[j])
        values[j] = value
        wrong += not ((value >= 0.0) & (value <= 1.0))
    return wrong


@helper
def read_present(true, present):
    for j in range(true.shape[0]):
        present[j] = 1.0 if true[j] != 0 else 0.0


@helper
def write_flags(flags, out):
    for j in range(out.shape[0]):
        out[j] = np.int8(flags[j])


@helper
def fill_up(budget, flags):
    """Flag the lowest unflagged labels until ``budget`` are flagged; ``flags`` is (width,)."""
    count = 0
    for j in range(flags.shape[0]):
        count += flags[j] != 0.0
    j = 0
    while count < budget:
        count += flags[j] == 0.0
        flags[j] = 1.0
        j += 1


@entry
def replay_dense(eta, rows, true, true_rows, extras, spec, memory, marks, out, out_rows):
    """Decide dense rows and learn from them, one after another.

    Row t has the probabilities ``eta[rows[t]]`` and the labels ``true[true_rows[t]]``. Its decision
    is written to ``out[out_rows[t]]``, int8, unless ``out`` is empty. Updates the arrays of
    ``memory``. Returns the number of rows before the first one with a value that is not a
    probability, and how many rows had fewer candidates than the budget.
    """
    work, width = memory.work, padded(memory.work.shape[1])
    taken, filled = FIRST, 0
    for t in range(rows.shape[0]):
        if read_values(eta[rows[t]], work[VALUES]) > 0:
            return t, filled
        pick = extras.picks[t] if extras.picks.shape[0] > 0 else 0
        if decide(spec, memory, None, None, pick, width):
            fill_up(spec.budget, work[FLAGS])
            filled += 1
        if out.shape[0] > 0:
            write_flags(work[FLAGS], out[out_rows[t]])
        row = row_at(extras, t, False)
        if row.labelled:
            read_present(true[true_rows[t]], work[PRESENT])
        learn(
            memory.calibrator, memory.pace, memory.limits, memory.window, row.gaps, spec, memory,
            row, None, None, width,
        )  # fmt: skip
        taken = mark(marks, taken, t + 1, memory.table, memory.totals)
    return rows.shape[0], filled


@entry
def learn_dense(eta, rows, true, true_rows, decided, extras, late, spec, memory):
    """Learn from dense rows that were decided before.

    ``decided[t]``, shape (m,), has the flags of row t. ``late`` is True if the rows were counted
    without labels when they were decided.
    """
    work, width = memory.work, padded(memory.work.shape[1])
    for t in range(rows.shape[0]):
        read_values(eta[rows[t]], work[VALUES])
        calibrate(memory.calibrator, memory.columns, work, width)
        read_present(decided[t], work[FLAGS])
        row = row_at(extras, t, late)
        if row.labelled:
            read_present(true[true_rows[t]], work[PRESENT])
        learn(
            memory.calibrator, memory.pace, memory.limits, memory.window, row.gaps, spec, memory,
            row, None, None, width,
        )  # fmt: skip


# Sparse rows.


class Sparse(NamedTuple):
    """Scratch space for sparse rows: the labels of the current row and their positions."""

    ids: Any  # (longest row, with room to append,) int32
    place: Any  # (m,) int32, never cleared: valid for label j only if ids[place[j]] == j


@helper
def read_sparse(labels, values, sparse, work, m):
    """Copy labels and probabilities of a row to scratch space; returns its length.

    Writes ``sparse`` and ``work[VALUES]``. Returns −1 if a value is not a probability, and −2 if
    label ids do not rise or are not below m.
    """
    ids, place, last, wrong = sparse.ids, sparse.place, np.int64(-1), 0
    for i in range(labels.shape[0]):
        j = np.int64(labels[i])
        if (j <= last) | (j >= m):
            return np.int64(-2)
        ids[i] = j
        place[j] = i
        last = j
    wrong = read_values(values, work[VALUES])
    if wrong > 0:
        return np.int64(-1)
    return np.int64(labels.shape[0])


@helper
def clear_rest(column, start, width):
    for i in range(start, width):
        column[i] = 0.0


@helper
def gather_row(spec, memory, labels, start):
    """Gather the numbers of ``labels[start:]`` from ``memory.table`` into ``memory.columns``."""
    columns, table = memory.columns, memory.table
    gather(spec.feedback, memory.calibrator, memory.pace, columns, table, labels, start)


@helper
def append_label(j, count, sparse, spec, memory):
    """Append label j, which the row does not store, with probability zero; returns its position.

    Then true labels and labels that fill up a budget are counted like all others.
    """
    work = memory.work
    sparse.ids[count] = j
    sparse.place[j] = count
    work[VALUES, count] = work[FLAGS, count] = work[PRESENT, count] = 0.0
    gather_row(spec, memory, sparse.ids[: count + 1], count)
    return count


@helper
def position_of_label(j, count, sparse, spec, memory):
    """Return the position of label j in the row, and the row's length.

    The label is appended if the row does not store it.
    """
    at = np.int64(sparse.place[j])
    if at < count and sparse.ids[at] == j:
        return at, count
    return append_label(j, count, sparse, spec, memory), count + 1


@helper
def fill_up_sparse(budget, count, sparse, spec, memory):
    """Flag the lowest labels that are not flagged, until ``budget`` labels are.

    Returns the row's length, with appended labels.
    """
    flags, chosen = memory.work[FLAGS], 0
    for i in range(count):
        chosen += flags[i] != 0.0
    j = FIRST
    while chosen < budget:
        at, count = position_of_label(j, count, sparse, spec, memory)
        chosen += flags[at] == 0.0
        flags[at] = 1.0
        j += 1
    return count


@helper
def decide_labels(labels, values, pick, sparse, spec, memory):
    """Decide a sparse row; returns its length, and whether it had fewer candidates than the budget.

    The length is negative if the row is invalid (``read_sparse``). ``labels`` and ``values``, shape
    (stored,), are the label ids and probabilities of the row. Writes the scratch space ``sparse``,
    and ``memory.columns`` and ``memory.work``.
    """
    work = memory.work
    count = read_sparse(labels, values, sparse, work, spec.m)
    if count < 0:
        return count, False
    width = padded(count)
    clear_rest(work[VALUES], count, width)
    row_labels = sparse.ids[:count]
    gather_row(spec, memory, row_labels, FIRST)
    short = decide(spec, memory, sparse.place, row_labels, pick, width)
    if short:
        count = fill_up_sparse(spec.budget, count, sparse, spec, memory)
    return count, short


@helper
def list_chosen(count, stored, sparse, work, out, start):
    """List the predicted labels in rising order; returns their number.

    They are written to ``out``, from position ``start``. The first ``stored`` of the row's
    ``count`` labels rise. The others were appended, and are inserted by sorting.
    """
    ids, flags, chosen = sparse.ids, work[FLAGS], 0
    for i in range(count):
        if flags[i] != 0.0:
            at = start + chosen
            if i >= stored:
                while at > start and out[at - 1] > ids[i]:
                    out[at] = out[at - 1]
                    at -= 1
            out[at] = ids[i]
            chosen += 1
    return chosen


@helper
def learn_labels(count, true, row, sparse, spec, memory):
    """Learn from a sparse row whose values, flags and columns are in ``memory``.

    ``true`` lists the ids of its true labels. ``count`` is the length of the row.
    """
    work = memory.work
    clear_rest(work[PRESENT], FIRST, count)
    for i in range(true.shape[0]):
        at, count = position_of_label(np.int64(true[i]), count, sparse, spec, memory)
        work[PRESENT, at] = 1.0
    width = padded(count)
    for column in (VALUES, FLAGS, PRESENT):
        clear_rest(work[column], count, width)
    learn(
        memory.calibrator, memory.pace, memory.limits, memory.window, row.gaps, spec, memory, row,
        sparse.place, sparse.ids[:count], width,
    )  # fmt: skip


@entry
def replay_sparse(
    indices, data, starts, ends, true_ids, true_starts, true_ends, extras, sparse, spec, memory,
    marks, listed, out, out_rows,
):  # fmt: skip
    """Decide sparse rows and learn from them, one after another.

    Unless ``listed`` is empty, the predicted labels of all rows are listed there one after another,
    and the number of those of row t is written to ``out[out_rows[t], 0]``. Returns the same as
    ``replay_dense``; a row is also invalid if its label ids are (``read_sparse``).
    """
    taken, filled, written = FIRST, 0, FIRST
    for t in range(starts.shape[0]):
        stored = ends[t] - starts[t]
        labels, values = indices[starts[t] : ends[t]], data[starts[t] : ends[t]]
        pick = extras.picks[t] if extras.picks.shape[0] > 0 else 0
        count, short = decide_labels(labels, values, pick, sparse, spec, memory)
        if count < 0:
            return t, filled
        filled += short
        if listed.shape[0] > 0:
            chosen = list_chosen(count, stored, sparse, memory.work, listed, written)
            out[out_rows[t], 0] = chosen
            written += chosen
        row = row_at(extras, t, False)
        first, last = (true_starts[t], true_ends[t]) if row.labelled else (0, 0)
        learn_labels(count, true_ids[first:last], row, sparse, spec, memory)
        taken = mark(marks, taken, t + 1, memory.table, memory.totals)
    return starts.shape[0], filled


@helper
def set_decided(labels, values, chosen, sparse, spec, memory):
    """Prepare a sparse row that was decided before; returns its length, or −1 or −2 if invalid.

    ``chosen`` lists the ids of its predicted labels. Writes VALUES (calibrated), LOGITS and FLAGS.
    """
    work = memory.work
    count = read_sparse(labels, values, sparse, work, spec.m)
    if count < 0:
        return count
    row_labels, width = sparse.ids[:count], padded(count)
    clear_rest(work[VALUES], count, width)
    gather_row(spec, memory, row_labels, FIRST)
    calibrate(memory.calibrator, memory.columns, work, width)
    clear_rest(work[FLAGS], FIRST, width)
    for i in range(chosen.shape[0]):
        at, count = position_of_label(np.int64(chosen[i]), count, sparse, spec, memory)
        work[FLAGS, at] = 1.0
    return count


@entry
def learn_sparse(
    indices, data, starts, ends, true_ids, true_starts, true_ends, chosen_ids, chosen_starts,
    chosen_ends, extras, late, sparse, spec, memory,
):  # fmt: skip
    """Learn from sparse rows that were decided before.

    The predicted labels of row t are ``chosen_ids[chosen_starts[t]:chosen_ends[t]]``. ``late`` is
    as in ``learn_dense``.
    """
    for t in range(starts.shape[0]):
        labels, values = indices[starts[t] : ends[t]], data[starts[t] : ends[t]]
        chosen = chosen_ids[chosen_starts[t] : chosen_ends[t]]
        count = set_decided(labels, values, chosen, sparse, spec, memory)
        row = row_at(extras, t, late)
        first, last = (true_starts[t], true_ends[t]) if row.labelled else (0, 0)
        learn_labels(count, true_ids[first:last], row, sparse, spec, memory)
