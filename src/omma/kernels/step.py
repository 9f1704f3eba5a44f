"""One row: decide, then count. Replays and single steps are thin loops over these.

A dense row holds every label in order; of a sparse one the stored ``labels`` are given, and it runs
the same arithmetic on counts gathered for them, so both give the same bits. A dense decision
without a budget is flags alone, made without a branch; every other is a list of chosen labels, and
flags at these, which must be cleared before the next row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from omma.kernels.calibrate import Calibrator, Settled, calibrate, fit
from omma.kernels.count import (
    count_expected,
    count_expected_stored,
    count_flagged,
    count_indicated,
    count_predicted,
    count_true,
)
from omma.kernels.fade import Fading, fade, prior_now
from omma.kernels.feedback import Counted, FromBoth, FromEstimates, FromLabels, gather, look
from omma.kernels.gain import gain, priced_gain
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
    PRICED,
    TP,
    UNIT,
    VALUES,
)
from omma.kernels.limits import move, move_stored, prepare_prices, priced
from omma.kernels.plain import unpacked
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
def find_gains(term, prior, pick, counted, prices, scratch):
    """The gain of every label, and minus infinity where eta is zero: no candidate."""


@find_gains.case()
def find_all_gains(term, prior, pick, counted, prices, scratch):
    values, gains, cells = scratch[VALUES], scratch[GAINS], counted.cells
    point = point_at(cells, counted.totals, prior)
    ready = prepare(term, point, pick)
    if prices is None:
        for j in range(cells.shape[1]):
            counts = cells[TP, j], cells[PREDICTED, j], cells[POSITIVE, j]
            found = gain(term, ready, point, j, *counts, values[j])
            gains[j] = found if values[j] > 0.0 else -np.inf
    else:
        slopes, offsets = scratch[PRICED], scratch[PRICED + 1]
        added = prepare_prices(prices, slopes, offsets)
        for j in range(cells.shape[1]):
            more, further = priced(prices, added, slopes, offsets, j, 0.0, 0.0)
            counts = cells[TP, j], cells[PREDICTED, j], cells[POSITIVE, j]
            found = priced_gain(term, ready, point, j, *counts, values[j], more, further)
            gains[j] = found if values[j] > 0.0 else -np.inf


@find_gains.case(Costs)
def find_cost_gains(term, prior, pick, counted, prices, scratch):
    """With costs, a label of no probability may be the best: all are candidates."""
    values, gains, cells = scratch[VALUES], scratch[GAINS], counted.cells
    slopes, offsets = scratch[PRICED], scratch[PRICED + 1]
    point = point_at(cells, counted.totals, prior)
    ready = prepare(term.of, point, pick)
    added = prepare_prices(prices, slopes, offsets)
    m = cells.shape[1]
    for j in range(m):
        slope, offset = weigh(
            term.of, ready, point, j, cells[TP, j], cells[PREDICTED, j], cells[POSITIVE, j]
        )
        slope, gains[j] = priced(prices, added, slopes, offsets, j, slope, offset)
        if values[j] > 0.0:
            gains[j] += slope * values[j]
    for i in range(m):
        if values[i] > 0.0:
            for j in range(m):
                gains[j] += values[i] * term.matrix[i, j]


@helper
def find_stored_gains(term, labels, prior, pick, feedback, sums, prices, scratch):
    """The same at the stored labels of a row."""
    values, gains = scratch[VALUES], scratch[GAINS]
    tp, predicted, positive = scratch[GATHERED], scratch[GATHERED + 1], scratch[GATHERED + 2]
    # Gathered first, so that the loop with the divisions becomes vector instructions.
    shared = gather(feedback, labels, sums, tp, predicted, positive)
    point = point_at(shared.cells, shared.totals, prior)
    ready = prepare(term, point, pick)
    if prices is None:
        for position in range(labels.shape[0]):
            value = values[position]
            counts = tp[position], predicted[position], positive[position]
            found = gain(term, ready, point, labels[position], *counts, value)
            gains[position] = found if value > 0.0 else -np.inf
    else:
        slopes, offsets = scratch[PRICED], scratch[PRICED + 1]
        added = prepare_prices(prices, slopes, offsets)
        for position in range(labels.shape[0]):
            value, j = values[position], labels[position]
            more, further = priced(prices, added, slopes, offsets, j, 0.0, 0.0)
            counts = tp[position], predicted[position], positive[position]
            found = priced_gain(term, ready, point, j, *counts, value, more, further)
            gains[position] = found if value > 0.0 else -np.inf


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
def decide_stored(term, labels, budget, prior, pick, feedback, sums, prices, scratch, chosen):
    """Decide a row of stored labels; returns how many labels it gets."""


@decide_stored.case()
def decide_gathered(term, labels, budget, prior, pick, feedback, sums, prices, scratch, chosen):
    find_stored_gains(term, labels, prior, pick, feedback, sums, prices, scratch)
    return take_stored(labels, labels.shape[0], budget, scratch, chosen)


@decide_stored.case(Costs)
def decide_spread(term, labels, budget, prior, pick, feedback, sums, prices, scratch, chosen):
    """With costs every label is a candidate: spread the row over all, and back."""
    values, gathered = scratch[VALUES], scratch[GATHERED]
    m = values.shape[0]
    for position in range(labels.shape[0]):
        gathered[position] = values[position]
    for j in range(m):
        values[j] = 0.0
    for position in range(labels.shape[0]):
        values[labels[position]] = gathered[position]
    find_gains(term, prior, pick, look(feedback, sums), prices, scratch)
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


@learn.case(Fading)
def learn_fading(feedback, budget, chosen, found, true, known, weight, sums, scratch):
    """The row counts for more than all before it; how good decisions are forgets nothing."""
    counted, judged, flags = weight * feedback.pace[UNIT], feedback.judged, scratch[FLAGS]
    learn(feedback.of, budget, chosen, found, true, known, counted, sums, scratch)
    if known:
        count_decision(budget, chosen, found, flags, weight, None, judged)
        count_indicated(true, flags, weight, None, judged.cells, judged.totals)


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


@learn_stored.case(Fading)
def learn_stored_fading(
    feedback, labels, chosen, found, true, start, end, known, weight, sums, scratch
):
    counted, judged, flags = weight * feedback.pace[UNIT], feedback.judged, scratch[FLAGS]
    learn_stored(
        feedback.of, labels, chosen, found, true, start, end, known, counted, sums, scratch
    )
    if known:
        count_predicted(chosen, found, weight, None, judged.cells, judged.totals)
        count_true(true, start, end, flags, weight, None, judged.cells, judged.totals)


@by_kind
def fit_stored(calibrator, labels, true, start, end, weight, scratch):
    """Learn calibration from a row of stored labels."""


@fit_stored.case(Settled)
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


@entry("a dense decision")
def decide_dense(eta, decider, pick, cells, totals, scratch, chosen, out):
    """Decide one row of every label into ``out``; False where eta is no probability.

    ``decider`` is the three parts of a ``Decider``, made ``plain``: named tuples take longer to
    hand over than such a row to decide.
    """
    term, prior, budget = unpacked(decider)
    values, flags = scratch[VALUES], scratch[FLAGS]
    m = flags.shape[0]
    for j in range(m):
        flags[j] = 0.0
    if not widen(eta, values):
        return False
    find_gains(term, prior, pick, Counted(cells, totals), None, scratch)
    take(budget, scratch, chosen)
    for j in range(m):
        out[j] = np.int8(flags[j])
    return True


@helper
def known_ids(labels, m):
    """Whether label ids rise and are those of labels: nothing is followed before."""
    before = -1
    for position in range(labels.shape[0]):
        if labels[position] <= before:
            return False
        before = labels[position]
    return before < m


@entry("a sparse decision")
def decide_sparse(labels, eta, decider, pick, cells, totals, scratch, chosen):
    """Decide one row of stored labels into ``chosen``; returns how many.

    -1 says that eta holds no probabilities, -2 that labels are not known ones that rise.
    """
    if not known_ids(labels, cells.shape[1]):
        return -2
    if not widen(eta, scratch[VALUES]):
        return -1
    term, prior, budget = unpacked(decider)
    feedback = FromLabels(Counted(cells, totals))
    return decide_stored(term, labels, budget, prior, pick, feedback, None, None, scratch, chosen)


@entry("a dense decision of what calibrates, fades or has limits")
def decide_dense_with(eta, decider, pick, feedback, sums, calibrator, prices, scratch, chosen, out):
    """Decide one row of every label by all that a policy keeps; False where eta is wrong."""
    values, flags = scratch[VALUES], scratch[FLAGS]
    m = flags.shape[0]
    for j in range(m):
        flags[j] = 0.0
    if not widen(eta, values):
        return False
    calibrate(calibrator, None, m, scratch)
    prior = prior_now(feedback, decider.prior)
    find_gains(decider.term, prior, pick, look(feedback, sums), prices, scratch)
    take(decider.budget, scratch, chosen)
    for j in range(m):
        out[j] = np.int8(flags[j])
    return True


@entry("a sparse decision of what calibrates, fades or has limits")
def decide_sparse_with(
    labels, eta, decider, pick, feedback, sums, calibrator, prices, scratch, chosen
):
    """Decide one row of stored labels by all that a policy keeps; below zero as above."""
    values = scratch[VALUES]
    if not known_ids(labels, scratch.shape[1]):
        return -2
    if not widen(eta, values):
        return -1
    calibrate(calibrator, labels, labels.shape[0], scratch)
    prior = prior_now(feedback, decider.prior)
    return decide_stored(
        decider.term, labels, decider.budget, prior, pick, feedback, sums, prices, scratch, chosen
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


@entry("counting a dense row")
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


@entry("counting an expected dense row")
def expect_dense(eta, predicted, weight, sums, cells, totals, scratch):
    """The same with probabilities in place of true labels."""
    flags = scratch[FLAGS]
    found = read_flags(predicted, flags)
    if found < 0:
        return False
    count_flagged(flags, found, weight, sums, cells, totals)
    count_expected(eta, flags, weight, sums, cells, totals)
    return True


@entry("counting a sparse row")
def count_sparse(true, chosen, weight, sums, cells, totals, scratch):
    """Count one row of label ids."""
    flags = scratch[FLAGS]
    for i in range(true.shape[0]):
        flags[true[i]] = 0.0
    for i in range(chosen.shape[0]):
        flags[chosen[i]] = 1.0
    count_predicted(chosen, chosen.shape[0], weight, sums, cells, totals)
    count_true(true, 0, true.shape[0], flags, weight, sums, cells, totals)


@entry("counting an expected sparse row")
def expect_sparse(labels, eta, chosen, weight, sums, cells, totals, scratch):
    """The same with stored probabilities in place of true labels."""
    flags = scratch[FLAGS]
    for position in range(labels.shape[0]):
        flags[labels[position]] = 0.0
    for i in range(chosen.shape[0]):
        flags[chosen[i]] = 1.0
    count_predicted(chosen, chosen.shape[0], weight, sums, cells, totals)
    count_expected_stored(labels, eta, flags, weight, sums, cells, totals)


@entry("learning a dense row")
def learn_dense(eta, true, known, predicted, weight, feedback, sums, calibrator, prices, scratch):
    """Count one row of indicators in all that a policy keeps, and calibrate by it."""
    values, flags = scratch[VALUES], scratch[FLAGS]
    m = flags.shape[0]
    found = read_flags(predicted, flags)
    widen(eta, values)
    calibrate(calibrator, None, m, scratch)
    learn(feedback, None, None, found, true, known, weight, sums, scratch)
    move(prices, true, known, found, weight, flags, values)
    if known:
        fit(calibrator, None, m, scratch, true, weight)
    fade(feedback, calibrator, known, weight)


@entry("learning a sparse row")
def learn_sparse(
    labels, eta, true, known, chosen, weight, feedback, sums, calibrator, prices, scratch
):
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
    present = scratch[PRESENT]
    move_stored(prices, labels, values, true, 0, end, known, found, weight, flags, present)
    if known:
        fit_stored(calibrator, labels, true, 0, end, weight, scratch)
    fade(feedback, calibrator, known, weight)
