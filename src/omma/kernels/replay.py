"""Whole blocks of rows: loops over the same ``decide`` and ``learn`` that single rows call.

Arrays of length zero stand for "not given": weights are then 1, labels known, rules the first.
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

# Where a row begins, of the type of other positions: functions are compiled anew for a constant.
FIRST: Final = np.int64(0)


class Extras(NamedTuple):
    """What comes with a block of rows beside probabilities and labels."""

    known: Any  # (rows,) uint8: 0 where labels of a row are not known; empty: all are, or none
    labelled: bool  # whether labels are there at all
    gaps: Any  # BlockGaps; None where every row has all of its labels or none
    weights: Any  # (rows,)
    picks: Any  # (rows,): which of several fixed rules decides


class BlockGaps(NamedTuple):
    """Which labels of a block of rows nobody knows."""

    starts: Any  # (rows,): where the unknown labels of each row stand in ``ids``; may be empty
    ends: Any
    ids: Any
    audits: Any  # (rows,): see ``Gaps.audit``; empty where labels do not depend on decisions


class Marks(NamedTuple):
    """After how many rows to copy the counts of true labels, and where to."""

    counted: int  # the set of counts that has them (OWN, TRUE or JUDGED)
    places: Any  # (marks,): numbers of rows, rising
    cells: Any  # (marks, 3, m)
    rows: Any  # (marks,): their weight


@helper
def row_at(extras, t, late):
    """What comes with row t."""
    weight = extras.weights[t] if extras.weights.shape[0] > 0 else 1.0
    known = extras.known.shape[0] == 0 or extras.known[t] != 0
    gaps = gaps_at(extras.gaps, t)
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
    """Copy the counts of true labels at a checkpoint; returns how many were taken."""
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
    """Copy probabilities as float64; returns how many are none."""
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
    """Flag the lowest labels that are not chosen, up to the budget."""
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
    """Decide and learn rows of every label, one after another.

    Row t has the probabilities ``eta[rows[t]]``, the labels ``true[true_rows[t]]``, and its
    decision goes into ``out[out_rows[t]]``. Returns the number of rows before the first that holds
    no probabilities, and the number of rows with fewer candidates than the budget.
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
    """Learn rows of every label that were decided before: ``decided[t]`` are flags of row t."""
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
    """Scratch space of sparse rows: the labels of the row at hand, and where each label stands."""

    ids: Any  # (longest row, with room to append) int32
    place: Any  # (m,) int32


@helper
def read_sparse(labels, values, sparse, work, m):
    """Copy labels and probabilities of a row; returns its length, −1 or −2 where one is wrong.

    −1 says that a value is no probability, −2 that label ids do not rise or are no labels.
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
    """Gather the numbers of a row's labels, from position ``start`` on."""
    columns, table = memory.columns, memory.table
    gather(spec.feedback, memory.calibrator, memory.pace, columns, table, labels, start)


@helper
def append_label(j, count, sparse, spec, memory):
    """Append a label that the row does not store, with probability zero; returns its position.

    So labels that are true, or that fill up a budget, are counted as all others are.
    """
    work = memory.work
    sparse.ids[count] = j
    sparse.place[j] = count
    work[VALUES, count] = work[FLAGS, count] = work[PRESENT, count] = 0.0
    gather_row(spec, memory, sparse.ids[: count + 1], count)
    return count


@helper
def position_of_label(j, count, sparse, spec, memory):
    """Where label j stands in the row, appended where it is missing; and the row's length."""
    at = np.int64(sparse.place[j])
    if at < count and sparse.ids[at] == j:
        return at, count
    return append_label(j, count, sparse, spec, memory), count + 1


@helper
def fill_up_sparse(budget, count, sparse, spec, memory):
    """Choose the lowest labels that are not chosen, up to the budget; returns the row's length."""
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
    """Decide a sparse row; returns its length, below zero where it is wrong, and if it is short."""
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
    """List the chosen labels in rising order; returns how many there are.

    Stored labels rise; labels from position ``stored`` on were appended, and are sorted in.
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
    """Learn a sparse row whose values, flags and columns are there; ``true`` are its label ids."""
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
    """Decide and learn rows of stored labels, one after another.

    The stored entries of row t are ``starts[t]:ends[t]``, its labels
    ``true_ids[true_starts[t]:true_ends[t]]``. With an exact budget (``listed`` is empty) its
    decision goes into ``out[out_rows[t]]``; else chosen labels are listed one after another, and
    their number goes into ``out[out_rows[t], 0]``. Returns as ``replay_dense`` does.
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
        elif out.shape[0] > 0:
            list_chosen(count, stored, sparse, memory.work, out[out_rows[t]], FIRST)
        row = row_at(extras, t, False)
        first, last = (true_starts[t], true_ends[t]) if row.labelled else (0, 0)
        learn_labels(count, true_ids[first:last], row, sparse, spec, memory)
        taken = mark(marks, taken, t + 1, memory.table, memory.totals)
    return starts.shape[0], filled


@helper
def set_decided(labels, values, chosen, sparse, spec, memory):
    """Lay out a sparse row that was decided before; returns its length."""
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
    """Learn rows of stored labels that were decided before."""
    for t in range(starts.shape[0]):
        labels, values = indices[starts[t] : ends[t]], data[starts[t] : ends[t]]
        chosen = chosen_ids[chosen_starts[t] : chosen_ends[t]]
        count = set_decided(labels, values, chosen, sparse, spec, memory)
        row = row_at(extras, t, late)
        first, last = (true_starts[t], true_ends[t]) if row.labelled else (0, 0)
        learn_labels(count, true_ids[first:last], row, sparse, spec, memory)
