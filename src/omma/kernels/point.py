"""Where a gradient or a value is taken: counts, with the prior added, as fractions of the rows."""

from __future__ import annotations

from typing import Any, NamedTuple

from omma.kernels.jit import helper
from omma.kernels.layout import (
    POSITIVE,
    PREDICTED,
    SUM_POSITIVE,
    SUM_PREDICTED,
    SUM_TP,
    TP,
    N,
)


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
