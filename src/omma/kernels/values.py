"""Values of the metrics of one label, with the same small constants as their derivatives.

Greedy decisions and line searches compare values; ``omma.kernels.partials`` has the slopes.
Reported values come from ``omma.metrics``, and have no constants added.
"""

from __future__ import annotations

import numpy as np

from omma.kernels import minimum
from omma.kernels.jit import by_kind
from omma.kernels.kinds import (
    Arithmetic,
    Correlation,
    Geometric,
    Harmonic,
    Own,
    Quadratic,
    Rate,
    Smaller,
)
from omma.kernels.rates import rate_value, recall_and_specificity


@by_kind
def value(kind, rows, tp, predicted, positive, n):
    """The value of a metric of one label; ``rows`` is how many there are, for smoothing."""


@value.case(Rate)
def of_rate(kind, rows, tp, predicted, positive, n):
    return rate_value(kind, tp, predicted, positive, n)


@value.case(Arithmetic)
def of_arithmetic(kind, rows, tp, predicted, positive, n):
    r, s, _, _ = recall_and_specificity(kind, tp, predicted, positive, n)
    return 0.5 * (r + s)


@value.case(Geometric)
def of_geometric(kind, rows, tp, predicted, positive, n):
    r, s, _, _ = recall_and_specificity(kind, tp, predicted, positive, n)
    return np.sqrt(max(r, 0.0) * max(s, 0.0))


@value.case(Harmonic)
def of_harmonic(kind, rows, tp, predicted, positive, n):
    r, s, _, _ = recall_and_specificity(kind, tp, predicted, positive, n)
    return 2.0 * r * s / (r + s + kind.epsilon)


@value.case(Quadratic)
def of_quadratic(kind, rows, tp, predicted, positive, n):
    r, s, _, _ = recall_and_specificity(kind, tp, predicted, positive, n)
    return 1.0 - np.sqrt(0.5 * ((1.0 - r) * (1.0 - r) + (1.0 - s) * (1.0 - s)))


@value.case(Correlation)
def of_correlation(kind, rows, tp, predicted, positive, n):
    spread = max(predicted * (n - predicted) * positive * (n - positive), 0.0)
    return (tp * n - predicted * positive) / (np.sqrt(spread) + kind.epsilon)


@value.case(Smaller)
def of_smaller(kind, rows, tp, predicted, positive, n):
    smoothing = minimum.smoothing_at(kind.gamma, kind.rows, rows)
    return minimum.value(kind, smoothing, tp, predicted, positive, n)


@value.case(Own)
def of_own(kind, rows, tp, predicted, positive, n):
    return kind.value(tp, predicted, positive, n)
