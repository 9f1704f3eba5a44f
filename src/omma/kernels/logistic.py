"""Logits and their inverse, written so that loops over rows become vector instructions.

NumPy's and the C library's logarithm and exponential work on one number at a time inside compiled
loops: with them, calibrating a row took longer than deciding it, eight times over. These take
floats apart by the bits: a number is 2ᵏ·m, its logarithm k·ln 2 + ln m, and ln m a short series.
A division takes as long as ten multiplications, so each of them has one only. The polynomials are
the best of their degree (Remez), added up in Horner's way: it waits for each term, but has fewest
of them, and rows have other labels to go on with. Both are exact to twelve digits, of which the
probabilities that come have six. What matters here is that every caller gets the same bits, of a
number as of eight (``omma.kernels.lanes``). (A processor without fused multiplication has others.)
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from omma.kernels.jit import helper
from omma.kernels.lanes import bits_of, larger, number_of, smaller, times_plus
from omma.kernels.layout import LEAST, MOST

LARGE: Final = 700.0  # where the exponential is still a number
# Adding this to a float leaves it as a whole number in the low bits, 1023 more than it is, as
# exponents have it: without a conversion, for which processors have no vector instruction.
PLAIN: Final = 6755399441055744.0
WHOLE: Final = PLAIN + 1023.0
SHIFT: Final = np.uint64(52)  # of the exponent


class Series(NamedTuple):
    """The numbers of both functions.

    Where they are known, compilers read them from memory whenever they are used, which takes longer
    than using them: a loop that is given them (``series_of``) has them at hand.
    """

    least: float = LEAST
    most: float = MOST
    one: float = 1.0
    two: float = 2.0
    ln2: float = 0.6931471805599453
    per_ln2: float = 1.4426950408889634
    plain: float = PLAIN
    whole: float = WHOLE
    # The difference of two numbers' bits is nearly the logarithm of their ratio, to the base 2:
    # the bits of this round it. Nothing is below zero on the way: uncompiled, that would be a
    # warning.
    rounding: float = 1.5
    large: float = LARGE
    a0: float = 0.6666666671496274  # of logarithms
    a1: float = 0.39999983328794436
    a2: float = 0.28573294130947424
    a3: float = 0.22131488930466142
    a4: float = 0.20163341318065864
    t0: float = 0.16666666614426343  # of exponentials
    t1: float = -0.0027777513635036627
    t2: float = 6.57576588794658e-05


KNOWN: Final = Series()
SERIES: Final = np.array(KNOWN)


@helper
def series_of(n):
    """The numbers of an array, which no compiler knows."""
    few = (n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9])
    return Series(*few, n[10], n[11], n[12], n[13], n[14], n[15], n[16], n[17])


@helper
def logit(eta):
    """log(η / (1 − η))."""
    return logit_by(KNOWN, eta)


@helper
def logit_by(by, eta):
    """The same by given numbers.

    1 − η is brought as near to η as a power of two brings it, by a factor of 2^0.59 at most. What
    is left of the logarithm is an odd series of s, the difference of both by their sum.
    """
    p = smaller(larger(eta, by.least), by.most)
    q = by.one - p
    power = (bits_of(p) + bits_of(by.rounding) - bits_of(q)) >> SHIFT
    q = number_of(bits_of(q) + (power << SHIFT) - bits_of(by.one))
    s = (p - q) / (p + q)
    z = s * s
    series = times_plus(z, by.a4, by.a3)
    series = times_plus(z, series, by.a2)
    series = times_plus(z, series, by.a1)
    series = times_plus(z, series, by.a0)
    series = times_plus(z, series, by.two)
    return times_plus(s, series, by.ln2 * (number_of(power + bits_of(by.plain)) - by.whole))


@helper
def sigmoid(x):
    """1 / (1 + exp(−x))."""
    return sigmoid_by(KNOWN, x)


@helper
def sigmoid_by(by, x):
    """The same by given numbers."""
    return sigmoid_of_mild(by, smaller(larger(x, -by.large), by.large))


@helper
def sigmoid_of_mild(by, x):
    """The same of a number between ``-LARGE`` and ``LARGE``.

    With x = k ln 2 + r, exp(x) is 2ᵏ (t + r) / (t − r), where t is r / tanh(r / 2), an even series.
    """
    rounded = times_plus(x, by.per_ln2, by.whole)
    r = times_plus(by.whole - rounded, by.ln2, x)
    z = r * r
    t = times_plus(z, by.t2, by.t1)
    t = times_plus(z, t, by.t0)
    t = times_plus(z, t, by.two)
    raised = (t + r) * number_of(bits_of(rounded) << SHIFT)
    return raised / ((t - r) + raised)
