"""Values at the counts that one more row is expected to leave, in place of derivatives."""

from __future__ import annotations

from omma.kernels.jit import by_kind
from omma.kernels.kinds import Macro, Sum
from omma.kernels.layout import N
from omma.kernels.values import value


@by_kind
def difference(term, point, inverse, cells, eta):
    """How much one more prediction, right with probability η, changes a term."""


@difference.case(Macro)
def difference_of_macro(term, point, inverse, cells, eta):
    tp, predicted, positive = cells
    positive *= inverse
    n = point.totals[N]
    with_it = value(term.of, n, (tp + eta) * inverse, (predicted + 1.0) * inverse, positive, 1.0)
    without = value(term.of, n, tp * inverse, predicted * inverse, positive, 1.0)
    return term.weight / point.cells.shape[1] * (with_it - without)


@difference.case(Sum)
def difference_of_sum(term, point, inverse, cells, eta):
    first = difference(term.of, point, inverse, cells, eta)
    return first + difference(term.rest, point, inverse, cells, eta)
