"""Logits and their inverse for a whole row, as vector instructions.

NumPy's and the C library's logarithm and exponential work on one number at a time inside compiled
loops: with them, calibrating a row took longer than deciding it, eight times over. These take
floats apart by the bits: a number is 2ᵏ·m, its logarithm k·ln 2 + ln m, and ln m a short series.
They are exact to about ten units in the last place; what matters here is that every caller gets
the same bits.
"""

from __future__ import annotations

from typing import Any, Final

import numba
import numpy as np
from numba.core import types
from numba.extending import intrinsic

from omma.kernels.jit import helper
from omma.kernels.layout import CHOSEN_GAINS, GAINS, LEAST, LOGITS, MOST, VALUES

LARGE: Final = 700.0  # where the exponential is still a number

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
ROOT: Final = np.uint64(4604544271217802189)  # those of √½: mantissas are taken from there to √2
FROM_ROOT: Final = ONE - ROOT  # nothing below zero on the way: uncompiled, that would be a warning


@intrinsic
def read_as_bits(context, row):
    """The bits of floats, at the same place; a view would take Numba a quarter of a second more."""
    kind = types.Array(types.uint64, 1, "C")

    def generate(target, builder, signature, arguments):
        given = target.make_array(row)(target, builder, arguments[0])
        made = target.make_array(kind)(target, builder)
        for name in ("meminfo", "parent", "nitems", "itemsize", "shape", "strides"):
            setattr(made, name, getattr(given, name))
        made.data = builder.bitcast(given.data, made.data.type)
        return made._getvalue()

    return kind(row), generate


def _view(row: Any) -> Any:
    return row.view(np.uint64)


settings: Any = numba.config
bits_of: Any = _view if settings.DISABLE_JIT else read_as_bits


@helper
def find_logits(count, scratch):
    """log(η / (1 − η)) of a row's probabilities."""
    values, logits, powers = scratch[VALUES], scratch[LOGITS], scratch[GAINS]
    odds_bits, power_bits = bits_of(logits), bits_of(powers)
    for i in range(count):
        near = min(max(values[i], LEAST), MOST)
        logits[i] = near / (1.0 - near)
    for i in range(count):
        power = (odds_bits[i] + FROM_ROOT) >> SHIFT
        power_bits[i] = power + WHOLE_BITS
        odds_bits[i] = odds_bits[i] + ONE - (power << SHIFT)
    for i in range(count):
        s = (logits[i] - 1.0) / (logits[i] + 1.0)
        q = s * s
        series = 1.0 / 17.0 + q * (1.0 / 19.0)
        series = 1.0 / 15.0 + q * series
        series = 1.0 / 13.0 + q * series
        series = 1.0 / 11.0 + q * series
        series = 1.0 / 9.0 + q * series
        series = 1.0 / 7.0 + q * series
        series = 1.0 / 5.0 + q * series
        series = 1.0 / 3.0 + q * series
        power = powers[i] - WHOLE - 1023.0
        logits[i] = power * LN2_HIGH + (2.0 * s * (1.0 + q * series) + power * LN2_LOW)


@helper
def squash(count, scratch):
    """1 / (1 + exp(−x)) in place of x, in the row of gains."""
    lifted, powers = scratch[GAINS], scratch[CHOSEN_GAINS]
    power_bits = bits_of(powers)
    for i in range(count):
        x = min(max(-lifted[i], -LARGE), LARGE)
        lifted[i] = x
        powers[i] = x * PER_LN2 + WHOLE
    for i in range(count):
        power = powers[i] - WHOLE
        r = (lifted[i] - power * LN2_HIGH) - power * LN2_LOW
        series = 1.0 / 3628800.0 + r * (1.0 / 39916800.0)
        series = 1.0 / 362880.0 + r * series
        series = 1.0 / 40320.0 + r * series
        series = 1.0 / 5040.0 + r * series
        series = 1.0 / 720.0 + r * series
        series = 1.0 / 120.0 + r * series
        series = 1.0 / 24.0 + r * series
        series = 1.0 / 6.0 + r * series
        series = 0.5 + r * series
        series = 1.0 + r * series
        lifted[i] = 1.0 + r * series
        power_bits[i] = (power_bits[i] + BIAS) << SHIFT
    for i in range(count):
        lifted[i] = 1.0 / (1.0 + lifted[i] * powers[i])
