"""What predicting a label gains: a line in its probability, but for values at expected counts."""

from __future__ import annotations

from omma.kernels.gradient import weigh
from omma.kernels.jit import by_kind, helper
from omma.kernels.kinds import Macro, PlugIn, Sum
from omma.kernels.layout import N
from omma.kernels.values import value


@by_kind
def gain(term, ready, point, j, tp, predicted, positive, eta):
    """What predicting label j of probability η gains."""


@gain.case()
def gain_on_line(term, ready, point, j, tp, predicted, positive, eta):
    slope, offset = weigh(term, ready, point, j, tp, predicted, positive)
    return slope * eta + offset


@gain.case(PlugIn)
def gain_of_plug_in(term, ready, point, j, tp, predicted, positive, eta):
    """Per row: the value at the expected counts with the label, less that without it."""
    prior, rows = point.prior, point.whole / point.inverse + 1.0
    cells = tp + prior, predicted + 2.0 * prior, positive + 2.0 * prior + eta
    return rows * difference(term.of, point, 1.0 / rows, cells, eta)


@helper
def priced_gain(term, ready, point, j, tp, predicted, positive, eta, more, further):
    """The same where prices of limits add to slope and offset, as they do to those of a rule."""
    slope, offset = weigh(term, ready, point, j, tp, predicted, positive)
    return (slope + more) * eta + (offset + further)


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
