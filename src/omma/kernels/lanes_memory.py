"""How eight numbers at a time are read and written.

Past the end of a row nothing is: it is read as zeros there, and nothing is written.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from omma.kernels.lanes_plain import LANES
from omma.kernels.lanes_typed import (
    BITS,
    BYTE,
    EIGHT,
    HALF,
    WHICH,
    WORD,
    Which,
    declared,
    eight,
    same,
    which,
)


def place_of(target: Any, builder: Any, kind: Any, array: Any, at: Any, left: Any = None) -> Any:
    """Where eight elements of an array lie, of which so many are left in their row."""
    from numba.np import arrayobj  # much that only compiling needs

    made = arrayobj.make_array(kind)(target, builder, array)
    if target.enable_boundscheck:
        look_at(target, builder, cgutils.unpack_tuple(builder, made.shape, kind.ndim), at, left)
    start = builder.bitcast(made.data, BYTE.as_pointer())
    strides = cgutils.unpack_tuple(builder, made.strides, kind.ndim)
    strides[-1] = WORD(kind.dtype.bitwidth // 8)  # arrays here are C-contiguous
    for index, stride in zip(at, strides, strict=True):
        start = builder.gep(start, [builder.mul(index, stride)])
    return start


def look_at(target: Any, builder: Any, shape: Any, at: Any, left: Any) -> None:
    """Raise where one of eight elements is none of the array."""
    some = WORD(LANES) if left is None else left
    some = builder.select(is_whole(builder, some), WORD(LANES), some)
    last = (*at[:-1], builder.sub(builder.add(at[-1], some), WORD(1)))
    for place in (at, last):
        for axis, index in enumerate(place):
            cgutils.do_boundscheck(target, builder, index, shape[axis], axis)


def there(builder: Any, left: Any) -> Any:
    """Which lanes come before the end of a row."""
    order = ir.Constant(BITS, list(range(LANES)))
    return builder.icmp_signed("<", order, same(builder, left))


def letters_of(element: Any) -> str:
    return {"double": "f64", "float": "f32"}.get(str(element), str(element))


def masked(builder: Any, what: str, vector: Any) -> Any:
    """LLVM's function that reads or writes some lanes only."""
    letters = f"v{LANES}{letters_of(vector.element)}"
    name, at = f"llvm.masked.{what}.{letters}.p0{letters}", vector.as_pointer()
    if what == "load":
        return declared(builder, name, vector, at, HALF, WHICH, vector)
    return declared(builder, name, ir.VoidType(), vector, at, HALF, WHICH)


def is_whole(builder: Any, left: Any) -> Any:
    """Whether a row has all eight: what reads some of them takes longer."""
    return builder.icmp_signed(">=", left, WORD(LANES))


def either(builder: Any, condition: Any, yes: Any, no: Any) -> Any:
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


def read(target: Any, builder: Any, kind: Any, array: Any, *at_and_left: Any) -> Any:
    """Eight elements of a row as they are, zeros past its end."""
    *at, left = at_and_left
    vector = ir.VectorType(target.get_data_type(kind.dtype), LANES)
    place = builder.bitcast(place_of(target, builder, kind, array, at, left), vector.as_pointer())

    def whole() -> Any:
        return builder.load(place, align=1)

    def some() -> Any:
        given = [place, HALF(1), there(builder, left), ir.Constant(vector, None)]
        return builder.call(masked(builder, "load", vector), given)

    return either(builder, is_whole(builder, left), whole, some)


def write(builder: Any, place: Any, numbers: Any, left: Any) -> None:
    """Write eight elements where they are to lie, or as many as are left of a row."""
    place = builder.bitcast(place, numbers.type.as_pointer())
    with builder.if_else(is_whole(builder, left), likely=True) as (all_of_them, some):
        with all_of_them:
            builder.store(numbers, place, align=1)
        with some:
            given = [numbers, place, HALF(1), there(builder, left)]
            builder.call(masked(builder, "store", numbers.type), given)


@intrinsic
def eight_at(context, array, at):
    def generate(target, builder, signature, given):
        place = place_of(target, builder, signature.args[0], given[0], given[1:])
        return builder.load(builder.bitcast(place, EIGHT.as_pointer()), align=8)

    return eight(array, types.int64), generate


@intrinsic
def put_eight(context, array, at, numbers):
    def generate(target, builder, signature, given):
        place = place_of(target, builder, signature.args[0], given[0], given[1:2])
        numbers = same(builder, given[2])
        builder.store(numbers, builder.bitcast(place, EIGHT.as_pointer()), align=8)
        return target.get_dummy_value()

    return types.none(array, types.int64, eight), generate


@intrinsic
def eight_of(context, matrix, row, start, left):
    def generate(target, builder, signature, given):
        found = read(target, builder, signature.args[0], *given)
        if isinstance(found.type.element, ir.IntType):
            return builder.uitofp(found, EIGHT)
        single = isinstance(found.type.element, ir.FloatType)
        return builder.fpext(found, EIGHT) if single else found

    return eight(matrix, types.int64, types.int64, types.int64), generate


@intrinsic
def eight_to(context, array, start, left):
    def generate(target, builder, signature, given):
        return read(target, builder, signature.args[0], *given)

    return eight(array, types.int64, types.int64), generate


@intrinsic
def fetch(context, matrix, row, start):
    """Ask for a part of a row that is read later: rows that come in any order are not foreseen."""

    def generate(target, builder, signature, given):
        place = place_of(target, builder, signature.args[0], given[0], given[1:], WORD(1))
        kinds = (BYTE.as_pointer(), HALF, HALF, HALF)
        ask = declared(builder, "llvm.prefetch.p0i8", ir.VoidType(), *kinds)
        builder.call(ask, [place, HALF(0), HALF(3), HALF(1)])  # to read, to keep, of data
        return target.get_dummy_value()

    return types.none(matrix, types.int64, types.int64), generate


def element_of(target: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """Where one element of an array lies."""
    from numba.np import arrayobj

    made = arrayobj.make_array(kind)(target, builder, array)
    if target.enable_boundscheck:
        length = cgutils.unpack_tuple(builder, made.shape, 1)[0]
        cgutils.do_boundscheck(target, builder, at, length, 0)
    return builder.gep(made.data, [at])


def named(target: Any, builder: Any, kinds: Any, given: Any, place: Any) -> Any:
    """Where the number of a label lies that is listed at some place."""
    (array, ids), (array_kind, ids_kind) = given[:2], kinds[:2]
    label = builder.load(element_of(target, builder, ids_kind, ids, place))
    return element_of(target, builder, array_kind, array, builder.sext(label, WORD))


@intrinsic
def eight_among(context, array, ids, start, left):
    def generate(target, builder, signature, given):
        start, left = given[2:]
        last = builder.add(start, builder.sub(left, WORD(1)))

        def read(whole: bool) -> Any:
            found = ir.Constant(EIGHT, ir.Undefined)
            for at in range(LANES):
                place = builder.add(start, WORD(at))
                if not whole:
                    before = builder.icmp_signed("<", place, last)
                    place = builder.select(before, place, last)
                number = builder.load(named(target, builder, signature.args, given, place))
                found = builder.insert_element(found, number, HALF(at))
            return found

        return either(builder, is_whole(builder, left), lambda: read(True), lambda: read(False))

    return eight(array, ids, types.int64, types.int64), generate


@intrinsic
def put_among(context, array, ids, start, left, numbers):
    def generate(target, builder, signature, given):
        start, left, numbers = given[2:]

        def write(at: int) -> None:
            place = builder.add(start, WORD(at))
            number = builder.extract_element(numbers, HALF(at))
            builder.store(number, named(target, builder, signature.args, given, place))

        with builder.if_else(is_whole(builder, left), likely=True) as (all_of_them, some):
            with all_of_them:
                for at in range(LANES):
                    write(at)
            with some:
                for at in range(LANES - 1):
                    with builder.if_then(builder.icmp_signed(">", left, WORD(at))):
                        write(at)
        return target.get_dummy_value()

    return types.none(array, ids, types.int64, types.int64, eight), generate


@intrinsic
def put_eight_of(context, matrix, row, start, left, numbers):
    def generate(target, builder, signature, given):
        place = place_of(target, builder, signature.args[0], given[0], given[1:3], given[3])
        write(builder, place, given[4], given[3])
        return target.get_dummy_value()

    return types.none(matrix, types.int64, types.int64, types.int64, eight), generate


@intrinsic
def put_eight_to(context, array, start, left, numbers):
    def generate(target, builder, signature, given):
        place = place_of(target, builder, signature.args[0], given[0], given[1:2], given[2])
        write(builder, place, given[3], given[2])
        return target.get_dummy_value()

    return types.none(array, types.int64, types.int64, eight), generate


@intrinsic
def put_bytes(context, matrix, row, start, left, numbers):
    """Write eight small whole numbers as int8, or one where some are chosen and else zero."""
    kind = which if isinstance(numbers, Which) else eight

    def generate(target, builder, signature, given):
        place = place_of(target, builder, signature.args[0], given[0], given[1:3], given[3])
        narrow = builder.zext if kind is which else builder.fptosi
        write(builder, place, narrow(given[4], ir.VectorType(BYTE, LANES)), given[3])
        return target.get_dummy_value()

    return types.none(matrix, types.int64, types.int64, types.int64, kind), generate
