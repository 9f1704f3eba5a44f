"""Prices of limits: what a limit adds to the gain of each label, and how its price moves.

A limit on a rate num / den is kept by its linear form num - C den, over a size so far as a share of
the rows: a label that helps it gains ``mu`` times its part, and after each row the price moves by
the row's own excess over the root of the sum of their squares. No step size is left to choose.

The size is den, but for precision: what is predicted follows the price, and a price over it would
feed on itself, dearer the less is predicted. There it is the mean of predictions and occurrences.

``numbers`` has a row for each limit, ``labels`` the label that it is about (-1 is all), ``kinds``
how it is scaled. Prices look at label counts as they are, not at corrected ones, and move by true
labels (``OnLabels``) or by probabilities in their place (``OnEstimates``); None has no limits, and
compiles to nothing. Where the past fades, counts are in the unit of ``pace`` (see
``omma.kernels.fade``), and the sum of squares fades with them.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from omma.kernels.jit import by_kind, entry, helper
from omma.kernels.layout import (
    POSITIVE,
    PREDICTED,
    SUM_POSITIVE,
    SUM_PREDICTED,
    SUM_TP,
    TP,
    UNIT,
    N,
)

# Kinds of limits.
COUNTED: Final = 0  # a rate whose denominator is counted
STEADY: Final = 1  # what is predicted a row: no labels are needed
SETTLED: Final = 3  # steady, of a row that moved the price when it was decided
MEAN: Final = 2  # the mean of recalls over labels: C and the sign stand where the form would

# Columns of `numbers`; forms are over (tp, predicted, positive, rows).
FORM: Final = 0  # four: what must not be negative
UNDER: Final = 4  # four: what a tighter bound takes off it; the denominator of a counted rate
WEIGHT: Final = 8  # of the price in the gains
MARGIN: Final = 9  # standard errors to stay away from the bound, times the root of the variance
CAP: Final = 10  # the most that a margin tightens the bound
SIZE: Final = 11  # four: what the price of a counted rate is over
NUMBERS: Final = 15

STEP: Final = 0.7  # of a price whose every row so far missed by as much
DEAREST: Final = 1000.0  # the limit alone decides, and the way back is not too long

LATELY: Final = 2.0  # row t weighs t ** LATELY in the mean of a price

LEAST_SPREAD: Final = 1e-12  # of squares of excesses, where all have faded


class OnLabels(NamedTuple):
    """Limits on what true labels say.

    ``mean`` has the mean place of each price so far (see ``moved``), later rows weighing more: a
    price wanders around what it should be, and a rule that stands still is better off at its mean.
    ``rates`` has the sum of the recalls of labels that occurred, and how many these are; it is
    empty where no limit asks for it.
    """

    numbers: Any
    kinds: Any
    labels: Any
    mu: Any
    mean: Any
    spread: Any
    rates: Any
    counted: Any
    pace: Any


class OnEstimates(NamedTuple):
    """Limits on what probabilities say."""

    numbers: Any
    kinds: Any
    labels: Any
    mu: Any
    mean: Any
    spread: Any
    rates: Any
    counted: Any
    pace: Any


@helper
def form_of(numbers, limit, first, tp, predicted, positive, n):
    """One of the linear forms of a limit, over counts."""
    found = numbers[limit, first] * tp + numbers[limit, first + 1] * predicted
    return found + numbers[limit, first + 2] * positive + numbers[limit, first + 3] * n


@helper
def looked_at(prices, limit):
    """The counts so far of what a limit is about: (tp, predicted, positive, rows)."""
    j, totals, cells = prices.labels[limit], prices.counted.totals, prices.counted.cells
    if j >= 0:
        return cells[TP, j], cells[PREDICTED, j], cells[POSITIVE, j], totals[N]
    return totals[SUM_TP], totals[SUM_PREDICTED], totals[SUM_POSITIVE], totals[N]


@helper
def scale_of(prices, limit):
    """Rows over the size so far of what a limit is about."""
    if prices.kinds[limit] != COUNTED:
        return 1.0
    tp, predicted, positive, n = looked_at(prices, limit)
    size = form_of(prices.numbers, limit, SIZE, tp, predicted, positive, n)
    return n / max(size, prices.pace[UNIT])


@helper
def tighter_by(prices, limit):
    """What the margin takes off the bound."""
    numbers, n = prices.numbers, prices.counted.totals[N]
    under = n
    if prices.kinds[limit] == COUNTED:
        tp, predicted, positive, n = looked_at(prices, limit)
        under = form_of(numbers, limit, UNDER, tp, predicted, positive, n)
    rows = max(under / prices.pace[UNIT], 1.0)
    return min(numbers[limit, MARGIN] / np.sqrt(rows), numbers[limit, CAP])


@by_kind
def prepare_prices(prices, slopes, offsets):
    """What prices add to slope and offset of all labels, and over its positives of each.

    What they add to single labels goes into ``slopes`` and ``offsets``, zero at all others.
    """


@prepare_prices.case(None)
def prepare_no_prices(prices, slopes, offsets):
    return 0.0, 0.0, 0.0


@prepare_prices.case()
def prepare_all_prices(prices, slopes, offsets):
    numbers, labels, m = prices.numbers, prices.labels, slopes.shape[0]
    for limit in range(labels.shape[0]):
        if labels[limit] >= 0:
            slopes[labels[limit]] = 0.0
            offsets[labels[limit]] = 0.0
    slope, offset, mean = 0.0, 0.0, 0.0
    for limit in range(labels.shape[0]):
        price = prices.mu[limit] * numbers[limit, WEIGHT]
        if prices.kinds[limit] == MEAN:
            mean += price * numbers[limit, FORM + 1] * prices.counted.totals[N] / m
            continue
        price *= scale_of(prices, limit)
        tighter = tighter_by(prices, limit)
        by_tp = price * (numbers[limit, FORM] - tighter * numbers[limit, UNDER])
        by_predicted = price * (numbers[limit, FORM + 1] - tighter * numbers[limit, UNDER + 1])
        if labels[limit] >= 0:
            slopes[labels[limit]] += by_tp
            offsets[labels[limit]] += by_predicted
        else:
            slope += by_tp
            offset += by_predicted
    return slope, offset, mean


@by_kind
def priced(prices, ready, slopes, offsets, j, slope, offset):
    """Slope and offset of label j with what prices add."""


@priced.case(None)
def not_priced(prices, ready, slopes, offsets, j, slope, offset):
    return slope, offset


@priced.case()
def all_priced(prices, ready, slopes, offsets, j, slope, offset):
    more = ready[0] + slopes[j]
    if ready[2] != 0.0:
        more += ready[2] / max(prices.counted.cells[POSITIVE, j], prices.pace[UNIT])
    return slope + more, offset + (ready[1] + offsets[j])


@helper
def excess_of(prices, limit, tp, predicted, positive):
    """By how much a row misses a limit; below zero where it does better."""
    numbers, tighter = prices.numbers, tighter_by(prices, limit)
    found = form_of(numbers, limit, FORM, tp, predicted, positive, 1.0)
    return tighter * form_of(numbers, limit, UNDER, tp, predicted, positive, 1.0) - found


@helper
def place_of(price):
    """Where a price stands: it moves by steps below one, and by factors above it.

    So far up is not far away.
    """
    return price if price < 1.0 else 1.0 + np.log(price)


@helper
def moved(price, step):
    """A price after a step.

    Up to DEAREST steps still add up: what a limit was missed by in all is where its price stands.
    """
    place = max(0.0, place_of(price) + step)
    return place if place < 1.0 else min(np.exp(place - 1.0), DEAREST)


@helper
def follow_rate(prices, j, value, flag, weight):
    """Keep the sum of recalls after label j was counted as present to the degree ``value``."""
    tp, positive = prices.counted.cells[TP, j], prices.counted.cells[POSITIVE, j]
    added = weight * value * prices.pace[UNIT]
    if added <= 0.0:
        return
    before = positive - added
    if before > 0.0:
        prices.rates[0] -= (tp - added * flag) / before
    else:
        prices.rates[1] += 1.0
    prices.rates[0] += tp / positive


@helper
def follow(prices, row, present, flags, known, weight, recalls, seen):
    """Move each price by the excess of a counted row.

    ``row`` has its (tp, predicted, positive) over all labels; ``recalls`` and ``seen`` are what
    ``rates`` had before it. Where labels are not known only what is predicted has an excess.
    """
    m, unit = prices.counted.cells.shape[1], prices.pace[UNIT]
    n = prices.counted.totals[N] / unit
    for limit in range(prices.labels.shape[0]):
        kind, j = prices.kinds[limit], prices.labels[limit]
        if kind == SETTLED or (kind != STEADY and not known):
            continue
        if kind == MEAN:
            bound, sign = prices.numbers[limit, FORM], prices.numbers[limit, FORM + 1]
            now = n * (bound * prices.rates[1] - prices.rates[0])
            excess = sign * (now - (n - weight) * (bound * seen - recalls)) / m
        elif j >= 0:
            value, flag = np.float64(present[j]), flags[j]
            excess = weight * excess_of(prices, limit, value * flag, flag, value)
        else:
            excess = weight * excess_of(prices, limit, row[0], row[1], row[2])
        prices.spread[limit] += excess * excess
        step = STEP * excess / np.sqrt(prices.spread[limit])
        prices.mu[limit] = moved(prices.mu[limit], step)
        share = min((1.0 + LATELY) * weight / (n + LATELY * weight), 1.0) if weight > 0.0 else 0.0
        prices.mean[limit] += share * (place_of(prices.mu[limit]) - prices.mean[limit])


@helper
def move_by_row(prices, present, found, known, weight, flags):
    """Move prices by a row of every label."""
    tp, positive = 0.0, 0.0
    recalls, seen = 0.0, 0.0
    if known:
        for j in range(flags.shape[0]):
            tp += np.float64(present[j]) * flags[j]
            positive += np.float64(present[j])
        if prices.rates.shape[0] > 0:
            recalls, seen = prices.rates[0], prices.rates[1]
            for j in range(flags.shape[0]):
                follow_rate(prices, j, np.float64(present[j]), flags[j], weight)
    row = (tp, np.float64(found), positive)
    follow(prices, row, present, flags, known, weight, recalls, seen)


@by_kind
def move(prices, true, known, found, weight, flags, values):
    """Move prices after a dense row was counted."""


@move.case(None)
def move_not(prices, true, known, found, weight, flags, values):
    pass


@move.case(OnLabels)
def move_on_labels(prices, true, known, found, weight, flags, values):
    if known:
        move_by_row(prices, true, found, True, weight, flags)
    else:
        move_by_row(prices, flags, found, False, weight, flags)


@move.case(OnEstimates)
def move_on_estimates(prices, true, known, found, weight, flags, values):
    move_by_row(prices, values, found, True, weight, flags)


@helper
def move_by_ids(prices, ids, start, end, values, found, known, weight, flags, present):
    """Move prices by labels that are present, ``ids[start:end]``, to the degree of ``values``."""
    tp, positive = 0.0, 0.0
    recalls, seen = 0.0, 0.0
    for i in range(start, end):
        value = 1.0 if values is None else values[i]
        present[ids[i]] = value
        tp += value * flags[ids[i]]
        positive += value
    if known and prices.rates.shape[0] > 0:
        recalls, seen = prices.rates[0], prices.rates[1]
        for i in range(start, end):
            follow_rate(prices, ids[i], present[ids[i]], flags[ids[i]], weight)
    row = (tp, np.float64(found), positive)
    follow(prices, row, present, flags, known, weight, recalls, seen)
    for i in range(start, end):
        present[ids[i]] = 0.0


@by_kind
def move_stored(prices, labels, values, true, start, end, known, found, weight, flags, present):
    """Move prices after a row of stored labels was counted; its true ones: ``true[start:end]``."""


@move_stored.case(None)
def move_stored_not(prices, labels, values, true, start, end, known, found, weight, flags, present):
    pass


@move_stored.case(OnLabels)
def move_stored_on_labels(
    prices, labels, values, true, start, end, known, found, weight, flags, present
):
    move_by_ids(prices, true, start, end, None, found, known, weight, flags, present)


@move_stored.case(OnEstimates)
def move_stored_on_estimates(
    prices, labels, values, true, start, end, known, found, weight, flags, present
):
    count = labels.shape[0]
    move_by_ids(prices, labels, 0, count, values, found, True, weight, flags, present)


@by_kind
def fade_spread(prices, growth):
    """What prices moved by so far counts for less, and so they move more freely."""


@fade_spread.case(None)
def fade_no_spread(prices, growth):
    pass


@fade_spread.case()
def fade_all_spread(prices, growth):
    for limit in range(prices.spread.shape[0]):
        prices.spread[limit] = max(prices.spread[limit] / growth, LEAST_SPREAD)


@by_kind
def follow_leaving(prices, timed, known, labels, true, sign):
    """Keep the sum of recalls where a row leaves: called before (-1) and after (+1) it does."""


@follow_leaving.case(None)
def follow_none_leaving(prices, timed, known, labels, true, sign):
    pass


@follow_leaving.case(OnLabels)
def follow_labels_leaving(prices, timed, known, labels, true, sign):
    if known:
        add_rates(prices, true, sign)


@follow_leaving.case(OnEstimates)
def follow_estimates_leaving(prices, timed, known, labels, true, sign):
    if timed:
        add_rates(prices, labels, sign)


@helper
def add_rates(prices, ids, sign):
    """Add the recalls of some labels, or take them off."""
    cells, rates = prices.counted.cells, prices.rates
    if rates.shape[0] > 0:
        for i in range(ids.shape[0]):
            if cells[POSITIVE, ids[i]] > 0.0:
                rates[0] += sign * cells[TP, ids[i]] / cells[POSITIVE, ids[i]]
                rates[1] += sign


@by_kind
def settle_rates(prices):
    """Add up the recalls of all labels anew."""


@settle_rates.case(None)
def settle_no_rates(prices):
    pass


@settle_rates.case()
def settle_all_rates(prices):
    cells, rates = prices.counted.cells, prices.rates
    if rates.shape[0] > 0:
        rates[0] = rates[1] = 0.0
        for j in range(cells.shape[1]):
            if cells[POSITIVE, j] > 0.0:
                rates[0] += cells[TP, j] / cells[POSITIVE, j]
                rates[1] += 1.0


@entry("add prices")
def add_prices(prices, slopes, offsets, slope, offset):
    """Add what prices make of slope and offset of every label."""
    ready = prepare_prices(prices, slopes, offsets)
    for j in range(slope.shape[0]):
        more, further = priced(prices, ready, slopes, offsets, j, 0.0, 0.0)
        slope[j] += more
        offset[j] += further
