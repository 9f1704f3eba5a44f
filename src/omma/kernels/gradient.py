"""A metric's slope and offset at some label, in two steps for every kind of term.

``prepare`` works out once a row what all labels share: coefficients with the prior put in, the
derivatives at mean counts, the factor of a mean over classes. ``weigh`` is the loop's body: from
that and the label's own counts it makes slope and offset. So a loop over labels is one loop, of
vector instructions, without arrays in between, and computes the same bits for a label wherever
its counts come from: all labels of a dense row, or those gathered for a sparse one.
"""

from __future__ import annotations

import numpy as np

from omma.kernels import minimum
from omma.kernels.jit import by_kind, entry, helper
from omma.kernels.kinds import (
    ClassCorrelation,
    Classes,
    Fixed,
    Geometric,
    Harmonic,
    Kappa,
    Macro,
    MacroThreshold,
    Micro,
    MicroThreshold,
    Nothing,
    PlugIn,
    Quadratic,
    Rate,
    Smallest,
    Steep,
    Sum,
    WeighedClasses,
    Weighted,
)
from omma.kernels.layout import (
    POSITIVE,
    PREDICTED,
    SUM_CROSS,
    SUM_POSITIVE,
    SUM_POSITIVE_SQUARED,
    SUM_PREDICTED,
    SUM_PREDICTED_SQUARED,
    SUM_TP,
    TP,
    N,
)
from omma.kernels.partials import by_numerators, partials
from omma.kernels.point import as_fractions, mean_fractions, point_at
from omma.kernels.rates import linear, rate_partials


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


# Means of one rate over classes.


@helper
def class_rate(rate, point, tp, predicted, positive):
    """The rate of one class, kept off zero, and its derivatives."""
    tp_, predicted_, positive_ = as_fractions(point, tp, predicted, positive)
    found, by_tp, by_predicted = rate_partials(rate, tp_, predicted_, positive_, point.whole)
    return found + rate.epsilon, by_tp, by_predicted


@helper
def class_parts(rate, point, tp, predicted, positive):
    """What a rate of one class divides by what, the first kept off zero as in the paper."""
    cells = as_fractions(point, tp, predicted, positive)
    over = linear(rate.over, *cells, point.whole) + rate.epsilon
    return over, linear(rate.under, *cells, point.whole)


@by_kind
def by_class(mean, rate, point, tp, predicted, positive):
    """Derivatives of a mean by the counts of one class, without the factor all share."""


@by_class.case(Geometric)
def by_class_geometric(mean, rate, point, tp, predicted, positive):
    found, by_tp, by_predicted = class_rate(rate, point, tp, predicted, positive)
    scale = 1.0 / found
    return scale * by_tp, scale * by_predicted


@by_class.case(Harmonic)
def by_class_harmonic(mean, rate, point, tp, predicted, positive):
    """Of m / Σ under / over, with ε on what is divided: the paper's is on the cell C_jj."""
    over, under = class_parts(rate, point, tp, predicted, positive)
    scale = 1.0 / (over * over)
    by_tp = (under * rate.over[0] - over * rate.under[0]) * scale
    return by_tp, (under * rate.over[1] - over * rate.under[1]) * scale


@by_class.case(Steep)
def by_class_steep(mean, rate, point, tp, predicted, positive):
    found, by_tp, by_predicted = class_rate(rate, point, tp, predicted, positive)
    scale = 1.0 / ((found * found) * (found * found))
    return scale * by_tp, scale * by_predicted


@by_class.case(Quadratic)
def by_class_quadratic(mean, rate, point, tp, predicted, positive):
    found, by_tp, by_predicted = class_rate(rate, point, tp, predicted, positive)
    scale = 1.0 - found
    return scale * by_tp, scale * by_predicted


@by_kind
def summand(mean, rate, point, tp, predicted, positive):
    """What is added up of each class."""


@summand.case(Geometric)
def log_of_rate(mean, rate, point, tp, predicted, positive):
    return np.log(class_rate(rate, point, tp, predicted, positive)[0])


@summand.case(Harmonic)
def inverse_of_rate(mean, rate, point, tp, predicted, positive):
    over, under = class_parts(rate, point, tp, predicted, positive)
    return under / over


@summand.case(Quadratic)
def square_of_miss(mean, rate, point, tp, predicted, positive):
    miss = 1.0 - class_rate(rate, point, tp, predicted, positive)[0]
    return miss * miss


@summand.case(Steep)
def inverse_cube_of_rate(mean, rate, point, tp, predicted, positive):
    found, _, _ = class_rate(rate, point, tp, predicted, positive)
    return 1.0 / (found * found * found)


@by_kind
def factor_of(mean, total, m):
    """The factor that the derivatives share, from the sum over classes."""


@factor_of.case(Geometric)
def factor_geometric(mean, total, m):
    return np.exp(total / m)


@factor_of.case(Harmonic)
def factor_harmonic(mean, total, m):
    return (m / total) * (m / total)


@factor_of.case(Quadratic)
def factor_quadratic(mean, total, m):
    return 1.0 / (np.sqrt(total / m) + mean.epsilon)


@factor_of.case(Steep)
def factor_steep(mean, total, m):
    return (m / total) ** (4.0 / 3.0)


@helper
def sum_of_classes(term, point):
    """What a mean over classes adds up."""
    cells = point.cells
    total = 0.0
    for j in range(cells.shape[1]):
        total += summand(
            term.of, term.rate, point, cells[TP, j], cells[PREDICTED, j], cells[POSITIVE, j]
        )
    return total


@prepare.case(Classes)
def prepare_classes(term, point, pick):
    return term.weight / point.cells.shape[1]


@prepare.case(WeighedClasses)
def prepare_weighed(term, point, pick):
    m = point.cells.shape[1]
    return term.weight * factor_of(term.of, sum_of_classes(term, point), m) / m


@weigh.case(WeighedClasses)
@weigh.case(Classes)
def weigh_classes(term, ready, point, j, tp, predicted, positive):
    by_tp, by_predicted = by_class(term.of, term.rate, point, tp, predicted, positive)
    return ready * by_tp, ready * by_predicted


@prepare.case(Smallest)
def prepare_smallest(term, point, pick):
    smoothing = minimum.smoothing_at(term.gamma, term.rows, point.totals[N])
    return minimum.level_of_classes(term.rate, smoothing, point)


@weigh.case(Smallest)
def weigh_smallest(term, ready, point, j, tp, predicted, positive):
    level, gamma, shared = ready
    tp_, predicted_, positive_ = as_fractions(point, tp, predicted, positive)
    rate, by_tp, by_predicted, square = minimum.class_form(
        term.rate, point, tp_, predicted_, positive_
    )
    share = term.weight * minimum.class_weight(rate, square, level, gamma, shared)
    return share * by_tp, share * by_predicted


# Agreement over classes, from sums over classes. All counts are of Σ positive, not of n.


@helper
def agreement(point):
    """What kappa and the correlation share: (prior, 1/Σ, share right, share right by chance)."""
    m = point.cells.shape[1]
    totals = point.totals
    added = 2.0 * point.prior  # to each class's predicted and positive
    total = totals[SUM_POSITIVE] + m * added
    inverse = 1.0 / total if total > 0.0 else 1.0
    right = (totals[SUM_TP] + m * point.prior) * inverse
    mixed = added * (totals[SUM_PREDICTED] + totals[SUM_POSITIVE]) + m * added * added
    return added, inverse, right, (totals[SUM_CROSS] + mixed) * (inverse * inverse)


@helper
def squares(total, total_squared, added, m, inverse):
    """Σ of squared shares of classes, the prior put in."""
    return (total_squared + m * added * added + 2.0 * added * total) * (inverse * inverse)


@helper
def per_row(term, point, inverse):
    """The term's weight for derivatives by fractions of the rows, as those of its fellows in a sum.

    Shares are of Σ positive; what a fraction of the rows adds to them is its own multiple.
    """
    return term.weight * (inverse / point.inverse)


@prepare.case(Kappa)
def prepare_kappa(term, point, pick):
    added, inverse, right, cross = agreement(point)
    weight = per_row(term, point, inverse)
    by_right = 1.0 / (1.0 - cross + term.epsilon)
    by_cross = -(1.0 - right + term.epsilon) * by_right * by_right
    return added, inverse, weight * by_right, weight * by_cross, 0.0


@prepare.case(ClassCorrelation)
def prepare_correlation(term, point, pick):
    m, totals = point.cells.shape[1], point.totals
    added, inverse, right, cross = agreement(point)
    predicted = squares(totals[SUM_PREDICTED], totals[SUM_PREDICTED_SQUARED], added, m, inverse)
    spread = 1.0 - squares(totals[SUM_POSITIVE], totals[SUM_POSITIVE_SQUARED], added, m, inverse)
    root = np.sqrt(max((1.0 - predicted) * spread, 0.0))
    by_right = per_row(term, point, inverse) / (root + term.epsilon)
    # The root's own derivative is infinite at zero: ε stops it there.
    by_predicted = (right - cross) * spread / ((root + term.epsilon) * max(root, term.epsilon))
    return added, inverse, by_right, -by_right, by_right * by_predicted


@weigh.case(ClassCorrelation)
@weigh.case(Kappa)
def weigh_agreement(term, ready, point, j, tp, predicted, positive):
    added, inverse, slope, by_positive, by_predicted = ready
    predicted_share = (predicted + added) * inverse
    positive_share = (positive + added) * inverse
    return slope, by_positive * positive_share + by_predicted * predicted_share


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


@entry("the rule")
def gradient(term, prior, cells, totals, slope, offset):
    """Write slope and offset of every label."""
    point = point_at(cells, totals, prior)
    ready = prepare(term, point, 0)
    for j in range(slope.shape[0]):
        slope[j], offset[j] = weigh(
            term, ready, point, j, cells[TP, j], cells[PREDICTED, j], cells[POSITIVE, j]
        )
