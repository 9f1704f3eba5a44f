"""One row as columns: decide, learn. Dense replays, sparse ones and single rows share it.

A row walks like this: probabilities → calibrate → counts that decisions look at → slope and offset
of each label → gains → choice. Later: labels → counts → calibrator → prices → decay or window.

``Spec`` says what is done and never changes; ``Memory`` has all arrays; ``Row`` is what comes with
a row beside probabilities and labels. What a policy does not use is None, and compiles to nothing.
"""

from typing import Any, NamedTuple

import numpy as np

from omma.kernels import classes  # noqa: F401 (adds its cases to those of gains)
from omma.kernels.calibrate import LABELLED, calibrate, center, fit
from omma.kernels.counts import (
    Both,
    PartialLabels,
    count_set,
    expect,
    in_units,
    needs_labels,
    observe,
    see,
    see_totals,
)
from omma.kernels.decay import counted_unit, grow, unit_of
from omma.kernels.gains import LABELS, PRIOR, is_candidate, weigh_labels
from omma.kernels.gather import scatter
from omma.kernels.jit import by_kind, call, helper, numbers_at
from omma.kernels.layout import (
    AUDITED_LABELS,
    AUDITED_VALUES,
    FLAGS,
    JUDGED,
    MISSED,
    OFFSET,
    POSITIVE,
    PREDICTED,
    PRESENT,
    RANKS,
    SEEN,
    SLOPE,
    TP,
    UNREPORTED,
    UNSEEN,
    VALUES,
    N,
)
from omma.kernels.limits import add_prices, move, position_in
from omma.kernels.select import rank
from omma.kernels.window import remember, slide


class Spec(NamedTuple):
    """What a policy does with a row."""

    objective: Any  # what is maximized: ``gains.Weighed``, or ``FixedRules`` or ``CostMatrix``
    prior: float  # λ
    budget: int  # k labels a row, −k at most k, 0 without a budget
    select: int  # address of the function that flags the best labels (``select``)
    feedback: Any  # what is counted (``counts``)
    m: int  # the number of labels


class Memory(NamedTuple):
    """All arrays that a row reads and writes (``layout`` says what stands where)."""

    columns: Any  # (fields, width): numbers of the row's labels
    table: Any  # (fields, labels): numbers of all labels; for dense rows the same array
    totals: Any  # (SETS, TOTALS)
    work: Any  # (WORK, width): scratch space
    point: Any  # (POINT,): where the gradient is taken (``gains``)
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
    # Where labels are seen because of the decision: −1 where only predicted labels are seen; in an
    # audited row, the weight in calibration of entries that were not predicted. Else 0.
    audit: float


@helper
def flag_gains(objective, work, m, width):
    """Without a budget: flag every candidate that gains."""
    for i in range(width):
        eta = work[VALUES, i]
        gain = work[SLOPE, i] * eta + work[OFFSET, i]
        flag = (gain >= 0.0) & is_candidate(objective, eta, i, m)
        work[FLAGS, i] = 1.0 if flag else 0.0


@helper
def rank_gains(objective, work, m, width):
    """With a budget: rank all candidates by their gains."""
    ranks = work[RANKS].view(np.int64)
    for i in range(width):
        eta = work[VALUES, i]
        gain = work[SLOPE, i] * eta + work[OFFSET, i]
        ranks[i] = rank(gain if is_candidate(objective, eta, i, m) else -np.inf)


@helper
def choose(spec, work, width):
    """Flag the labels of a row; returns whether there are fewer candidates than the budget."""
    if spec.budget == 0:
        flag_gains(spec.objective, work, spec.m, width)
        return False
    rank_gains(spec.objective, work, spec.m, width)
    return call(spec.select, spec.budget, numbers_at(work), work.shape[1], width) != 0


@helper
def look(spec, memory):
    """Write where the gradient is taken, the totals that decisions look at, into ``point``."""
    unit = counted_unit(memory.pace, memory.window)
    feedback = in_units(spec.feedback, unit, memory.totals)
    see_totals(feedback, memory.table, memory.totals, memory.point, spec.m)
    memory.point[PRIOR] = spec.prior * unit
    memory.point[LABELS] = spec.m
    return feedback, unit


@by_kind
def weigh_seen(feedback, objective, memory, labels, pick, width):
    """Write slopes and offsets at the counts that decisions look at."""


@weigh_seen.case()
def weigh_counted(feedback, objective, memory, labels, pick, width):
    """The counts are looked at as they are: the set OWN, the first columns."""
    weigh_labels(objective, memory.columns, memory, labels, pick, width)


@weigh_seen.case(Both)
@weigh_seen.case(PartialLabels)
def weigh_corrected(feedback, objective, memory, labels, pick, width):
    columns, work, rows = memory.columns, memory.work, memory.point[N]
    for i in range(width):
        tp, predicted, positive = see(feedback, columns, rows, i)
        work[SEEN + TP, i] = tp
        work[SEEN + PREDICTED, i] = predicted
        work[SEEN + POSITIVE, i] = positive
    weigh_labels(objective, work[SEEN : SEEN + 3], memory, labels, pick, width)


@helper
def decide(spec, memory, place, labels, pick, width):
    """Flag the labels of a row whose probabilities are in ``work[VALUES]``.

    Algorithm 1: predict argmax over ŷ of ∇ψ(C_{t−1})·E[C(y, ŷ)], which is the choice among
    slope_j·η_j + offset_j. Returns whether there are fewer candidates than the budget. For a sparse
    row, ``labels`` are its label ids and ``place`` says where each stands; for a dense one both are
    None.
    """
    calibrate(memory.calibrator, memory.columns, memory.work, width)
    feedback, unit = look(spec, memory)
    weigh_seen(feedback, spec.objective, memory, labels, pick, width)
    add_prices(
        memory.limits, feedback, unit, memory.columns, memory.table, memory.totals, memory.work,
        place, labels, width, spec.m,
    )  # fmt: skip
    return choose(spec, memory.work, width)


@helper
def hide(unknown, memory, weight, counted, unseen, place, labels):
    """Take labels that are unknown out of a row, and note how much each missed.

    Where labels are seen because of the decision (``unseen``), one that was not predicted is not
    missed: its probability is added to those of labels that nobody saw.
    """
    work, table = memory.work, memory.table
    for i in range(unknown.shape[0]):
        j = unknown[i]
        at = position_in(place, labels, j)
        if unseen and (at < 0 or work[FLAGS, at] <= 0.0):
            if at >= 0:
                table[UNSEEN, j] += weight * work[VALUES, at]
                work[VALUES, at] = work[PRESENT, at] = 0.0
            continue
        if at >= 0:
            work[VALUES, at] = work[FLAGS, at] = work[PRESENT, at] = 0.0
        table[MISSED, j] += counted
        table[UNREPORTED, j] += weight


@helper
def note_unseen(row, memory, counted, labels, width):
    """Keep of a row what its decision let us see, and add up the probabilities of the rest.

    A label that was not predicted is seen in an audited row alone. A prediction whose label never
    came is missed, as in ``hide``.
    """
    work, table = memory.work, memory.table
    is_known, is_audited = row.labelled, row.labelled and row.audit > 0.0
    for i in range(width if labels is None else labels.shape[0]):
        j = i if labels is None else labels[i]
        if work[FLAGS, i] > 0.0:
            if not is_known:
                table[MISSED, j] += counted
                table[UNREPORTED, j] += row.weight
                work[VALUES, i] = work[FLAGS, i] = work[PRESENT, i] = 0.0
        elif is_audited:
            table[AUDITED_LABELS, j] += row.weight * work[PRESENT, i]
            table[AUDITED_VALUES, j] += row.weight * work[VALUES, i]
        else:
            table[UNSEEN, j] += row.weight * work[VALUES, i]
            work[VALUES, i] = work[PRESENT, i] = 0.0


@helper
def fit_audited(calibrator, columns, work, weight, unit, width, m):
    """Let the calibrator learn once more from what was audited and not predicted.

    Audits stand for the rows around them that were not audited, so they weigh more.
    """
    if calibrator is not None:
        kept, rows = work[RANKS], calibrator.shared[LABELLED]
        for i in range(width):
            kept[i] = work[VALUES, i]
            work[VALUES, i] = 0.0 if work[FLAGS, i] > 0.0 else kept[i]
        fit(calibrator, columns, work, weight, unit, width, m)
        calibrator.shared[LABELLED] = rows  # it is one row
        for i in range(width):
            work[VALUES, i] = kept[i]


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
    unseen = row.audit != 0.0  # labels are seen because of the decision
    labelled = row.labelled or unseen
    partly = unseen or (row.labelled and row.unknown.shape[0] > 0)
    if not late:
        center(memory.calibrator, columns, work, weight * unit_of(memory.pace), width)
        expect(feedback, columns, totals, work, counted, width)
        if labelled or not needs_labels(feedback):
            whole = labelled and not partly
            remember(window, feedback, work, weight, True, whole, labels, width)
    if partly:
        # Limits that need no labels look at the whole decision, so they move before it is hidden.
        scatter(place, feedback, memory.calibrator, memory.pace, columns, memory.table, labels)
        move(memory.limits, spec, memory, row, not late, False, place, labels, width)
        hide(row.unknown, memory, weight, counted, unseen, place, labels)
        if unseen:
            note_unseen(row, memory, counted, labels, width)
    if labelled:
        if partly or late:
            remember(window, feedback, work, weight, False, True, labels, width)
        observe(feedback, columns, totals, work, counted, width)
        judge(memory.pace, columns, totals, work, weight, width)
        unit = unit_of(memory.pace)
        fit(memory.calibrator, columns, work, weight, unit, width, spec.m)
        if row.audit > 1.0:
            more = (row.audit - 1.0) * weight
            fit_audited(memory.calibrator, columns, work, more, unit, width, spec.m)
    scatter(place, feedback, memory.calibrator, memory.pace, columns, memory.table, labels)
    steady = not late and not partly
    move(memory.limits, spec, memory, row, steady, labelled, place, labels, width)
    if not late:
        age(spec, memory, row, memory.pace, window)


@helper
def age(spec, memory, row, pace, window):
    """One more row has passed: what was counted is worth a little less, or leaves the window."""
    if pace is None:
        return
    labelled = row.labelled or row.audit != 0.0
    if row.weight > 0.0 and (labelled or not needs_labels(spec.feedback)):
        slide(window, spec.feedback, memory.limits, memory.table, memory.totals)
        grow(pace, window, memory.calibrator, memory.limits, memory.table, memory.totals)
