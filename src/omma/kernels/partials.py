"""Slope and offset: the derivatives of a metric by true positives and by predictions.

Every function here works on fractions (counts / n). A rate is a ratio of two linear forms in
(tp, predicted, positive, n); a metric of one label is a mean of one or two rates, or the Matthews
correlation. ``form`` holds the coefficients of two rates as tuples of scalars, so that loops over
labels keep them in registers.
"""

from __future__ import annotations

import numpy as np

from omma.kernels.jit import helper
from omma.kernels.layout import EPSILON, FIRST_RATE, SECOND_RATE, TINY


@helper
def read_rate(table, term, at):
    """The numerator and the denominator of a rate, as eight scalars."""
    c = table[term]
    return (
        (c[at], c[at + 1], c[at + 2], c[at + 3]),
        (c[at + 4], c[at + 5], c[at + 6], c[at + 7]),
    )


@helper
def read_form(table, term):
    """The coefficients of a term's two rates."""
    return read_rate(table, term, FIRST_RATE), read_rate(table, term, SECOND_RATE)


@helper
def linear(c, tp, predicted, positive, n):
    """A linear form."""
    return c[0] * tp + c[1] * predicted + c[2] * positive + c[3] * n


@helper
def rate_partials(rate, tp, predicted, positive, n):
    """Value of one rate, and its derivatives by tp and by predicted."""
    over, under = rate
    inverse = 1.0 / (linear(under, tp, predicted, positive, n) + EPSILON)
    value = linear(over, tp, predicted, positive, n) * inverse
    return value, (over[0] - value * under[0]) * inverse, (over[1] - value * under[1]) * inverse


@helper
def single(form, tp, predicted, positive, n):
    """One rate alone."""
    _, slope, offset = rate_partials(form[0], tp, predicted, positive, n)
    return slope, offset


@helper
def arithmetic(form, tp, predicted, positive, n):
    """(r + s) / 2."""
    _, r_slope, r_offset = rate_partials(form[0], tp, predicted, positive, n)
    _, s_slope, s_offset = rate_partials(form[1], tp, predicted, positive, n)
    return 0.5 * (r_slope + s_slope), 0.5 * (r_offset + s_offset)


@helper
def geometric(form, tp, predicted, positive, n):
    """sqrt(r * s)."""
    r, r_slope, r_offset = rate_partials(form[0], tp, predicted, positive, n)
    s, s_slope, s_offset = rate_partials(form[1], tp, predicted, positive, n)
    # Rounding may leave a rate a hair below zero, where a square root is no number.
    r = max(r, 0.0)
    s = max(s, 0.0)
    by_r = 0.5 * np.sqrt(s / (r + TINY))
    by_s = 0.5 * np.sqrt(r / (s + TINY))
    return by_r * r_slope + by_s * s_slope, by_r * r_offset + by_s * s_offset


@helper
def harmonic(form, tp, predicted, positive, n):
    """2rs / (r + s)."""
    r, r_slope, r_offset = rate_partials(form[0], tp, predicted, positive, n)
    s, s_slope, s_offset = rate_partials(form[1], tp, predicted, positive, n)
    inverse = 1.0 / (r + s + EPSILON)
    scale = 2.0 * inverse * inverse
    by_r = scale * s * (s + EPSILON)
    by_s = scale * r * (r + EPSILON)
    return by_r * r_slope + by_s * s_slope, by_r * r_offset + by_s * s_offset


@helper
def quadratic(form, tp, predicted, positive, n):
    """1 - sqrt(((1 - r)² + (1 - s)²) / 2)."""
    r, r_slope, r_offset = rate_partials(form[0], tp, predicted, positive, n)
    s, s_slope, s_offset = rate_partials(form[1], tp, predicted, positive, n)
    r_miss = 1.0 - r
    s_miss = 1.0 - s
    inverse = 0.5 / (np.sqrt(0.5 * (r_miss * r_miss + s_miss * s_miss)) + EPSILON)
    by_r = r_miss * inverse
    by_s = s_miss * inverse
    return by_r * r_slope + by_s * s_slope, by_r * r_offset + by_s * s_offset


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
