"""Compiled functions that other compiled functions call by their address.

What is maximized is one compiled function (``find``), the choice under a budget another
(``select``), and the loops over rows are given their addresses. So they never see the metric:
a further metric compiles a few lines and no loop again, and metrics, budgets, feedbacks and layouts
add up where they would multiply. A call by address takes some 20 nanoseconds a row.

A kind, such as ``Macro(1.0, Rate(...))``, cannot be an argument of such a call, as each has a type
of its own. So its numbers are laid out in memory one after another (``slots``), and ``Held`` is the
address of that, with the kind as a type beside it: ``read`` makes the named tuple again.

With the compiler switched off, an address is the function itself, and what is held the kind.
"""

import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

# Types that functions called by address share.
NUMBERS: Final = types.Array(types.float64, 1, "C")
ROWS: Final = types.Array(types.float64, 2, "C")
IDS: Final = types.Array(types.int32, 1, "C")
# Counts of all labels lie by label for sparse rows and by cell for dense ones.
CELLS: Final = types.Array(types.float64, 2, "A")
COUNT: Final = types.int64

EVERYTHING: Final = np.empty(0, dtype=np.int32)  # in place of a row's labels: all, in their order

SLOT: Final = 8  # bytes: a number, a part of a shape, or where an array lies
HELD: Final = (np.float64, np.int64, np.int32)  # what arrays that are held are of

FOUND: Final[dict[Any, Any]] = {}  # where functions lie, by the types in what they are for


class Address(NamedTuple):
    """Where a compiled function lies, and the numbers of the kind that it is for.

    Whoever calls it keeps this: the numbers lie where ``at`` says only as long as ``kept`` does.
    """

    function: Any
    at: Any
    kept: Any


class Held(types.Type):
    """The address of a kind's numbers."""

    def __init__(self, of: Any) -> None:
        self.of = of
        super().__init__(name=f"Held({of})")


@register_model(Held)
class HeldModel(models.PrimitiveModel):
    """An address is a whole number."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.IntType(64))


def held_by(entry: Any, kind: Any, *others: Any) -> Address:
    """Where an entry lies whose first argument is held, others being of the types given."""
    if not hasattr(entry, "overloads"):  # the compiler is switched off
        return Address(entry, kind, None)
    return laid_out(address_of(entry, Held(numba.typeof(kind)), *others), kind)


def held_as(entry: Any, kind: Any, *others: Any) -> Address:
    """The same where kinds hold arrays: what was found is remembered by the types in the kind.

    To find these takes Numba longer than to decide some hundred rows.
    """
    try:
        key = entry, types_in(kind)
    except TypeError:  # with a user's own function, too
        return held_by(entry, kind, *others)
    if key in FOUND:
        return laid_out(FOUND[key], kind)
    made = held_by(entry, kind, *others)
    if made.kept is not None:  # the compiler is on
        FOUND[key] = made.function
    return made


def laid_out(function: Any, kind: Any) -> Address:
    """The numbers of a kind beside a function that was found for kinds of its types."""
    numbers = np.frombuffer(b"".join(slots(kind)) or bytes(SLOT), dtype=np.int64)
    return Address(function, numbers.ctypes.data, (numbers, kind))


def types_in(kind: Any) -> Any:
    """What tells the types in a kind apart; TypeError where it holds more than numbers and arrays.

    >>> types_in((1.0, np.zeros(3))) == types_in((2.0, np.ones(4)))
    True
    """
    if isinstance(kind, tuple):
        return type(kind), *map(types_in, kind)
    if isinstance(kind, np.ndarray):
        return kind.dtype, kind.ndim, kind.flags.writeable, kind.flags.aligned
    if type(kind) in (float, int):
        return type(kind)
    raise TypeError(f"numbers and arrays have types that are told apart, got {type(kind)}")


def address_of(entry: Any, *kinds: Any) -> Any:
    """Where an entry for arguments of such types lies."""
    if not hasattr(entry, "overloads"):
        return entry
    if kinds not in entry.overloads:
        entry.compile(kinds)
    found = entry.overloads[kinds]
    return found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name)


def slots(value: Any) -> Iterator[bytes]:
    """The numbers of a kind one after another, as ``read`` expects them."""
    if isinstance(value, tuple):
        for member in value:
            yield from slots(member)
    elif isinstance(value, np.ndarray):
        if value.dtype not in HELD or not value.flags.c_contiguous:
            raise TypeError(f"what is held is C-contiguous numbers, got {value.dtype}")
        yield struct.pack(f"{1 + value.ndim}q", value.ctypes.data, *value.shape)
    elif isinstance(value, float):
        yield struct.pack("d", value)
    elif isinstance(value, int):
        yield struct.pack("q", value)
    # None and a compiled function are known by their type alone.


@intrinsic
def read_slots(context, held):
    """The kind that is held."""

    def generate(target, builder, signature, arguments):
        return _value(target, builder, held.of, arguments[0], 0)[0]

    return held.of(held), generate


def _value(target, builder, kind, base, at):
    """A part of a kind that starts at a slot, and the first slot after it."""
    if isinstance(kind, types.BaseTuple):
        members = []
        for member in kind.types:
            made, at = _value(target, builder, member, base, at)
            members.append(made)
        return target.make_tuple(builder, kind, members), at
    if isinstance(kind, types.Array):
        return _array(target, builder, kind, base, at)
    if isinstance(kind, (types.Float, types.Integer)):
        return _load(target, builder, kind, base, at), at + 1
    return target.get_dummy_value(), at


def _load(target, builder, kind, base, at):
    place = builder.add(base, ir.IntType(64)(at * SLOT))
    return builder.load(builder.inttoptr(place, target.get_value_type(kind).as_pointer()))


def _array(target, builder, kind, base, at):
    """An array that lies elsewhere, without a copy."""
    from numba.np import arrayobj  # much that only compiling needs

    made = arrayobj.make_array(kind)(target, builder)
    whole = [_load(target, builder, types.intp, base, at + i) for i in range(1 + kind.ndim)]
    size = target.get_constant(types.intp, kind.dtype.bitwidth // 8)
    strides = [size]
    for length in reversed(whole[2:]):
        strides.insert(0, builder.mul(strides[0], length))
    pointer = target.get_value_type(kind.dtype).as_pointer()
    arrayobj.populate_array(
        made,
        data=builder.inttoptr(whole[0], pointer),
        shape=whole[1:],
        strides=strides,
        itemsize=size,
        meminfo=None,
    )
    return made._getvalue(), at + 1 + kind.ndim


@intrinsic
def call_address(context, function, arguments):
    """What the function at an address returns: a whole number.

    Nothing is converted on the way: callers make sure of int64 and float64 themselves.
    """

    def generate(target, builder, signature, given):
        values = cgutils.unpack_tuple(builder, given[1], len(arguments))
        kinds = [target.get_value_type(one) for one in arguments.types]
        there = ir.FunctionType(ir.IntType(64), kinds).as_pointer()
        return builder.call(builder.inttoptr(given[0], there), values)

    return types.int64(function, arguments), generate


def _kind_itself(held: Any) -> Any:
    return held


def _function_itself(function: Any, arguments: Any) -> Any:
    return function(*arguments)


settings: Any = numba.config
read: Any = _kind_itself if settings.DISABLE_JIT else read_slots
called: Any = _function_itself if settings.DISABLE_JIT else call_address
