"""Logits and their inverse, written so that loops over rows become vector instructions.

NumPy's and the C library's logarithm and exponential work on one number at a time inside compiled
loops: with them, calibrating a row took longer than deciding it, eight times over. These take
floats apart by the bits: a number is 2ᵏ·m, its logarithm k·ln 2 + ln m, and ln m a short series.
A division takes as long as ten multiplications, so each of them has one only. The polynomials are
the best of their degree (Remez), and their terms are added in pairs: a processor waits for each
term of Horner's way. Both are exact to a few units in the last place; what matters here is that
every caller gets the same bits, of a number as of eight (``omma.kernels.lanes``). (A processor
without fused multiplication has others.)
"""

from __future__ import annotations

from typing import Final

import numpy as np

from omma.kernels.jit import helper
from omma.kernels.lanes import bits_of, larger, number_of, smaller, times_plus
from omma.kernels.layout import LEAST, MOST

LARGE: Final = 700.0  # where the exponential is still a number

LN2: Final = 0.6931471805599453
LN2_HIGH: Final = 0.6931471803691238
LN2_LOW: Final = 1.9082149292705877e-10
PER_LN2: Final = 1.4426950408889634
# Adding this to a float leaves it as a whole number in the low bits: without a conversion, for
# which processors have no vector instruction.
WHOLE: Final = 6755399441055744.0
WHOLE_BITS: Final = np.uint64(0x4338000000000000)
SHIFT: Final = np.uint64(52)  # of the exponent
BIAS: Final = np.uint64(1023)
ONE: Final = np.uint64(1023 << 52)  # the bits of 1.0
# The difference of two numbers' bits is nearly the logarithm of their ratio, to the base 2: this
# rounds it. Nothing is below zero on the way: uncompiled, that would be a warning.
ROUNDING: Final = np.uint64((1023 << 52) + (1 << 51))


@helper
def logit(eta):
    """log(η / (1 − η)).

    1 − η is brought as near to η as a power of two brings it, by a factor of 2^0.59 at most. What
    is left of the logarithm is an odd series of s, the difference of both by their sum.
    """
    p = smaller(larger(eta, LEAST), MOST)
    q = 1.0 - p
    power = (bits_of(p) + ROUNDING - bits_of(q)) >> SHIFT
    q = number_of(bits_of(q) + (power << SHIFT) - ONE)
    s = (p - q) / (p + q)
    z = s * s
    zz = z * z
    low = times_plus(z, 0.39999999996063273, 0.6666666666667289)
    low = times_plus(zz, 0.28571429412926286, low)
    high = times_plus(z, 0.1818641494179488, 0.2222213706262445)
    high = times_plus(zz, times_plus(z, 0.15377334714471194, 0.15249011798134834), high)
    twos = number_of(power + WHOLE_BITS) - (WHOLE + 1023.0)
    return times_plus(s * z, times_plus(z * zz, high, low), times_plus(twos, LN2, 2.0 * s))


@helper
def sigmoid(x):
    """1 / (1 + exp(−x)).

    With x = k ln 2 + r, exp(x) is 2ᵏ (t + r) / (t − r), where t is r / tanh(r / 2), an even series.
    """
    x = smaller(larger(x, -LARGE), LARGE)
    rounded = times_plus(x, PER_LN2, WHOLE)
    twos = WHOLE - rounded
    r = times_plus(twos, LN2_LOW, times_plus(twos, LN2_HIGH, x))
    z = r * r
    zz = z * z
    high = times_plus(z, 6.613615586092054e-05, -0.002777777714899304)
    high = times_plus(zz, -1.6405264648551726e-06, high)
    t = times_plus(zz, high, times_plus(z, 0.166666666665737, 2.0))
    raised = (t + r) * number_of((bits_of(rounded) + BIAS) << SHIFT)
    return raised / ((t - r) + raised)
