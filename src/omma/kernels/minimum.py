"""The smaller of two rates, or the smallest over classes: a kink, and its Moreau-Yosida smoothing.

At fixed label frequencies such a minimum is concave. Its supergradient at a kink is any mixture of
those of the rates that are smallest there. Smoothed by γ it is

    ψ_γ(C) = max over C' of ψ(C') − ‖C − C'‖² / 2γ = min over mixtures w of w·f + γ/2 ‖Σ w_i ∇f_i‖²

for rates f that are linear in tp and fp, the two cells that decisions change; the norm is over
these. Its gradient is that of the minimizing mixture.
"""

from __future__ import annotations

import numpy as np

from omma.kernels.jit import helper, section
from omma.kernels.layout import EPSILON, GAMMA, RATE_AT, ROWS, SECOND_AT
from omma.kernels.partials import rate_partials


@helper
def read_smoothing(table, term, rows):
    """γ, and what γ·L is where it follows the number of rows (else zero).

    The bound of the paper is best at γ = √(2 (1 + ln n) / n) / L.
    """
    gamma = table[term, GAMMA]
    if gamma >= 0.0:
        return gamma, 0.0
    n = table[term, ROWS] if table[term, ROWS] > 0.0 else rows
    n = max(n, 1.0)
    return 0.0, np.sqrt(2.0 * (1.0 + np.log(n)) / n)


@helper
def gamma_of(smoothing, steepness):
    """γ where the minimum is ``steepness``-Lipschitz."""
    gamma, scale = smoothing
    return scale / steepness if scale > 0.0 else gamma


@helper
def read_pair(table, term, rows):
    """A term's two rates, and how their minimum is smoothed."""
    a = table[term, RATE_AT:]
    b = table[term, SECOND_AT:]
    return (
        ((a[0], a[1], a[2], a[3]), (a[4], a[5], a[6], a[7])),
        ((b[0], b[1], b[2], b[3]), (b[4], b[5], b[6], b[7])),
        read_smoothing(table, term, rows),
    )


@helper
def product(a_slope, a_offset, b_slope, b_offset):
    """The scalar product of two gradients by tp and fp."""
    return (a_slope + a_offset) * (b_slope + b_offset) + a_offset * b_offset


@helper
def mixture(a, a_slope, a_offset, b, b_slope, b_offset, smoothing):
    """The share of the first rate in the minimizing mixture, and γ."""
    a_square = product(a_slope, a_offset, a_slope, a_offset)
    b_square = product(b_slope, b_offset, b_slope, b_offset)
    both = product(a_slope, a_offset, b_slope, b_offset)
    gamma = gamma_of(smoothing, np.sqrt(max(a_square, b_square)))
    bend = gamma * (a_square - 2.0 * both + b_square)
    if bend > 0.0:
        share = (b - a + gamma * (b_square - both)) / bend
        return min(max(share, 0.0), 1.0), gamma
    return (0.5 if a == b else np.float64(a < b)), gamma


@helper
def slopes(pair, tp, predicted, positive, n):
    """Slope and offset of the smaller of two rates."""
    first, second, smoothing = pair
    a, a_slope, a_offset = rate_partials(first, tp, predicted, positive, n)
    b, b_slope, b_offset = rate_partials(second, tp, predicted, positive, n)
    share, _ = mixture(a, a_slope, a_offset, b, b_slope, b_offset, smoothing)
    rest = 1.0 - share
    return share * a_slope + rest * b_slope, share * a_offset + rest * b_offset


@helper
def value(pair, tp, predicted, positive, n):
    """The smaller of two rates, smoothed or not."""
    first, second, smoothing = pair
    a, a_slope, a_offset = rate_partials(first, tp, predicted, positive, n)
    b, b_slope, b_offset = rate_partials(second, tp, predicted, positive, n)
    share, gamma = mixture(a, a_slope, a_offset, b, b_slope, b_offset, smoothing)
    rest = 1.0 - share
    slope = share * a_slope + rest * b_slope
    offset = share * a_offset + rest * b_offset
    return share * a + rest * b + 0.5 * gamma * product(slope, offset, slope, offset)


@helper
def share_of_first(pair, tp, predicted, positive, n):
    """How much the first of two rates weighs in the minimizing mixture."""
    first, second, smoothing = pair
    a, a_slope, a_offset = rate_partials(first, tp, predicted, positive, n)
    b, b_slope, b_offset = rate_partials(second, tp, predicted, positive, n)
    share, _ = mixture(a, a_slope, a_offset, b, b_slope, b_offset, smoothing)
    return share


@helper
def mixed(pair, share, tp, predicted, positive, n):
    """A mixture of two rates: whatever the share, the smaller one is below it."""
    a, _, _ = rate_partials(pair[0], tp, predicted, positive, n)
    b, _, _ = rate_partials(pair[1], tp, predicted, positive, n)
    return share * a + (1.0 - share) * b


@helper
def class_form(form, point, cells, j):
    """The rate of one class, its derivatives, and the square of its steepness."""
    prior, inverse = point.prior, point.inverse
    tp = (cells[0, j] + prior) * inverse
    predicted = (cells[1, j] + 2.0 * prior) * inverse
    positive = (cells[2, j] + 2.0 * prior) * inverse
    rate, slope, offset = rate_partials(form, tp, predicted, positive, point.whole)
    return rate, slope, offset, product(slope, offset, slope, offset) + EPSILON


@section
def level_of_classes(form, smoothing, point):
    """What says how much each class weighs in the mixture: a level, and γ.

    Smoothed, class j weighs max(level − rate, 0) / (γ·steepness²), and Newton's method, from above,
    finds in a few steps the level at which all weigh one. With γ = 0 the level is the smallest
    rate, and in place of γ stands minus the number of classes that share it.
    """
    m = point.every.shape[1]
    lowest, steepest = np.inf, 0.0
    for j in range(m):
        rate, _, _, square = class_form(form, point, point.every, j)
        lowest = min(lowest, rate)
        steepest = max(steepest, square)
    gamma = gamma_of(smoothing, np.sqrt(steepest))
    if gamma <= 0.0:
        shared = 0.0
        for j in range(m):
            rate, _, _, _ = class_form(form, point, point.every, j)
            shared += rate <= lowest
        return lowest, -shared
    level = np.inf
    for j in range(m):
        rate, _, _, square = class_form(form, point, point.every, j)
        level = min(level, rate + gamma * square)
    for _ in range(2 * m + 8):
        weighed, inverse = 1.0, 0.0
        for j in range(m):
            rate, _, _, square = class_form(form, point, point.every, j)
            if rate < level:
                weighed += rate / (gamma * square)
                inverse += 1.0 / (gamma * square)
        if not weighed / inverse < level:
            break
        level = weighed / inverse
    return level, gamma


@helper
def class_weight(rate, square, level, gamma):
    """How much a class weighs in the mixture."""
    if gamma > 0.0:
        return max(level - rate, 0.0) / (gamma * square)
    return -1.0 / gamma if rate <= level else 0.0


@section
def add_of_classes(form, smoothing, weight, point, slope, offset):
    """Add the supergradient of the smallest rate over classes; it looks at every class."""
    level, gamma = level_of_classes(form, smoothing, point)
    for j in range(slope.shape[0]):
        rate, by_tp, by_predicted, square = class_form(form, point, point.cells, j)
        share = weight * class_weight(rate, square, level, gamma)
        slope[j] += share * by_tp
        offset[j] += share * by_predicted


@section
def value_of_classes(form, smoothing, point, smooth):
    """The smallest rate over classes; with ``smooth`` the smoothing, else its mixture alone."""
    level, gamma = level_of_classes(form, smoothing, point)
    total = 0.0
    for j in range(point.every.shape[1]):
        rate, _, _, square = class_form(form, point, point.every, j)
        share = class_weight(rate, square, level, gamma)
        bend = 0.5 * max(gamma, 0.0) * share * square if smooth else 0.0
        total += share * (rate + bend)
    return total
