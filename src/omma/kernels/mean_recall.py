"""The mean of recalls, kept beside counts for a limit on it.

``rates`` has the sum of the recalls of labels that occurred, and how many these are. It follows
each row that comes or leaves; it is empty where no limit asks for it.
"""

from __future__ import annotations

from omma.kernels.jit import by_kind, helper
from omma.kernels.layout import POSITIVE, TP, UNIT
from omma.kernels.limits import OnEstimates, OnLabels


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
