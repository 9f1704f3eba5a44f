"""One row as columns: decide, learn. Dense replays, sparse ones and single rows share it.

A row walks like this: probabilities → calibrate → counts that decisions look at → slope and offset
of each label → gains → choice. Later: labels → counts → calibrator → prices → decay or window.

``Spec`` says what is done and never changes; ``Memory`` has all arrays; ``Row`` is what comes with
a row beside probabilities and labels. What a policy does not use is None, and compiles to nothing.
"""

from typing import Any, NamedTuple

from omma.kernels import classes  # noqa: F401 (adds its cases to those of gains)
from omma.kernels.calibrate import LABELLED, calibrate, center, fit
from omma.kernels.counts import (
    NO_SUMS,
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
from omma.kernels.gains import LABELS, PRIOR, flag_labels, weigh_labels
from omma.kernels.gather import scatter
from omma.kernels.jit import by_kind, helper
from omma.kernels.layout import (
    AUDITED_LABELS,
    AUDITED_VALUES,
    FLAGS,
    JUDGED,
    MISSED,
    POINT,
    POSITIVE,
    PREDICTED,
    PRESENT,
    RANKS,
    SEEN,
    TP,
    UNREPORTED,
    UNSEEN,
    VALUES,
    N,
)
from omma.kernels.limits import add_prices, move, position_in
from omma.kernels.window import LATER, NOW, remember, slide


class Spec(NamedTuple):
    """What a policy does with a row."""

    # What is maximized: ``gains.Weighed``, ``FixedRules`` or ``CostMatrix``; where one term decides
    # by itself, the numbers that its function reads.
    objective: Any
    prior: float  # λ
    budget: int  # k labels a row, −k at most k, 0 without a budget
    # Labels before this position are candidates at any probability: m with costs, else 0.
    always_candidates: int
    select: int  # address of the function that flags labels (``gains.decider``, ``select``)
    feedback: Any  # what is counted (``counts``); None where labels alone are
    sums: int  # 1 where sums over labels are kept, else 0
    m: int  # the number of labels


class Memory(NamedTuple):
    """All arrays that a row reads and writes (``layout`` says what stands where)."""

    columns: Any  # (fields, width): numbers of the row's labels
    table: Any  # (fields, labels): numbers of all labels; for dense rows the same array
    totals: Any  # (SETS, TOTALS)
    work: Any  # (WORK, width): scratch space
    calibrator: Any  # Learning, Settled or None
    pace: Any  # (PACE,) where the past decays, else None
    limits: Any  # Limits or None
    window: Any  # Recent or None


class Row(NamedTuple):
    """What comes with a row beside probabilities and labels."""

    weight: float
    labelled: bool  # its labels are known, all of them or all but those listed as unknown
    late: bool  # it was decided, and counted without labels, before
    gaps: Any  # Gaps, or None in loops over rows that have all of their labels or none


class Gaps(NamedTuple):
    """Which labels of a row nobody knows."""

    unknown: Any  # ids of labels that are not known, in a row labelled in part
    # Where labels are seen because of the decision: −1 where only predicted labels are seen; in an
    # audited row, the weight in calibration of entries that were not predicted. Else 0.
    audit: float


@helper
def set_point(spec, memory):
    """Write where the gradient is taken, the totals that decisions look at, into ``point``."""
    unit = counted_unit(memory.pace, memory.window)
    feedback = in_units(spec.feedback, unit, memory.totals)
    point = memory.work[POINT]
    see_totals(feedback, spec.sums, memory.table, memory.totals, point, spec.m)
    point[PRIOR] = spec.prior * unit
    point[LABELS] = spec.m
    return feedback, unit


@by_kind
def cells_seen(feedback, columns, seen, rows, width):
    """The counts of a row's labels that decisions look at, shape (3, width); ``seen`` is room."""


@cells_seen.case()
def counted_cells(feedback, columns, seen, rows, width):
    """The counts are looked at as they are: the set OWN, the first columns."""
    return columns


@cells_seen.case(Both)
@cells_seen.case(PartialLabels)
def corrected_cells(feedback, columns, seen, rows, width):
    for i in range(width):
        seen[TP, i], seen[PREDICTED, i], seen[POSITIVE, i] = see(feedback, columns, rows, i)
    return seen


@helper
def decide(spec, memory, place, labels, pick, width):
    """Flag the labels of a row whose probabilities are in ``work[VALUES]``.

    Algorithm 1: predict argmax over ŷ of ∇ψ(C_{t−1})·E[C(y, ŷ)], which is the choice among
    slope_j·η_j + offset_j. Returns whether there are fewer candidates than the budget. For a sparse
    row, ``labels`` are its label ids and ``place`` says where each stands; for a dense one both are
    None.
    """
    calibrate(memory.calibrator, memory.columns, memory.work, width)
    feedback, unit = set_point(spec, memory)
    work = memory.work
    cells = cells_seen(feedback, memory.columns, work[SEEN : SEEN + 3], work[POINT, N], width)
    weigh_labels(spec.objective, cells, memory, labels, pick, width)
    add_prices(
        memory.limits, feedback, unit, memory.columns, memory.table, memory.totals, work, place,
        labels, width, spec.m,
    )  # fmt: skip
    return flag_labels(
        spec.objective, spec.select, spec.budget, spec.always_candidates, cells, work, width
    )


@helper
def hide(gaps, memory, weight, counted, labelled, place, labels, width):
    """Take labels that are unknown out of a row, and note how much each missed.

    Where labels are seen because of the decision, one that was not predicted is seen in an audited
    row alone. It is not missed: its probability is added to those of labels that nobody saw. A
    prediction whose label never came is missed.
    """
    work, table, by_decision = memory.work, memory.table, gaps.audit != 0.0
    for i in range(gaps.unknown.shape[0]):
        j = gaps.unknown[i]
        at = position_in(place, labels, j)
        if not by_decision or (at >= 0 and work[FLAGS, at] > 0.0):
            if at >= 0:
                work[VALUES, at] = work[FLAGS, at] = work[PRESENT, at] = 0.0
            table[MISSED, j] += counted
            table[UNREPORTED, j] += weight
        elif at >= 0:
            table[UNSEEN, j] += weight * work[VALUES, at]
            work[VALUES, at] = work[PRESENT, at] = 0.0
    if not by_decision:
        return
    is_audited = labelled and gaps.audit > 0.0
    for i in range(width if labels is None else labels.shape[0]):
        j = i if labels is None else labels[i]
        if work[FLAGS, i] > 0.0:
            if not labelled:
                table[MISSED, j] += counted
                table[UNREPORTED, j] += weight
                work[VALUES, i] = work[FLAGS, i] = work[PRESENT, i] = 0.0
        elif is_audited:
            table[AUDITED_LABELS, j] += weight * work[PRESENT, i]
            table[AUDITED_VALUES, j] += weight * work[VALUES, i]
        else:
            table[UNSEEN, j] += weight * work[VALUES, i]
            work[VALUES, i] = work[PRESENT, i] = 0.0


@helper
def fit_audited(audit, calibrator, columns, work, weight, unit, width, m):
    """Let the calibrator learn once more from what was audited and not predicted.

    Audits stand for the rows around them that were not audited, so they weigh more.
    """
    values_before, rows = work[RANKS], calibrator.shared[LABELLED]
    for i in range(width):
        values_before[i] = work[VALUES, i]
        # Nothing is learned of a probability of zero.
        work[VALUES, i] = 0.0 if work[FLAGS, i] > 0.0 else values_before[i]
    fit(calibrator, columns, work, (audit - 1.0) * weight, unit, width, m)
    calibrator.shared[LABELLED] = rows  # it is one row
    for i in range(width):
        work[VALUES, i] = values_before[i]


@helper
def learn(calibrator, pace, limits, window, gaps, spec, memory, row, place, labels, width):
    """Count a decided row, and learn from its labels where they are known.

    ``work`` holds its VALUES (calibrated), LOGITS, FLAGS and PRESENT. Algorithm 1:
    C_t = C_{t−1} + C(y_t, ŷ_t); Algorithm 2 has η̂ in place of y. The first five arguments are parts
    of ``memory`` and ``row``. One that is not used is None, and Numba leaves out the branches that
    need it; it does so for arguments, and not for fields of a tuple.
    """
    feedback, columns, totals, work = spec.feedback, memory.columns, memory.totals, memory.work
    weight, late, labelled, partly = row.weight, row.late, row.labelled, False
    if gaps is not None:
        partly = gaps.audit != 0.0 or (labelled and gaps.unknown.shape[0] > 0)
        labelled = labelled or gaps.audit != 0.0
    is_counted = labelled or not needs_labels(feedback)
    unit = unit_of(pace)
    counted = weight * counted_unit(pace, window)

    if not late:
        if calibrator is not None:
            center(calibrator, columns, work, weight * unit, width)
        expect(feedback, spec.sums, columns, totals, work, counted, width)
        if window is not None and is_counted:
            remember(window, feedback, work, weight, NOW, labelled and not partly, labels, width)
    if gaps is not None and partly:
        # Limits that need no labels look at the whole decision, so they move before it is hidden.
        if limits is not None:
            if place is not None:
                scatter(feedback, calibrator, pace, columns, memory.table, labels)
            move(limits, spec, memory, weight, not late, False, place, labels, width)
        hide(gaps, memory, weight, counted, row.labelled, place, labels, width)
    if labelled:
        if window is not None and (partly or late):
            remember(window, feedback, work, weight, LATER, labelled, labels, width)
        observe(feedback, spec.sums, columns, totals, work, counted, width)
        if pace is not None:  # counts that decide decay or slide; these are for reported values
            judged = columns[3 * JUDGED : 3 * JUDGED + 3]
            count_set(judged, totals[JUDGED], NO_SUMS, work[PRESENT], work[FLAGS], weight, width)
        if calibrator is not None:
            fit(calibrator, columns, work, weight, unit, width, spec.m)
            if gaps is not None and gaps.audit > 1.0:
                fit_audited(gaps.audit, calibrator, columns, work, weight, unit, width, spec.m)
    if place is not None:
        scatter(feedback, calibrator, pace, columns, memory.table, labels)
    if limits is not None:
        steady = not late and not partly
        move(limits, spec, memory, weight, steady, labelled, place, labels, width)
    # One more row has passed: what was counted is worth a little less, or leaves the window.
    if pace is not None and not late and weight > 0.0 and is_counted:
        if window is not None:
            slide(window, feedback, spec.sums, limits, memory.table, totals)
        grow(pace, window, calibrator, limits, memory.table, totals)
