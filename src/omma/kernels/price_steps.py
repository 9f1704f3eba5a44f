"""How prices of limits move: after each row by its own excess, over the root of sums of squares.

There is no step size to choose. Three things keep a price from being misled at its start, where few
rows have spoken:

- Labels come by luck. Where probabilities are calibrated, the excess of a row is first what was to
  be expected of it, and by and by what came of it: an estimate is worth TRUST draws.
- The first SLOW rows move a rate's price less: it would be far away, and long on its way back.
- Two prices can hold each other up: each makes up for what the other costs its limit. So where
  there are several limits and all have room, all prices fall a little.

For a limit on the mean of recalls, ``rates`` has the sum of the recalls of labels that occurred,
and how many these are. It follows each row that comes or leaves; it is empty where no limit asks
for it.
"""

from typing import Final

import numpy as np

from omma.kernels.jit import by_kind, helper
from omma.kernels.layout import POSITIVE, TP, UNIT, N
from omma.kernels.limits import (
    COUNTED,
    FORM,
    MEAN,
    SETTLED,
    STEADY,
    TRUST,
    UNDER,
    OnEstimates,
    OnLabels,
    all_have_room,
    excess_of,
    form_of,
    looked_at,
)

STEP: Final = 0.7  # of a price whose every row so far missed by as much
SLOW: Final = 100.0  # rows
EASE: Final = 0.5  # the power of rows by which prices fall where there is room everywhere
DEAREST: Final = 1000.0  # the limit alone decides, and the way back is not too long
LATELY: Final = 2.0  # row t weighs t ** LATELY in the mean of a price
LEAST_SPREAD: Final = 1e-12  # of squares of excesses, where all have faded


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
def trusted(prices, limit, weight):
    """How far a row counts by its estimates in place of its labels, as the excess of a limit."""
    if prices.kinds[limit] != COUNTED or prices.numbers[limit, TRUST] <= 0.0:
        return 0.0
    tp, predicted, positive, n = looked_at(prices, limit)
    draws = form_of(prices.numbers, limit, UNDER, tp, predicted, positive, n) / prices.pace[UNIT]
    worth = prices.numbers[limit, TRUST] * weight
    return worth / (worth + max(draws, 0.0))


@helper
def value_of(labels, values, j):
    """The estimate of label j: of stored labels, which rise, or where ``labels`` is None of all."""
    if labels is None:
        return values[j]
    low, high = 0, labels.shape[0]
    while low < high:
        middle = (low + high) // 2
        if labels[middle] < j:
            low = middle + 1
        else:
            high = middle
    return values[low] if low < labels.shape[0] and labels[low] == j else 0.0


@helper
def follow(prices, row, expected, present, labels, values, flags, known, weight, recalls, seen):
    """Move each price by the excess of a counted row.

    ``row`` has its (tp, predicted, positive) over all labels, ``expected`` what estimates say of
    the first and the last of these; ``recalls`` and ``seen`` are what ``rates`` had before it.
    Where labels are not known only what is predicted has an excess.
    """
    if weight <= 0.0:
        return
    m, unit, count = prices.counted.cells.shape[1], prices.pace[UNIT], prices.labels.shape[0]
    n = prices.counted.totals[N] / unit
    ease = EASE * weight / (n + SLOW * weight) if count > 1 and all_have_room(prices) else 0.0
    for limit in range(count):
        kind, j = prices.kinds[limit], prices.labels[limit]
        if kind == SETTLED or (kind != STEADY and not known):
            continue
        if kind == MEAN:
            bound, sign = prices.numbers[limit, FORM], prices.numbers[limit, FORM + 1]
            now = n * (bound * prices.rates[1] - prices.rates[0])
            excess = sign * (now - (n - weight) * (bound * seen - recalls)) / m
        else:
            tp, predicted, positive = row
            likely, there = expected
            if j >= 0:
                predicted, positive = flags[j], np.float64(present[j])
                tp = positive * predicted
            trust = trusted(prices, limit, weight)
            if trust > 0.0:
                if j >= 0:
                    there = value_of(labels, values, j)
                    likely = there * predicted
                tp += trust * (likely - tp)
                positive += trust * (there - positive)
            excess = weight * excess_of(prices, limit, tp, predicted, positive)
        prices.spread[limit] += excess * excess
        slower = 1.0 + SLOW * weight / max(n, weight) if kind == COUNTED else 1.0
        step = STEP * excess / np.sqrt(prices.spread[limit] * slower)
        step -= ease * place_of(prices.mu[limit])
        prices.mu[limit] = moved(prices.mu[limit], step)
        share = min((1.0 + LATELY) * weight / (n + LATELY * weight), 1.0)
        prices.mean[limit] += share * (place_of(prices.mu[limit]) - prices.mean[limit])


@helper
def expects(prices):
    """Whether estimates are looked at beside labels."""
    return prices.numbers[0, TRUST] > 0.0


@helper
def move_by_row(prices, present, found, known, weight, flags, values):
    """Move prices by a row of every label."""
    tp, positive = 0.0, 0.0
    likely, there = 0.0, 0.0
    recalls, seen = 0.0, 0.0
    if known:
        for j in range(flags.shape[0]):
            tp += np.float64(present[j]) * flags[j]
            positive += np.float64(present[j])
        if expects(prices):
            for j in range(flags.shape[0]):
                likely += values[j] * flags[j]
                there += values[j]
        if prices.rates.shape[0] > 0:
            recalls, seen = prices.rates[0], prices.rates[1]
            for j in range(flags.shape[0]):
                follow_rate(prices, j, np.float64(present[j]), flags[j], weight)
    row, expected = (tp, np.float64(found), positive), (likely, there)
    follow(prices, row, expected, present, None, values, flags, known, weight, recalls, seen)


@by_kind
def move(prices, true, known, found, weight, flags, values):
    """Move prices after a dense row was counted."""


@move.case(OnLabels)
def move_on_labels(prices, true, known, found, weight, flags, values):
    if known:
        move_by_row(prices, true, found, True, weight, flags, values)
    else:
        move_by_row(prices, flags, found, False, weight, flags, values)


@move.case(OnEstimates)
def move_on_estimates(prices, true, known, found, weight, flags, values):
    move_by_row(prices, values, found, True, weight, flags, values)


@helper
def move_by_ids(
    prices, ids, start, end, degrees, labels, values, found, known, weight, flags, present
):
    """Move prices by labels that are present, ``ids[start:end]``, to the degree of ``degrees``.

    ``labels`` and ``values`` are the stored probabilities.
    """
    tp, positive = 0.0, 0.0
    likely, there = 0.0, 0.0
    recalls, seen = 0.0, 0.0
    for i in range(start, end):
        value = 1.0 if degrees is None else degrees[i]
        present[ids[i]] = value
        tp += value * flags[ids[i]]
        positive += value
    if known and expects(prices):
        for i in range(labels.shape[0]):
            likely += values[i] * flags[labels[i]]
            there += values[i]
    if known and prices.rates.shape[0] > 0:
        recalls, seen = prices.rates[0], prices.rates[1]
        for i in range(start, end):
            follow_rate(prices, ids[i], present[ids[i]], flags[ids[i]], weight)
    row, expected = (tp, np.float64(found), positive), (likely, there)
    follow(prices, row, expected, present, labels, values, flags, known, weight, recalls, seen)
    for i in range(start, end):
        present[ids[i]] = 0.0


@by_kind
def move_stored(prices, labels, values, true, start, end, known, found, weight, flags, present):
    """Move prices after a row of stored labels was counted; its true ones: ``true[start:end]``."""


@move_stored.case(OnLabels)
def move_stored_on_labels(
    prices, labels, values, true, start, end, known, found, weight, flags, present
):
    stored = (labels, values, found, known, weight, flags, present)
    move_by_ids(prices, true, start, end, None, *stored)


@move_stored.case(OnEstimates)
def move_stored_on_estimates(
    prices, labels, values, true, start, end, known, found, weight, flags, present
):
    count = labels.shape[0]
    stored = (labels, values, found, True, weight, flags, present)
    move_by_ids(prices, labels, 0, count, values, *stored)


@by_kind
def fade_spread(prices, growth):
    """What prices moved by so far counts for less, and so they move more freely."""


@fade_spread.case()
def fade_all_spread(prices, growth):
    for limit in range(prices.spread.shape[0]):
        prices.spread[limit] = max(prices.spread[limit] / growth, LEAST_SPREAD)


# The mean of recalls, kept beside counts.


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


@by_kind
def follow_leaving(prices, timed, known, labels, true, sign):
    """Keep the sum of recalls where a row leaves: called before (-1) and after (+1) it does."""


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


@settle_rates.case()
def settle_all_rates(prices):
    cells, rates = prices.counted.cells, prices.rates
    if rates.shape[0] > 0:
        rates[0] = rates[1] = 0.0
        for j in range(cells.shape[1]):
            if cells[POSITIVE, j] > 0.0:
                rates[0] += cells[TP, j] / cells[POSITIVE, j]
                rates[1] += 1.0
