"""A metric's slope and offset at some labels.

``cells`` holds the counts of the labels asked for, side by side: all of them for a dense row, those
gathered for the stored entries of a sparse one. Both then run the same loops, which are vector
instructions for both, and compute the same bits for the same label.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from omma.kernels import minimum, partials, values
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
    ONLINE_F,
    POSITIVE,
    PREDICTED,
    QUADRATIC,
    RATE,
    SUM_CROSS,
    SUM_POSITIVE,
    SUM_POSITIVE_SQUARED,
    SUM_PREDICTED,
    SUM_PREDICTED_SQUARED,
    SUM_TP,
    TP,
    WEIGHT,
    N,
)


class Point(NamedTuple):
    """Where a gradient is taken."""

    cells: Any  # counts of the labels asked for
    every: Any  # counts of all labels
    totals: Any
    prior: float
    whole: float  # all rows, as a fraction of themselves
    inverse: float  # what turns counts into fractions


@helper
def point_at(cells, every, totals, prior):
    """Before the first row, and with no prior, every fraction is zero."""
    total = totals[N] + 4.0 * prior
    if total > 0.0:
        return Point(cells, every, totals, prior, 1.0, 1.0 / total)
    return Point(cells, every, totals, prior, 0.0, 1.0)


@helper
def fractions(point, cells, j):
    """What is known of a label, prior included, as fractions of the rows."""
    prior, inverse = point.prior, point.inverse
    return (
        (cells[TP, j] + prior) * inverse,
        (cells[PREDICTED, j] + 2.0 * prior) * inverse,
        (cells[POSITIVE, j] + 2.0 * prior) * inverse,
    )


@helper
def mean_fractions(point):
    """The same, averaged over labels."""
    m = point.every.shape[1]
    totals, prior, inverse = point.totals, point.prior, point.inverse
    return (
        (totals[SUM_TP] + m * prior) * inverse / m,
        (totals[SUM_PREDICTED] + 2.0 * m * prior) * inverse / m,
        (totals[SUM_POSITIVE] + 2.0 * m * prior) * inverse / m,
    )


@helper
def add_each(of_one, form, weight, point, slope, offset):
    """Add the derivatives of a metric that looks at each label by itself."""
    cells, whole = point.cells, point.whole
    for j in range(slope.shape[0]):
        tp, predicted, positive = fractions(point, cells, j)
        by_tp, by_predicted = of_one(form, tp, predicted, positive, whole)
        slope[j] += weight * by_tp
        offset[j] += weight * by_predicted


@helper
def add_rates(form, weight, point, slope, offset):
    """``add_each`` of a rate: fractions, prior and weight go into its coefficients, once a row."""
    over, under = form
    cells, scale, prior = point.cells, point.inverse, point.prior
    over_tp, over_predicted, over_positive = over[0] * scale, over[1] * scale, over[2] * scale
    under_tp, under_predicted, under_positive = under[0] * scale, under[1] * scale, under[2] * scale
    over_rest = over[3] * point.whole
    over_rest += prior * (over_tp + 2.0 * over_predicted + 2.0 * over_positive)
    under_rest = under[3] * point.whole + EPSILON
    under_rest += prior * (under_tp + 2.0 * under_predicted + 2.0 * under_positive)
    slope_over, slope_under = weight * over[0], weight * under[0]
    offset_over, offset_under = weight * over[1], weight * under[1]
    for j in range(slope.shape[0]):
        tp, predicted, positive = cells[TP, j], cells[PREDICTED, j], cells[POSITIVE, j]
        inverse = 1.0 / (
            under_tp * tp + under_predicted * predicted + under_positive * positive + under_rest
        )
        value = (
            over_tp * tp + over_predicted * predicted + over_positive * positive + over_rest
        ) * inverse
        slope[j] += (slope_over - value * slope_under) * inverse
        offset[j] += (offset_over - value * offset_under) * inverse


@helper
def add_macro(mean, form, weight, point, slope, offset):
    """Choose the loop once, not once a label, so that each becomes vector instructions."""
    if mean == RATE:
        add_rates(form, weight, point, slope, offset)
    elif mean == ARITHMETIC:
        add_each(partials.arithmetic, form, weight, point, slope, offset)
    elif mean == GEOMETRIC:
        add_each(partials.geometric, form, weight, point, slope, offset)
    elif mean == HARMONIC:
        add_each(partials.harmonic, form, weight, point, slope, offset)
    elif mean == QUADRATIC:
        add_each(partials.quadratic, form, weight, point, slope, offset)
    else:
        add_each(partials.correlation, form, weight, point, slope, offset)


@section
def of_mean_counts(mean, form, tp, predicted, positive, whole):
    """Derivatives of a metric at the counts averaged over labels."""
    if mean == RATE:
        return partials.single(form, tp, predicted, positive, whole)
    if mean == ARITHMETIC:
        return partials.arithmetic(form, tp, predicted, positive, whole)
    if mean == GEOMETRIC:
        return partials.geometric(form, tp, predicted, positive, whole)
    if mean == HARMONIC:
        return partials.harmonic(form, tp, predicted, positive, whole)
    if mean == QUADRATIC:
        return partials.quadratic(form, tp, predicted, positive, whole)
    return partials.correlation(form, tp, predicted, positive, whole)


@helper
def add_same(by_tp, by_predicted, weight, slope, offset):
    """Add derivatives that are the same for every label: each moves the mean counts alike."""
    for j in range(slope.shape[0]):
        slope[j] += weight * by_tp
        offset[j] += weight * by_predicted


@helper
def class_rate(form, point, cells, j):
    """The rate of one class, kept off zero, and its derivatives."""
    tp, predicted, positive = fractions(point, cells, j)
    rate, by_tp, by_predicted = partials.rate_partials(form, tp, predicted, positive, point.whole)
    return rate + EPSILON, by_tp, by_predicted


@section
def common_factor(mean, form, point):
    """What the derivatives of a mean over classes share: it ranks nothing, but weighs in a sum."""
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
        return (m / total) * (m / total)
    return 1.0 / (np.sqrt(total / m) + EPSILON)


@section
def add_over_classes(mean, form, weight, point, slope, offset):
    """Derivatives of a geometric, harmonic or quadratic mean of one rate over classes."""
    for j in range(slope.shape[0]):
        rate, by_tp, by_predicted = class_rate(form, point, point.cells, j)
        if mean == GEOMETRIC:
            by_rate = weight / rate
        elif mean == HARMONIC:
            by_rate = weight / (rate * rate)
        else:
            by_rate = weight * (1.0 - rate)
        slope[j] += by_rate * by_tp
        offset[j] += by_rate * by_predicted


@section
def add_agreement(mean, weight, point, slope, offset):
    """Cohen's kappa and the Matthews correlation over classes, from sums over classes."""
    m = point.every.shape[1]
    totals = point.totals
    added = 2.0 * point.prior  # to each class's predicted and positive
    total = totals[SUM_POSITIVE] + m * added
    inverse = 1.0 / total if total > 0.0 else 1.0
    square = inverse * inverse
    right = (totals[SUM_TP] + m * point.prior) * inverse
    mixed = added * (totals[SUM_PREDICTED] + totals[SUM_POSITIVE]) + m * added * added
    cross = (totals[SUM_CROSS] + mixed) * square
    if mean == KAPPA:
        by_right = 1.0 / (1.0 - cross + EPSILON)
        by_positive = -(1.0 - right) * by_right * by_right
        by_predicted = 0.0
    else:
        predicted_squared = totals[SUM_PREDICTED_SQUARED] + m * added * added
        predicted_squared += 2.0 * added * totals[SUM_PREDICTED]
        positive_squared = totals[SUM_POSITIVE_SQUARED] + m * added * added
        positive_squared += 2.0 * added * totals[SUM_POSITIVE]
        spread = 1.0 - positive_squared * square
        root = np.sqrt(max((1.0 - predicted_squared * square) * spread, 0.0)) + EPSILON
        by_right = 1.0 / root
        by_positive = -by_right
        by_predicted = (right - cross) * spread * by_right * by_right * by_right
    for j in range(slope.shape[0]):
        predicted = (point.cells[PREDICTED, j] + added) * inverse
        positive = (point.cells[POSITIVE, j] + added) * inverse
        slope[j] += weight * by_right
        offset[j] += weight * (by_positive * positive + by_predicted * predicted)


@helper
def add_each_change(of_one, form, weight, point, slope, offset):
    """Add what one more row would change, for a metric that looks at each label by itself."""
    for j in range(slope.shape[0]):
        tp, predicted, positive = fractions(point, point.cells, j)
        by_tp, by_predicted = values.changes(
            of_one, form, tp, predicted, positive, point.whole, point.inverse
        )
        slope[j] += weight * by_tp
        offset[j] += weight * by_predicted


@section
def add_greedy(mean, form, weight, point, slope, offset):
    """The same for each kind of mean."""
    if mean == RATE:
        add_each_change(values.single, form, weight, point, slope, offset)
    elif mean == ARITHMETIC:
        add_each_change(values.arithmetic, form, weight, point, slope, offset)
    elif mean == GEOMETRIC:
        add_each_change(values.geometric, form, weight, point, slope, offset)
    elif mean == HARMONIC:
        add_each_change(values.harmonic, form, weight, point, slope, offset)
    elif mean == QUADRATIC:
        add_each_change(values.quadratic, form, weight, point, slope, offset)
    else:
        add_each_change(values.correlation, form, weight, point, slope, offset)


@helper
def add_greedy_table(table, point, slope, offset):
    """Add what one more row would change of each term of a table, if there is one."""
    if table is None:
        return
    m = point.every.shape[1]
    for term in range(table.shape[0]):
        form = partials.read_form(table, term)
        weight = table[term, WEIGHT] / m
        if table[term, MEAN] == MINIMUM:
            pair = minimum.read_pair(table, term, point.totals[N])
            add_each_change(minimum.value, pair, weight, point, slope, offset)
        else:
            add_greedy(table[term, MEAN], form, weight, point, slope, offset)


@section
def add_online_f(average, weight, point, slope, offset):
    """Predict where η·b − a ≥ 0, with a and b counted from the prior: OFO's own rule."""
    cells, totals, prior = point.cells, point.totals, point.prior
    if average == MICRO:
        b = totals[SUM_PREDICTED] + totals[SUM_POSITIVE] + prior
        add_same(b, -(totals[SUM_TP] + prior), weight, slope, offset)
    else:
        for j in range(slope.shape[0]):
            slope[j] += weight * (cells[PREDICTED, j] + cells[POSITIVE, j] + prior)
            offset[j] -= weight * (cells[TP, j] + prior)


@section
def add_minimum(table, term, point, slope, offset):
    """The smaller of two rates under either average, or the smallest over classes."""
    m = point.every.shape[1]
    weight = table[term, WEIGHT]
    pair = minimum.read_pair(table, term, point.totals[N])
    if table[term, AVERAGE] == MACRO:
        add_each(minimum.slopes, pair, weight / m, point, slope, offset)
    elif table[term, AVERAGE] == MICRO:
        tp, predicted, positive = mean_fractions(point)
        by_tp, by_predicted = minimum.slopes(pair, tp, predicted, positive, point.whole)
        add_same(by_tp, by_predicted, weight / m, slope, offset)
    else:
        minimum.add_of_classes(pair[0], pair[2], weight, point, slope, offset)


@helper
def add_table(table, point, slope, offset):
    """Add each term of a metric's table, if there is one."""
    if table is None:
        return
    m = point.every.shape[1]
    for term in range(table.shape[0]):
        weight = table[term, WEIGHT]
        average = table[term, AVERAGE]
        mean = table[term, MEAN]
        form = partials.read_form(table, term)
        if mean == ONLINE_F:
            add_online_f(average, weight, point, slope, offset)
        elif mean == MINIMUM:
            add_minimum(table, term, point, slope, offset)
        elif average == MACRO:
            add_macro(mean, form, weight / m, point, slope, offset)
        elif average == MICRO:
            tp, predicted, positive = mean_fractions(point)
            by_tp, by_predicted = of_mean_counts(mean, form, tp, predicted, positive, point.whole)
            add_same(by_tp, by_predicted, weight / m, slope, offset)
        elif mean == KAPPA or mean == CORRELATION:
            add_agreement(mean, weight, point, slope, offset)
        else:
            if table.shape[0] > 1:
                weight *= common_factor(mean, form, point)
            add_over_classes(mean, form, weight / m, point, slope, offset)


@helper
def add_custom(macro_psi, micro_psi, point, slope, offset):
    """Add a user's own metrics, given as functions that return their two derivatives."""
    m = point.every.shape[1]
    if macro_psi is not None:
        for j in range(slope.shape[0]):
            tp, predicted, positive = fractions(point, point.cells, j)
            by_tp, by_predicted = macro_psi(tp, predicted, positive, point.whole, point.inverse)
            slope[j] += by_tp / m
            offset[j] += by_predicted / m
    if micro_psi is not None:
        tp, predicted, positive = mean_fractions(point)
        by_tp, by_predicted = micro_psi(tp, predicted, positive, point.whole, point.inverse)
        add_same(by_tp, by_predicted, 1.0 / m, slope, offset)


@helper
def add_objective(objective, point, slope, offset):
    """Add all parts of what is maximized: (table, greedy table, macro psi, micro psi).

    A part that is None is left out by the compiler, so each kind of policy compiles only its own.
    """
    add_table(objective[0], point, slope, offset)
    add_greedy_table(objective[1], point, slope, offset)
    add_custom(objective[2], objective[3], point, slope, offset)


@entry
def gradient(objective, prior, cells, totals, slope, offset):
    """Add slope and offset of every label to what stands there."""
    point = point_at(cells, cells, totals, prior)
    add_objective(objective, point, slope, offset)
