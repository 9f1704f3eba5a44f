"""Rows as Python hands them over: decide one, count one, or count several that were decided."""

from typing import Any, NamedTuple

import numpy as np
from numba.core import types

from omma.kernels.calibrate import calibrate, fit
from omma.kernels.count import NO_SUMS, Sums, count_row, count_stored
from omma.kernels.decide import Decider, decide_row, decide_stored, widen
from omma.kernels.fade import fade, prior_now
from omma.kernels.feedback import Counted, FromLabels
from omma.kernels.jit import by_kind, entry, helper, pointed
from omma.kernels.layout import FLAGS, ONES, PRESENT, VALUES
from omma.kernels.learn import fit_stored, learn, learn_stored
from omma.kernels.partly import learn_part, learn_part_stored
from omma.kernels.pointer import (
    COUNT,
    EVERYTHING,
    IDS,
    NUMBERS,
    ROWS,
    Address,
    called,
    held_by,
    read,
)
from omma.kernels.price_steps import move, move_stored
from omma.kernels.replay import rising

FLAGGED = types.Array(types.int8, 1, "C")


@helper
def clear(row):
    for j in range(row.shape[0]):
        row[j] = 0.0


@helper
def clear_at(row, labels):
    """The same at some labels: a sparse row takes as long as it has entries."""
    for i in range(labels.shape[0]):
        row[labels[i]] = 0.0


@by_kind
def clear_limited(prices, row):
    """The same at labels that have a limit, which is looked at on every row."""


@clear_limited.case()
def clear_at_limits(prices, row):
    for i in range(prices.labels.shape[0]):
        if prices.labels[i] >= 0:  # below zero it is about all labels
            row[prices.labels[i]] = 0.0


@entry("a dense decision")
def decide_dense(
    eta, find, term, select, budget, whole, prior, pick, cells, totals, scratch, ids, out
):  # fmt: skip
    """Decide one row of every label into ``out``; False where eta is no probability.

    The parts of a decider come one by one: a named tuple takes longer to hand over than such a
    row to decide.
    """
    flags = scratch[FLAGS]
    clear(flags)
    if not widen(eta, scratch[VALUES]):
        return False
    decider = Decider(find, term, select, budget, whole, prior)
    feedback = FromLabels(Counted(cells, totals))
    decide_row(decider, prior, pick, feedback, NO_SUMS, None, scratch, ids)
    for j in range(flags.shape[0]):
        out[j] = np.int8(flags[j])
    return True


@entry("a sparse decision")
def decide_sparse(
    labels, eta, find, term, select, budget, whole, prior, pick, cells, totals, scratch, ids
):  # fmt: skip
    """Decide one row of stored labels into the first of ``ids``; returns how many.

    -1 says that eta holds no probabilities, -2 that labels are not known ones that rise.
    """
    if not rising(labels, cells.shape[1]):
        return -2
    if not widen(eta, scratch[VALUES]):
        return -1
    decider = Decider(find, term, select, budget, whole, prior)
    feedback = FromLabels(Counted(cells, totals))
    return decide_stored(decider, labels, prior, pick, feedback, NO_SUMS, None, scratch, ids)


class Kept(NamedTuple):
    """All that a policy decides by, and counts in."""

    decider: Any
    feedback: Any
    sums: Any
    calibrator: Any
    prices: Any


@pointed("a dense decision of what calibrates, fades or has limits")
def decide_by_kept(held, eta, pick, scratch, ids, out):
    """Decide one row of every label by all that a policy keeps; 0 where eta is wrong."""
    kept, flags = read(held), scratch[FLAGS]
    clear(flags)
    if not widen(eta, scratch[VALUES]):
        return 0
    calibrate(kept.calibrator, EVERYTHING, flags.shape[0], scratch)
    prior = prior_now(kept.feedback, kept.decider.prior)
    decide_row(kept.decider, prior, pick, kept.feedback, kept.sums, kept.prices, scratch, ids)
    for j in range(flags.shape[0]):
        out[j] = np.int8(flags[j])
    return 1


@pointed("learning a dense row")
def learn_in_kept(held, eta, true, known, predicted, weight, late, scratch):
    """Count one row of indicators in all that a policy keeps, and calibrate by it.

    0, and nothing counted, where what must be 0 and 1 is not. A ``late`` row makes nothing older:
    it has had its time when it was decided.
    """
    kept, values, flags = read(held), scratch[VALUES], scratch[FLAGS]
    feedback, calibrator, prices = kept.feedback, kept.calibrator, kept.prices
    m, labelled = flags.shape[0], known != 0
    if labelled and read_flags(true, flags) < 0:
        return 0
    found = read_flags(predicted, flags)
    if found < 0:
        return 0
    widen(eta, values)
    calibrate(calibrator, EVERYTHING, m, scratch)
    learn(feedback, found, true, labelled, weight, kept.sums, scratch)
    move(prices, true, labelled, found, weight, flags, values)
    if labelled:
        fit(calibrator, EVERYTHING, m, scratch, true, weight)
    if late == 0:
        fade(feedback, calibrator, prices, labelled, weight, scratch)
    return 1


@pointed("a sparse decision of what calibrates, fades or has limits")
def decide_stored_by_kept(held, labels, eta, pick, scratch, ids):
    """Decide one row of stored labels by all that a policy keeps; below zero as above."""
    if not rising(labels, scratch.shape[1]):
        return -2
    if not widen(eta, scratch[VALUES]):
        return -1
    kept = read(held)
    calibrate(kept.calibrator, labels, labels.shape[0], scratch)
    prior = prior_now(kept.feedback, kept.decider.prior)
    return decide_stored(
        kept.decider, labels, prior, pick, kept.feedback, kept.sums, kept.prices, scratch, ids
    )


@pointed("learning a sparse row")
def learn_stored_in_kept(held, labels, eta, true, known, chosen, weight, late, scratch):
    """Count one row of label ids in all that a policy keeps, and calibrate by it."""
    kept, values, flags, present = read(held), scratch[VALUES], scratch[FLAGS], scratch[PRESENT]
    feedback, calibrator, prices = kept.feedback, kept.calibrator, kept.prices
    found, end, labelled = chosen.shape[0], true.shape[0], known != 0
    for row in (flags, present):
        clear_at(row, labels)
        clear_at(row, true)
        clear_limited(prices, row)
    for i in range(found):
        flags[chosen[i]] = 1.0
    widen(eta, values)
    calibrate(calibrator, labels, labels.shape[0], scratch)
    learn_stored(feedback, labels, chosen, found, true, labelled, weight, kept.sums, scratch)
    move_stored(prices, labels, values, true, 0, end, labelled, found, weight, flags, present)
    if labelled:
        fit_stored(calibrator, labels, true, weight, scratch)
    if late == 0:
        fade(feedback, calibrator, prices, labelled, weight, scratch)
    return 0


# What is kept lies elsewhere: named tuples take longer to hand over than to use.


@entry("a dense decision by address")
def decide_dense_at(function, at, eta, pick, scratch, ids, out):
    """Decide by what is kept."""
    return called(function, (at, eta, np.int64(pick), scratch, ids, out))


@entry("learning a dense row by address")
def learn_dense_at(function, at, eta, true, known, predicted, weight, late, scratch):
    """Count in what is kept."""
    row = (eta, true, np.int64(known), predicted, np.float64(weight), np.int64(late), scratch)
    return called(function, (at, *row))


@entry("a sparse decision by address")
def decide_sparse_at(function, at, labels, eta, pick, scratch, ids):
    """Decide by what is kept."""
    return called(function, (at, labels, eta, np.int64(pick), scratch, ids))


@entry("learning a sparse row by address")
def learn_sparse_at(function, at, labels, eta, true, known, chosen, weight, late, scratch):
    """Count in what is kept."""
    row = (true, np.int64(known), chosen, np.float64(weight), np.int64(late), scratch)
    return called(function, (at, labels, eta, *row))


class Keeping(NamedTuple):
    """Where to decide by what is kept, and where to count in it: a row, or labels that come late.

    The latter are of a row whose probabilities were counted before.
    """

    decide: Address
    learn: Address
    late: Address


def keeping(kept: Kept, late: Kept, thin: bool) -> Keeping:
    """Lay out what is kept, for single rows; ``late`` is what late labels are counted in."""
    space, counted = types.Array(types.int32, 2, "C"), (types.float64, COUNT, ROWS)
    if thin:
        decide: tuple[Any, ...] = (decide_stored_by_kept, kept, IDS, NUMBERS, COUNT, ROWS, space)
        into: Any = learn_stored_in_kept
        row: tuple[Any, ...] = (IDS, NUMBERS, IDS, COUNT, IDS, *counted)
    else:
        decide = (decide_by_kept, kept, NUMBERS, COUNT, ROWS, space, FLAGGED)
        into = learn_in_kept
        row = (NUMBERS, NUMBERS, COUNT, FLAGGED, *counted)
    return Keeping(held_by(*decide), held_by(into, kept, *row), held_by(into, late, *row))


@helper
def read_flags(given, flags):
    """Indicators as flags; how many are one, -1 where one is neither zero nor one."""
    count = 0
    wrong = 0
    for j in range(given.shape[0]):
        flags[j] = np.float64(given[j])
        count += given[j] == 1
        wrong += (given[j] != 0) & (given[j] != 1)
    return count if wrong == 0 else -1


@entry("counting a dense row")
def count_dense(present, indicators, predicted, weight, level, add, cells, totals, scratch):
    """Count one row of true labels, or of probabilities where these are no ``indicators``.

    False, and nothing counted, where what must be 0 and 1 is not.
    """
    flags = scratch[FLAGS]
    if indicators and read_flags(present, flags) < 0:
        return False
    found = read_flags(predicted, flags)
    if found < 0:
        return False
    count_row(found, present, flags, weight, Sums(level, add), cells, totals)
    return True


@entry("counting a sparse row")
def count_sparse(labels, present, chosen, weight, level, add, cells, totals, scratch):
    """Count one row whose labels are present to the degrees given, or none given, as true ones."""
    flags, found = scratch[FLAGS], chosen.shape[0]
    for i in range(labels.shape[0]):
        flags[labels[i]] = 0.0
    for i in range(found):
        flags[chosen[i]] = 1.0
    degrees = present if present.shape[0] > 0 else scratch[ONES]
    count_stored(chosen, found, labels, degrees, flags, weight, Sums(level, add), cells, totals)


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
