"""What a tangent needs beyond slope and offset.

That is the derivative by how often a label occurs, taken by differences of the value: decisions do
not move label frequencies, so no rule needs it, but who estimates what a metric can reach does,
because frequencies are estimated too. And of a minimum it is the mixture of its rates, which lies
above the minimum, and closer to it than the smoothing that the mixture comes from.
"""

from __future__ import annotations

from omma.kernels import minimum
from omma.kernels.gradient import fractions, mean_fractions, point_at
from omma.kernels.jit import entry, helper, section
from omma.kernels.layout import AVERAGE, CLASSES, MEAN, MICRO, MINIMUM, WEIGHT, N
from omma.kernels.partials import read_form
from omma.kernels.utility import of_label

STEP = 1e-5  # of the frequency itself


@section
def of_term(table, term, rows, share, tp, predicted, positive, whole):
    """A term's metric of one label; a minimum's mixture at a given share."""
    if table[term, MEAN] == MINIMUM:
        pair = minimum.read_pair(table, term, rows)
        return minimum.mixed(pair, share, tp, predicted, positive, whole)
    form = read_form(table, term)
    return of_label(table[term, MEAN], form, tp, predicted, positive, whole)


@helper
def slope_of_term(table, term, rows, tp, predicted, positive, whole):
    """Its derivative by the frequency of the label."""
    h = STEP * positive
    if h <= 0.0:
        return 0.0
    share = 0.0
    if table[term, MEAN] == MINIMUM:
        pair = minimum.read_pair(table, term, rows)
        share = minimum.share_of_first(pair, tp, predicted, positive, whole)
    up = of_term(table, term, rows, share, tp, predicted, positive + h, whole)
    down = of_term(table, term, rows, share, tp, predicted, positive - h, whole)
    return (up - down) / (2.0 * h)


@helper
def slope_of_own(value, tp, predicted, positive, whole):
    """The same for a user's own metric."""
    h = STEP * positive
    if h <= 0.0:
        return 0.0
    up = value(tp, predicted, positive + h, whole)
    return (up - value(tp, predicted, positive - h, whole)) / (2.0 * h)


@helper
def mixture_at(pair, at, whole):
    """The mixture of two rates at its own share."""
    tp, predicted, positive = at
    share = minimum.share_of_first(pair, tp, predicted, positive, whole)
    return minimum.mixed(pair, share, tp, predicted, positive, whole)


@entry
def by_positive(table, macro_value, micro_value, prior, cells, totals, out):
    """Add the derivatives of all terms that are averages over labels; those of classes are not."""
    m = cells.shape[1]
    point = point_at(cells, cells, totals, prior)
    whole, rows = point.whole, totals[N]
    mean_tp, mean_predicted, mean_positive = mean_fractions(point)
    if table is not None:
        for term in range(table.shape[0]):
            weight = table[term, WEIGHT] / m
            if table[term, AVERAGE] == CLASSES:
                continue
            if table[term, AVERAGE] == MICRO:
                slope = slope_of_term(
                    table, term, rows, mean_tp, mean_predicted, mean_positive, whole
                )
                for j in range(m):
                    out[j] += weight * slope
            else:
                for j in range(m):
                    tp, predicted, positive = fractions(point, cells, j)
                    out[j] += weight * slope_of_term(
                        table, term, rows, tp, predicted, positive, whole
                    )
    if macro_value is not None:
        for j in range(m):
            tp, predicted, positive = fractions(point, cells, j)
            out[j] += slope_of_own(macro_value, tp, predicted, positive, whole) / m
    if micro_value is not None:
        slope = slope_of_own(micro_value, mean_tp, mean_predicted, mean_positive, whole)
        for j in range(m):
            out[j] += slope / m


@entry
def mixture_of(table, prior, cells, totals):
    """The mixture of a minimum's rates, for a table of that one term."""
    point = point_at(cells, cells, totals, prior)
    pair = minimum.read_pair(table, 0, totals[N])
    if table[0, AVERAGE] == CLASSES:
        return minimum.value_of_classes(pair[0], pair[2], point, False)
    if table[0, AVERAGE] == MICRO:
        return mixture_at(pair, mean_fractions(point), point.whole)
    total = 0.0
    for j in range(cells.shape[1]):
        total += mixture_at(pair, fractions(point, cells, j), point.whole)
    return total / cells.shape[1]
