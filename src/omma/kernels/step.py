"""One row: decide, then count. Replays and single steps are thin loops over these.

``labels`` is the row's label ids, or None where the row holds every label in order.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from omma.kernels.count import (
    count_expected,
    count_flagged,
    count_predicted,
    count_true,
)
from omma.kernels.gradient import add_objective, point_at
from omma.kernels.jit import entry, helper
from omma.kernels.layout import POSITIVE, PREDICTED, TP
from omma.kernels.select import choose_k, choose_nonnegative, flag_nonnegative, label_at

SCRATCH: Final = 9  # rows of float64 scratch space, each as long as there are labels


class Work(NamedTuple):
    """Scratch space for one row."""

    values: Any  # the row's probabilities, widened to float64
    slope: Any
    offset: Any
    gains: Any
    flags: Any  # over all labels: one where the row's label is chosen
    chosen_gains: Any
    cells: Any  # counts gathered for a sparse row
    chosen: Any  # the chosen labels in rising order


@helper
def make_work(scratch, chosen):
    """Name the parts of the scratch space, and clear the flags."""
    flags = scratch[4]
    for j in range(flags.shape[0]):
        flags[j] = 0.0
    return Work(
        scratch[0],
        scratch[1],
        scratch[2],
        scratch[3],
        flags,
        scratch[5],
        scratch[6:9],
        chosen,
    )


@helper
def widen(given, values):
    """Copy a row's probabilities as float64; returns whether each lies in [0, 1]."""
    wrong = 0
    for position in range(given.shape[0]):
        value = np.float64(given[position])
        values[position] = value
        wrong += not ((value >= 0.0) & (value <= 1.0))
    return wrong == 0


@helper
def gather(labels, cells, gathered):
    """Put the counts of some labels side by side."""
    for position in range(labels.shape[0]):
        j = labels[position]
        gathered[TP, position] = cells[TP, j]
        gathered[PREDICTED, position] = cells[PREDICTED, j]
        gathered[POSITIVE, position] = cells[POSITIVE, j]


@helper
def start_gradient(labels, fixed, pick, slope, offset):
    """Begin with fixed weights, those of the rule picked, or with nothing."""
    if fixed.shape[0] > 0:
        for position in range(slope.shape[0]):
            j = label_at(labels, position)
            slope[position] = fixed[pick, 0, j]
            offset[position] = fixed[pick, 1, j]
    else:
        for position in range(slope.shape[0]):
            slope[position] = 0.0
            offset[position] = 0.0


@helper
def gradient_everywhere(objective, fixed, pick, prior, cells, totals, work):
    """Slope and offset at every label."""
    m = cells.shape[1]
    start_gradient(None, fixed, pick, work.slope[:m], work.offset[:m])
    point = point_at(cells, cells, totals, prior)
    add_objective(objective, point, work.slope[:m], work.offset[:m])


@helper
def gradient_at(labels, objective, fixed, pick, prior, cells, totals, work):
    """Slope and offset at the row's labels."""
    slope = work.slope[: labels.shape[0]]
    offset = work.offset[: labels.shape[0]]
    start_gradient(labels, fixed, pick, slope, offset)
    # Fixed weights look at no counts.
    if fixed.shape[0] == 0:
        gather(labels, cells, work.cells)
    point = point_at(work.cells, cells, totals, prior)
    add_objective(objective, point, slope, offset)


@helper
def find_gains(count, work):
    """Slope * eta + offset, and minus infinity where eta is zero: no candidate."""
    for position in range(count):
        value = work.values[position]
        gain = work.slope[position] * value + work.offset[position]
        work.gains[position] = gain if value > 0.0 else -np.inf


@helper
def find_matrix_gains(matrix, labels, count, work):
    """Gains slope * eta + offset + eta @ matrix, with slope and offset of all labels.

    With costs, a label of no probability may be the best: all are candidates.
    """
    gains = work.gains
    for j in range(gains.shape[0]):
        gains[j] = work.offset[j]
    for position in range(count):
        value = work.values[position]
        i = label_at(labels, position)
        if value > 0.0:
            gains[i] += work.slope[i] * value
    for position in range(count):
        value = work.values[position]
        i = label_at(labels, position)
        if value > 0.0:
            for j in range(gains.shape[0]):
                gains[j] += value * matrix[i, j]


@helper
def decide(labels, count, objective, fixed, pick, matrix, prior, k, cells, totals, work):
    """Choose the labels of a row of ``count`` probabilities; returns how many were chosen.

    Flags are set; ``work.chosen`` is written too, except for a row of every label without a
    budget, whose decision is flags alone.
    """
    if matrix is not None:
        gradient_everywhere(objective, fixed, pick, prior, cells, totals, work)
        find_matrix_gains(matrix, labels, count, work)
        chosen = choose_k(work.gains, cells.shape[1], None, k, work.chosen, work.chosen_gains)
    else:
        if labels is None:
            gradient_everywhere(objective, fixed, pick, prior, cells, totals, work)
        else:
            gradient_at(labels, objective, fixed, pick, prior, cells, totals, work)
        find_gains(count, work)
        if k > 0:
            chosen = choose_k(work.gains, count, labels, k, work.chosen, work.chosen_gains)
        elif labels is None:
            return flag_nonnegative(work.gains, count, work.flags)
        else:
            chosen = choose_nonnegative(work.gains, count, labels, work.chosen)
    for i in range(chosen):
        work.flags[work.chosen[i]] = 1.0
    return chosen


@helper
def count_decision(labels, k, chosen, weight, sums, cells, totals, work):
    """Count the decision that ``decide`` left in ``work``."""
    if labels is None and k == 0:
        count_flagged(work.flags, chosen, weight, sums, cells, totals)
    else:
        count_predicted(work.chosen, chosen, weight, sums, cells, totals)


@helper
def forget_decision(labels, k, chosen, work):
    """Clear the flags of a row; the branch-free decision overwrites them all by itself."""
    if labels is not None or k > 0:
        for i in range(chosen):
            work.flags[work.chosen[i]] = 0.0


@entry
def decide_dense(
    eta,
    objective,
    fixed,
    pick,
    matrix,
    prior,
    k,
    cells,
    totals,
    scratch,
    ids,
    out,
):
    """Decide one row of every label into ``out``; False where eta is no probability."""
    m = eta.shape[0]
    work = make_work(scratch, ids)
    if not widen(eta, work.values):
        return False
    decide(None, m, objective, fixed, pick, matrix, prior, k, cells, totals, work)
    for j in range(m):
        out[j] = np.int8(work.flags[j])
    return True


@entry
def decide_sparse(
    labels,
    eta,
    objective,
    fixed,
    pick,
    matrix,
    prior,
    k,
    cells,
    totals,
    scratch,
    ids,
):
    """Decide one row of stored labels into ``ids``; returns how many, -1 if eta is wrong."""
    work = make_work(scratch, ids)
    if not widen(eta, work.values):
        return -1
    return decide(
        labels, eta.shape[0], objective, fixed, pick, matrix, prior, k, cells,
        totals, work,
    )  # fmt: skip


@helper
def read_labels(given, found):
    """The label ids where an indicator row is one; -1 where it is neither zero nor one."""
    count = 0
    for j in range(given.shape[0]):
        if given[j] == 1:
            found[count] = j
            count += 1
        elif given[j] != 0:
            return -1
    return count


@entry
def count_dense(eta, true, predicted, weight, soft, sums, cells, totals, scratch, ids):
    """Count one row of indicators; False, and nothing counted, where they are not 0 and 1.

    ``soft`` counts probabilities in place of true labels.
    """
    m = predicted.shape[0]
    flags = scratch[4]
    for j in range(m):
        flags[j] = predicted[j]
    if not soft and read_labels(true, ids) < 0:
        return False
    chosen = read_labels(predicted, ids)
    if chosen < 0:
        return False
    count_predicted(ids, chosen, weight, sums, cells, totals)
    if soft:
        count_expected(None, eta, m, flags, weight, sums, cells, totals)
    else:
        count_true(ids, 0, read_labels(true, ids), flags, weight, sums, cells, totals)
    return True


@entry
def count_sparse(labels, eta, true, chosen, weight, soft, sums, cells, totals, scratch):
    """Count one row of label ids; ``soft`` counts probabilities in place of true labels."""
    flags = scratch[4]
    for j in range(flags.shape[0]):
        flags[j] = 0.0
    for i in range(chosen.shape[0]):
        flags[chosen[i]] = 1.0
    count_predicted(chosen, chosen.shape[0], weight, sums, cells, totals)
    if soft:
        count_expected(labels, eta, eta.shape[0], flags, weight, sums, cells, totals)
    else:
        count_true(true, 0, true.shape[0], flags, weight, sums, cells, totals)
