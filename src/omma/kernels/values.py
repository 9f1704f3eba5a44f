"""Values of the metrics of one label, with the same small constants as their derivatives.

Greedy decisions and line searches compare values; ``omma.kernels.partials`` has the slopes.
Reported values come from ``omma.metrics``, and have no constants added.
"""

from __future__ import annotations

import numpy as np

from omma.kernels.jit import helper
from omma.kernels.layout import EPSILON
from omma.kernels.partials import linear, recall_and_specificity


@helper
def single(form, tp, predicted, positive, n):
    """A rate alone."""
    over, under = form
    return linear(over, tp, predicted, positive, n) / (
        linear(under, tp, predicted, positive, n) + EPSILON
    )


@helper
def arithmetic(form, tp, predicted, positive, n):
    """(r + s) / 2 of recall r and specificity s."""
    r, s, _, _ = recall_and_specificity(tp, predicted, positive, n)
    return 0.5 * (r + s)


@helper
def geometric(form, tp, predicted, positive, n):
    """sqrt(r * s) of recall r and specificity s."""
    r, s, _, _ = recall_and_specificity(tp, predicted, positive, n)
    return np.sqrt(max(r, 0.0) * max(s, 0.0))


@helper
def harmonic(form, tp, predicted, positive, n):
    """2rs / (r + s) of recall r and specificity s."""
    r, s, _, _ = recall_and_specificity(tp, predicted, positive, n)
    return 2.0 * r * s / (r + s + EPSILON)


@helper
def quadratic(form, tp, predicted, positive, n):
    """1 - sqrt(((1 - r)² + (1 - s)²) / 2) of recall r and specificity s."""
    r, s, _, _ = recall_and_specificity(tp, predicted, positive, n)
    return 1.0 - np.sqrt(0.5 * ((1.0 - r) * (1.0 - r) + (1.0 - s) * (1.0 - s)))


@helper
def correlation(form, tp, predicted, positive, n):
    """Matthews."""
    spread = max(predicted * (n - predicted) * positive * (n - positive), 0.0)
    return (tp * n - predicted * positive) / (np.sqrt(spread) + EPSILON)


@helper
def changes(of_one, form, tp, predicted, positive, whole, inverse):
    """Slope and offset of the expected value after one more row, per row, as a function of η.

    Predicting the label gains ``η·(v(1,1,1) − v(0,0,1)) + (1 − η)·(v(0,1,0) − v(0,0,0))``, where
    v(t, p, q) is the value with t, p and q more in tp, predicted and positive: linear in η.
    """
    rows = whole / inverse
    step = 1.0 / (rows + 1.0)
    keep = rows * step
    tp, predicted, positive = tp * keep, predicted * keep, positive * keep
    absent = of_one(form, tp, predicted + step, positive, 1.0) - of_one(
        form, tp, predicted, positive, 1.0
    )
    present = of_one(form, tp + step, predicted + step, positive + step, 1.0) - of_one(
        form, tp, predicted, positive + step, 1.0
    )
    return (present - absent) * (rows + 1.0), absent * (rows + 1.0)
