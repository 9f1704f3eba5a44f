"""What predicting each label of a row gains: one compiled function for each kind of metric.

Loops over rows call it by its address (``omma.kernels.pointer``). The counts of the labels in
question come side by side in ``own``: those of all labels for a dense row, gathered ones for a
sparse row, whose ``labels`` are given (no labels at all stand for all, in their order).
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numba.core import types

from omma.kernels.gradient import prepare, weigh
from omma.kernels.jit import by_kind, pointed
from omma.kernels.kinds import Costs, Macro, PlugIn, Priced, Sum
from omma.kernels.layout import GAINS, POSITIVE, PREDICTED, PRICED, TP, VALUES, N
from omma.kernels.one_label import value
from omma.kernels.point import point_at
from omma.kernels.pointer import CELLS, COUNT, IDS, NUMBERS, ROWS, Address, held_as, held_by, read

REST = (types.float64, COUNT, CELLS, NUMBERS, ROWS, IDS, COUNT, ROWS)


@by_kind
def find_gains(term, point, pick, own, labels, count, scratch):
    """Write the gain of each label in question; minus infinity where eta is zero: no candidate."""


@find_gains.case()
def gains_of_term(term, point, pick, own, labels, count, scratch):
    values, gains = scratch[VALUES], scratch[GAINS]
    tp, predicted, positive = own[TP], own[PREDICTED], own[POSITIVE]
    ready = prepare(term, point, pick)
    for i in range(count):
        j = labels[i] if labels.shape[0] > 0 else i
        slope, offset = weigh(term, ready, point, j, tp[i], predicted[i], positive[i])
        found = slope * values[i] + offset
        gains[i] = found if values[i] > 0.0 else -np.inf


@by_kind
def difference(term, point, inverse, cells, eta):
    """How much one more prediction, right with probability η, changes a term."""


@difference.case(Macro)
def difference_of_macro(term, point, inverse, cells, eta):
    tp, predicted, positive = cells
    positive *= inverse
    n = point.totals[N]
    with_it = value(term.of, n, (tp + eta) * inverse, (predicted + 1.0) * inverse, positive, 1.0)
    without = value(term.of, n, tp * inverse, predicted * inverse, positive, 1.0)
    return term.weight / point.cells.shape[1] * (with_it - without)


@difference.case(Sum)
def difference_of_sum(term, point, inverse, cells, eta):
    first = difference(term.of, point, inverse, cells, eta)
    return first + difference(term.rest, point, inverse, cells, eta)


@find_gains.case(PlugIn)
def gains_of_values(term, point, pick, own, labels, count, scratch):
    """Per row: the value at the expected counts with the label, less that without it."""
    values, gains, prior = scratch[VALUES], scratch[GAINS], point.prior
    tp, predicted, positive = own[TP], own[PREDICTED], own[POSITIVE]
    rows = point.whole / point.inverse + 1.0
    for i in range(count):
        eta = values[i]
        cells = tp[i] + prior, predicted[i] + 2.0 * prior, positive[i] + 2.0 * prior + eta
        found = rows * difference(term.of, point, 1.0 / rows, cells, eta)
        gains[i] = found if eta > 0.0 else -np.inf


@find_gains.case(Priced)
def gains_with_prices(term, point, pick, own, labels, count, scratch):
    """Prices add to slope and offset, as they do to those of a rule."""
    values, gains = scratch[VALUES], scratch[GAINS]
    more, further = scratch[PRICED], scratch[PRICED + 1]
    tp, predicted, positive = own[TP], own[PREDICTED], own[POSITIVE]
    ready = prepare(term.of, point, pick)
    for i in range(count):
        j = labels[i] if labels.shape[0] > 0 else i
        slope, offset = weigh(term.of, ready, point, j, tp[i], predicted[i], positive[i])
        found = (slope + more[i]) * values[i] + (offset + further[i])
        gains[i] = found if values[i] > 0.0 else -np.inf


@find_gains.case(Costs)
def gains_with_costs(term, point, pick, own, labels, count, scratch):
    """With costs, a label of no probability may be the best: all are candidates, and all come."""
    values, gains = scratch[VALUES], scratch[GAINS]
    more, further = scratch[PRICED], scratch[PRICED + 1]  # zero where there are no prices
    tp, predicted, positive = own[TP], own[PREDICTED], own[POSITIVE]
    ready = prepare(term.of, point, pick)
    for j in range(count):
        slope, offset = weigh(term.of, ready, point, j, tp[j], predicted[j], positive[j])
        gains[j] = offset + further[j]
        if values[j] > 0.0:
            gains[j] += (slope + more[j]) * values[j]
    for i in range(count):
        if values[i] > 0.0:
            for j in range(count):
                gains[j] += values[i] * term.matrix[i, j]


@pointed("the gains")
def find(term, prior, pick, cells, totals, own, labels, count, scratch):
    """Write the gains of a row, by the counts that decisions look at; returns nothing of use."""
    point = point_at(cells, totals, prior)
    find_gains(read(term), point, pick, own, labels, count, scratch)
    return 0


def finder(term: Any) -> Address:
    """Where the function that finds the gains of a term lies."""
    key = key_of(term)
    try:
        return remembered(key)
    except TypeError:  # a term with arrays, which are no key
        return held_as(find, term, *REST)


def key_of(value: Any) -> Any:
    """A term with all classes in it: as tuples, those of other classes and equal numbers are equal.

    >>> key_of((1.0, (2.0,)))
    (<class 'tuple'>, 1.0, (<class 'tuple'>, 2.0))
    """
    return (type(value), *map(key_of, value)) if isinstance(value, tuple) else value


@lru_cache(maxsize=256)
def remembered(key: Any) -> Address:
    """The same by its key; by the types of a term's parts it takes a tenth of a millisecond."""
    return held_by(find, term_of(key), *REST)


def term_of(key: Any) -> Any:
    """What a key was made of."""
    if not isinstance(key, tuple):
        return key
    kind, *members = key
    parts = map(term_of, members)
    return tuple(parts) if kind is tuple else kind(*parts)
