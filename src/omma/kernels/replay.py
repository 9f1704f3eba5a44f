"""A whole block of rows, one after another: two thin loops over one shared step.

``rows`` says which rows of the given arrays come, in their order. True labels come in that order
too, as ids: those of row t are ``true[true_start[t]:true_end[t]]`` (``true_start`` is empty where
they are unknown). ``cells, totals`` are the policy's counts; ``truth, truth_totals`` count
true labels, and are the same arrays unless the policy counts probabilities (``soft``). Of several
fixed rules, ``picks[t]`` is the one for row t. Arrays of length zero stand for "not wanted".
"""

from __future__ import annotations

from omma.kernels.count import count_expected, count_true
from omma.kernels.jit import entry, helper
from omma.kernels.layout import NO_SUMS, N
from omma.kernels.step import count_decision, decide, forget_decision, make_work, widen


@helper
def learn(
    labels, count, k, chosen, t, true_start, true_end, true, weights, soft, sums,
    cells, totals, truth, truth_totals, work,
):  # fmt: skip
    """Count a decided row."""
    weight = weights[t] if weights.shape[0] > 0 else 1.0
    count_decision(labels, k, chosen, weight, sums, cells, totals, work)
    if true_start.shape[0] > 0:
        if soft:
            count_decision(labels, k, chosen, weight, NO_SUMS, truth, truth_totals, work)
        count_true(
            true, true_start[t], true_end[t], work.flags, weight,
            NO_SUMS if soft else sums, truth, truth_totals,
        )  # fmt: skip
    if soft:
        count_expected(labels, work.values, count, work.flags, weight, sums, cells, totals)


@helper
def snapshot(t, taken, checkpoints, truth, truth_totals, snapshots, snapshot_rows):
    """Keep the counts where the caller wants to look back; returns how many are kept."""
    if taken < checkpoints.shape[0] and checkpoints[taken] == t:
        for cell in range(truth.shape[0]):
            for j in range(truth.shape[1]):
                snapshots[taken, cell, j] = truth[cell, j]
        snapshot_rows[taken] = truth_totals[N]
        return taken + 1
    return taken


@entry
def replay_dense(
    eta, rows, true_start, true_end, true, weights, objective, fixed, picks, matrix, prior, k,
    soft, sums, cells, totals, truth, truth_totals, checkpoints, snapshots,
    snapshot_rows, scratch, ids, predictions,
):  # fmt: skip
    """Replay rows of every label; returns the number of good rows before the first wrong one."""
    m = eta.shape[1]
    work = make_work(scratch, ids)
    taken = 0
    for t in range(rows.shape[0]):
        row = rows[t]
        if not widen(eta[row], work.values):
            return t
        pick = picks[t] if picks.shape[0] > 0 else 0
        chosen = decide(None, m, objective, fixed, pick, matrix, prior, k, cells, totals, work)
        learn(
            None, m, k, chosen, t, true_start, true_end, true, weights, soft, sums,
            cells, totals, truth, truth_totals, work,
        )  # fmt: skip
        if predictions.shape[0] > 0:
            for j in range(m):
                predictions[row, j] = work.flags[j]
        forget_decision(None, k, chosen, work)
        taken = snapshot(t + 1, taken, checkpoints, truth, truth_totals, snapshots, snapshot_rows)
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


@entry
def replay_sparse(
    indices, data, starts, ends, rows, true_start, true_end, true, weights, objective, fixed, picks,
    matrix, prior, k, soft, sums, cells, totals, truth, truth_totals,
    checkpoints, snapshots, snapshot_rows, scratch, ids, listed, out,
):  # fmt: skip
    """Replay rows of stored labels; returns the number of good rows before the first wrong one.

    The stored entries of row t are ``starts[t]:ends[t]``. With a budget the decision goes into row
    ``rows[t]`` of ``out``. Without one the chosen labels are written one after another into
    ``listed``, and how many they are into ``out[rows[t], 0]``.
    """
    m = cells.shape[1]
    work = make_work(scratch, ids)
    taken = 0
    written = 0
    for t in range(rows.shape[0]):
        labels = indices[starts[t] : ends[t]]
        count = labels.shape[0]
        if not rising(labels, m) or not widen(data[starts[t] : ends[t]], work.values):
            return t
        pick = picks[t] if picks.shape[0] > 0 else 0
        chosen = decide(
            labels, count, objective, fixed, pick, matrix, prior, k, cells, totals, work,
        )  # fmt: skip
        learn(
            labels, count, k, chosen, t, true_start, true_end, true, weights, soft, sums,
            cells, totals, truth, truth_totals, work,
        )  # fmt: skip
        if out.shape[0] > 0:
            out[rows[t], 0] = chosen
            for i in range(k):
                out[rows[t], i] = work.chosen[i]
            if k == 0:
                for i in range(chosen):
                    listed[written + i] = work.chosen[i]
                written += chosen
        forget_decision(labels, k, chosen, work)
        taken = snapshot(t + 1, taken, checkpoints, truth, truth_totals, snapshots, snapshot_rows)
    return rows.shape[0]
