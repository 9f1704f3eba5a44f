"""Where a gradient or a value is taken: counts, with the prior added, as fractions of the rows.

Rates there are ratios of linear forms in (tp, predicted, positive, n). Their coefficients are
tuples of scalars, which loops over labels keep in registers.
"""

from typing import Any, NamedTuple

from omma.kernels.jit import helper
from omma.kernels.layout import POSITIVE, PREDICTED, SUM_POSITIVE, SUM_PREDICTED, SUM_TP, TP, N


class Point(NamedTuple):
    """Counts of all labels, and what turns them into fractions."""

    cells: Any
    totals: Any
    prior: float
    whole: float  # all rows, as a fraction of themselves
    inverse: float  # one over the number of rows


@helper
def point_at(cells, totals, prior):
    """Before the first row, and with no prior, every fraction is zero."""
    total = totals[N] + 4.0 * prior
    if total > 0.0:
        return Point(cells, totals, prior, 1.0, 1.0 / total)
    return Point(cells, totals, prior, 0.0, 1.0)


@helper
def as_fractions(point, tp, predicted, positive):
    """The counts of a label, prior included, as fractions of the rows."""
    prior, inverse = point.prior, point.inverse
    return (
        (tp + prior) * inverse,
        (predicted + 2.0 * prior) * inverse,
        (positive + 2.0 * prior) * inverse,
    )


@helper
def fractions(point, j):
    """The same for label j of all."""
    cells = point.cells
    return as_fractions(point, cells[TP, j], cells[PREDICTED, j], cells[POSITIVE, j])


@helper
def mean_fractions(point):
    """The same, averaged over labels."""
    m = point.cells.shape[1]
    totals, prior, inverse = point.totals, point.prior, point.inverse
    return (
        (totals[SUM_TP] + m * prior) * inverse / m,
        (totals[SUM_PREDICTED] + 2.0 * m * prior) * inverse / m,
        (totals[SUM_POSITIVE] + 2.0 * m * prior) * inverse / m,
    )


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
