"""Slope and offset of metrics over classes: means of one rate, the smallest, and agreement."""

import numpy as np

from omma.kernels import minimum
from omma.kernels.jit import by_kind, helper
from omma.kernels.kinds import (
    ClassCorrelation,
    Classes,
    Geometric,
    Harmonic,
    Kappa,
    Quadratic,
    Smallest,
    Steep,
    WeighedClasses,
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
from omma.kernels.point import as_fractions, linear, rate_partials
from omma.kernels.slopes import prepare, weigh


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
