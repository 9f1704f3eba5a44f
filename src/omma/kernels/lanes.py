"""Eight numbers side by side, as a processor's vector instructions take them.

A compiler makes such instructions of most loops by itself. It does not where a loop ends within
eight labels, as most rows do: the rest is then done one by one, and takes as long as all before it.
Here the last lanes of a row are read as zeros, and one loop over eights serves all of it.

``Eight`` numbers are added, multiplied, divided and compared by the usual signs, with each other
and with a number; what is compared gives ``Which`` of them, of which ``&``, ``|`` and ``~`` are
made. That is for what comes next: what stays from one eight to another should be numbers, zeros and
ones, as processors without an instruction for bits take long to pack and unpack them. Sums over
labels that are kept in eight lanes are the same bits in every loop that adds label
j to lane j % 8, in the order of labels. Processors without vectors as long do it in several.

Without the compiler, NumPy's arrays are both.
"""

from __future__ import annotations

from typing import Any, Final

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from omma.kernels import lanes_memory as memory, lanes_plain
from omma.kernels.lanes_plain import LANES as LANES
from omma.kernels.lanes_typed import (
    BITS,
    EIGHT,
    HALF,
    WHICH,
    WORD,
    Eight,
    EightBits,
    Which,
    declared,
    eight,
    eight_bits,
    same,
    which,
)

FUSING: Final = ("+fma", "+neon")  # what processors say that multiply and add in one


@intrinsic
def _times_plus(context, a, b, c):
    """The sum of a b and c, rounded once; twice where the processor has no instruction for it."""
    numbers = any(isinstance(one, Eight) for one in (a, b, c))

    def generate(target, builder, signature, given):
        if numbers:
            given = [same(builder, one) for one in given]
        if not any(name in getattr(target.codegen(), "_tm_features", "") for name in FUSING):
            return builder.fadd(builder.fmul(*given[:2]), given[2])
        if not numbers:
            return builder.fma(*given)
        kinds = (EIGHT, EIGHT, EIGHT)
        return builder.call(declared(builder, f"llvm.fma.v{LANES}f64", EIGHT, *kinds), given)

    kept = [one if isinstance(one, Eight) else types.float64 for one in (a, b, c)]
    return (eight if numbers else types.float64)(*kept), generate


def _better(sign: str) -> Any:
    """The larger, or the smaller, of two numbers or twice eight; the second where one is none.

    Of bits, as whole numbers without a sign.
    """

    def generate(target: Any, builder: Any, signature: Any, given: Any) -> Any:
        if isinstance(signature.return_type, EightBits):
            return builder.select(builder.icmp_unsigned(sign, *given), *given)
        if isinstance(signature.return_type, Eight):
            given = [same(builder, one) for one in given]
        return builder.select(builder.fcmp_ordered(sign, *given), *given)

    def typed(context: Any, a: Any, b: Any) -> Any:
        if isinstance(a, EightBits):
            return eight_bits(eight_bits, eight_bits), generate
        kept = [one if isinstance(one, Eight) else types.float64 for one in (a, b)]
        return (eight if eight in kept else types.float64)(*kept), generate

    return intrinsic(typed)


_larger: Final = _better(">")
_smaller: Final = _better("<")


@intrinsic
def _spread(context, number):
    def generate(target, builder, signature, given):
        return same(builder, given[0])

    return eight(types.float64), generate


@intrinsic
def _where(context, chosen, yes, no):
    """One or the other, of numbers as well as of eights."""
    kept = [one if isinstance(one, Eight) else types.float64 for one in (yes, no)]
    if not isinstance(chosen, Which):

        def generate(target, builder, signature, given):
            return builder.select(*given)

        return types.float64(types.boolean, *kept), generate

    def generate_eight(target, builder, signature, given):
        return builder.select(given[0], *(same(builder, one) for one in given[1:]))

    return eight(which, *kept), generate_eight


@intrinsic
def _as_bits(context, number):
    """The bits of a float, or of eight; a view would take Numba a quarter of a second more."""
    many = isinstance(number, Eight)

    def generate(target, builder, signature, given):
        return builder.bitcast(given[0], BITS if many else WORD)

    return (eight_bits(eight) if many else types.uint64(types.float64)), generate


@intrinsic
def _as_number(context, bits):
    """The float that has such bits, or the eight."""
    many = isinstance(bits, EightBits)

    def generate(target, builder, signature, given):
        return builder.bitcast(given[0], EIGHT if many else ir.DoubleType())

    return (eight(eight_bits) if many else types.float64(types.uint64)), generate


@intrinsic
def _as_word(context, chosen):
    def generate(target, builder, signature, given):
        return builder.zext(builder.bitcast(given[0], ir.IntType(LANES)), WORD)

    return types.int64(which), generate


@intrinsic
def _as_which(context, word):
    def generate(target, builder, signature, given):
        return builder.bitcast(builder.trunc(given[0], ir.IntType(LANES)), WHICH)

    return which(types.int64), generate


@intrinsic
def _ones_in(context, word):
    def generate(target, builder, signature, given):
        return builder.ctpop(given[0])

    return types.int64(types.int64), generate


@intrinsic
def _zeros_below(context, word):
    def generate(target, builder, signature, given):
        return builder.cttz(given[0], ir.IntType(1)(1))

    return types.int64(types.int64), generate


@intrinsic
def _first_of(context, left):
    def generate(target, builder, signature, given):
        return memory.there(builder, given[0])

    return which(types.int64), generate


@intrinsic
def _lane(context, numbers, at):
    def generate(target, builder, signature, given):
        return builder.extract_element(*given)

    return types.float64(eight, types.int64), generate


@intrinsic
def _total(context, numbers):
    """The sum over eight lanes: each of the first half and its like in the second, until one."""

    def generate(target, builder, signature, given):
        left, count = given[0], LANES
        while count > 1:
            count //= 2
            nothing = ir.Constant(left.type, ir.Undefined)
            halves = [
                builder.shuffle_vector(left, nothing, ir.Constant(ir.VectorType(HALF, count), at))
                for at in (list(range(count)), list(range(count, 2 * count)))
            ]
            left = builder.fadd(*halves)
        return builder.extract_element(left, HALF(0))

    return types.float64(eight), generate


settings: Any = numba.config


def _either_way(compiled: Any, name: str) -> Any:
    return getattr(lanes_plain, name) if settings.DISABLE_JIT else compiled


eight_at: Any = _either_way(memory.eight_at, "eight_at")
put_eight: Any = _either_way(memory.put_eight, "put_eight")
eight_of: Any = _either_way(memory.eight_of, "eight_of")
eight_to: Any = _either_way(memory.eight_to, "eight_to")
eight_among: Any = _either_way(memory.eight_among, "eight_among")
put_among: Any = _either_way(memory.put_among, "put_among")
put_eight_to: Any = _either_way(memory.put_eight_to, "put_eight_to")
put_eight_of: Any = _either_way(memory.put_eight_of, "put_eight_of")
fetch: Any = _either_way(memory.fetch, "fetch")
put_bytes: Any = _either_way(memory.put_bytes, "put_bytes")
times_plus: Any = _either_way(_times_plus, "times_plus")
larger: Any = _either_way(_larger, "larger")
smaller: Any = _either_way(_smaller, "smaller")
spread: Any = _either_way(_spread, "spread")
where: Any = _either_way(_where, "where")
bits_of: Any = _either_way(_as_bits, "bits_of")
number_of: Any = _either_way(_as_number, "number_of")
as_word: Any = _either_way(_as_word, "as_word")
as_which: Any = _either_way(_as_which, "as_which")
ones_in: Any = _either_way(_ones_in, "ones_in")
zeros_below: Any = _either_way(_zeros_below, "zeros_below")
first_of: Any = _either_way(_first_of, "first_of")
total: Any = _either_way(_total, "total")
lane: Any = _either_way(_lane, "lane")
