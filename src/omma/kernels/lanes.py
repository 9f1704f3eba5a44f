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

import operator
from typing import Any, Final

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

from omma.kernels import lanes_plain
from omma.kernels.lanes_plain import LANES as LANES

FUSING: Final = ("+fma", "+neon")  # what processors say that multiply and add in one

_WORD: Final = ir.IntType(64)
_HALF: Final = ir.IntType(32)
_BYTE: Final = ir.IntType(8)
_EIGHT: Final = ir.VectorType(ir.DoubleType(), LANES)
_BITS: Final = ir.VectorType(_WORD, LANES)
_WHICH: Final = ir.VectorType(ir.IntType(1), LANES)


class Eight(types.Type):
    """Eight floats."""


class EightBits(types.Type):
    """The bits of eight floats, as whole numbers."""


class Which(types.Type):
    """Some of eight."""


eight: Final = Eight("eight")
eight_bits: Final = EightBits("eight_bits")
which: Final = Which("which")


def _modelled(kind: type[types.Type], shape: Any) -> None:
    class Model(models.PrimitiveModel):
        """Such a value is one vector."""

        def __init__(self, manager: Any, of: Any) -> None:
            super().__init__(manager, of, shape)

    register_model(kind)(Model)


for _kind, _shape in ((Eight, _EIGHT), (EightBits, _BITS), (Which, _WHICH)):
    _modelled(_kind, _shape)


def _same(builder: Any, number: Any) -> Any:
    """A number in all lanes; what is a vector already stays as it is."""
    if isinstance(number.type, ir.VectorType):
        return number
    vector = ir.VectorType(number.type, LANES)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), number, _HALF(0))
    everywhere = ir.Constant(ir.VectorType(_HALF, LANES), [0] * LANES)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), everywhere)


def _declared(builder: Any, name: str, back: Any, *given: Any) -> Any:
    """A function that LLVM brings along."""
    found = builder.module.globals.get(name)
    kind = ir.FunctionType(back, given)
    return ir.Function(builder.module, kind, name) if found is None else found


def _operation(name: Any, kinds: tuple[Any, ...], back: Any, made: Any) -> None:
    """Let compiled functions use a sign, or a name, for values of such kinds."""

    def typing(context: Any) -> Any:
        def typed(*given: Any) -> Any:
            alike = len(given) == len(kinds) and all(map(isinstance, given, kinds))
            return back if alike else None

        # The number of arguments is looked at before they are typed.
        return (lambda a: typed(a)) if len(kinds) == 1 else (lambda a, b: typed(a, b))

    def lowered(target: Any, builder: Any, signature: Any, given: Any) -> Any:
        return made(builder, *(_same(builder, one) for one in given))

    type_callable(name)(typing)
    lower_builtin(name, *kinds)(lowered)


def _method(name: str) -> Any:
    return lambda builder, *given: getattr(builder, name)(*given)


def _compared(sign: str) -> Any:
    return lambda builder, a, b: builder.fcmp_ordered(sign, a, b)


def _root(builder: Any, a: Any) -> Any:
    return builder.call(_declared(builder, f"llvm.sqrt.v{LANES}f64", _EIGHT, _EIGHT), [a])


def _magnitude(builder: Any, a: Any) -> Any:
    return builder.call(_declared(builder, f"llvm.fabs.v{LANES}f64", _EIGHT, _EIGHT), [a])


_PAIRS: Final = ((Eight, Eight), (Eight, types.Float), (types.Float, Eight))
_SIGNS: Final = (
    (operator.add, eight, _method("fadd")),
    (operator.sub, eight, _method("fsub")),
    (operator.mul, eight, _method("fmul")),
    (operator.imul, eight, _method("fmul")),
    (operator.truediv, eight, _method("fdiv")),
    (operator.ge, which, _compared(">=")),
    (operator.gt, which, _compared(">")),
    (operator.le, which, _compared("<=")),
    (operator.lt, which, _compared("<")),
)
for _name, _back, _made in _SIGNS:
    for _pair in _PAIRS:
        _operation(_name, _pair, _back, _made)
for _name, _made in ((operator.and_, _method("and_")), (operator.or_, _method("or_"))):
    _operation(_name, (Which, Which), which, _made)
_operation(operator.invert, (Which,), which, _method("not_"))
_operation(operator.neg, (Eight,), eight, _method("fneg"))
_operation(np.sqrt, (Eight,), eight, _root)
_operation(abs, (Eight,), eight, _magnitude)
for _name, _made in (
    (operator.add, _method("add")),
    (operator.sub, _method("sub")),
    (operator.lshift, _method("shl")),
    (operator.rshift, _method("lshr")),
):
    for _other in (EightBits, types.Integer):
        _operation(_name, (EightBits, _other), eight_bits, _made)
_operation(
    operator.gt,
    (EightBits, types.Integer),
    which,
    lambda builder, a, b: builder.icmp_unsigned(">", a, b),
)


def _place(target: Any, builder: Any, kind: Any, array: Any, at: Any, left: Any = None) -> Any:
    """Where eight elements of an array lie, of which so many are left in their row."""
    from numba.np import arrayobj  # much that only compiling needs

    made = arrayobj.make_array(kind)(target, builder, array)
    if target.enable_boundscheck:
        _look(target, builder, cgutils.unpack_tuple(builder, made.shape, kind.ndim), at, left)
    start = builder.bitcast(made.data, _BYTE.as_pointer())
    strides = cgutils.unpack_tuple(builder, made.strides, kind.ndim)
    strides[-1] = _WORD(kind.dtype.bitwidth // 8)  # arrays here are C-contiguous
    for index, stride in zip(at, strides, strict=True):
        start = builder.gep(start, [builder.mul(index, stride)])
    return start


def _look(target: Any, builder: Any, shape: Any, at: Any, left: Any) -> None:
    """Raise where one of eight elements is none of the array."""
    some = _WORD(LANES) if left is None else left
    some = builder.select(_whole(builder, some), _WORD(LANES), some)
    last = (*at[:-1], builder.sub(builder.add(at[-1], some), _WORD(1)))
    for place in (at, last):
        for axis, index in enumerate(place):
            cgutils.do_boundscheck(target, builder, index, shape[axis], axis)


def _there(builder: Any, left: Any) -> Any:
    """Which lanes come before the end of a row."""
    order = ir.Constant(_BITS, list(range(LANES)))
    return builder.icmp_signed("<", order, _same(builder, left))


def _letters(element: Any) -> str:
    return {"double": "f64", "float": "f32"}.get(str(element), str(element))


def _masked(builder: Any, what: str, vector: Any) -> Any:
    """LLVM's function that reads or writes some lanes only."""
    letters = f"v{LANES}{_letters(vector.element)}"
    name, at = f"llvm.masked.{what}.{letters}.p0{letters}", vector.as_pointer()
    if what == "load":
        return _declared(builder, name, vector, at, _HALF, _WHICH, vector)
    return _declared(builder, name, ir.VoidType(), vector, at, _HALF, _WHICH)


def _whole(builder: Any, left: Any) -> Any:
    """Whether a row has all eight: what reads some of them takes longer."""
    return builder.icmp_signed(">=", left, _WORD(LANES))


def _either(builder: Any, condition: Any, yes: Any, no: Any) -> Any:
    """What one of two functions makes."""
    with builder.if_else(condition, likely=True) as (then, otherwise):
        with then:
            first, after_first = yes(), builder.block
        with otherwise:
            second, after_second = no(), builder.block
    found = builder.phi(first.type)
    found.add_incoming(first, after_first)
    found.add_incoming(second, after_second)
    return found


def _read(target: Any, builder: Any, kind: Any, array: Any, *at_and_left: Any) -> Any:
    """Eight elements of a row as they are, zeros past its end."""
    *at, left = at_and_left
    vector = ir.VectorType(target.get_data_type(kind.dtype), LANES)
    place = builder.bitcast(_place(target, builder, kind, array, at, left), vector.as_pointer())

    def whole() -> Any:
        return builder.load(place, align=1)

    def some() -> Any:
        given = [place, _HALF(1), _there(builder, left), ir.Constant(vector, None)]
        return builder.call(_masked(builder, "load", vector), given)

    return _either(builder, _whole(builder, left), whole, some)


def _write(builder: Any, place: Any, numbers: Any, left: Any) -> None:
    """Write eight elements where they are to lie, or as many as are left of a row."""
    place = builder.bitcast(place, numbers.type.as_pointer())
    with builder.if_else(_whole(builder, left), likely=True) as (all_of_them, some):
        with all_of_them:
            builder.store(numbers, place, align=1)
        with some:
            given = [numbers, place, _HALF(1), _there(builder, left)]
            builder.call(_masked(builder, "store", numbers.type), given)


@intrinsic
def _eight_at(context, array, at):
    def generate(target, builder, signature, given):
        place = _place(target, builder, signature.args[0], given[0], given[1:])
        return builder.load(builder.bitcast(place, _EIGHT.as_pointer()), align=8)

    return eight(array, types.int64), generate


@intrinsic
def _put_eight(context, array, at, numbers):
    def generate(target, builder, signature, given):
        place = _place(target, builder, signature.args[0], given[0], given[1:2])
        numbers = _same(builder, given[2])
        builder.store(numbers, builder.bitcast(place, _EIGHT.as_pointer()), align=8)
        return target.get_dummy_value()

    return types.none(array, types.int64, eight), generate


@intrinsic
def _eight_of(context, matrix, row, start, left):
    def generate(target, builder, signature, given):
        found = _read(target, builder, signature.args[0], *given)
        if isinstance(found.type.element, ir.IntType):
            return builder.uitofp(found, _EIGHT)
        single = isinstance(found.type.element, ir.FloatType)
        return builder.fpext(found, _EIGHT) if single else found

    return eight(matrix, types.int64, types.int64, types.int64), generate


@intrinsic
def _eight_to(context, array, start, left):
    def generate(target, builder, signature, given):
        return _read(target, builder, signature.args[0], *given)

    return eight(array, types.int64, types.int64), generate


@intrinsic
def _fetch(context, matrix, row, start):
    """Ask for a part of a row that is read later: rows that come in any order are not foreseen."""

    def generate(target, builder, signature, given):
        place = _place(target, builder, signature.args[0], given[0], given[1:], _WORD(1))
        kinds = (_BYTE.as_pointer(), _HALF, _HALF, _HALF)
        ask = _declared(builder, "llvm.prefetch.p0i8", ir.VoidType(), *kinds)
        builder.call(ask, [place, _HALF(0), _HALF(3), _HALF(1)])  # to read, to keep, of data
        return target.get_dummy_value()

    return types.none(matrix, types.int64, types.int64), generate


def _element(target: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """Where one element of an array lies."""
    from numba.np import arrayobj

    made = arrayobj.make_array(kind)(target, builder, array)
    if target.enable_boundscheck:
        length = cgutils.unpack_tuple(builder, made.shape, 1)[0]
        cgutils.do_boundscheck(target, builder, at, length, 0)
    return builder.gep(made.data, [at])


def _named(target: Any, builder: Any, kinds: Any, given: Any, place: Any) -> Any:
    """Where the number of a label lies that is listed at some place."""
    (array, ids), (array_kind, ids_kind) = given[:2], kinds[:2]
    label = builder.load(_element(target, builder, ids_kind, ids, place))
    return _element(target, builder, array_kind, array, builder.sext(label, _WORD))


@intrinsic
def _eight_among(context, array, ids, start, left):
    def generate(target, builder, signature, given):
        start, left = given[2:]
        last = builder.add(start, builder.sub(left, _WORD(1)))

        def read(whole: bool) -> Any:
            found = ir.Constant(_EIGHT, ir.Undefined)
            for at in range(LANES):
                place = builder.add(start, _WORD(at))
                if not whole:
                    before = builder.icmp_signed("<", place, last)
                    place = builder.select(before, place, last)
                number = builder.load(_named(target, builder, signature.args, given, place))
                found = builder.insert_element(found, number, _HALF(at))
            return found

        return _either(builder, _whole(builder, left), lambda: read(True), lambda: read(False))

    return eight(array, ids, types.int64, types.int64), generate


@intrinsic
def _put_among(context, array, ids, start, left, numbers):
    def generate(target, builder, signature, given):
        start, left, numbers = given[2:]

        def write(at: int) -> None:
            place = builder.add(start, _WORD(at))
            number = builder.extract_element(numbers, _HALF(at))
            builder.store(number, _named(target, builder, signature.args, given, place))

        with builder.if_else(_whole(builder, left), likely=True) as (all_of_them, some):
            with all_of_them:
                for at in range(LANES):
                    write(at)
            with some:
                for at in range(LANES - 1):
                    with builder.if_then(builder.icmp_signed(">", left, _WORD(at))):
                        write(at)
        return target.get_dummy_value()

    return types.none(array, ids, types.int64, types.int64, eight), generate


@intrinsic
def _put_eight_of(context, matrix, row, start, left, numbers):
    def generate(target, builder, signature, given):
        place = _place(target, builder, signature.args[0], given[0], given[1:3], given[3])
        _write(builder, place, given[4], given[3])
        return target.get_dummy_value()

    return types.none(matrix, types.int64, types.int64, types.int64, eight), generate


@intrinsic
def _put_eight_to(context, array, start, left, numbers):
    def generate(target, builder, signature, given):
        place = _place(target, builder, signature.args[0], given[0], given[1:2], given[2])
        _write(builder, place, given[3], given[2])
        return target.get_dummy_value()

    return types.none(array, types.int64, types.int64, eight), generate


@intrinsic
def _put_bytes(context, matrix, row, start, left, numbers):
    """Write eight small whole numbers as int8, or one where some are chosen and else zero."""
    kind = which if isinstance(numbers, Which) else eight

    def generate(target, builder, signature, given):
        place = _place(target, builder, signature.args[0], given[0], given[1:3], given[3])
        narrow = builder.zext if kind is which else builder.fptosi
        _write(builder, place, narrow(given[4], ir.VectorType(_BYTE, LANES)), given[3])
        return target.get_dummy_value()

    return types.none(matrix, types.int64, types.int64, types.int64, kind), generate


@intrinsic
def _times_plus(context, a, b, c):
    """The sum of a b and c, rounded once; twice where the processor has no instruction for it."""
    numbers = any(isinstance(one, Eight) for one in (a, b, c))

    def generate(target, builder, signature, given):
        if numbers:
            given = [_same(builder, one) for one in given]
        if not any(name in getattr(target.codegen(), "_tm_features", "") for name in FUSING):
            return builder.fadd(builder.fmul(*given[:2]), given[2])
        if not numbers:
            return builder.fma(*given)
        kinds = (_EIGHT, _EIGHT, _EIGHT)
        return builder.call(_declared(builder, f"llvm.fma.v{LANES}f64", _EIGHT, *kinds), given)

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
            given = [_same(builder, one) for one in given]
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
        return _same(builder, given[0])

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
        return builder.select(given[0], *(_same(builder, one) for one in given[1:]))

    return eight(which, *kept), generate_eight


@intrinsic
def _as_bits(context, number):
    """The bits of a float, or of eight; a view would take Numba a quarter of a second more."""
    many = isinstance(number, Eight)

    def generate(target, builder, signature, given):
        return builder.bitcast(given[0], _BITS if many else _WORD)

    return (eight_bits(eight) if many else types.uint64(types.float64)), generate


@intrinsic
def _as_number(context, bits):
    """The float that has such bits, or the eight."""
    many = isinstance(bits, EightBits)

    def generate(target, builder, signature, given):
        return builder.bitcast(given[0], _EIGHT if many else ir.DoubleType())

    return (eight(eight_bits) if many else types.float64(types.uint64)), generate


@intrinsic
def _as_word(context, chosen):
    def generate(target, builder, signature, given):
        return builder.zext(builder.bitcast(given[0], ir.IntType(LANES)), _WORD)

    return types.int64(which), generate


@intrinsic
def _as_which(context, word):
    def generate(target, builder, signature, given):
        return builder.bitcast(builder.trunc(given[0], ir.IntType(LANES)), _WHICH)

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
        return _there(builder, given[0])

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
                builder.shuffle_vector(left, nothing, ir.Constant(ir.VectorType(_HALF, count), at))
                for at in (list(range(count)), list(range(count, 2 * count)))
            ]
            left = builder.fadd(*halves)
        return builder.extract_element(left, _HALF(0))

    return types.float64(eight), generate


settings: Any = numba.config


def _either_way(compiled: Any, name: str) -> Any:
    return getattr(lanes_plain, name) if settings.DISABLE_JIT else compiled


eight_at: Any = _either_way(_eight_at, "eight_at")
put_eight: Any = _either_way(_put_eight, "put_eight")
eight_of: Any = _either_way(_eight_of, "eight_of")
eight_to: Any = _either_way(_eight_to, "eight_to")
eight_among: Any = _either_way(_eight_among, "eight_among")
put_among: Any = _either_way(_put_among, "put_among")
put_eight_to: Any = _either_way(_put_eight_to, "put_eight_to")
put_eight_of: Any = _either_way(_put_eight_of, "put_eight_of")
fetch: Any = _either_way(_fetch, "fetch")
put_bytes: Any = _either_way(_put_bytes, "put_bytes")
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
