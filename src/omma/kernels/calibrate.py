"""Calibration while rows come: c = σ(a (z − z̄_j) + e z̄_j + b + b_j) for the logit z of η.

Three numbers are for all labels, θ = (a, e, b): the slope a within a label, around the mean logit
z̄_j of its probabilities, the slope e between labels, and the intercept b. A slope within labels has
no scale: probabilities squeezed into a narrow band are stretched as any others are. With
x = (z − z̄_j, z̄_j, 1), the error g = c − y and the weight w = max(c (1 − c), g²), a row with labels
does

    H += Σ w x xᵀ,   θ −= (H₀ + H)⁻¹ Σ g x,   H₀ = diag(3 v, 30, 1),   v = max(W / N, 1e-6)

which is Newton's method with the curvature added up so far. W / N is the variance of logits within
labels. w is at least the squared error: an entry that is confident and wrong has hardly any
curvature of its own, and steps would overshoot. A bias b_j for each label follows by steps of its
own, h_j += w, b_j −= (1 − 1/m) g / (10 + h_j); the share 1/m is left out, as b corrects all labels
by it already.

Where probabilities are right already, θ differs from θ₀ = (1, 1, 0) by chance alone, and correcting
them only costs. So decisions take a part κ of the way from θ₀ to θ, which grows with the evidence T
that labels have given (the statistic of Wald's test):

    κ = T / (T + 2),   T = (θ − θ₀)ᵀ H (θ − θ₀)

Means, W and N follow from every decided row, with labels or without:

    n_j += 1,   d = z − z̄_j,   z̄_j += d / n_j,   W += d (z − z̄_j),   N += 1

Probabilities of labels beyond |z| = s = 6 say little more than that a model was sure, so z is then
squashed to sign(z) (2 s − s² / |z|), which keeps their order; those of classes are taken as they
are. Until a label has come, probabilities pass as they are, to the bit. Entries of probability zero
are no candidates, and are left alone.

What is known before the first row (H₀ and 10) is not stored: it is added where it is used, in the
present unit of weight (``decay``). So curvatures and precisions of several streams add up.
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

# Numbers for all labels: θ = (a, e, b); the upper half of H, row by row; the weight of rows whose
# labels came; W and N; s, from where on logits are squashed; and κ.
SLOPE, BETWEEN, INTERCEPT = range(3)
CURVES: Final = 3
LABELLED, SPREAD, COUNTED, SQUASH, TRUST = range(9, 14)
SHARED: Final = 14

# Chosen on streams that are not among those reported (docs/auto.md).
START_SLOPE: Final = 3.0  # of H₀, for a in units of the variance W / N
START_BETWEEN: Final = 30.0  # of H₀, for e; of a single label, e and b say the same
START_INTERCEPT: Final = 1.0  # of H₀, for b
DOUBT: Final = 2.0  # the evidence T at which half of a correction is made
START_PRECISION: Final = 10.0  # of each bias
LEAST_VARIANCE: Final = 1e-6  # probabilities that are all alike have none
FLATTEST: Final = 0.05  # a and e stay between these
STEEPEST: Final = 1000.0
SINGULAR: Final = 1e-9  # no step where the curvature's determinant is below this share of its terms
SURE: Final = 6.0  # s for labels
STRAIGHT: Final = 1000.0  # s for classes: no logit of a float is as large


class Learning(NamedTuple):
    """Calibration that learns from labels; ``shared`` has shape (SHARED,)."""

    shared: Any


class Settled(NamedTuple):
    """Calibration of a rule that stands still: it calibrates, and learns no more."""

    shared: Any


# Logits and their inverse, in steps that vector instructions have: a float is 2ᵏ·m, its logarithm
# k ln 2 + ln m, and ln m a short series. The polynomials are the best of their degree (Remez), and
# both functions are exact to twelve digits.

LARGE: Final = 700.0  # where the exponential is still a number
ROUND: Final = 6755399441055744.0  # 1.5·2⁵²: adding it leaves a float as a whole number in its bits
EXPONENT: Final = ROUND + 1023.0  # the same, as exponents count
SHIFT: Final = np.uint64(52)  # of the exponent
ROUND_BITS, HALF_BITS, ONE_BITS = (np.float64(x).view(np.uint64) for x in (ROUND, 1.5, 1.0))
LN2: Final = 0.6931471805599453
PER_LN2: Final = 1.4426950408889634


@helper
def logit(eta):
    """log(η / (1 − η)).

    1 − η is brought near η by a power of two, found from the difference of the bits. What is left
    of the logarithm is an odd series of s, the difference of both by their sum.
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
    """1 / (1 + exp(−x)).

    With x = k ln 2 + r, exp(x) is 2ᵏ (t + r) / (t − r), where t is r / tanh(r / 2), an even series.
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
    """A slope that is neither flat nor a wall; sums of calibrators may go past either."""
    return min(max(slope, FLATTEST), STEEPEST)


@helper
def curve_of(shared, trust):
    """A, e and b: the part ``trust`` of the way from what changes nothing to what was learned."""
    a, e = clipped(shared[SLOPE]), clipped(shared[BETWEEN])
    return 1.0 + trust * (a - 1.0), 1.0 + trust * (e - 1.0), trust * shared[INTERCEPT]


@by_kind
def calibrate(calibrator, columns, work, width):
    """Put calibrated probabilities in place of a row's, and keep the logits of those given."""


@calibrate.case(None)
def calibrate_not(calibrator, columns, work, width):
    pass


@calibrate.case()
def calibrate_row(calibrator, columns, work, width):
    shared, values, logits = calibrator.shared, work[VALUES], work[LOGITS]
    bias, mean, squash = columns[BIAS], columns[MEAN], shared[SQUASH]
    # Two loops: more divisions are under way.
    for i in range(width):
        z = logit(values[i])
        size = abs(z)
        r = squash / (size if size > squash else squash)
        logits[i] = z * (r * (2.0 - r))  # beyond s
    if shared[LABELLED] > 0.0:
        a, e, b = curve_of(shared, shared[TRUST])
        beyond = e - a
        for i in range(width):
            # a (z − z̄) + e z̄ + b + b_j is a z + b + (b_j + (e − a) z̄).
            calibrated = sigmoid(fma(a, logits[i], b) + (bias[i] + beyond * mean[i]))
            values[i] = calibrated if values[i] > 0.0 else 0.0


# Means of logits.


@by_kind
def center(calibrator, columns, work, weight, width):
    """Follow the mean logits by a row that was decided, whether its labels are known or not."""


@center.case()
def center_not(calibrator, columns, work, weight, width):
    pass


@center.case(Learning)
def center_row(calibrator, columns, work, weight, width):
    """Take a row into the mean logit of each label, into W = Σ d (z − z̄) and into N."""
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
    """θ −= (H₀ + H)⁻¹ G, by the adjugate of a symmetric matrix of three rows."""
    counted = shared[COUNTED] if shared[COUNTED] > 0.0 else 1.0
    variance = max(shared[SPREAD] / counted, LEAST_VARIANCE)
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
    """κ = T / (T + 2) with T = (θ − θ₀)ᵀ H (θ − θ₀)."""
    a, e, b = clipped(shared[SLOPE]) - 1.0, clipped(shared[BETWEEN]) - 1.0, shared[INTERCEPT]
    evidence = a * (a * shared[CURVES] + 2.0 * (e * shared[CURVES + 1] + b * shared[CURVES + 2]))
    evidence += e * (e * shared[CURVES + 3] + 2.0 * b * shared[CURVES + 4])
    evidence += b * b * shared[CURVES + 5]
    return evidence / (evidence + DOUBT * unit)


@by_kind
def fit(calibrator, columns, work, weight, unit, width, m):
    """Learn from a row with labels; ``unit`` is what a row counts for now."""


@fit.case()
def fit_not(calibrator, columns, work, weight, unit, width, m):
    pass


@fit.case(Learning)
def fit_row(calibrator, columns, work, weight, unit, width, m):
    """Move each bias, then θ by the sums Σ g x and Σ w x xᵀ over a row's labels.

    c is by θ itself, not by the part of it that decides: the error is of what was learned so far.
    Of c and 1 − c one is the error, so w = max(c (1 − c), g²) is |g| times the larger of them.
    Sums are without the weight: fixed point has an end.
    """
    shared, counted, nothing = calibrator.shared, weight * unit, np.int64(0)
    values, logits, present = work[VALUES], work[LOGITS], work[PRESENT]
    bias, precision, mean = columns[BIAS], columns[PRECISION], columns[MEAN]
    learned = work[LEARNED]
    share, start = 1.0 - 1.0 / m, START_PRECISION * unit
    a, e, b = curve_of(shared, 1.0)
    g_within, g_between, g_all = nothing, nothing, nothing
    aa, ae, ab, ee, eb, bb = nothing, nothing, nothing, nothing, nothing, nothing
    # Two loops: the series of one leave registers for the nine sums of the other.
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
