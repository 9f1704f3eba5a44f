"""Limits as kernels know them: linear forms over counts, what they are scaled by, how they stand.

A limit on a rate num / den is kept by its linear form num - C den, over a size so far as a share of
the rows. The size is den, but for precision: what is predicted follows the price, and a price over
it would feed on itself, dearer the less is predicted. There it is the mean of predictions and
occurrences.

``numbers`` has a row for each limit, ``labels`` the label that it is about (-1 is all), ``kinds``
how it is scaled. Limits look at label counts as they are, not at corrected ones (``OnLabels``), or
at probabilities in their place (``OnEstimates``). Where the past fades, counts are in the unit of
``pace`` (see ``omma.kernels.fade``).

What prices add to gains is in ``prices``, how they move in ``price_steps``.
"""

from typing import Any, Final, NamedTuple

import numpy as np

from omma.kernels.jit import helper
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
TRUST: Final = 15  # how many draws a calibrated estimate is worth beside labels
NUMBERS: Final = 16


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


class OnEstimates(OnLabels):
    """Limits on what probabilities say."""


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


@helper
def excess_of(prices, limit, tp, predicted, positive):
    """By how much a row misses a limit; below zero where it does better."""
    numbers, tighter = prices.numbers, tighter_by(prices, limit)
    found = form_of(numbers, limit, FORM, tp, predicted, positive, 1.0)
    return tighter * form_of(numbers, limit, UNDER, tp, predicted, positive, 1.0) - found


@helper
def room_of(prices, limit):
    """What the rows so far leave of a limit; below zero where they miss it."""
    tp, predicted, positive, n = looked_at(prices, limit)
    if prices.kinds[limit] == MEAN:
        short = prices.numbers[limit, FORM] * prices.rates[1] - prices.rates[0]
        return -prices.numbers[limit, FORM + 1] * short
    found = form_of(prices.numbers, limit, FORM, tp, predicted, positive, n)
    under = form_of(prices.numbers, limit, UNDER, tp, predicted, positive, n)
    return found - tighter_by(prices, limit) * under


@helper
def all_have_room(prices):
    """Whether every limit holds over the rows so far, with something to spare."""
    without = 0
    for limit in range(prices.labels.shape[0]):
        without += not room_of(prices, limit) > 0.0
    return without == 0
