"""Limits, and prices that keep them: maximize the metric subject to linear constraints on counts.

A limit on a rate num / den ≥ C is kept by its linear form num − C·den, over a size so far as a
share of the rows. The size is den, except for precision: what is predicted follows the price, and a
price over it would feed on itself, dearer the less is predicted. There it is the mean of
predictions and occurrences. A label that helps a limit gains the price μ times its part of the
limit's form.

Prices move after each row by the row's own excess, over the root of the sum of its squares so far:
no step size is to be chosen. Three things keep a price from being misled at its start:

- Labels come by chance. Where probabilities are calibrated, the excess of a row is first what was
  to be expected of it, and by and by what came of it: an estimate is worth TRUST draws.
- The first SLOW rows move a rate's price less: it would be far away, and long on its way back.
- Two prices can hold each other up: each makes up for what the other costs its limit. So where
  there are several limits and all have room, all prices fall a little.

``numbers`` has a row for each limit, ``labels`` the label that it is about (−1 is all), ``kinds``
how it is scaled.
"""

from typing import Any, Final, NamedTuple

import numpy as np

from omma.kernels.counts import Both, fixed, row_sums, unfixed
from omma.kernels.decay import counted_unit
from omma.kernels.jit import by_kind, helper
from omma.kernels.layout import (
    FLAGS,
    OFFSET,
    OWN,
    POSITIVE,
    PREDICTED,
    SLOPE,
    SUM_POSITIVE,
    SUM_PREDICTED,
    SUM_TP,
    TP,
    TRUE,
    VALUES,
    N,
)

# Kinds of limits.
COUNTED: Final = 0  # a rate whose denominator is counted
STEADY: Final = 1  # what is predicted a row: no labels are needed
MEAN: Final = 2  # the mean of recalls over labels: C and the sign stand where the form would

# Columns of `numbers`; forms are over (tp, predicted, positive, rows).
FORM: Final = 0  # four: what must not be negative
UNDER: Final = 4  # four: what a tighter bound takes off it; the denominator of a counted rate
WEIGHT: Final = 8  # of the price in the gains
MARGIN: Final = 9  # standard errors to stay away from the bound, times the root of the variance
CAP: Final = 10  # the most that a margin tightens the bound
SIZE: Final = 11  # four: what the price of a counted rate is over
TRUST: Final = 15  # how many draws a calibrated estimate is worth beside labels
NUMBERS: Final = 16

STEP: Final = 0.7  # of a price whose every row so far missed by as much
SLOW: Final = 100.0  # rows
EASE: Final = 0.5  # the power of rows by which prices fall where there is room everywhere
DEAREST: Final = 1000.0  # the limit alone decides, and the way back is not too long
BEYOND: Final = 100.0  # a price that limits within reach hardly have
LATELY: Final = 2.0  # row t weighs t ** LATELY in the mean of a price


class Limits(NamedTuple):
    """Limits with their prices ``mu``; all arrays but ``rates`` have a row for each limit.

    ``mean`` is the mean position of each price so far (see ``position_of``), later rows weighing
    more: a price wanders around what it should be, and a fixed rule is better off at its mean.
    ``spread`` has sums of squares of excesses. ``rates`` has the sum of the recalls of labels that
    occurred, and their number; it is empty where no limit asks for it. ``degrees`` is the row of
    ``work`` that says to what degree labels are present: PRESENT, or VALUES where limits are held
    on what probabilities say.
    """

    numbers: Any
    kinds: Any
    labels: Any
    mu: Any
    mean: Any
    spread: Any
    rates: Any
    degrees: int


@by_kind
def limited_set(feedback):
    """The set of counts that limits look at: as they are, not corrected ones."""


@limited_set.case()
def limited_own(feedback):
    return OWN


@limited_set.case(Both)
def limited_true(feedback):
    return TRUE


@helper
def form_of(numbers, i, first, tp, predicted, positive, n):
    """One of the linear forms of limit i."""
    part = numbers[i, first] * tp + numbers[i, first + 1] * predicted
    return part + numbers[i, first + 2] * positive + numbers[i, first + 3] * n


@helper
def counts_for(feedback, table, totals, j):
    """(tp, predicted, positive, rows) so far of label j, or of all labels where j is −1."""
    which = limited_set(feedback)
    first, n = 3 * which, totals[which, N]
    if j >= 0:
        return table[first + TP, j], table[first + PREDICTED, j], table[first + POSITIVE, j], n
    sums = totals[which, SUM_TP], totals[which, SUM_PREDICTED], totals[which, SUM_POSITIVE]
    return sums[0], sums[1], sums[2], n


@helper
def tighter_by(limits, i, counts, unit):
    """What the margin takes off the bound."""
    under = form_of(limits.numbers, i, UNDER, *counts) if limits.kinds[i] == COUNTED else counts[3]
    rows = max(under / unit, 1.0)
    return min(limits.numbers[i, MARGIN] / np.sqrt(rows), limits.numbers[i, CAP])


@helper
def conceded(limits, i, counts):
    """How far below its bound the form of a limit is taken that is out of reach (Dinkelbach).

    Where no rule reaches a bound, the rule that is best by the form at the bound is not that of the
    greatest rate, if decisions change the rate's denominator as they do that of F and Jaccard. The
    form is taken at the rate so far: rate and rule improve each other. Precision can always be
    greater, and no decision changes the denominator of the other rates.
    """
    numbers = limits.numbers
    fixed_denominator = numbers[i, UNDER + 1] == 0.0 or numbers[i, UNDER + 2] == 0.0
    if limits.kinds[i] != COUNTED or limits.mu[i] < BEYOND or fixed_denominator:
        return 0.0
    under, room = form_of(numbers, i, UNDER, *counts), form_of(numbers, i, FORM, *counts)
    return -room / under if under > 0.0 and room < 0.0 else 0.0


@helper
def position_in(place, labels, j):
    """Where label j stands in a row; −1 where it does not. A dense row has every label."""
    if place is None:
        return j
    i = place[j]
    return np.int64(i) if i < labels.shape[0] and labels[i] == j else np.int64(-1)


@helper
def add_prices(limits, feedback, unit, columns, table, totals, work, place, labels, width, m):
    """Add what prices make of slope and offset of a row's labels; nothing without limits."""
    if limits is not None:
        add_all_prices(
            limits, feedback, unit, columns, table, totals, work, place, labels, width, m
        )  # fmt: skip


@helper
def add_all_prices(limits, feedback, unit, columns, table, totals, work, place, labels, width, m):
    numbers, slope, offset, by_recall = limits.numbers, 0.0, 0.0, 0.0
    for i in range(limits.mu.shape[0]):
        counts = counts_for(feedback, table, totals, limits.labels[i])
        mu = limits.mu[i] * numbers[i, WEIGHT]
        if limits.kinds[i] == MEAN:
            by_recall += mu * numbers[i, FORM + 1] * counts[3] / m
            continue
        if limits.kinds[i] == COUNTED:
            mu *= counts[3] / max(form_of(numbers, i, SIZE, *counts), unit)
        tighter = tighter_by(limits, i, counts, unit) - conceded(limits, i, counts)
        by_tp = mu * (numbers[i, FORM] - tighter * numbers[i, UNDER])
        by_predicted = mu * (numbers[i, FORM + 1] - tighter * numbers[i, UNDER + 1])
        if limits.labels[i] < 0:
            slope += by_tp
            offset += by_predicted
        else:
            at = position_in(place, labels, limits.labels[i])
            if at >= 0:
                work[SLOPE, at] += by_tp
                work[OFFSET, at] += by_predicted
    positive = columns[3 * limited_set(feedback) + POSITIVE]
    for i in range(width):  # a recall moves by 1 / positive
        work[SLOPE, i] += slope + by_recall / max(positive[i], unit)
        work[OFFSET, i] += offset


# How prices move.


@helper
def position_of(mu):
    """Where a price stands: it moves by steps below one and by factors above, so far up is near."""
    return mu if mu < 1.0 else 1.0 + np.log(mu)


@helper
def price_at(position):
    """The price at a position; past DEAREST, what a limit was missed by still adds up."""
    return position if position < 1.0 else min(np.exp(position - 1.0), DEAREST)


@helper
def all_have_room(limits, feedback, table, totals, unit):
    """Whether every limit holds over the rows so far, with something to spare."""
    without = 0
    for i in range(limits.mu.shape[0]):
        if limits.kinds[i] == MEAN:
            short = limits.numbers[i, FORM] * limits.rates[1] - limits.rates[0]
            room = -limits.numbers[i, FORM + 1] * short
        else:
            counts = counts_for(feedback, table, totals, limits.labels[i])
            tighter = tighter_by(limits, i, counts, unit) * form_of(
                limits.numbers, i, UNDER, *counts
            )
            room = form_of(limits.numbers, i, FORM, *counts) - tighter
        without += not room > 0.0
    return without == 0


@helper
def move(limits, spec, memory, weight, steady, counted, place, labels, width):
    """Move each price by the excess of a row that was counted.

    ``steady`` says to move limits that need no labels, ``counted`` those that do. None of the
    limits on estimates needs labels.
    """
    if limits.degrees == VALUES:
        counted = steady
    if not (weight > 0.0 and (steady or counted)):
        return
    table, totals, work = memory.table, memory.totals, memory.work
    feedback, m = spec.feedback, spec.m
    unit = counted_unit(memory.pace, memory.window)
    degrees = work[limits.degrees]
    hits, predictions, presences = row_sums(degrees, work[FLAGS], width)
    likely, _, expected = row_sums(work[VALUES], work[FLAGS], width)
    recalls, occurred = 0.0, 0.0
    if counted and limits.rates.shape[0] > 0:
        recalls, occurred = limits.rates[0], limits.rates[1]
        follow_recalls(limits, feedback, table, work, degrees, weight * unit, labels, width)
    n = totals[limited_set(feedback), N] / unit
    eases = limits.mu.shape[0] > 1 and all_have_room(limits, feedback, table, totals, unit)
    ease = EASE * weight / (n + SLOW * weight) if eases else 0.0
    for i in range(limits.mu.shape[0]):
        kind, j = limits.kinds[i], limits.labels[i]
        if not (steady if kind == STEADY else counted):
            continue
        counts = counts_for(feedback, table, totals, j)
        if kind == MEAN:
            bound, sign = limits.numbers[i, FORM], limits.numbers[i, FORM + 1]
            now = n * (bound * limits.rates[1] - limits.rates[0])
            excess = sign * (now - (n - weight) * (bound * occurred - recalls)) / m
        else:
            tp, predicted, positive, by_values, there = (
                hits, predictions, presences, likely, expected,
            )  # fmt: skip
            if j >= 0:
                tp, predicted, positive, by_values, there = 0.0, 0.0, 0.0, 0.0, 0.0
                at = position_in(place, labels, j)
                if at >= 0:
                    predicted, positive, there = work[FLAGS, at], degrees[at], work[VALUES, at]
                    tp, by_values = positive * predicted, there * predicted
            trust = 0.0
            if kind == COUNTED and limits.numbers[i, TRUST] > 0.0:
                worth = limits.numbers[i, TRUST] * weight
                draws = max(form_of(limits.numbers, i, UNDER, *counts) / unit, 0.0)
                trust = worth / (worth + draws)
            tp += trust * (by_values - tp)
            positive += trust * (there - positive)
            room = form_of(limits.numbers, i, FORM, tp, predicted, positive, 1.0)
            under = form_of(limits.numbers, i, UNDER, tp, predicted, positive, 1.0)
            excess = weight * (tighter_by(limits, i, counts, unit) * under - room)
        limits.spread[i] += excess * excess
        slower = 1.0 + SLOW * weight / max(n, weight) if kind == COUNTED else 1.0
        step = STEP * excess / np.sqrt(limits.spread[i] * slower)
        position = position_of(limits.mu[i])
        limits.mu[i] = price_at(max(0.0, position + (step - ease * position)))
        share = min((1.0 + LATELY) * weight / (n + LATELY * weight), 1.0)
        limits.mean[i] += share * (position_of(limits.mu[i]) - limits.mean[i])


# The mean of recalls, kept beside counts.


@helper
def follow_recalls(limits, feedback, table, work, degrees, weight, labels, width):
    """Keep the sum of recalls after a row was counted: of each label present, what it changed."""
    first = 3 * limited_set(feedback)
    change, new = np.int64(0), 0.0
    for i in range(width):
        added = weight * degrees[i]
        moved = 0.0
        if added > 0.0:
            j = i if labels is None else labels[i]
            tp, positive = table[first + TP, j], table[first + POSITIVE, j]
            before = positive - added
            moved = tp / positive
            if before > 0.0:
                moved -= (tp - added * work[FLAGS, i]) / before
            else:
                new += 1.0
        change += fixed(moved)
    limits.rates[0] += unfixed(change)
    limits.rates[1] += new


@helper
def add_recalls(limits, feedback, table, ids, sign):
    """Add the recalls of some labels, or take them off, where a row leaves a window."""
    if limits is not None and limits.rates.shape[0] > 0:
        first = 3 * limited_set(feedback)
        for i in range(ids.shape[0]):
            positive = table[first + POSITIVE, ids[i]]
            if positive > 0.0:
                limits.rates[0] += sign * table[first + TP, ids[i]] / positive
                limits.rates[1] += sign


@helper
def recount_recalls(limits, feedback, table):
    """Add up the recalls of all labels anew."""
    if limits is not None and limits.rates.shape[0] > 0:
        first = 3 * limited_set(feedback)
        limits.rates[0] = limits.rates[1] = 0.0
        for j in range(table.shape[1]):
            positive = table[first + POSITIVE, j]
            if positive > 0.0:
                limits.rates[0] += table[first + TP, j] / positive
                limits.rates[1] += 1.0
