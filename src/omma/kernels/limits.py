"""Limits and their prices: maximize the metric subject to linear constraints on counts.

A limit on a rate num / den ≥ C is the linear form num − C·den ≥ 0. Its price μ is a Lagrange
multiplier: predicting a label adds μ times the label's part of the form to the gain. The form is
divided by its size so far, as a share of the rows. The size is den, except for precision, whose den
is the number of predictions. There, a higher price leads to fewer predictions, and dividing by
these would raise the price further. So the size for precision is the mean of predictions and
positives.

After each row, a price moves by the row's own excess (constraint violation), divided by the root of
the sum of squared excesses so far, as in AdaGrad. So there is no step size to choose. Three
measures prevent wrong prices at the start:

- Labels are noisy. If probabilities are calibrated, the first excesses come from expected labels,
  and observed labels replace these gradually. An estimate is worth TRUST labels.
- During about the first WARM_UP_ROWS rows, the price of a rate takes smaller steps. Otherwise it
  would move far away, and take long to return.
- Two prices can keep each other high, if each compensates for what the other costs its limit. So if
  there are several limits and all have slack, all prices fall a little.

The arrays ``numbers``, ``kinds`` and ``labels`` describe the limits (``omma.limits.compiled``
writes them); the kernels write the prices.
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
RATE: Final = 0  # a rate with a counted denominator
PER_ROW: Final = 1  # predictions per row: needs no labels
MEAN: Final = 2  # mean recall over labels; FORM then has the bound C and the sign of the limit

# Columns of ``numbers``. A form has four coefficients, of (tp, predicted, positive, rows).
FORM: Final = 0  # four columns: the form that must be ≥ 0
UNDER: Final = 4  # four: the form is reduced by a tighter bound times this (the denominator)
WEIGHT: Final = 8  # factor of the price in the gains
MARGIN: Final = 9  # safety margin in standard errors, times the standard deviation of one row
CAP: Final = 10  # the most by which the margin tightens the bound
SIZE: Final = 11  # four: the size that divides the price of a counted rate
TRUST: Final = 15  # how many observed labels a calibrated estimate is worth; 0 if not calibrated
NUMBERS: Final = 16

STEP: Final = 0.7  # if all excesses are equal, row t moves the position by STEP / √t
WARM_UP_ROWS: Final = 100.0  # rows during which the prices of rates take smaller steps
SLACK_POWER: Final = 0.5  # if all limits have slack, prices fall as rows ** −SLACK_POWER
MAX_PRICE: Final = 1000.0  # here the limit alone decides; a higher price would return too late
OUT_OF_REACH: Final = 100.0  # above this price, a limit is considered out of reach
MEAN_POWER: Final = 2.0  # row t has the weight t ** MEAN_POWER in the mean of a price


class Limits(NamedTuple):
    """Limits with their prices. Arrays have an entry (or a row) for each limit, except ``rates``.

    A price fluctuates around its right value, so a fixed rule uses the mean of its positions
    (``position_of``), in which later rows weigh more.
    """

    numbers: Any  # (limits, NUMBERS) float64: forms and constants of each limit
    kinds: Any  # (limits,) int64: RATE, PER_ROW or MEAN
    labels: Any  # (limits,) int64: the label of the limit; −1 is all labels
    mu: Any  # (limits,): prices
    mean: Any  # (limits,): weighted means of the positions of prices
    spread: Any  # (limits,): sums of squared excesses
    rates: Any  # (2,): Σ recall and number of labels that occurred; empty if not needed
    degrees: int  # row of ``work`` with true labels (PRESENT), or VALUES if held on probabilities


@by_kind
def limited_set(feedback):
    """Return the set of counts that limits are held on: counts as observed, not corrected."""


@limited_set.case()
def limited_own(feedback):
    return OWN


@limited_set.case(Both)
def limited_true(feedback):
    return TRUE


@helper
def form_of(numbers, i, first, tp, predicted, positive, n):
    """Evaluate a linear form of limit i; ``first`` is its first column in ``numbers``."""
    part = numbers[i, first] * tp + numbers[i, first + 1] * predicted
    return part + numbers[i, first + 2] * positive + numbers[i, first + 3] * n


@helper
def counts_for(feedback, table, totals, j):
    """Return (tp, predicted, positive, rows) so far of label j, or summed over labels if j = −1."""
    which = limited_set(feedback)
    first, n = 3 * which, totals[which, N]
    if j >= 0:
        return table[first + TP, j], table[first + PREDICTED, j], table[first + POSITIVE, j], n
    sums = totals[which, SUM_TP], totals[which, SUM_PREDICTED], totals[which, SUM_POSITIVE]
    return sums[0], sums[1], sums[2], n


@helper
def margin_at(limits, i, counts, unit):
    """Return how much the margin tightens the bound of limit i: MARGIN / √rows, at most CAP."""
    under = form_of(limits.numbers, i, UNDER, *counts) if limits.kinds[i] == RATE else counts[3]
    rows = max(under / unit, 1.0)
    return min(limits.numbers[i, MARGIN] / np.sqrt(rows), limits.numbers[i, CAP])


@helper
def bound_relaxation(limits, i, counts):
    """Return how much to lower the bound of limit i if it is out of reach (Dinkelbach), else 0.

    Suppose that no rule reaches the bound, and that decisions change the denominator of the rate,
    as for F and Jaccard. Then the best rule by the form at the bound is not the rule with the
    greatest rate. So the form is taken at the rate so far, and rate and rule improve each other.
    Precision needs none of this because it can always be raised, and the denominators of other
    rates do not depend on decisions.
    """
    numbers = limits.numbers
    fixed_denominator = numbers[i, UNDER + 1] == 0.0 or numbers[i, UNDER + 2] == 0.0
    if limits.kinds[i] != RATE or limits.mu[i] < OUT_OF_REACH or fixed_denominator:
        return 0.0
    under, room = form_of(numbers, i, UNDER, *counts), form_of(numbers, i, FORM, *counts)
    return -room / under if under > 0.0 and room < 0.0 else 0.0


@helper
def position_in(place, labels, j):
    """Return the position of label j in a row, or −1; in a dense row (``place`` None) it is j."""
    if place is None:
        return j
    i = place[j]
    return np.int64(i) if i < labels.shape[0] and labels[i] == j else np.int64(-1)


@helper
def add_prices(limits, feedback, unit, columns, table, totals, work, place, labels, width, m):
    """Add prices times forms to SLOPE and OFFSET in ``work``; does nothing without limits.

    ``columns``, ``table``, ``totals`` and ``work`` are the arrays of ``row.Memory``, ``unit`` is
    the unit of counts (``decay``), and ``place``, ``labels``, ``width`` are as in ``row.decide``.
    """
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
        # The price per unit of the form: divided by its size as a share of the rows.
        if limits.kinds[i] == RATE:
            mu *= counts[3] / max(form_of(numbers, i, SIZE, *counts), unit)
        # A bound C + tighter turns the form num − C·den into num − (C + tighter)·den.
        tighter = margin_at(limits, i, counts, unit) - bound_relaxation(limits, i, counts)
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
    for i in range(width):  # one more true positive raises a recall by 1 / positive
        work[SLOPE, i] += slope + by_recall / max(positive[i], unit)
        work[OFFSET, i] += offset


# How prices move.


@helper
def position_of(mu):
    """Map a price to its position: linear below 1 and logarithmic above."""
    return mu if mu < 1.0 else 1.0 + np.log(mu)


@helper
def price_at(position):
    """Map a position to its price; the price is capped at MAX_PRICE.

    The inverse of ``position_of``. At the cap, excesses still add to ``spread``.
    """
    return position if position < 1.0 else min(np.exp(position - 1.0), MAX_PRICE)


@helper
def all_have_slack(limits, feedback, table, totals, unit):
    """Whether every limit holds strictly over the rows so far (positive slack)."""
    without = 0
    for i in range(limits.mu.shape[0]):
        if limits.kinds[i] == MEAN:
            short = limits.numbers[i, FORM] * limits.rates[1] - limits.rates[0]
            room = -limits.numbers[i, FORM + 1] * short
        else:
            counts = counts_for(feedback, table, totals, limits.labels[i])
            tighter = margin_at(limits, i, counts, unit) * form_of(
                limits.numbers, i, UNDER, *counts
            )
            room = form_of(limits.numbers, i, FORM, *counts) - tighter
        without += not room > 0.0
    return without == 0


@helper
def move_prices(limits, spec, memory, weight, label_free, label_based, place, labels, width):
    """Move each price by the excess of a counted row; writes ``mu``, ``mean`` and ``spread``.

    ``label_free`` says to move limits that need no labels, ``label_based`` those that need them. If
    limits are held on probabilities, no limit needs labels. ``weight`` is the weight of the row.
    """
    if limits.degrees == VALUES:
        label_based = label_free
    if not (weight > 0.0 and (label_free or label_based)):
        return
    table, totals, work = memory.table, memory.totals, memory.work
    feedback, m = spec.feedback, spec.m
    unit = counted_unit(memory.pace, memory.window)
    degrees = work[limits.degrees]
    hits, predictions, presences = row_sums(degrees, work[FLAGS], width)
    likely, _, expected = row_sums(work[VALUES], work[FLAGS], width)
    recalls, occurred = 0.0, 0.0
    if label_based and limits.rates.shape[0] > 0:
        recalls, occurred = limits.rates[0], limits.rates[1]
        follow_recalls(limits, feedback, table, work, degrees, weight * unit, labels, width)
    n = totals[limited_set(feedback), N] / unit
    eases = limits.mu.shape[0] > 1 and all_have_slack(limits, feedback, table, totals, unit)
    ease = SLACK_POWER * weight / (n + WARM_UP_ROWS * weight) if eases else 0.0
    for i in range(limits.mu.shape[0]):
        kind, j = limits.kinds[i], limits.labels[i]
        if not (label_free if kind == PER_ROW else label_based):
            continue
        counts = counts_for(feedback, table, totals, j)
        if kind == MEAN:
            bound, sign = limits.numbers[i, FORM], limits.numbers[i, FORM + 1]
            # The change of n·(bound·occurred − Σ recall) by this row, per label.
            now = n * (bound * limits.rates[1] - limits.rates[0])
            excess = sign * (now - (n - weight) * (bound * occurred - recalls)) / m
        else:
            tp, predicted, positive, by_values, there = (
                hits, predictions, presences, likely, expected,
            )  # fmt: skip
            if j >= 0:  # a limit on label j: only its entry of the row, if there is one
                tp, predicted, positive, by_values, there = 0.0, 0.0, 0.0, 0.0, 0.0
                at = position_in(place, labels, j)
                if at >= 0:
                    predicted, positive, there = work[FLAGS, at], degrees[at], work[VALUES, at]
                    tp, by_values = positive * predicted, there * predicted
            # The weight of the expected excess: TRUST draws against the denominator so far.
            trust = 0.0
            if kind == RATE and limits.numbers[i, TRUST] > 0.0:
                worth = limits.numbers[i, TRUST] * weight
                draws = max(form_of(limits.numbers, i, UNDER, *counts) / unit, 0.0)
                trust = worth / (worth + draws)
            tp += trust * (by_values - tp)
            positive += trust * (there - positive)
            room = form_of(limits.numbers, i, FORM, tp, predicted, positive, 1.0)
            under = form_of(limits.numbers, i, UNDER, tp, predicted, positive, 1.0)
            excess = weight * (margin_at(limits, i, counts, unit) * under - room)
        limits.spread[i] += excess * excess
        # The step of AdaGrad, shorter at the start. The price is projected to ≥ 0.
        slower = 1.0 + WARM_UP_ROWS * weight / max(n, weight) if kind == RATE else 1.0
        step = STEP * excess / np.sqrt(limits.spread[i] * slower)
        position = position_of(limits.mu[i])
        limits.mu[i] = price_at(max(0.0, position + (step - ease * position)))
        share = min((1.0 + MEAN_POWER) * weight / (n + MEAN_POWER * weight), 1.0)
        limits.mean[i] += share * (position_of(limits.mu[i]) - limits.mean[i])


# The sum of recalls, stored in addition to counts.


@helper
def follow_recalls(limits, feedback, table, work, degrees, weight, labels, width):
    """Update the sum of recalls in ``limits.rates`` after a row was counted.

    Each label that is present changes its own recall. ``degrees``, shape (width,), says to what
    degree each label is present. ``weight`` is the weight of the row in the unit of counts.
    """
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
    """Add (sign 1) or subtract (−1) the recalls of the labels ``ids``, if a row leaves a window."""
    if limits is not None and limits.rates.shape[0] > 0:
        first = 3 * limited_set(feedback)
        for i in range(ids.shape[0]):
            positive = table[first + POSITIVE, ids[i]]
            if positive > 0.0:
                limits.rates[0] += sign * table[first + TP, ids[i]] / positive
                limits.rates[1] += sign


@helper
def recount_recalls(limits, feedback, table):
    """Sum the recalls of all labels again."""
    if limits is not None and limits.rates.shape[0] > 0:
        first = 3 * limited_set(feedback)
        limits.rates[0] = limits.rates[1] = 0.0
        for j in range(table.shape[1]):
            positive = table[first + POSITIVE, j]
            if positive > 0.0:
                limits.rates[0] += table[first + TP, j] / positive
                limits.rates[1] += 1.0
