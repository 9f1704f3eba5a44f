"""The value of a whole metric at some counts, and the best step between two of them."""

import numpy as np

from omma.kernels import minimum
from omma.kernels.jit import by_kind, entry, helper
from omma.kernels.kinds import (
    ClassCorrelation,
    Classes,
    Geometric,
    Harmonic,
    Kappa,
    Macro,
    Micro,
    Nothing,
    Quadratic,
    Smallest,
    Sum,
    WeighedClasses,
    Weighted,
)
from omma.kernels.layout import (
    POSITIVE,
    PREDICTED,
    SUM_CROSS,
    SUM_POSITIVE,
    SUM_POSITIVE_SQUARED,
    SUM_PREDICTED,
    SUM_PREDICTED_SQUARED,
    SUM_TP,
    TP,
    N,
)
from omma.kernels.one_label import value
from omma.kernels.point import fractions, mean_fractions, point_at
from omma.kernels.slopes_of_classes import agreement, squares, sum_of_classes

GRID = 16  # points looked at before closing in: a metric need not be concave
GOLDEN = 0.6180339887498949
SHRINKS = 24


@by_kind
def worth(term, point):
    """The value of a term, its weight included."""


@worth.case(Macro)
def of_macro(term, point):
    m = point.cells.shape[1]
    total = 0.0
    for j in range(m):
        tp, predicted, positive = fractions(point, j)
        total += value(term.of, point.totals[N], tp, predicted, positive, point.whole)
    return term.weight * (total / m)


@worth.case(Weighted)
def of_weighted(term, point):
    m = point.cells.shape[1]
    total, everywhere = 0.0, 0.0
    for j in range(m):
        tp, predicted, positive = fractions(point, j)
        found = value(term.of, point.totals[N], tp, predicted, positive, point.whole)
        total += positive * found
        everywhere += positive
    return term.weight * (total / everywhere) if everywhere > 0.0 else 0.0


@worth.case(Micro)
def of_micro(term, point):
    tp, predicted, positive = mean_fractions(point)
    return term.weight * value(term.of, point.totals[N], tp, predicted, positive, point.whole)


@by_kind
def mean_from(mean, total, m):
    """A mean over classes, from what it adds up."""


@mean_from.case(Geometric)
def geometric_from(mean, total, m):
    return np.exp(total / m)


@mean_from.case(Harmonic)
def harmonic_from(mean, total, m):
    return m / total


@mean_from.case(Quadratic)
def quadratic_from(mean, total, m):
    return 1.0 - np.sqrt(total / m)


@worth.case(WeighedClasses)
@worth.case(Classes)
def of_classes(term, point):
    return term.weight * mean_from(term.of, sum_of_classes(term, point), point.cells.shape[1])


@worth.case(Smallest)
def of_smallest(term, point):
    smoothing = minimum.smoothing_at(term.gamma, term.rows, point.totals[N])
    return term.weight * minimum.value_of_classes(term.rate, smoothing, point, True)


@worth.case(Kappa)
def of_kappa(term, point):
    _, _, right, cross = agreement(point)
    return term.weight * ((right - cross) / (1.0 - cross + term.epsilon))


@worth.case(ClassCorrelation)
def of_correlation(term, point):
    m, totals = point.cells.shape[1], point.totals
    added, inverse, right, cross = agreement(point)
    predicted = squares(totals[SUM_PREDICTED], totals[SUM_PREDICTED_SQUARED], added, m, inverse)
    positive = squares(totals[SUM_POSITIVE], totals[SUM_POSITIVE_SQUARED], added, m, inverse)
    root = np.sqrt(max((1.0 - predicted) * (1.0 - positive), 0.0))
    return term.weight * ((right - cross) / (root + term.epsilon))


@worth.case(Nothing)
def of_nothing(term, point):
    return 0.0


@worth.case(Sum)
def of_sum(term, point):
    return worth(term.of, point) + worth(term.rest, point)


@helper
def add_up(cells, totals):
    """Sums over labels, from the counts themselves."""
    for i in range(1, totals.shape[0]):
        totals[i] = 0.0
    for j in range(cells.shape[1]):
        predicted, positive = cells[PREDICTED, j], cells[POSITIVE, j]
        totals[SUM_TP] += cells[TP, j]
        totals[SUM_PREDICTED] += predicted
        totals[SUM_POSITIVE] += positive
        totals[SUM_CROSS] += predicted * positive
        totals[SUM_PREDICTED_SQUARED] += predicted * predicted
        totals[SUM_POSITIVE_SQUARED] += positive * positive


@helper
def utility(term, prior, cells, totals):
    """A metric at some counts with the prior added; ``totals`` knows the number of rows."""
    add_up(cells, totals)
    return worth(term, point_at(cells, totals, prior))


@helper
def mix(start, end, share, mixed):
    """Counts of a mixture of two classifiers."""
    for cell in range(start.shape[0]):
        for j in range(start.shape[1]):
            mixed[cell, j] = start[cell, j] + share * (end[cell, j] - start[cell, j])


@entry("the value")
def evaluate(term, prior, cells, totals):
    """The metric at some counts; ``totals`` holds the number of rows, its rest is overwritten."""
    return utility(term, prior, cells, totals)


@entry("the best share")
def best_share(term, prior, start, end, totals, mixed):
    """The share of ``end`` that makes the best mixture with ``start``, and the metric there.

    The best point of a grid, then golden sections around it. One place works out the metric, for
    the grid and for both ends of a section, so that it is compiled once.
    """
    best, best_value = 0.0, -np.inf
    low, high = 0.0, 1.0
    left, right, left_value = 0.0, 0.0, 0.0
    for step in range(GRID + 1 + 2 * SHRINKS):
        is_left = step > GRID and (step - GRID) % 2 == 1
        if step <= GRID:
            share = step / GRID
        elif is_left:
            if step == GRID + 1:
                low, high = max(best - 1.0 / GRID, 0.0), min(best + 1.0 / GRID, 1.0)
            left = high - GOLDEN * (high - low)
            right = low + GOLDEN * (high - low)
            share = left
        else:
            share = right
        mix(start, end, share, mixed)
        found = utility(term, prior, mixed, totals)
        if step > GRID and not is_left:
            if left_value >= found:
                high = right
                share, found = left, left_value
            else:
                low = left
        if is_left:
            left_value = found
        elif found > best_value:
            best_value = found
            best = share
    return best, best_value
