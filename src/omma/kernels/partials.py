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
def geometric(form, tp, predicted, positive, n):
    """sqrt(r * s) of recall r and specificity s."""
    r, s, by_tp, by_tn = recall_and_specificity(tp, predicted, positive, n)
    # Rounding may leave a rate a hair below zero, where a square root is no number.
    r = max(r, 0.0)
    s = max(s, 0.0)
    by_r = 0.5 * np.sqrt(s / (r + TINY))
    by_s = 0.5 * np.sqrt(r / (s + TINY))
    return together(by_r * by_tp, by_s * by_tn)


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
