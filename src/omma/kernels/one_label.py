"""Metrics of one label: their values, and slope and offset, the derivatives by tp and by predicted.

Everything here works on fractions (counts / n), with ε in denominators where the paper has it.
Greedy decisions and line searches compare values, with the same small constants as derivatives
have; reported values come from ``omma.metrics``, and have no constants added.
"""

import numpy as np

from omma.kernels import minimum
from omma.kernels.jit import by_kind, helper
from omma.kernels.kinds import (
    Arithmetic,
    Change,
    Correlation,
    Geometric,
    Harmonic,
    Own,
    Quadratic,
    Rate,
    Smaller,
)
from omma.kernels.lanes import larger
from omma.kernels.layout import TINY, N
from omma.kernels.point import rate_partials, rate_value, recall_and_specificity


@by_kind
def value(kind, rows, tp, predicted, positive, n):
    """The value of a metric of one label; ``rows`` is how many there are, for smoothing."""


@value.case(Rate)
def value_of_rate(kind, rows, tp, predicted, positive, n):
    return rate_value(kind, tp, predicted, positive, n)


@value.case(Arithmetic)
def value_of_arithmetic(kind, rows, tp, predicted, positive, n):
    r, s, _, _ = recall_and_specificity(kind, tp, predicted, positive, n)
    return 0.5 * (r + s)


@value.case(Geometric)
def value_of_geometric(kind, rows, tp, predicted, positive, n):
    r, s, _, _ = recall_and_specificity(kind, tp, predicted, positive, n)
    return np.sqrt(max(r, 0.0) * max(s, 0.0))


@value.case(Harmonic)
def value_of_harmonic(kind, rows, tp, predicted, positive, n):
    r, s, _, _ = recall_and_specificity(kind, tp, predicted, positive, n)
    return 2.0 * r * s / (r + s + kind.epsilon)


@value.case(Quadratic)
def value_of_quadratic(kind, rows, tp, predicted, positive, n):
    r, s, _, _ = recall_and_specificity(kind, tp, predicted, positive, n)
    return 1.0 - np.sqrt(0.5 * ((1.0 - r) * (1.0 - r) + (1.0 - s) * (1.0 - s)))


@value.case(Correlation)
def value_of_correlation(kind, rows, tp, predicted, positive, n):
    spread = max(predicted * (n - predicted) * positive * (n - positive), 0.0)
    return (tp * n - predicted * positive) / (np.sqrt(spread) + kind.epsilon)


@value.case(Smaller)
def value_of_smaller(kind, rows, tp, predicted, positive, n):
    smoothing = minimum.smoothing_at(kind.gamma, kind.rows, rows)
    return minimum.value(kind, smoothing, tp, predicted, positive, n)


@value.case(Own)
def value_of_own(kind, rows, tp, predicted, positive, n):
    return kind.value(tp, predicted, positive, n)


@by_kind
def partials(kind, point, tp, predicted, positive):
    """Slope and offset of a metric of one label; ``point`` knows how many rows there are."""


@partials.case(Rate)
def partials_of_rate(kind, point, tp, predicted, positive):
    _, slope, offset = rate_partials(kind, tp, predicted, positive, point.whole)
    return slope, offset


@helper
def together(by_recall, by_specificity):
    """Slope and offset: a true positive adds to both numerators, a prediction takes from tn."""
    return by_recall + by_specificity, -by_specificity


@partials.case(Arithmetic)
def partials_of_arithmetic(kind, point, tp, predicted, positive):
    _, _, by_tp, by_tn = recall_and_specificity(kind, tp, predicted, positive, point.whole)
    return together(0.5 * by_tp, 0.5 * by_tn)


@helper
def by_numerators(tp, predicted, positive, n, epsilon):
    """Derivatives of √(r s), recall r = tp / P and specificity s = tn / N, by tp and by tn.

    That by tp is √(tn / (P N tp)) / 2, that by tn the same with tp and tn exchanged: one root
    and one division serve both. Counts may be given for fractions, with ``epsilon`` for so many
    rows: the derivatives are then those by counts.
    """
    # Rounding may leave a count a hair below zero, where a square root is no number.
    tn = larger(n - predicted - positive + tp, 0.0)
    tp = larger(tp, 0.0)
    present = positive + epsilon
    absent = n - positive + epsilon
    product = (present * absent) * ((tp + TINY * present) * (tn + TINY * absent))
    half = 0.5 / np.sqrt(product)
    return tn * half, tp * half


@partials.case(Geometric)
def partials_of_geometric(kind, point, tp, predicted, positive):
    by_tp, by_tn = by_numerators(tp, predicted, positive, point.whole, kind.epsilon)
    return together(by_tp, by_tn)


@partials.case(Harmonic)
def partials_of_harmonic(kind, point, tp, predicted, positive):
    r, s, by_tp, by_tn = recall_and_specificity(kind, tp, predicted, positive, point.whole)
    inverse = 1.0 / (r + s + kind.epsilon)
    scale = 2.0 * inverse * inverse
    return together(scale * s * (s + kind.epsilon) * by_tp, scale * r * (r + kind.epsilon) * by_tn)


@partials.case(Quadratic)
def partials_of_quadratic(kind, point, tp, predicted, positive):
    r, s, by_tp, by_tn = recall_and_specificity(kind, tp, predicted, positive, point.whole)
    r_miss = 1.0 - r
    s_miss = 1.0 - s
    inverse = 0.5 / (np.sqrt(0.5 * (r_miss * r_miss + s_miss * s_miss)) + kind.epsilon)
    return together(r_miss * inverse * by_tp, s_miss * inverse * by_tn)


@partials.case(Correlation)
def partials_of_correlation(kind, point, tp, predicted, positive):
    n = point.whole
    covariance = tp * n - predicted * positive
    predicted_variance = predicted * (n - predicted)
    positive_variance = positive * (n - positive)
    root = np.sqrt(larger(predicted_variance * positive_variance, 0.0))
    inverse = 1.0 / (root + kind.epsilon)
    # The root's own derivative is infinite at zero: ε stops it there.
    root_by_predicted = 0.5 * positive_variance * (n - 2.0 * predicted) / larger(root, kind.epsilon)
    return n * inverse, -(positive + covariance * inverse * root_by_predicted) * inverse


@partials.case(Smaller)
def partials_of_smaller(kind, point, tp, predicted, positive):
    smoothing = minimum.smoothing_at(kind.gamma, kind.rows, point.totals[N])
    return minimum.slopes(kind, smoothing, tp, predicted, positive, point.whole)


@partials.case(Own)
def partials_of_own(kind, point, tp, predicted, positive):
    return kind.partials(tp, predicted, positive, point.whole)


@partials.case(Change)
def partials_of_change(kind, point, tp, predicted, positive):
    """The expected value after one more row, per row, as a function of η.

    Predicting the label gains ``η·(v(1,1,1) − v(0,0,1)) + (1 − η)·(v(0,1,0) − v(0,0,0))``, where
    v(t, p, q) is the value with t, p and q more in tp, predicted and positive: linear in η.
    """
    rows = point.whole / point.inverse
    step = 1.0 / (rows + 1.0)
    keep = rows * step
    n = point.totals[N]
    tp, predicted, positive = tp * keep, predicted * keep, positive * keep
    absent = value(kind.of, n, tp, predicted + step, positive, 1.0) - value(
        kind.of, n, tp, predicted, positive, 1.0
    )
    present = value(kind.of, n, tp + step, predicted + step, positive + step, 1.0) - value(
        kind.of, n, tp, predicted, positive + step, 1.0
    )
    return (present - absent) * (rows + 1.0), absent * (rows + 1.0)
