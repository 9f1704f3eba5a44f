"""One row as columns: ``decide`` and ``learn``, used by dense and sparse replays and single rows.

To decide a row: probabilities → calibration → counts for decisions → slope and offset of each label
→ gains → selection. To learn from it, later: labels → counts → calibrator → prices → decay or
window.

``Spec`` says what a policy does and never changes; ``Memory`` has all arrays; ``Row`` has what
comes with a row besides probabilities and labels. Parts that a policy does not use are None, and
compile to nothing.
"""

from typing import Any, NamedTuple

from omma.kernels import classes  # noqa: F401 (adds its cases to those of gains)
from omma.kernels.calibrate import LABELLED, calibrate, fit, update_means
from omma.kernels.counts import (
    NO_SUMS,
    count_estimates,
    count_labels,
    count_set,
    decision_counts,
    decision_totals,
    in_units,
    needs_labels,
)
from omma.kernels.decay import counted_unit, grow, unit_of
from omma.kernels.gains import LABELS, PRIOR, flag_labels, write_slopes
from omma.kernels.gather import scatter
from omma.kernels.jit import helper
from omma.kernels.layout import (
    AUDITED_LABELS,
    AUDITED_VALUES,
    DECISION_COUNTS,
    FLAGS,
    LIFETIME,
    MISSED,
    POINT,
    PRESENT,
    RANKS,
    UNREPORTED,
    UNSEEN,
    VALUES,
    N,
)
from omma.kernels.limits import add_prices, move_prices, position_in
from omma.kernels.window import LATER, NOW, advance, append_row


class Spec(NamedTuple):
    """What a policy does with a row."""

    # The objective: ``gains.CompiledTerms``, ``FixedRules`` or ``CostMatrix``. If a single term
    # decides, an array with the numbers that its function (``gains.decider``) reads.
    objective: Any
    prior: float  # λ
    budget: int  # k: exactly k labels per row; −k: at most k; 0: no budget
    # Labels before this position are candidates at any probability: m with a cost matrix, else 0.
    always_candidates: int
    select: int  # address of the function that flags labels (``gains.decider`` or ``select``)
    feedback: Any  # None if only labels are counted, or PartialLabels, Estimates, Both (``counts``)
    sums: int  # 1 if sums over labels are kept in ``totals``, else 0
    m: int  # the number of labels


class Memory(NamedTuple):
    """All arrays that a row reads and writes; ``layout`` has the meaning of their positions."""

    columns: Any  # (fields, width): numbers of the row's labels
    table: Any  # (fields, m): numbers of all labels; the same array as ``columns`` for dense rows
    totals: Any  # (SETS, TOTALS): weight of rows, and sums over labels, of each set
    work: Any  # (WORK, width): scratch space
    calibrator: Any  # calibrate.Learning, calibrate.Settled or None
    pace: Any  # (PACE,) if past rows decay, else None
    limits: Any  # limits.Limits or None
    window: Any  # window.Recent or None


class Row(NamedTuple):
    """What comes with a row besides probabilities and labels."""

    weight: float  # the row counts as that many rows
    labelled: bool  # its labels are known, except those listed in ``gaps``
    late: bool  # it was counted without labels when it was decided; its labels arrive now
    gaps: Any  # Gaps; None if each row of the loop has all of its labels or none


class Gaps(NamedTuple):
    """The unknown labels of a row."""

    unknown: Any  # (unknown,) int32: ids of the unknown labels of a partly labelled row
    # 0 if observed labels do not depend on the decision. Otherwise −1 if only predicted labels are
    # observed, and in an audited row the calibration weight of entries that were not predicted.
    audit: float


@helper
def set_point(spec, memory):
    """Write the point of the gradient to row POINT of ``memory.work``.

    The point has the totals that decisions use, λ and m. Returns the feedback in the current unit,
    and the unit of counts (``decay``).
    """
    unit = counted_unit(memory.pace, memory.window)
    feedback = in_units(spec.feedback, unit, memory.totals)
    point = memory.work[POINT]
    decision_totals(feedback, spec.sums, memory.table, memory.totals, point, spec.m)
    point[PRIOR] = spec.prior * unit
    point[LABELS] = spec.m
    return feedback, unit


@helper
def decide(spec, memory, place, labels, pick, width):
    """Flag the predicted labels of the row whose probabilities are in ``memory.work[VALUES]``.

    This is the prediction step of Algorithm 1, Eq. (3): ŷ_t = argmax_ŷ ∇ψ(C_{t−1}) · E[C(y, ŷ)]. By
    Eq. (5) and (6), the argmax selects labels by the gains slope_j·η_j + offset_j. Writes FLAGS of
    ``work``, and calibrated probabilities to VALUES. Returns whether there are fewer candidates
    than the budget.

    ``labels`` lists the label ids of a sparse row, and ``place`` gives the position of each label
    in the row. Both are None for a dense row. ``pick`` is the index of the fixed rule to use.
    ``width`` is the number of labels of the row, padded.
    """
    calibrate(memory.calibrator, memory.columns, memory.work, width)
    feedback, unit = set_point(spec, memory)
    work = memory.work
    room = work[DECISION_COUNTS : DECISION_COUNTS + 3]
    cells = decision_counts(feedback, memory.columns, room, work[POINT, N], width)
    write_slopes(spec.objective, cells, memory, labels, pick, width)
    add_prices(
        memory.limits, feedback, unit, memory.columns, memory.table, memory.totals, work, place,
        labels, width, spec.m,
    )  # fmt: skip
    return flag_labels(
        spec.objective, spec.select, spec.budget, spec.always_candidates, cells, work, width
    )


@helper
def hide(gaps, memory, weight, counted, labelled, place, labels, width):
    """Remove unknown labels from a row, and record the weight with which each label was unknown.

    A label is removed by setting its probability, flag and true label in ``work`` to zero. Its
    weight is added to MISSED (``counted``: in the unit of counts) and UNREPORTED (``weight``) of
    ``table``.

    If the observed labels depend on the decision (``gaps.audit`` ≠ 0), labels that were not
    predicted are observed only in audited rows. There, they are added to AUDITED_LABELS and their
    probabilities to AUDITED_VALUES. In other rows, their probabilities are added to UNSEEN, and
    nothing to MISSED. A predicted label that never arrived is MISSED.
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
    """Train the calibrator again on entries of an audited row that were not predicted.

    An audited row represents the rows that were not audited, so these entries get the weight
    ``audit`` in total: one part from ``fit``, and ``audit`` − 1 here.
    """
    values_before, rows = work[RANKS], calibrator.shared[LABELLED]
    for i in range(width):
        values_before[i] = work[VALUES, i]
        # Entries with probability zero are skipped by ``fit``.
        work[VALUES, i] = 0.0 if work[FLAGS, i] > 0.0 else values_before[i]
    fit(calibrator, columns, work, (audit - 1.0) * weight, unit, width, m)
    calibrator.shared[LABELLED] = rows  # the row was counted before
    for i in range(width):
        work[VALUES, i] = values_before[i]


@helper
def learn(calibrator, pace, limits, window, gaps, spec, memory, row, place, labels, width):
    """Count a decided row, and learn from its labels if they are known.

    ``memory.work`` has VALUES (calibrated), LOGITS, FLAGS and PRESENT of the row. The counts are
    those of Algorithm 1, C_t = C_{t−1} + C(y_t, ŷ_t); Algorithm 2 has η̂_t in place of y_t. Eq. (1)
    is the same with means. ``place`` and ``labels`` are as in ``decide``.

    The first five arguments are fields of ``memory`` and ``row``. They are passed one by one
    because Numba removes the branches of an argument that is None, but not those of a tuple field
    that is None.
    """
    feedback, columns, totals, work = spec.feedback, memory.columns, memory.totals, memory.work
    weight, late, labelled, partly = row.weight, row.late, row.labelled, False
    if gaps is not None:  # some labels may be unknown; ``hide`` removes these from the row
        partly = gaps.audit != 0.0 or (labelled and gaps.unknown.shape[0] > 0)
        labelled = labelled or gaps.audit != 0.0
    is_counted = labelled or not needs_labels(feedback)
    unit = unit_of(pace)
    counted = weight * counted_unit(pace, window)

    # At the decision: mean logits, and counts of probabilities (Algorithm 2).
    if not late:
        if calibrator is not None:
            update_means(calibrator, columns, work, weight * unit, width)
        count_estimates(feedback, spec.sums, columns, totals, work, counted, width)
        if window is not None and is_counted:
            append_row(window, feedback, work, weight, NOW, labelled and not partly, labels, width)
    if gaps is not None and partly:
        # Prices of limits that need no labels use the whole decision: move them before ``hide``.
        if limits is not None:
            if place is not None:
                scatter(feedback, calibrator, pace, columns, memory.table, labels)
            move_prices(limits, spec, memory, weight, not late, False, place, labels, width)
        hide(gaps, memory, weight, counted, row.labelled, place, labels, width)
    # When labels arrive: counts of labels (Algorithm 1), and calibration.
    if labelled:
        if window is not None and (partly or late):
            append_row(window, feedback, work, weight, LATER, labelled, labels, width)
        count_labels(feedback, spec.sums, columns, totals, work, counted, width)
        if pace is not None:  # OWN and TRUE decay or slide; LIFETIME does not, for reported values
            lifetime = columns[3 * LIFETIME : 3 * LIFETIME + 3]
            count_set(
                lifetime, totals[LIFETIME], NO_SUMS, work[PRESENT], work[FLAGS], weight, width
            )
        if calibrator is not None:
            fit(calibrator, columns, work, weight, unit, width, spec.m)
            if gaps is not None and gaps.audit > 1.0:
                fit_audited(gaps.audit, calibrator, columns, work, weight, unit, width, spec.m)
    if place is not None:
        scatter(feedback, calibrator, pace, columns, memory.table, labels)
    if limits is not None:
        # Limits that need no labels moved before if the row was late or partly labelled.
        steady = not late and not partly
        move_prices(limits, spec, memory, weight, steady, labelled, place, labels, width)
    # After each counted row, older rows lose weight, or the oldest row leaves the window.
    # Late labels do not count as a further row.
    if pace is not None and not late and weight > 0.0 and is_counted:
        if window is not None:
            advance(window, feedback, spec.sums, limits, memory.table, totals)
        grow(pace, window, calibrator, limits, memory.table, totals)
