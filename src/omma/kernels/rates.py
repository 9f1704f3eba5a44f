"""Rates: ratios of linear forms in (tp, predicted, positive, n), each a fraction of the rows.

Coefficients are tuples of scalars, which loops over labels keep in registers.
"""

from __future__ import annotations

from omma.kernels.jit import helper


@helper
def linear(c, tp, predicted, positive, n):
    """A linear form."""
    return c[0] * tp + c[1] * predicted + c[2] * positive + c[3] * n


@helper
def rate_value(rate, tp, predicted, positive, n):
    """The value of a rate."""
    return linear(rate.over, tp, predicted, positive, n) / (
        linear(rate.under, tp, predicted, positive, n) + rate.epsilon
    )


@helper
def rate_partials(rate, tp, predicted, positive, n):
    """Value of a rate, and its derivatives by tp and by predicted."""
    over, under = rate.over, rate.under
    inverse = 1.0 / (linear(under, tp, predicted, positive, n) + rate.epsilon)
    value = linear(over, tp, predicted, positive, n) * inverse
    return value, (over[0] - value * under[0]) * inverse, (over[1] - value * under[1]) * inverse


@helper
def recall_and_specificity(kind, tp, predicted, positive, n):
    """Both rates, and the derivatives of each by its numerator."""
    by_tp = 1.0 / (positive + kind.epsilon)
    by_tn = 1.0 / (n - positive + kind.epsilon)
    return tp * by_tp, (n - predicted - positive + tp) * by_tn, by_tp, by_tn
