"""What prices of limits add to the gain of each label.

A label that helps a limit gains ``mu`` times its part of the limit's linear form. None has no
limits, and compiles to nothing.

Where no rule reaches a bound, the rule that is best by the limit's form at the bound is not the one
of the greatest rate, if decisions change the rate's denominator as they do that of F and Jaccard.
There the form is taken at the rate so far (Dinkelbach): rate and rule improve each other.
"""

from typing import Final

from omma.kernels.jit import by_kind, entry, helper
from omma.kernels.layout import POSITIVE, UNIT, N
from omma.kernels.limits import (
    COUNTED,
    FORM,
    MEAN,
    UNDER,
    WEIGHT,
    form_of,
    looked_at,
    scale_of,
    tighter_by,
)

BEYOND: Final = 100.0  # a price that limits within reach hardly have


@helper
def conceded(prices, limit):
    """How far below its bound the form of a limit is taken, which is out of reach."""
    numbers = prices.numbers
    if prices.kinds[limit] != COUNTED or prices.mu[limit] < BEYOND:
        return 0.0
    if numbers[limit, UNDER + 1] == 0.0 or numbers[limit, UNDER + 2] == 0.0:
        return 0.0  # precision can always be greater, and no decision changes the other rates' own
    tp, predicted, positive, n = looked_at(prices, limit)
    under = form_of(numbers, limit, UNDER, tp, predicted, positive, n)
    found = form_of(numbers, limit, FORM, tp, predicted, positive, n)
    return -found / under if under > 0.0 and found < 0.0 else 0.0


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
        tighter = tighter_by(prices, limit) - conceded(prices, limit)
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


@entry("add prices")
def add_prices(prices, slopes, offsets, slope, offset):
    """Add what prices make of slope and offset of every label."""
    ready = prepare_prices(prices, slopes, offsets)
    for j in range(slope.shape[0]):
        more, further = priced(prices, ready, slopes, offsets, j, 0.0, 0.0)
        slope[j] += more
        offset[j] += further
