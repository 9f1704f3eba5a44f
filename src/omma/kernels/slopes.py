"""A metric's slope and offset at some label, in two steps for every kind of term.

``prepare`` works out once a row what all labels share: coefficients with the prior put in, the
derivatives at mean counts, the factor of a mean over classes. ``weigh`` is the loop's body: from
that and the label's own counts it makes slope and offset. So a loop over labels is one loop, of
vector instructions, without arrays in between, and computes the same bits for a label wherever
its counts come from: all labels of a dense row, or those gathered for a sparse one.

Here are the cases of averages over labels, and of what is no derivative of a metric: rules, sums
and plug-in values. Those of classes are in ``slopes_of_classes``; ``gradient`` has them all.
"""

from omma.kernels.jit import by_kind
from omma.kernels.kinds import (
    Fixed,
    Geometric,
    Macro,
    MacroThreshold,
    Micro,
    MicroThreshold,
    Nothing,
    PlugIn,
    Rate,
    Sum,
    Weighted,
)
from omma.kernels.layout import SUM_POSITIVE, SUM_PREDICTED, SUM_TP
from omma.kernels.one_label import by_numerators, partials
from omma.kernels.point import as_fractions, mean_fractions


@by_kind
def prepare(term, point, pick):
    """What all labels of a row share; ``pick`` chooses among fixed rules."""


@by_kind
def weigh(term, ready, point, j, tp, predicted, positive):
    """Slope and offset of label j, with these counts."""


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
