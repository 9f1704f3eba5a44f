"""Metrics over classes: means of one rate, the smallest rate, kappa and correlation.

This file has the cases of ``gains.prepare`` and ``gains.slope_and_offset`` for these objectives. To
rank labels, a mean needs no sum over classes, because all its derivatives share one positive
factor. In a sum of objectives, and next to prices, that factor matters (``WeighedClasses``). An
objective that sums over classes needs every class, so sparse rows are run as dense ones
(``objectives.EVERY_CLASS``).

``cells`` are the fractions (tp, predicted, positive) of one class, including the prior, and m is
the number of classes.
"""

import numpy as np

from omma.kernels.gains import fractions, label_fractions, prepare, slope_and_offset
from omma.kernels.jit import by_kind, helper
from omma.kernels.layout import POSITIVE, PREDICTED, TP
from omma.kernels.objectives import (
    ClassCorrelation,
    Classes,
    Geometric,
    Harmonic,
    Kappa,
    Quadratic,
    Smallest,
    Steep,
    WeighedClasses,
    gamma_of,
    linear,
    product,
    rate_partials,
    smoothing_at,
)

# A mean of rates r_j is f⁻¹(Σ f(r_j) / m). ``transformed`` is f(r_j), ``by_class`` its derivative
# up to a factor of all classes, ``factor`` is that factor, and ``mean_from`` applies f⁻¹.


@by_kind
def transformed(mean, rate, point, cells):
    """Return f(r_j) of one class, with ε placed as in the code of the paper's authors."""


@by_kind
def by_class(mean, rate, point, cells):
    """Return the derivatives of f(r_j) by tp and by predicted, up to a factor of all classes."""


@by_kind
def factor(mean, total, m):
    """Return the factor that the derivatives share, from ``total`` = Σ f(r_j)."""


@by_kind
def mean_from(mean, total, m):
    """Return the mean f⁻¹(Σ f(r_j) / m), from ``total`` = Σ f(r_j)."""


@helper
def class_rate(rate, point, cells):
    """Return the rate of one class plus ε, and its derivatives by tp and by predicted."""
    rate_value, by_tp, by_predicted = rate_partials(rate, *cells, point.whole)
    return rate_value + rate.epsilon, by_tp, by_predicted


@transformed.case(Geometric)
def log_of_rate(mean, rate, point, cells):
    return np.log(class_rate(rate, point, cells)[0])


@by_class.case(Geometric)
def by_class_geometric(mean, rate, point, cells):
    rate_value, by_tp, by_predicted = class_rate(rate, point, cells)
    return by_tp / rate_value, by_predicted / rate_value


@factor.case(Geometric)
@mean_from.case(Geometric)
def exponential_of_mean(mean, total, m):
    return np.exp(total / m)


@helper
def over_and_under(rate, point, cells):
    """Return numerator and denominator of a rate, for the harmonic mean.

    Here ε is added to the numerator C_jj, which is a denominator in the harmonic mean.
    """
    over = linear(rate.over, *cells, point.whole) + rate.epsilon
    return over, linear(rate.under, *cells, point.whole)


@transformed.case(Harmonic)
def inverse_of_rate(mean, rate, point, cells):
    over, under = over_and_under(rate, point, cells)
    return under / over


@by_class.case(Harmonic)
def by_class_harmonic(mean, rate, point, cells):
    over, under = over_and_under(rate, point, cells)
    scale = 1.0 / (over * over)
    by_tp = (under * rate.over[0] - over * rate.under[0]) * scale
    return by_tp, (under * rate.over[1] - over * rate.under[1]) * scale


@factor.case(Harmonic)
def factor_harmonic(mean, total, m):
    return (m / total) * (m / total)


@mean_from.case(Harmonic)
def harmonic_from(mean, total, m):
    return m / total


@transformed.case(Quadratic)
def square_of_miss(mean, rate, point, cells):
    miss = 1.0 - class_rate(rate, point, cells)[0]
    return miss * miss


@by_class.case(Quadratic)
def by_class_quadratic(mean, rate, point, cells):
    rate_value, by_tp, by_predicted = class_rate(rate, point, cells)
    return (1.0 - rate_value) * by_tp, (1.0 - rate_value) * by_predicted


@factor.case(Quadratic)
def factor_quadratic(mean, total, m):
    return 1.0 / (np.sqrt(total / m) + mean.epsilon)


@mean_from.case(Quadratic)
def quadratic_from(mean, total, m):
    return 1.0 - np.sqrt(total / m)


@transformed.case(Steep)
def inverse_cube_of_rate(mean, rate, point, cells):
    rate_value, _, _ = class_rate(rate, point, cells)
    return 1.0 / (rate_value * rate_value * rate_value)


@by_class.case(Steep)
def by_class_steep(mean, rate, point, cells):
    rate_value, by_tp, by_predicted = class_rate(rate, point, cells)
    scale = 1.0 / ((rate_value * rate_value) * (rate_value * rate_value))
    return scale * by_tp, scale * by_predicted


@factor.case(Steep)
def factor_steep(mean, total, m):
    return (m / total) ** (4.0 / 3.0)


@helper
def sum_of_classes(objective, point):
    """Return Σ f(r_j) over all classes."""
    total = 0.0
    for j in range(point.m):
        total += transformed(objective.of, objective.rate, point, label_fractions(point, j))
    return total


@prepare.case(Classes)
def prepare_classes(objective, point):
    return objective.weight / point.m


@prepare.case(WeighedClasses)
def prepare_weighed_classes(objective, point):
    shared = factor(objective.of, sum_of_classes(objective, point), point.m)
    return objective.weight * shared / point.m


@slope_and_offset.case(Classes)
@slope_and_offset.case(WeighedClasses)
def weigh_classes(objective, common, point, eta, tp, predicted, positive):
    cells = fractions(point, tp, predicted, positive)
    by_tp, by_predicted = by_class(objective.of, objective.rate, point, cells)
    return common * by_tp, common * by_predicted


# The smallest rate, smoothed like the smaller of two rates (``objectives``; Appendix B.2 of the
# paper). Class j has the weight max(level − r_j, 0) / (γ ‖∇r_j‖²) in the minimizing mixture. The
# level is chosen so that the weights sum to 1.


@helper
def class_form(rate, point, cells):
    """Return the rate of one class, its derivatives, and its squared gradient norm plus ε."""
    rate_value, slope, offset = rate_partials(rate, *cells, point.whole)
    return rate_value, slope, offset, product(slope, offset, slope, offset) + rate.epsilon


@helper
def level_of_classes(objective, point):
    """Return the level, γ, and the number of classes that share the weight if γ = 0.

    Newton's method, started from above, finds the level in a few steps. With γ = 0 the level is the
    smallest rate, and the classes with that rate share the weight equally.
    """
    rate_of, m = objective.rate, point.m
    smoothing = smoothing_at(objective.gamma, objective.rows, point.rows)
    lowest, steepest = np.inf, 0.0
    for j in range(m):
        rate, _, _, square = class_form(rate_of, point, label_fractions(point, j))
        lowest, steepest = min(lowest, rate), max(steepest, square)
    gamma = gamma_of(smoothing, np.sqrt(steepest))
    if gamma <= 0.0:
        sharing = 0.0
        for j in range(m):
            rate, _, _, _ = class_form(rate_of, point, label_fractions(point, j))
            sharing += rate <= lowest
        return lowest, 0.0, sharing
    level = np.inf
    for j in range(m):
        rate, _, _, square = class_form(rate_of, point, label_fractions(point, j))
        level = min(level, rate + gamma * square)
    # Newton's method for Σ weights = 1: piecewise linear in the level, and steps go down.
    for _ in range(2 * m + 8):
        weighed, inverse = 1.0, 0.0
        for j in range(m):
            rate, _, _, square = class_form(rate_of, point, label_fractions(point, j))
            if rate < level:
                weighed += rate / (gamma * square)
                inverse += 1.0 / (gamma * square)
        if not weighed / inverse < level:
            break
        level = weighed / inverse
    return level, gamma, 1.0


@helper
def share_of_class(rate, square, level, gamma, sharing):
    """Return the weight of a class in the minimizing mixture."""
    if gamma > 0.0:
        return max(level - rate, 0.0) / (gamma * square)
    return 1.0 / sharing if rate <= level else 0.0


@prepare.case(Smallest)
def prepare_smallest(objective, point):
    return level_of_classes(objective, point)


@slope_and_offset.case(Smallest)
def weigh_smallest(objective, common, point, eta, tp, predicted, positive):
    cells = fractions(point, tp, predicted, positive)
    rate, by_tp, by_predicted, square = class_form(objective.rate, point, cells)
    share = objective.weight * share_of_class(rate, square, *common)
    return share * by_tp, share * by_predicted


@helper
def smallest_value(objective, point, smooth):
    """Return the smallest rate, smoothed if ``smooth``; otherwise the mixture of the rates.

    The mixture is Σ w_j r_j. Smoothing adds γ/2 Σ w_j² ‖∇r_j‖².
    """
    level, gamma, sharing = level_of_classes(objective, point)
    total = 0.0
    for j in range(point.m):
        rate, _, _, square = class_form(objective.rate, point, label_fractions(point, j))
        share = share_of_class(rate, square, level, gamma, sharing)
        total += share * (rate + (0.5 * gamma * share * square if smooth else 0.0))
    return total


# Kappa and correlation. All shares are relative to Σ positive, not n, and include the prior.


@helper
def agreement(point):
    """Return (added, 1/Σ, right, chance, Σ predicted², Σ positive²) over classes.

    ``added`` is 2λ: what the prior adds to predicted and positive of each class. Σ is Σ positive.
    ``right`` is the share of correct predictions and ``chance`` its expectation for independent
    predictions. All shares and squares are relative to Σ and include the prior.
    """
    cells, added = point.cells, 2.0 * point.prior  # to each class's predicted and positive
    hits, total, cross, predicted_squared, positive_squared = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(point.m):
        tp, predicted, positive = cells[TP, j], cells[PREDICTED, j], cells[POSITIVE, j]
        predicted, positive = predicted + added, positive + added
        hits += tp + point.prior
        total += positive
        cross += predicted * positive
        predicted_squared += predicted * predicted
        positive_squared += positive * positive
    inverse = 1.0 / total if total > 0.0 else 1.0
    squared = inverse * inverse
    return (
        added,
        inverse,
        hits * inverse,
        cross * squared,
        predicted_squared * squared,
        positive_squared * squared,
    )


@helper
def weight_per_row(objective, point, inverse):
    """Convert the weight from shares of Σ positive to fractions of the rows.

    Derivatives of other terms are by fractions of the rows (counts / n).
    """
    return objective.weight * (inverse / point.inverse)


@prepare.case(Kappa)
def prepare_kappa(objective, point):
    added, inverse, right, chance, _, _ = agreement(point)
    weight = weight_per_row(objective, point, inverse)
    by_right = 1.0 / (1.0 - chance + objective.epsilon)
    by_chance = -(1.0 - right + objective.epsilon) * by_right * by_right
    return added, inverse, weight * by_right, weight * by_chance, 0.0


@prepare.case(ClassCorrelation)
def prepare_correlation(objective, point):
    added, inverse, right, chance, predicted, positive = agreement(point)
    spread = 1.0 - positive
    root = np.sqrt(max((1.0 - predicted) * spread, 0.0))
    by_right = weight_per_row(objective, point, inverse) / (root + objective.epsilon)
    # The derivative of the square root is infinite at zero; ε bounds it.
    by_predicted = (right - chance) * spread
    by_predicted /= (root + objective.epsilon) * max(root, objective.epsilon)
    return added, inverse, by_right, -by_right, by_right * by_predicted


@slope_and_offset.case(Kappa)
@slope_and_offset.case(ClassCorrelation)
def weigh_agreement(objective, common, point, eta, tp, predicted, positive):
    added, inverse, slope, by_positive, by_predicted = common
    predicted_share = (predicted + added) * inverse
    positive_share = (positive + added) * inverse
    return slope, by_positive * positive_share + by_predicted * predicted_share
