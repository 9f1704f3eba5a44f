"""Slope and offset: the derivatives of a metric by true positives and by predictions.

Every function here works on fractions (counts / n). A rate is a ratio of two linear forms in
(tp, predicted, positive, n), its coefficients given as ``form``, tuples of scalars that loops over
labels keep in registers. A metric of one label is such a rate, a mean of recall and specificity, or
the Matthews correlation. (Means of any two rates, from sixteen coefficients, took a third longer;
a user's own metric is compiled for what else there is.)
"""

from __future__ import annotations

import numpy as np

from omma.kernels.jit import helper
from omma.kernels.layout import EPSILON, RATE_AT, TINY


@helper
def read_form(table, term):
    """The numerator and the denominator of a term's rate."""
    c = table[term, RATE_AT:]
    return (c[0], c[1], c[2], c[3]), (c[4], c[5], c[6], c[7])


@helper
def linear(c, tp, predicted, positive, n):
    """A linear form."""
    return c[0] * tp + c[1] * predicted + c[2] * positive + c[3] * n


@helper
def rate_partials(form, tp, predicted, positive, n):
    """Value of a rate, and its derivatives by tp and by predicted."""
    over, under = form
    inverse = 1.0 / (linear(under, tp, predicted, positive, n) + EPSILON)
    value = linear(over, tp, predicted, positive, n) * inverse
    return value, (over[0] - value * under[0]) * inverse, (over[1] - value * under[1]) * inverse


@helper
def single(form, tp, predicted, positive, n):
    """A rate alone."""
    _, slope, offset = rate_partials(form, tp, predicted, positive, n)
    return slope, offset


@helper
def recall_and_specificity(tp, predicted, positive, n):
    """Both rates, and the derivatives of each by its numerator."""
    by_tp = 1.0 / (positive + EPSILON)
    by_tn = 1.0 / (n - positive + EPSILON)
    return tp * by_tp, (n - predicted - positive + tp) * by_tn, by_tp, by_tn


@helper
def together(by_recall, by_specificity):
    """Slope and offset: a true positive adds to both numerators, a prediction takes from tn."""
    return by_recall + by_specificity, -by_specificity


@helper
def arithmetic(form, tp, predicted, positive, n):
    """(r + s) / 2 of recall r and specificity s."""
    _, _, by_tp, by_tn = recall_and_specificity(tp, predicted, positive, n)
    return together(0.5 * by_tp, 0.5 * by_tn)


@helper
def by_numerators(tp, predicted, positive, n, epsilon):
    """Derivatives of sqrt(r * s), recall r = tp / P and specificity s = tn / N, by tp and tn.

    That by tp is sqrt(tn / (P N tp)) / 2, that by tn the same with tp and tn exchanged: one root
    and one division serve both. Counts may be given for fractions, with ``epsilon`` for so many
    rows: the derivatives are then those by counts.
    """
    # Rounding may leave a count a hair below zero, where a square root is no number.
    tn = max(n - predicted - positive + tp, 0.0)
    tp = max(tp, 0.0)
    present = positive + epsilon
    absent = n - positive + epsilon
    product = (present * absent) * ((tp + TINY * present) * (tn + TINY * absent))
    half = 0.5 / np.sqrt(product)
    return tn * half, tp * half


@helper
def geometric(form, tp, predicted, positive, n):
    """sqrt(r * s) of recall r and specificity s."""
    by_tp, by_tn = by_numerators(tp, predicted, positive, n, EPSILON)
    return together(by_tp, by_tn)


@helper
def harmonic(form, tp, predicted, positive, n):
    """2rs / (r + s) of recall r and specificity s."""
    r, s, by_tp, by_tn = recall_and_specificity(tp, predicted, positive, n)
    inverse = 1.0 / (r + s + EPSILON)
    scale = 2.0 * inverse * inverse
    return together(scale * s * (s + EPSILON) * by_tp, scale * r * (r + EPSILON) * by_tn)


@helper
def quadratic(form, tp, predicted, positive, n):
    """1 - sqrt(((1 - r)² + (1 - s)²) / 2) of recall r and specificity s."""
    r, s, by_tp, by_tn = recall_and_specificity(tp, predicted, positive, n)
    r_miss = 1.0 - r
    s_miss = 1.0 - s
    inverse = 0.5 / (np.sqrt(0.5 * (r_miss * r_miss + s_miss * s_miss)) + EPSILON)
    return together(r_miss * inverse * by_tp, s_miss * inverse * by_tn)


@helper
def correlation(form, tp, predicted, positive, n):
    """Matthews: covariance over the root of the product of the two variances."""
    covariance = tp * n - predicted * positive
    predicted_variance = predicted * (n - predicted)
    positive_variance = positive * (n - positive)
    root = np.sqrt(max(predicted_variance * positive_variance, 0.0)) + EPSILON
    inverse = 1.0 / root
    root_by_predicted = 0.5 * positive_variance * (n - 2.0 * predicted) * inverse
    return n * inverse, -(positive + covariance * inverse * root_by_predicted) * inverse
