"""Online calibration: c = σ(a (z − z̄_j) + e z̄_j + b + b_j), for the logit z of the probability η.

Three parameters θ = (a, e, b) are shared by all labels: the slope a within a label, around the mean
logit z̄_j of its probabilities; the slope e between labels; and the intercept b. The slope within
labels does not depend on the scale of the logits, so probabilities in a narrow band are stretched
like all others. Let x = (z − z̄_j, z̄_j, 1), the error g = c − y, and the curvature
w = max(c (1 − c), g²). Each labelled row updates

    H += Σ w x xᵀ,   θ −= (H₀ + H)⁻¹ Σ g x,   H₀ = diag(3 v, 30, 1),   v = max(W / N, 1e-6)

This is Newton's method with the curvature summed over all rows so far. W / N is the variance of
logits within labels. The curvature is at least the squared error: a confident but wrong entry has
almost no curvature of its own, and steps would overshoot. Each label has a bias b_j with its own
steps h_j += w, b_j −= (1 − 1/m) g / (10 + h_j). The share 1/m is left out because b already
corrects all labels by it.

If the probabilities are already calibrated, θ differs from θ₀ = (1, 1, 0) only by noise, and a
correction only adds error. Therefore decisions move only a part κ of the way from θ₀ to θ. This
part grows with the evidence T of the labels (the Wald statistic):

    κ = T / (T + 2),   T = (θ − θ₀)ᵀ H (θ − θ₀)

Each decided row updates the means, W and N, with or without labels:

    n_j += 1,   d = z − z̄_j,   z̄_j += d / n_j,   W += d (z − z̄_j),   N += 1

For labels, a logit beyond |z| = s = 6 says little more than that the model was sure. Such a z is
squashed to sign(z) (2 s − s² / |z|), which keeps the order. For classes, logits are not squashed.
Before the first labelled row, probabilities are returned unchanged, to the bit. Entries with
probability zero are not candidates and are skipped.

The prior curvatures (H₀ and 10) are not stored. They are added where they are used, in the current
unit of weight (``decay``), so that curvatures and precisions of several streams can be added.

``columns`` (fields, width) and ``work`` (WORK, width) are the arrays of ``layout``.
"""

from typing import Any, Final, NamedTuple

import numpy as np

from omma.kernels.counts import fixed, unfixed
from omma.kernels.jit import bits_of, by_kind, fma, helper, number_of
from omma.kernels.layout import (
    BIAS,
    ENTRIES,
    LEARNED,
    LEAST,
    LOGITS,
    MEAN,
    MOST,
    PRECISION,
    PRESENT,
    VALUES,
)

# Positions in ``shared``: θ = (a, e, b); the upper triangle of H, row by row (six numbers); the
# weight of labelled rows; W and N; s, beyond which logits are squashed; and κ.
SLOPE, BETWEEN, INTERCEPT = range(3)
CURVES: Final = 3
LABELLED, SPREAD, COUNTED, SQUASH, TRUST = range(9, 14)
SHARED: Final = 14

# Chosen on streams other than the reported ones (docs/auto.md).
START_SLOPE: Final = 3.0  # H₀ for a, times the variance v = W / N
START_BETWEEN: Final = 30.0  # H₀ for e; with one label, e and b are the same parameter
START_INTERCEPT: Final = 1.0  # H₀ for b
DOUBT: Final = 2.0  # the evidence T at which κ = 1/2
START_PRECISION: Final = 10.0  # prior precision of each bias b_j
LEAST_VARIANCE: Final = 1e-6  # of v: equal probabilities have no variance
FLATTEST: Final = 0.05  # bounds of a and e
STEEPEST: Final = 1000.0
SINGULAR: Final = 1e-9  # no step if det(H₀ + H) is below this share of the diagonal's product
SURE: Final = 6.0  # s for labels (multi-label and binary)
STRAIGHT: Final = 1000.0  # s for classes: no squashing, as no logit of a float is that large


class Learning(NamedTuple):
    """A calibrator that learns from labels; ``shared`` has shape (SHARED,), float64."""

    shared: Any


class Settled(NamedTuple):
    """A calibrator of a fixed rule: it calibrates but does not learn; ``shared`` as in Learning."""

    shared: Any


# Logit and sigmoid, written with operations that the compiler can vectorize. A float is 2ᵏ·m, so
# its logarithm is k ln 2 + ln m, and ln m is a short series. The polynomials are minimax (Remez),
# and both functions are exact to twelve digits.

LARGE: Final = 700.0  # exp(700) is still finite
ROUND: Final = 6755399441055744.0  # adding 1.5·2⁵² puts the rounded float into its own low bits
EXPONENT: Final = ROUND + 1023.0  # the same plus the bias of a float64 exponent
SHIFT: Final = np.uint64(52)  # position of the exponent in a float64
ROUND_BITS, HALF_BITS, ONE_BITS = (np.float64(x).view(np.uint64) for x in (ROUND, 1.5, 1.0))
LN2: Final = 0.6931471805599453
PER_LN2: Final = 1.4426950408889634


@helper
def logit(eta):
    """log(η / (1 − η)), with η clipped to [LEAST, MOST].

    1 − η is scaled by a power of two so that it is close to η; the power comes from the difference
    of their bits. The logarithm of the remaining ratio is an odd series in s = (p − q) / (p + q).
    """
    p = eta if eta > LEAST else LEAST
    p = p if p < MOST else MOST
    q = 1.0 - p
    power = (bits_of(p) + HALF_BITS - bits_of(q)) >> SHIFT
    q = number_of(bits_of(q) + (power << SHIFT) - ONE_BITS)
    s = (p - q) / (p + q)
    z = s * s
    series = fma(z, 0.20163341318065864, 0.22131488930466142)
    series = fma(z, series, 0.28573294130947424)
    series = fma(z, series, 0.39999983328794436)
    series = fma(z, series, 0.6666666671496274)
    series = fma(z, series, 2.0)
    return fma(s, series, LN2 * (number_of(power + ROUND_BITS) - EXPONENT))


@helper
def sigmoid(x):
    """1 / (1 + exp(−x)), with x clipped to ±700.

    With x = k ln 2 + r, exp(x) = 2ᵏ (t + r) / (t − r), where t = r / tanh(r / 2) is an even series
    in r.
    """
    x = x if x > -LARGE else -LARGE
    x = x if x < LARGE else LARGE
    rounded = fma(x, PER_LN2, EXPONENT)
    r = fma(EXPONENT - rounded, LN2, x)
    z = r * r
    t = fma(z, 6.57576588794658e-05, -0.0027777513635036627)
    t = fma(z, t, 0.16666666614426343)
    t = fma(z, t, 2.0)
    raised = (t + r) * number_of(bits_of(rounded) << SHIFT)
    return raised / ((t - r) + raised)


@helper
def clipped(slope):
    """Clip a slope to [FLATTEST, STEEPEST]; the sum of two calibrators can be outside."""
    slope = slope if slope > FLATTEST else FLATTEST
    return slope if slope < STEEPEST else STEEPEST


@helper
def curve_of(shared, trust):
    """Return (a, e, b) at a part ``trust`` (0 to 1) of the way from θ₀ = (1, 1, 0) to θ."""
    a, e = clipped(shared[SLOPE]), clipped(shared[BETWEEN])
    return 1.0 + trust * (a - 1.0), 1.0 + trust * (e - 1.0), trust * shared[INTERCEPT]


@by_kind
def calibrate(calibrator, columns, work, width):
    """Replace the probabilities in ``work[VALUES]`` by calibrated ones.

    Writes the logits of the given probabilities to ``work[LOGITS]``.
    """


@calibrate.case(None)
def calibrate_not(calibrator, columns, work, width):
    pass


@calibrate.case()
def calibrate_row(calibrator, columns, work, width):
    shared, values, logits = calibrator.shared, work[VALUES], work[LOGITS]
    bias, mean, squash = columns[BIAS], columns[MEAN], shared[SQUASH]
    # Two loops: the processor overlaps more divisions than with one.
    for i in range(width):
        z = logit(values[i])
        size = abs(z)
        r = squash / (size if size > squash else squash)
        logits[i] = z * (r * (2.0 - r))  # r = min(1, s / |z|), so z itself up to |z| = s
    if shared[LABELLED] > 0.0:
        a, e, b = curve_of(shared, shared[TRUST])
        beyond = e - a
        for i in range(width):
            # a (z − z̄_j) + e z̄_j + b + b_j = a z + b + (b_j + (e − a) z̄_j).
            calibrated = sigmoid(fma(a, logits[i], b) + (bias[i] + beyond * mean[i]))
            values[i] = calibrated if values[i] > 0.0 else 0.0


# Means of logits.


@by_kind
def update_means(calibrator, columns, work, weight, width):
    """Update mean logits with a decided row, whether or not its labels are known.

    ``weight`` is the weight of the row in the current unit.
    """


@update_means.case()
def center_not(calibrator, columns, work, weight, width):
    pass


@update_means.case(Learning)
def center_row(calibrator, columns, work, weight, width):
    """Update z̄_j and n_j in ``columns``, and W = Σ d (z − z̄) and N in ``shared``."""
    values, logits, mean, entries = work[VALUES], work[LOGITS], columns[MEAN], columns[ENTRIES]
    spread, stored = np.int64(0), np.int64(0)
    for i in range(width):
        is_stored = values[i] > 0.0
        counted = weight if is_stored else 0.0
        total = entries[i] + counted
        entries[i] = total
        d = logits[i] - mean[i]
        moved = fma(d, counted / (total if total > 0.0 else 1.0), mean[i])
        mean[i] = moved
        spread += fixed(d * (logits[i] - moved) if is_stored else 0.0)
        stored += is_stored
    calibrator.shared[SPREAD] += weight * unfixed(spread)
    calibrator.shared[COUNTED] += weight * np.float64(stored)


# Learning from labels.


@helper
def newton_step(shared, gradient, unit):
    """θ −= (H₀ + H)⁻¹ G, by the adjugate of the symmetric 3×3 matrix.

    ``gradient`` is G = Σ g x as a tuple of three; ``shared`` is updated.
    """
    counted = shared[COUNTED] if shared[COUNTED] > 0.0 else 1.0
    variance = shared[SPREAD] / counted
    variance = variance if variance > LEAST_VARIANCE else LEAST_VARIANCE
    aa = shared[CURVES] + START_SLOPE * variance * unit
    ae, ab = shared[CURVES + 1], shared[CURVES + 2]
    ee, eb = shared[CURVES + 3] + START_BETWEEN * unit, shared[CURVES + 4]
    bb = shared[CURVES + 5] + START_INTERCEPT * unit
    # The cofactors of H₀ + H.
    c_aa, c_ae, c_ab = ee * bb - eb * eb, ab * eb - ae * bb, ae * eb - ab * ee
    c_ee, c_eb, c_bb = aa * bb - ab * ab, ab * ae - aa * eb, aa * ee - ae * ae
    det = aa * c_aa + ae * c_ae + ab * c_ab
    if det > SINGULAR * aa * ee * bb:
        ga, ge, gb = gradient[0] / det, gradient[1] / det, gradient[2] / det
        shared[SLOPE] = clipped(shared[SLOPE] - (c_aa * ga + c_ae * ge + c_ab * gb))
        shared[BETWEEN] = clipped(shared[BETWEEN] - (c_ae * ga + c_ee * ge + c_eb * gb))
        shared[INTERCEPT] -= c_ab * ga + c_eb * ge + c_bb * gb


@helper
def trust_of(shared, unit):
    """κ = T / (T + 2·unit) with T = (θ − θ₀)ᵀ H (θ − θ₀)."""
    a, e, b = clipped(shared[SLOPE]) - 1.0, clipped(shared[BETWEEN]) - 1.0, shared[INTERCEPT]
    evidence = a * (a * shared[CURVES] + 2.0 * (e * shared[CURVES + 1] + b * shared[CURVES + 2]))
    evidence += e * (e * shared[CURVES + 3] + 2.0 * b * shared[CURVES + 4])
    evidence += b * b * shared[CURVES + 5]
    return evidence / (evidence + DOUBT * unit)


@by_kind
def fit(calibrator, columns, work, weight, unit, width, m):
    """Learn from a labelled row.

    ``work`` has VALUES, LOGITS and PRESENT of the row. ``weight`` is the weight of the row,
    ``unit`` the current unit (``decay``), and m the number of labels.
    """


@fit.case()
def fit_not(calibrator, columns, work, weight, unit, width, m):
    pass


@fit.case(Learning)
def fit_row(calibrator, columns, work, weight, unit, width, m):
    """Update each bias, then θ by the sums Σ g x and Σ w x xᵀ over the row's labels.

    The error g is that of the full θ, not of the part κ that decisions use, because θ is what is
    learned. As y is 0 or 1, |g| is c or 1 − c, so w = max(c (1 − c), g²) is |g| times the larger of
    them. The sums exclude the row's weight, because large weights would overflow fixed point.
    """
    shared, counted, nothing = calibrator.shared, weight * unit, np.int64(0)
    values, logits, present = work[VALUES], work[LOGITS], work[PRESENT]
    bias, precision, mean = columns[BIAS], columns[PRECISION], columns[MEAN]
    learned = work[LEARNED]
    share, start = 1.0 - 1.0 / m, START_PRECISION * unit
    a, e, b = curve_of(shared, 1.0)
    g_within, g_between, g_all = nothing, nothing, nothing
    aa, ae, ab, ee, eb, bb = nothing, nothing, nothing, nothing, nothing, nothing
    # Two loops, or the series of the sigmoid and the nine sums would not fit into registers.
    for i in range(width):
        learned[i] = sigmoid(fma(a, logits[i] - mean[i], b) + fma(e, mean[i], bias[i]))
    for i in range(width):
        within, between, c = logits[i] - mean[i], mean[i], learned[i]
        g = c - present[i] if values[i] > 0.0 else 0.0
        w = abs(g) * (c if c > 1.0 - c else 1.0 - c)
        known = precision[i] + counted * w
        precision[i] = known
        bias[i] = fma(-share, counted * g / (start + known), bias[i])
        w_within, w_between = w * within, w * between
        g_within += fixed(g * within)
        g_between += fixed(g * between)
        g_all += fixed(g)
        aa += fixed(w_within * within)
        ae += fixed(w_within * between)
        ab += fixed(w_within)
        ee += fixed(w_between * between)
        eb += fixed(w_between)
        bb += fixed(w)
    shared[LABELLED] += weight
    curves = unfixed(aa), unfixed(ae), unfixed(ab), unfixed(ee), unfixed(eb), unfixed(bb)
    for i in range(6):
        shared[CURVES + i] += counted * curves[i]
    gradient = counted * unfixed(g_within), counted * unfixed(g_between), counted * unfixed(g_all)
    newton_step(shared, gradient, unit)
    shared[TRUST] = trust_of(shared, unit)
