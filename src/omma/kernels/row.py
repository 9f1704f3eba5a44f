"""One row as columns: decide, learn. Dense replays, sparse ones and single rows share it.

A row walks like this: probabilities → calibrate → counts that decisions look at → slope and offset
of each label → gains → choice. Later: labels → counts → calibrator → prices → decay or window.

``Spec`` says what is done and never changes; ``Memory`` has all arrays; ``Row`` is what comes with
a row beside probabilities and labels. What a policy does not use is None, and compiles to nothing.
"""

from typing import Any, NamedTuple

import numpy as np

from omma.kernels import classes  # noqa: F401 (adds its cases to those of gains)
from omma.kernels.calibrate import calibrate, fit
from omma.kernels.counts import (
    count_set,
    expect,
    in_units,
    needs_labels,
    observe,
    see,
    see_totals,
)
from omma.kernels.decay import counted_unit, grow, unit_of
from omma.kernels.gains import fill_extras, gain, is_candidate, point_at, prepare
from omma.kernels.gather import scatter
from omma.kernels.jit import helper
from omma.kernels.layout import (
    EXTRA_OFFSET,
    EXTRA_SLOPE,
    FLAGS,
    JUDGED,
    MISSED,
    PRESENT,
    RANKS,
    SEEN_TOTALS,
    UNREPORTED,
    VALUES,
)
from omma.kernels.limits import move, position_in, price
from omma.kernels.select import LOWEST, cut_of, flag_ranked, rank
from omma.kernels.window import remember, slide


class Spec(NamedTuple):
    """What a policy does with a row."""

    objective: Any  # what is maximized (``objectives``)
    prior: float  # λ
    budget: Any  # k labels a row, −k at most k, None without a budget
    feedback: Any  # what is counted (``counts``)
    m: int  # the number of labels


class Memory(NamedTuple):
    """All arrays that a row reads and writes (``layout`` says what stands where)."""

    columns: Any  # (fields, width): numbers of the row's labels
    table: Any  # (fields, labels): numbers of all labels; for dense rows the same array
    totals: Any  # (SETS, TOTALS)
    work: Any  # (WORK, width): scratch space
    calibrator: Any  # Learning, Settled or None
    pace: Any  # (PACE,) where the past decays, else None
    limits: Any  # OnLabels, OnEstimates or None
    window: Any  # Recent or None


class Row(NamedTuple):
    """What comes with a row beside probabilities and labels."""

    weight: float
    labelled: bool  # its labels are known, all of them or all but those listed as unknown
    late: bool  # it was decided, and counted without labels, before
    unknown: Any  # ids of labels that are not known, in a row labelled in part


@helper
def flag_gains(objective, ready, point, columns, work, extras, m, width):
    """Without a budget: flag every candidate that gains."""
    flags, feedback, rows = work[FLAGS], point.feedback, point.rows
    for i in range(width):
        eta = work[VALUES, i]
        tp, predicted, positive = see(feedback, columns, rows, i)
        slope, offset = extras_at(extras, work, i)
        gained = gain(objective, ready, point, eta, tp, predicted, positive, slope, offset)
        flags[i] = 1.0 if (gained >= 0.0) & is_candidate(objective, eta, i, m) else 0.0


@helper
def rank_gains(objective, ready, point, columns, work, extras, m, width):
    """With a budget: rank all candidates by their gains."""
    feedback, rows, ranks = point.feedback, point.rows, work[RANKS].view(np.int64)
    for i in range(width):
        eta = work[VALUES, i]
        tp, predicted, positive = see(feedback, columns, rows, i)
        slope, offset = extras_at(extras, work, i)
        gained = gain(objective, ready, point, eta, tp, predicted, positive, slope, offset)
        ranks[i] = rank(gained if is_candidate(objective, eta, i, m) else -np.inf)


@helper
def extras_at(extras, work, i):
    """What prices and the like add to slope and offset at a position."""
    if extras is None:
        return 0.0, 0.0
    return extras[0] + work[EXTRA_SLOPE, i], extras[1] + work[EXTRA_OFFSET, i]


@helper
def choose(budget, objective, ready, point, columns, work, extras, m, width):
    """Flag the labels of a row; returns whether there are fewer candidates than the budget."""
    if budget is None:
        flag_gains(objective, ready, point, columns, work, extras, m, width)
        return False
    rank_gains(objective, ready, point, columns, work, extras, m, width)
    ranks = work[RANKS].view(np.int64)
    cut, position = cut_of(budget, ranks, width)
    flag_ranked(ranks, cut, position, work[FLAGS], width)
    return cut == LOWEST + 1


@helper
def look(spec, memory):
    """Where the gradient is taken: at the counts that decisions look at."""
    unit = counted_unit(memory.pace, memory.window)
    feedback = in_units(spec.feedback, unit, memory.totals)
    seen = memory.work[SEEN_TOTALS]
    see_totals(feedback, memory.table, memory.totals, seen, spec.m)
    return point_at(seen, spec.prior * unit, spec.m, feedback, memory.table), unit


@helper
def decide(spec, memory, place, labels, pick, width):
    """Flag the labels of a row whose probabilities are in ``work[VALUES]``.

    Algorithm 1: predict argmax over ŷ of ∇ψ(C_{t−1})·E[C(y, ŷ)], which is the choice among
    slope_j·η_j + offset_j. Returns whether there are fewer candidates than the budget. For a sparse
    row, ``labels`` are its label ids and ``place`` says where each stands; for a dense one both are
    None.
    """
    columns, work = memory.columns, memory.work
    calibrate(memory.calibrator, columns, work, width)
    point, unit = look(spec, memory)
    ready = prepare(spec.objective, point)
    extras = fill_extras(spec.objective, point, columns, work, labels, pick, width)
    priced = price(
        memory.limits, extras, spec.feedback, unit, columns, memory.table, memory.totals, work,
        place, labels, width, spec.m,
    )  # fmt: skip
    return choose(
        spec.budget, spec.objective, ready, point, columns, work, priced, spec.m, width,
    )  # fmt: skip


@helper
def hide(unknown, memory, weight, counted, place, labels):
    """Take labels that are unknown out of a row, and note how much each missed."""
    work, table = memory.work, memory.table
    for i in range(unknown.shape[0]):
        j = unknown[i]
        at = position_in(place, labels, j)
        if at >= 0:
            work[VALUES, at] = work[FLAGS, at] = work[PRESENT, at] = 0.0
        table[MISSED, j] += counted
        table[UNREPORTED, j] += weight


@helper
def judge(pace, columns, totals, work, weight, width):
    """Count labels for reported values, where the counts that decide decay or slide."""
    if pace is not None:
        count_set(JUDGED, 0, work[PRESENT], work[FLAGS], weight, columns, totals, width)


@helper
def learn(spec, memory, row, place, labels, width):
    """Count a decided row, and learn from its labels where they are known.

    ``work`` holds its VALUES (calibrated), LOGITS, FLAGS and PRESENT. Algorithm 1:
    C_t = C_{t−1} + C(y_t, ŷ_t); Algorithm 2 has η̂ in place of y.
    """
    feedback, columns, totals, work = spec.feedback, memory.columns, memory.totals, memory.work
    window, weight, late = memory.window, row.weight, row.late
    counted = weight * counted_unit(memory.pace, window)
    partly = row.labelled and row.unknown.shape[0] > 0
    if not late:
        expect(feedback, columns, totals, work, counted, width)
        if row.labelled or not needs_labels(feedback):
            whole = row.labelled and not partly
            remember(window, feedback, work, weight, True, whole, labels, width)
    if partly:
        # Limits that need no labels look at the whole decision, so they move before it is hidden.
        scatter(place, feedback, memory.calibrator, memory.pace, columns, memory.table, labels)
        move(memory.limits, spec, memory, row, not late, False, place, labels, width)
        hide(row.unknown, memory, weight, counted, place, labels)
    if row.labelled:
        if partly or late:
            remember(window, feedback, work, weight, False, True, labels, width)
        observe(feedback, columns, totals, work, counted, width)
        judge(memory.pace, columns, totals, work, weight, width)
        fit(memory.calibrator, columns, work, weight, unit_of(memory.pace), width, spec.m)
    scatter(place, feedback, memory.calibrator, memory.pace, columns, memory.table, labels)
    steady = not late and not partly
    move(memory.limits, spec, memory, row, steady, row.labelled, place, labels, width)
    if not late:
        age(spec, memory, row, memory.pace, window)


@helper
def age(spec, memory, row, pace, window):
    """One more row has passed: what was counted is worth a little less, or leaves the window."""
    if pace is None:
        return
    if row.weight > 0.0 and (row.labelled or not needs_labels(spec.feedback)):
        slide(window, spec.feedback, memory.limits, memory.table, memory.totals)
        grow(pace, window, memory.calibrator, memory.limits, memory.table, memory.totals)
