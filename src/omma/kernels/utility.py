"""The value of a whole metric at some counts, and the best step between two of them."""

from __future__ import annotations

import numpy as np

from omma.kernels import minimum, values
from omma.kernels.gradient import class_rate, fractions, mean_fractions, point_at
from omma.kernels.jit import entry, helper, section
from omma.kernels.layout import (
    ARITHMETIC,
    AVERAGE,
    CORRELATION,
    EPSILON,
    GEOMETRIC,
    HARMONIC,
    KAPPA,
    MACRO,
    MEAN,
    MICRO,
    MINIMUM,
    POSITIVE,
    PREDICTED,
    QUADRATIC,
    RATE,
    SUM_POSITIVE,
    SUM_PREDICTED,
    SUM_TP,
    TP,
    WEIGHT,
    N,
)
from omma.kernels.partials import read_form

GRID = 16  # points looked at before closing in: a metric need not be concave
GOLDEN = 0.6180339887498949
SHRINKS = 24


@section
def of_label(mean, form, tp, predicted, positive, whole):
    """A metric of one label."""
    if mean == RATE:
        return values.single(form, tp, predicted, positive, whole)
    if mean == ARITHMETIC:
        return values.arithmetic(form, tp, predicted, positive, whole)
    if mean == GEOMETRIC:
        return values.geometric(form, tp, predicted, positive, whole)
    if mean == HARMONIC:
        return values.harmonic(form, tp, predicted, positive, whole)
    if mean == QUADRATIC:
        return values.quadratic(form, tp, predicted, positive, whole)
    return values.correlation(form, tp, predicted, positive, whole)


@section
def of_classes(mean, form, point):
    """A mean of one rate over classes."""
    m = point.every.shape[1]
    total = 0.0
    for j in range(m):
        rate, _, _ = class_rate(form, point, point.every, j)
        if mean == GEOMETRIC:
            total += np.log(rate)
        elif mean == HARMONIC:
            total += 1.0 / rate
        else:
            total += (1.0 - rate) * (1.0 - rate)
    if mean == GEOMETRIC:
        return np.exp(total / m)
    if mean == HARMONIC:
        return m / total
    return 1.0 - np.sqrt(total / m)


@section
def of_agreement(mean, point):
    """Cohen's kappa, or the Matthews correlation over classes."""
    m = point.every.shape[1]
    added = 2.0 * point.prior
    total = point.totals[SUM_POSITIVE] + m * added
    inverse = 1.0 / total if total > 0.0 else 1.0
    right = (point.totals[SUM_TP] + m * point.prior) * inverse
    cross = 0.0
    predicted_squared = 0.0
    positive_squared = 0.0
    for j in range(m):
        predicted = (point.every[PREDICTED, j] + added) * inverse
        positive = (point.every[POSITIVE, j] + added) * inverse
        cross += predicted * positive
        predicted_squared += predicted * predicted
        positive_squared += positive * positive
    if mean == KAPPA:
        return (right - cross) / (1.0 - cross + EPSILON)
    root = np.sqrt(max((1.0 - predicted_squared) * (1.0 - positive_squared), 0.0))
    return (right - cross) / (root + EPSILON)


@section
def of_minimum(table, term, point):
    """The smaller of two rates under either average, or the smallest over classes."""
    pair = minimum.read_pair(table, term, point.totals[N])
    if table[term, AVERAGE] == MICRO:
        tp, predicted, positive = mean_fractions(point)
        return minimum.value(pair, tp, predicted, positive, point.whole)
    if table[term, AVERAGE] != MACRO:
        return minimum.value_of_classes(pair[0], pair[2], point, True)
    m = point.every.shape[1]
    total = 0.0
    for j in range(m):
        tp, predicted, positive = fractions(point, point.every, j)
        total += minimum.value(pair, tp, predicted, positive, point.whole)
    return total / m


@helper
def of_table(table, point):
    """The sum of a table's terms."""
    if table is None:
        return 0.0
    m = point.every.shape[1]
    total = 0.0
    for term in range(table.shape[0]):
        average = table[term, AVERAGE]
        mean = table[term, MEAN]
        form = read_form(table, term)
        value = 0.0
        if mean == MINIMUM:
            value = of_minimum(table, term, point)
        elif average == MACRO:
            for j in range(m):
                tp, predicted, positive = fractions(point, point.every, j)
                value += of_label(mean, form, tp, predicted, positive, point.whole)
            value /= m
        elif average == MICRO:
            tp, predicted, positive = mean_fractions(point)
            value = of_label(mean, form, tp, predicted, positive, point.whole)
        elif mean == KAPPA or mean == CORRELATION:
            value = of_agreement(mean, point)
        else:
            value = of_classes(mean, form, point)
        total += table[term, WEIGHT] * value
    return total


@helper
def utility(table, macro_value, micro_value, prior, cells, totals):
    """A metric, a user's own parts included, at some counts with the prior added."""
    for i in range(1, 4):
        totals[i] = 0.0
    m = cells.shape[1]
    for j in range(m):
        totals[SUM_TP] += cells[TP, j]
        totals[SUM_PREDICTED] += cells[PREDICTED, j]
        totals[SUM_POSITIVE] += cells[POSITIVE, j]
    point = point_at(cells, cells, totals, prior)
    total = of_table(table, point)
    if macro_value is not None:
        for j in range(m):
            tp, predicted, positive = fractions(point, cells, j)
            total += macro_value(tp, predicted, positive, point.whole) / m
    if micro_value is not None:
        tp, predicted, positive = mean_fractions(point)
        total += micro_value(tp, predicted, positive, point.whole)
    return total


@helper
def mix(start, end, share, mixed):
    """Counts of a mixture of two classifiers."""
    for cell in range(start.shape[0]):
        for j in range(start.shape[1]):
            mixed[cell, j] = start[cell, j] + share * (end[cell, j] - start[cell, j])


@entry
def evaluate(table, macro_value, micro_value, prior, cells, totals):
    """The metric at some counts; ``totals`` holds the number of rows, its rest is overwritten."""
    return utility(table, macro_value, micro_value, prior, cells, totals)


@entry
def best_share(table, macro_value, micro_value, prior, start, end, totals, mixed):
    """The share of ``end`` that makes the best mixture with ``start``, and the metric there.

    The best point of a grid, then golden sections around it.
    """
    best = 0.0
    best_value = -np.inf
    for i in range(GRID + 1):
        mix(start, end, i / GRID, mixed)
        value = utility(table, macro_value, micro_value, prior, mixed, totals)
        if value > best_value:
            best_value = value
            best = i / GRID
    low = max(best - 1.0 / GRID, 0.0)
    high = min(best + 1.0 / GRID, 1.0)
    for _ in range(SHRINKS):
        left = high - GOLDEN * (high - low)
        right = low + GOLDEN * (high - low)
        mix(start, end, left, mixed)
        left_value = utility(table, macro_value, micro_value, prior, mixed, totals)
        mix(start, end, right, mixed)
        right_value = utility(table, macro_value, micro_value, prior, mixed, totals)
        if left_value >= right_value:
            high = right
            share, value = left, left_value
        else:
            low = left
            share, value = right, right_value
        if value > best_value:
            best_value = value
            best = share
    return best, best_value
