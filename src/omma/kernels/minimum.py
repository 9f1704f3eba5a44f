"""The smaller of two rates, or the smallest over classes: a kink, and its Moreau-Yosida smoothing.

At fixed label frequencies such a minimum is concave. Its supergradient at a kink is any mixture of
those of the rates that are smallest there. Smoothed by γ it is

    ψ_γ(C) = max over C' of ψ(C') − ‖C − C'‖² / 2γ = min over mixtures w of w·f + γ/2 ‖Σ w_i ∇f_i‖²

for rates f that are linear in tp and fp, the two cells that decisions change; the norm is over
these. Its gradient is that of the minimizing mixture.
"""

import numpy as np

from omma.kernels.jit import helper, section
from omma.kernels.point import fractions, rate_partials


@helper
def smoothing_at(gamma, wanted, rows):
    """γ, and what γ·L is where it follows the number of rows (else zero).

    The bound of the paper is best at γ = √(2 (1 + ln n) / n) / L.
    """
    if gamma >= 0.0:
        return gamma, 0.0
    n = wanted if wanted > 0.0 else rows
    n = max(n, 1.0)
    return 0.0, np.sqrt(2.0 * (1.0 + np.log(n)) / n)


@helper
def gamma_of(smoothing, steepness):
    """γ where the minimum is ``steepness``-Lipschitz."""
    gamma, scale = smoothing
    return scale / steepness if scale > 0.0 else gamma


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
def slopes(pair, smoothing, tp, predicted, positive, n):
    """Slope and offset of the smaller of two rates."""
    a, a_slope, a_offset = rate_partials(pair.first, tp, predicted, positive, n)
    b, b_slope, b_offset = rate_partials(pair.second, tp, predicted, positive, n)
    share, _ = mixture(a, a_slope, a_offset, b, b_slope, b_offset, smoothing)
    rest = 1.0 - share
    return share * a_slope + rest * b_slope, share * a_offset + rest * b_offset


@helper
def value(pair, smoothing, tp, predicted, positive, n):
    """The smaller of two rates, smoothed or not."""
    a, a_slope, a_offset = rate_partials(pair.first, tp, predicted, positive, n)
    b, b_slope, b_offset = rate_partials(pair.second, tp, predicted, positive, n)
    share, gamma = mixture(a, a_slope, a_offset, b, b_slope, b_offset, smoothing)
    rest = 1.0 - share
    slope = share * a_slope + rest * b_slope
    offset = share * a_offset + rest * b_offset
    return share * a + rest * b + 0.5 * gamma * product(slope, offset, slope, offset)


@helper
def share_of_first(pair, smoothing, tp, predicted, positive, n):
    """How much the first of two rates weighs in the minimizing mixture."""
    a, a_slope, a_offset = rate_partials(pair.first, tp, predicted, positive, n)
    b, b_slope, b_offset = rate_partials(pair.second, tp, predicted, positive, n)
    share, _ = mixture(a, a_slope, a_offset, b, b_slope, b_offset, smoothing)
    return share


@helper
def mixed(pair, share, tp, predicted, positive, n):
    """A mixture of two rates: whatever the share, the smaller one is below it."""
    a, _, _ = rate_partials(pair.first, tp, predicted, positive, n)
    b, _, _ = rate_partials(pair.second, tp, predicted, positive, n)
    return share * a + (1.0 - share) * b


@helper
def class_form(rate, point, tp, predicted, positive):
    """The rate of one class, its derivatives, and the square of its steepness."""
    value, slope, offset = rate_partials(rate, tp, predicted, positive, point.whole)
    return value, slope, offset, product(slope, offset, slope, offset) + rate.epsilon


@helper
def of_class(rate, point, j):
    """The same at the counts of class j."""
    tp, predicted, positive = fractions(point, j)
    return class_form(rate, point, tp, predicted, positive)


@section
def level_of_classes(rate_of, smoothing, point):
    """What says how much each class weighs in the mixture: a level, γ, and how many share it.

    Smoothed, class j weighs max(level − rate, 0) / (γ·steepness²), and Newton's method, from above,
    finds in a few steps the level at which all weigh one. With γ = 0 the level is the smallest
    rate, and the classes that have it share the weight.
    """
    m = point.cells.shape[1]
    lowest, steepest = np.inf, 0.0
    for j in range(m):
        rate, _, _, square = of_class(rate_of, point, j)
        lowest = min(lowest, rate)
        steepest = max(steepest, square)
    gamma = gamma_of(smoothing, np.sqrt(steepest))
    if gamma <= 0.0:
        shared = 0.0
        for j in range(m):
            rate, _, _, _ = of_class(rate_of, point, j)
            shared += rate <= lowest
        return lowest, 0.0, shared
    level = np.inf
    for j in range(m):
        rate, _, _, square = of_class(rate_of, point, j)
        level = min(level, rate + gamma * square)
    for _ in range(2 * m + 8):
        weighed, inverse = 1.0, 0.0
        for j in range(m):
            rate, _, _, square = of_class(rate_of, point, j)
            if rate < level:
                weighed += rate / (gamma * square)
                inverse += 1.0 / (gamma * square)
        if not weighed / inverse < level:
            break
        level = weighed / inverse
    return level, gamma, 1.0


@helper
def class_weight(rate, square, level, gamma, shared):
    """How much a class weighs in the mixture."""
    if gamma > 0.0:
        return max(level - rate, 0.0) / (gamma * square)
    return 1.0 / shared if rate <= level else 0.0


@section
def value_of_classes(rate_of, smoothing, point, smooth):
    """The smallest rate over classes; with ``smooth`` the smoothing, else its mixture alone."""
    level, gamma, shared = level_of_classes(rate_of, smoothing, point)
    total = 0.0
    for j in range(point.cells.shape[1]):
        rate, _, _, square = of_class(rate_of, point, j)
        share = class_weight(rate, square, level, gamma, shared)
        bend = 0.5 * gamma * share * square if smooth else 0.0
        total += share * (rate + bend)
    return total
