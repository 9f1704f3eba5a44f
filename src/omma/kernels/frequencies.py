"""What a tangent needs beyond slope and offset.

That is the derivative by how often a label occurs, taken by differences of the value: decisions do
not move label frequencies, so no rule needs it, but who estimates what a metric can reach does,
because frequencies are estimated too. And of a minimum it is the mixture of its rates, which lies
above the minimum, and closer to it than the smoothing that the mixture comes from.
"""

from __future__ import annotations

from omma.kernels import minimum
from omma.kernels.jit import by_kind, entry, helper
from omma.kernels.kinds import Macro, Micro, Smaller, Smallest
from omma.kernels.layout import N
from omma.kernels.point import fractions, mean_fractions, point_at
from omma.kernels.values import value

STEP = 1e-5  # of the frequency itself


@by_kind
def slope_of(term, point, at):
    """The derivative of a term's metric of one label by the label's frequency."""


@slope_of.case(Micro)
@slope_of.case(Macro)
def slope_of_value(term, point, at):
    tp, predicted, positive = at
    h = STEP * positive
    if h <= 0.0:
        return 0.0
    up = value(term.of, point.totals[N], tp, predicted, positive + h, point.whole)
    down = value(term.of, point.totals[N], tp, predicted, positive - h, point.whole)
    return (up - down) / (2.0 * h)


@slope_of.case(Micro, Smaller)
@slope_of.case(Macro, Smaller)
def slope_of_mixture(term, point, at):
    """Of a minimum's mixture, at a given share of its rates."""
    tp, predicted, positive = at
    h = STEP * positive
    if h <= 0.0:
        return 0.0
    share = share_at(term.of, point, at)
    up = minimum.mixed(term.of, share, tp, predicted, positive + h, point.whole)
    down = minimum.mixed(term.of, share, tp, predicted, positive - h, point.whole)
    return (up - down) / (2.0 * h)


@helper
def share_at(pair, point, at):
    """How much the first of two rates weighs."""
    tp, predicted, positive = at
    smoothing = minimum.smoothing_at(pair.gamma, pair.rows, point.totals[N])
    return minimum.share_of_first(pair, smoothing, tp, predicted, positive, point.whole)


@by_kind
def add_slopes(term, point, out):
    """Add the derivative by each label's frequency."""


@add_slopes.case(Macro)
def add_macro(term, point, out):
    weight = term.weight / out.shape[0]
    for j in range(out.shape[0]):
        out[j] += weight * slope_of(term, point, fractions(point, j))


@add_slopes.case(Micro)
def add_micro(term, point, out):
    slope = slope_of(term, point, mean_fractions(point))
    for j in range(out.shape[0]):
        out[j] += term.weight / out.shape[0] * slope


@entry("the slopes")
def by_positive(term, prior, cells, totals, out):
    """Add the derivatives of a term that is an average over labels."""
    add_slopes(term, point_at(cells, totals, prior), out)


@helper
def mixture_at(pair, point, at):
    """The mixture of two rates at its own share."""
    tp, predicted, positive = at
    return minimum.mixed(pair, share_at(pair, point, at), tp, predicted, positive, point.whole)


@by_kind
def mixture(term, point):
    """The mixture of a minimum's rates."""


@mixture.case(Micro)
def mixture_micro(term, point):
    return mixture_at(term.of, point, mean_fractions(point))


@mixture.case(Macro)
def mixture_macro(term, point):
    m = point.cells.shape[1]
    total = 0.0
    for j in range(m):
        total += mixture_at(term.of, point, fractions(point, j))
    return total / m


@mixture.case(Smallest)
def mixture_smallest(term, point):
    smoothing = minimum.smoothing_at(term.gamma, term.rows, point.totals[N])
    return minimum.value_of_classes(term.rate, smoothing, point, False)


@entry("the mixture")
def mixture_of(term, prior, cells, totals):
    """The mixture of a minimum's rates, at some counts."""
    return mixture(term, point_at(cells, totals, prior))
