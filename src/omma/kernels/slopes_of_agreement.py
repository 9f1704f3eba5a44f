"""Slope and offset of agreement over classes: kappa and the correlation."""

from __future__ import annotations

import numpy as np

from omma.kernels.jit import helper
from omma.kernels.kinds import ClassCorrelation, Kappa
from omma.kernels.layout import (
    SUM_CROSS,
    SUM_POSITIVE,
    SUM_POSITIVE_SQUARED,
    SUM_PREDICTED,
    SUM_PREDICTED_SQUARED,
    SUM_TP,
)
from omma.kernels.slopes import prepare, weigh

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
