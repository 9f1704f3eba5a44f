"""Calibration while rows come: c = σ(a·logit(η) + b + b_j), fitted to labels one row at a time.

Two numbers for all labels, a and b, follow by Newton's method with the curvature added up so far. A
bias b_j for each label follows by a step of its own, of which the share 1/m is left out: b corrects
all labels by it already. The weight of an entry in the curvature is at least its squared error: an
entry that is confident and wrong has hardly any curvature of its own, and steps would overshoot.
Until a label has come, probabilities pass as they are, to the bit. Entries of probability zero are
no candidates, and are left alone.

What is known before the first row (START_CURVE, START_PRECISION) is not stored: it is added where
it is used, in the present unit of weight (``decay``). So curvatures and precisions of several
streams add up.
"""

from typing import Any, Final, NamedTuple

import numpy as np

from omma.kernels.counts import fixed, unfixed
from omma.kernels.jit import bits_of, by_kind, fma, helper, number_of
from omma.kernels.layout import BIAS, LEAST, LOGITS, MOST, PRECISION, PRESENT, VALUES

# Numbers for all labels: a, b, the curvature by both, and the weight of rows whose labels came.
SLOPE, INTERCEPT, CURVE_SLOPE, CURVE_BOTH, CURVE_INTERCEPT, LABELLED = range(6)
SHARED: Final = 6

START_CURVE: Final = 3.0  # of a and b, before anything is seen
START_PRECISION: Final = 4.0  # of each bias
FLATTEST: Final = 0.05  # a stays between these
STEEPEST: Final = 20.0
SINGULAR: Final = 1e-9  # no step where the curvature's determinant is below this share of its terms


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
def write_logits(values, logits, width):
    for i in range(width):
        logits[i] = logit(values[i])


@helper
def write_sigmoids(a, b, logits, bias, values, width):
    for i in range(width):
        calibrated = sigmoid(fma(a, logits[i], b) + bias[i])
        values[i] = calibrated if values[i] > 0.0 else 0.0


@helper
def clipped(slope):
    """A slope that is neither flat nor a wall; sums of calibrators may go past either."""
    return min(max(slope, FLATTEST), STEEPEST)


@by_kind
def calibrate(calibrator, columns, work, width):
    """Put calibrated probabilities in place of a row's, and keep the logits of those given."""


@calibrate.case(None)
def calibrate_not(calibrator, columns, work, width):
    pass


@calibrate.case()
def calibrate_row(calibrator, columns, work, width):
    shared = calibrator.shared
    write_logits(work[VALUES], work[LOGITS], width)  # two loops: more divisions are under way
    if shared[LABELLED] > 0.0:
        a, b = clipped(shared[SLOPE]), shared[INTERCEPT]
        write_sigmoids(a, b, work[LOGITS], columns[BIAS], work[VALUES], width)


@helper
def fit_labels(share, start, weight, values, logits, present, bias, precision, width):
    """Move each bias; returns Σ g z, Σ g, Σ w z², Σ w z and Σ w over a row's labels.

    g = c − y is the error, w = max(c (1 − c), g²) the curvature. Of c and 1 − c one is the error,
    so w is |g| times the larger of them. Sums are without the weight: fixed point has an end.
    """
    nothing = np.int64(0)
    by_slope, by_intercept, slope, both, intercept = nothing, nothing, nothing, nothing, nothing
    for i in range(width):
        c = values[i]
        g = c - present[i] if c > 0.0 else 0.0
        w = abs(g) * (c if c > 1.0 - c else 1.0 - c)
        known = precision[i] + weight * w
        precision[i] = known
        bias[i] = fma(-share, weight * g / (start + known), bias[i])
        z, bent = logits[i], w * logits[i]
        by_slope += fixed(g * z)
        by_intercept += fixed(g)
        slope += fixed(bent * z)
        both += fixed(bent)
        intercept += fixed(w)
    return (
        unfixed(by_slope),
        unfixed(by_intercept),
        unfixed(slope),
        unfixed(both),
        unfixed(intercept),
    )


@by_kind
def fit(calibrator, columns, work, weight, unit, width, m):
    """Learn from a row with labels; ``unit`` is what a row counts for now."""


@fit.case()
def fit_not(calibrator, columns, work, weight, unit, width, m):
    pass


@fit.case(Learning)
def fit_row(calibrator, columns, work, weight, unit, width, m):
    shared, counted = calibrator.shared, weight * unit
    by_slope, by_intercept, slope, both, intercept = fit_labels(
        1.0 - 1.0 / m,
        START_PRECISION * unit,
        counted,
        work[VALUES],
        work[LOGITS],
        work[PRESENT],
        columns[BIAS],
        columns[PRECISION],
        width,
    )
    shared[LABELLED] += weight
    shared[CURVE_SLOPE] += counted * slope
    shared[CURVE_BOTH] += counted * both
    shared[CURVE_INTERCEPT] += counted * intercept
    # θ −= H⁻¹ G for θ = (a, b), H = [[p, q], [q, r]].
    start = START_CURVE * unit
    p, q, r = start + shared[CURVE_SLOPE], shared[CURVE_BOTH], start + shared[CURVE_INTERCEPT]
    det = p * r - q * q
    if det > SINGULAR * p * r:
        step = counted / det
        shared[SLOPE] = clipped(shared[SLOPE] - step * (r * by_slope - q * by_intercept))
        shared[INTERCEPT] -= step * (p * by_intercept - q * by_slope)
