"""One row: decide, then count. Replays and single steps are thin loops over these.

A dense row holds every label in order; of a sparse one the stored ``labels`` are given, and it runs
the same arithmetic on counts gathered for them, so both give the same bits. A dense decision
without a budget is flags alone, made without a branch; every other is a list of chosen labels, and
flags at these, which must be cleared before the next row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from omma.kernels.calibrate import Calibrator, calibrate, fit
from omma.kernels.count import (
    count_expected,
    count_expected_stored,
    count_flagged,
    count_indicated,
    count_predicted,
    count_true,
)
from omma.kernels.feedback import FromBoth, FromEstimates, FromLabels, gather, look
from omma.kernels.gradient import prepare, weigh
from omma.kernels.jit import by_kind, entry, helper
from omma.kernels.kinds import Costs
from omma.kernels.layout import (
    CHOSEN_GAINS,
    FLAGS,
    GAINS,
    GATHERED,
    POSITIVE,
    PREDICTED,
    PRESENT,
    TP,
    VALUES,
)
from omma.kernels.point import point_at
from omma.kernels.select import choose


class Decider(NamedTuple):
    """How rows are decided."""

    term: Any
    prior: float
    budget: Any  # None, Exactly or AtMost


@helper
def widen(given, values):
    """Copy a row's probabilities as float64; returns whether each lies in [0, 1]."""
    wrong = 0
    for position in range(given.shape[0]):
        value = np.float64(given[position])
        values[position] = value
        wrong += not ((value >= 0.0) & (value <= 1.0))
    return wrong == 0


@by_kind
def find_gains(term, prior, pick, counted, scratch):
    """Slope * eta + offset of every label, and minus infinity where eta is zero: no candidate."""


@find_gains.case()
def find_all_gains(term, prior, pick, counted, scratch):
    values, gains, cells = scratch[VALUES], scratch[GAINS], counted.cells
    point = point_at(cells, counted.totals, prior)
    ready = prepare(term, point, pick)
    for j in range(cells.shape[1]):
        slope, offset = weigh(
            term, ready, point, j, cells[TP, j], cells[PREDICTED, j], cells[POSITIVE, j]
        )
        gains[j] = slope * values[j] + offset if values[j] > 0.0 else -np.inf


@find_gains.case(Costs)
def find_cost_gains(term, prior, pick, counted, scratch):
    """With costs, a label of no probability may be the best: all are candidates."""
    values, gains, cells = scratch[VALUES], scratch[GAINS], counted.cells
    point = point_at(cells, counted.totals, prior)
    ready = prepare(term.of, point, pick)
    m = cells.shape[1]
    for j in range(m):
        slope, gains[j] = weigh(
            term.of, ready, point, j, cells[TP, j], cells[PREDICTED, j], cells[POSITIVE, j]
        )
        if values[j] > 0.0:
            gains[j] += slope * values[j]
    for i in range(m):
        if values[i] > 0.0:
            for j in range(m):
                gains[j] += values[i] * term.matrix[i, j]


@helper
def find_stored_gains(term, labels, prior, pick, feedback, sums, scratch):
    """The same at the stored labels of a row."""
    values, gains = scratch[VALUES], scratch[GAINS]
    tp, predicted, positive = scratch[GATHERED], scratch[GATHERED + 1], scratch[GATHERED + 2]
    # Gathered first, so that the loop with the divisions becomes vector instructions.
    shared = gather(feedback, labels, sums, tp, predicted, positive)
    point = point_at(shared.cells, shared.totals, prior)
    ready = prepare(term, point, pick)
    for position in range(labels.shape[0]):
        slope, offset = weigh(
            term,
            ready,
            point,
            labels[position],
            tp[position],
            predicted[position],
            positive[position],
        )
        value = values[position]
        gains[position] = slope * value + offset if value > 0.0 else -np.inf


@by_kind
def take(budget, scratch, chosen):
    """Decide a dense row by the gains found; returns how many labels it gets."""


@take.case(None)
def take_nonnegative(budget, scratch, chosen):
    gains, flags = scratch[GAINS], scratch[FLAGS]
    found = 0
    for j in range(flags.shape[0]):
        flags[j] = 1.0 if gains[j] >= 0.0 else 0.0
        found += gains[j] >= 0.0
    return found


@take.case()
def take_best(budget, scratch, chosen):
    flags = scratch[FLAGS]
    m = flags.shape[0]
    found = choose(budget, scratch[GAINS], m, None, chosen, scratch[CHOSEN_GAINS])
    for i in range(found):
        flags[chosen[i]] = 1.0
    return found


@helper
def take_stored(labels, count, budget, scratch, chosen):
    """Decide a sparse row by the gains found: of stored labels, or of all where that is None."""
    found = choose(budget, scratch[GAINS], count, labels, chosen, scratch[CHOSEN_GAINS])
    for i in range(found):
        scratch[FLAGS, chosen[i]] = 1.0
    return found


@by_kind
def decide_stored(term, labels, budget, prior, pick, feedback, sums, scratch, chosen):
    """Decide a row of stored labels; returns how many labels it gets."""


@decide_stored.case()
def decide_gathered(term, labels, budget, prior, pick, feedback, sums, scratch, chosen):
    find_stored_gains(term, labels, prior, pick, feedback, sums, scratch)
    return take_stored(labels, labels.shape[0], budget, scratch, chosen)


@decide_stored.case(Costs)
def decide_spread(term, labels, budget, prior, pick, feedback, sums, scratch, chosen):
    """With costs every label is a candidate: spread the row over all, and back."""
    values, gathered = scratch[VALUES], scratch[GATHERED]
    m = values.shape[0]
    for position in range(labels.shape[0]):
        gathered[position] = values[position]
    for j in range(m):
        values[j] = 0.0
    for position in range(labels.shape[0]):
        values[labels[position]] = gathered[position]
    find_gains(term, prior, pick, look(feedback, sums), scratch)
    for position in range(labels.shape[0]):
        values[position] = gathered[position]
    return take_stored(None, m, budget, scratch, chosen)


@by_kind
def count_decision(budget, chosen, found, flags, weight, sums, counted):
    """Count the decision on a dense row."""


@count_decision.case(None)
def count_decided_flags(budget, chosen, found, flags, weight, sums, counted):
    count_flagged(flags, found, weight, sums, counted.cells, counted.totals)


@count_decision.case()
def count_decided_list(budget, chosen, found, flags, weight, sums, counted):
    count_predicted(chosen, found, weight, sums, counted.cells, counted.totals)


@by_kind
def learn(feedback, budget, chosen, found, true, known, weight, sums, scratch):
    """Count a decided dense row; ``true`` are its indicators where its labels are ``known``."""


@learn.case(FromLabels)
def learn_labels(feedback, budget, chosen, found, true, known, weight, sums, scratch):
    own, flags = feedback.own, scratch[FLAGS]
    if known:
        count_decision(budget, chosen, found, flags, weight, sums, own)
        count_indicated(true, flags, weight, sums, own.cells, own.totals)


@learn.case(FromEstimates)
def learn_estimates(feedback, budget, chosen, found, true, known, weight, sums, scratch):
    own, labels, flags = feedback.own, feedback.labels, scratch[FLAGS]
    count_decision(budget, chosen, found, flags, weight, sums, own)
    count_expected(scratch[VALUES], flags, weight, sums, own.cells, own.totals)
    if known:
        count_decision(budget, chosen, found, flags, weight, None, labels)
        count_indicated(true, flags, weight, None, labels.cells, labels.totals)


@learn.case(FromBoth)
def learn_both(feedback, budget, chosen, found, true, known, weight, sums, scratch):
    own, labels, both = feedback.own, feedback.labels, feedback.known
    values, flags = scratch[VALUES], scratch[FLAGS]
    count_decision(budget, chosen, found, flags, weight, sums, own)
    count_expected(values, flags, weight, sums, own.cells, own.totals)
    if known:
        count_decision(budget, chosen, found, flags, weight, sums, labels)
        count_indicated(true, flags, weight, sums, labels.cells, labels.totals)
        count_expected(values, flags, weight, sums, both.cells, both.totals)


@by_kind
def learn_stored(feedback, labels, chosen, found, true, start, end, known, weight, sums, scratch):
    """Count a decided row of stored labels; its true ones are ``true[start:end]``."""


@learn_stored.case(FromLabels)
def learn_stored_labels(
    feedback, labels, chosen, found, true, start, end, known, weight, sums, scratch
):
    own, flags = feedback.own, scratch[FLAGS]
    if known:
        count_predicted(chosen, found, weight, sums, own.cells, own.totals)
        count_true(true, start, end, flags, weight, sums, own.cells, own.totals)


@learn_stored.case(FromEstimates)
def learn_stored_estimates(
    feedback, labels, chosen, found, true, start, end, known, weight, sums, scratch
):
    own, beside, flags = feedback.own, feedback.labels, scratch[FLAGS]
    values = scratch[VALUES]
    count_predicted(chosen, found, weight, sums, own.cells, own.totals)
    count_expected_stored(labels, values, flags, weight, sums, own.cells, own.totals)
    if known:
        count_predicted(chosen, found, weight, None, beside.cells, beside.totals)
        count_true(true, start, end, flags, weight, None, beside.cells, beside.totals)


@learn_stored.case(FromBoth)
def learn_stored_both(
    feedback, labels, chosen, found, true, start, end, known, weight, sums, scratch
):
    own, beside, both = feedback.own, feedback.labels, feedback.known
    values, flags = scratch[VALUES], scratch[FLAGS]
    count_predicted(chosen, found, weight, sums, own.cells, own.totals)
    count_expected_stored(labels, values, flags, weight, sums, own.cells, own.totals)
    if known:
        count_predicted(chosen, found, weight, sums, beside.cells, beside.totals)
        count_true(true, start, end, flags, weight, sums, beside.cells, beside.totals)
        count_expected_stored(labels, values, flags, weight, sums, both.cells, both.totals)


@by_kind
def fit_stored(calibrator, labels, true, start, end, weight, scratch):
    """Learn calibration from a row of stored labels."""


@fit_stored.case(None)
def fit_stored_not(calibrator, labels, true, start, end, weight, scratch):
    pass


@fit_stored.case(Calibrator)
def fit_stored_row(calibrator, labels, true, start, end, weight, scratch):
    present = scratch[PRESENT]
    for i in range(start, end):
        present[true[i]] = 1.0
    count = labels.shape[0]
    fit(calibrator, labels, count, scratch, present, weight)
    for i in range(start, end):
        present[true[i]] = 0.0


@entry
def decide_dense(eta, decider, pick, feedback, sums, calibrator, scratch, chosen, out):
    """Decide one row of every label into ``out``; False where eta is no probability."""
    values, flags = scratch[VALUES], scratch[FLAGS]
    m = flags.shape[0]
    for j in range(m):
        flags[j] = 0.0
    if not widen(eta, values):
        return False
    calibrate(calibrator, None, m, scratch)
    find_gains(decider.term, decider.prior, pick, look(feedback, sums), scratch)
    take(decider.budget, scratch, chosen)
    for j in range(m):
        out[j] = np.int8(flags[j])
    return True


@entry
def decide_sparse(labels, eta, decider, pick, feedback, sums, calibrator, scratch, chosen):
    """Decide one row of stored labels into ``chosen``; returns how many, -1 if eta is wrong."""
    values = scratch[VALUES]
    if not widen(eta, values):
        return -1
    calibrate(calibrator, labels, labels.shape[0], scratch)
    return decide_stored(
        decider.term, labels, decider.budget, decider.prior, pick, feedback, sums, scratch, chosen
    )


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


@entry
def count_dense(true, predicted, weight, sums, cells, totals, scratch):
    """Count one row of indicators; False, and nothing counted, where they are not 0 and 1."""
    flags = scratch[FLAGS]
    if read_flags(true, flags) < 0:
        return False
    found = read_flags(predicted, flags)
    if found < 0:
        return False
    count_flagged(flags, found, weight, sums, cells, totals)
    count_indicated(true, flags, weight, sums, cells, totals)
    return True


@entry
def expect_dense(eta, predicted, weight, sums, cells, totals, scratch):
    """The same with probabilities in place of true labels."""
    flags = scratch[FLAGS]
    found = read_flags(predicted, flags)
    if found < 0:
        return False
    count_flagged(flags, found, weight, sums, cells, totals)
    count_expected(eta, flags, weight, sums, cells, totals)
    return True


@entry
def count_sparse(true, chosen, weight, sums, cells, totals, scratch):
    """Count one row of label ids."""
    flags = scratch[FLAGS]
    for i in range(true.shape[0]):
        flags[true[i]] = 0.0
    for i in range(chosen.shape[0]):
        flags[chosen[i]] = 1.0
    count_predicted(chosen, chosen.shape[0], weight, sums, cells, totals)
    count_true(true, 0, true.shape[0], flags, weight, sums, cells, totals)


@entry
def expect_sparse(labels, eta, chosen, weight, sums, cells, totals, scratch):
    """The same with stored probabilities in place of true labels."""
    flags = scratch[FLAGS]
    for position in range(labels.shape[0]):
        flags[labels[position]] = 0.0
    for i in range(chosen.shape[0]):
        flags[chosen[i]] = 1.0
    count_predicted(chosen, chosen.shape[0], weight, sums, cells, totals)
    count_expected_stored(labels, eta, flags, weight, sums, cells, totals)


@entry
def learn_dense(eta, true, known, predicted, weight, feedback, sums, calibrator, scratch):
    """Count one row of indicators in all that a policy keeps, and calibrate by it."""
    values, flags = scratch[VALUES], scratch[FLAGS]
    m = flags.shape[0]
    found = read_flags(predicted, flags)
    widen(eta, values)
    calibrate(calibrator, None, m, scratch)
    learn(feedback, None, None, found, true, known, weight, sums, scratch)
    if known:
        fit(calibrator, None, m, scratch, true, weight)


@entry
def learn_sparse(labels, eta, true, known, chosen, weight, feedback, sums, calibrator, scratch):
    """Count one row of label ids in all that a policy keeps, and calibrate by it."""
    values, flags = scratch[VALUES], scratch[FLAGS]
    for j in range(flags.shape[0]):
        flags[j] = 0.0
        scratch[PRESENT, j] = 0.0
    for i in range(chosen.shape[0]):
        flags[chosen[i]] = 1.0
    widen(eta, values)
    calibrate(calibrator, labels, labels.shape[0], scratch)
    found, end = chosen.shape[0], true.shape[0]
    learn_stored(feedback, labels, chosen, found, true, 0, end, known, weight, sums, scratch)
    if known:
        fit_stored(calibrator, labels, true, 0, end, weight, scratch)
