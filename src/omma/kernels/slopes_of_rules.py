"""Slope and offset of what is no derivative of a metric, of sums, and of plug-in values."""

from __future__ import annotations

from omma.kernels.kinds import Fixed, MacroThreshold, MicroThreshold, Nothing, PlugIn, Sum
from omma.kernels.layout import SUM_POSITIVE, SUM_PREDICTED, SUM_TP
from omma.kernels.slopes import prepare, weigh

# OFO's own rule: predict where η·b − a ≥ 0, with a and b counted from the prior.


@prepare.case(MacroThreshold)
def prepare_macro_threshold(term, point, pick):
    return point.prior


@weigh.case(MacroThreshold)
def weigh_macro_threshold(term, ready, point, j, tp, predicted, positive):
    return term.weight * (predicted + positive + ready), -(term.weight * (tp + ready))


@prepare.case(MicroThreshold)
def prepare_micro_threshold(term, point, pick):
    totals = point.totals
    prior = point.cells.shape[1] * point.prior  # one for each label
    b = totals[SUM_PREDICTED] + totals[SUM_POSITIVE] + prior
    return term.weight * b, term.weight * -(totals[SUM_TP] + prior)


@weigh.case(MicroThreshold)
def weigh_micro_threshold(term, ready, point, j, tp, predicted, positive):
    return ready


# Rules that follow no counts, no rule at all, and sums.


@prepare.case(Fixed)
def prepare_fixed(term, point, pick):
    return pick


@weigh.case(Fixed)
def weigh_fixed(term, ready, point, j, tp, predicted, positive):
    return term.rules[ready, 0, j], term.rules[ready, 1, j]


@prepare.case(Nothing)
def prepare_nothing(term, point, pick):
    return 0.0


@weigh.case(Nothing)
def weigh_nothing(term, ready, point, j, tp, predicted, positive):
    return 0.0, 0.0


@prepare.case(Sum)
def prepare_sum(term, point, pick):
    return prepare(term.of, point, pick), prepare(term.rest, point, pick)


@weigh.case(Sum)
def weigh_sum(term, ready, point, j, tp, predicted, positive):
    slope, offset = weigh(term.of, ready[0], point, j, tp, predicted, positive)
    more, further = weigh(term.rest, ready[1], point, j, tp, predicted, positive)
    return slope + more, offset + further


# Values at expected counts: their gain (in ``omma.kernels.find``) is no line in η, so that a rule,
# which is one, has the derivative.


@prepare.case(PlugIn)
def prepare_plug_in(term, point, pick):
    return prepare(term.of, point, pick)


@weigh.case(PlugIn)
def weigh_plug_in(term, ready, point, j, tp, predicted, positive):
    return weigh(term.of, ready, point, j, tp, predicted, positive)
