"""Slope and offset of averages over labels: macro, micro and weighted."""

from __future__ import annotations

from omma.kernels.kinds import Geometric, Macro, Micro, Rate, Weighted
from omma.kernels.layout import SUM_POSITIVE
from omma.kernels.partials import by_numerators, partials
from omma.kernels.point import as_fractions, mean_fractions
from omma.kernels.slopes import prepare, weigh

# The mean over labels of any metric of one label.


@prepare.case(Macro)
def prepare_macro(term, point, pick):
    return term.weight / point.cells.shape[1]


@weigh.case(Macro)
def weigh_macro(term, ready, point, j, tp, predicted, positive):
    tp_, predicted_, positive_ = as_fractions(point, tp, predicted, positive)
    by_tp, by_predicted = partials(term.of, point, tp_, predicted_, positive_)
    return ready * by_tp, ready * by_predicted


# Of a rate: fractions, prior and weight go into its coefficients, once a row.


@prepare.case(Macro, Rate)
def prepare_rate(term, point, pick):
    over, under = term.of.over, term.of.under
    scale, prior, weight = point.inverse, point.prior, term.weight / point.cells.shape[1]
    over_tp, over_predicted, over_positive = over[0] * scale, over[1] * scale, over[2] * scale
    under_tp, under_predicted, under_positive = under[0] * scale, under[1] * scale, under[2] * scale
    over_rest = over[3] * point.whole
    over_rest += prior * (over_tp + 2.0 * over_predicted + 2.0 * over_positive)
    under_rest = under[3] * point.whole + term.of.epsilon
    under_rest += prior * (under_tp + 2.0 * under_predicted + 2.0 * under_positive)
    return (
        (over_tp, over_predicted, over_positive, over_rest),
        (under_tp, under_predicted, under_positive, under_rest),
        (weight * over[0], weight * under[0], weight * over[1], weight * under[1]),
    )


@weigh.case(Macro, Rate)
def weigh_rate(term, ready, point, j, tp, predicted, positive):
    over, under, by = ready
    inverse = 1.0 / (under[0] * tp + under[1] * predicted + under[2] * positive + under[3])
    value = (over[0] * tp + over[1] * predicted + over[2] * positive + over[3]) * inverse
    return (by[0] - value * by[1]) * inverse, (by[2] - value * by[3]) * inverse


# Of a geometric mean: it works on counts, which saves making fractions.


@prepare.case(Macro, Geometric)
def prepare_geometric(term, point, pick):
    rows = 1.0 / point.inverse
    weight = term.weight / point.cells.shape[1]
    return point.whole * rows, term.of.epsilon * rows, weight * rows


@weigh.case(Macro, Geometric)
def weigh_geometric(term, ready, point, j, tp, predicted, positive):
    everything, epsilon, weight = ready
    prior = point.prior
    by_tp, by_tn = by_numerators(
        tp + prior, predicted + 2.0 * prior, positive + 2.0 * prior, everything, epsilon
    )
    by_tn *= weight
    return weight * by_tp + by_tn, -by_tn


# At the counts averaged over labels: each label moves them alike.


@prepare.case(Micro)
def prepare_micro(term, point, pick):
    tp, predicted, positive = mean_fractions(point)
    by_tp, by_predicted = partials(term.of, point, tp, predicted, positive)
    weight = term.weight / point.cells.shape[1]
    return weight * by_tp, weight * by_predicted


@weigh.case(Micro)
def weigh_micro(term, ready, point, j, tp, predicted, positive):
    return ready


# The mean over labels, weighed by how often each occurs: decisions do not move that.


@prepare.case(Weighted)
def prepare_weighted(term, point, pick):
    everywhere = point.totals[SUM_POSITIVE] + 2.0 * point.cells.shape[1] * point.prior
    return term.weight / everywhere if everywhere > 0.0 else 0.0


@weigh.case(Weighted)
def weigh_weighted(term, ready, point, j, tp, predicted, positive):
    tp_, predicted_, positive_ = as_fractions(point, tp, predicted, positive)
    by_tp, by_predicted = partials(term.of, point, tp_, predicted_, positive_)
    share = ready * (positive + 2.0 * point.prior)
    return share * by_tp, share * by_predicted
