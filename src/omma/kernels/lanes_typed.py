"""What eight numbers are to the compiler: their types, and the signs between them."""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import lower_builtin, models, register_model, type_callable

from omma.kernels.lanes_plain import LANES

WORD: Final = ir.IntType(64)
HALF: Final = ir.IntType(32)
BYTE: Final = ir.IntType(8)
EIGHT: Final = ir.VectorType(ir.DoubleType(), LANES)
BITS: Final = ir.VectorType(WORD, LANES)
WHICH: Final = ir.VectorType(ir.IntType(1), LANES)


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


for _kind, _shape in ((Eight, EIGHT), (EightBits, BITS), (Which, WHICH)):
    _modelled(_kind, _shape)


def same(builder: Any, number: Any) -> Any:
    """A number in all lanes; what is a vector already stays as it is."""
    if isinstance(number.type, ir.VectorType):
        return number
    vector = ir.VectorType(number.type, LANES)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), number, HALF(0))
    everywhere = ir.Constant(ir.VectorType(HALF, LANES), [0] * LANES)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), everywhere)


def declared(builder: Any, name: str, back: Any, *given: Any) -> Any:
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
        return made(builder, *(same(builder, one) for one in given))

    type_callable(name)(typing)
    lower_builtin(name, *kinds)(lowered)


def _method(name: str) -> Any:
    return lambda builder, *given: getattr(builder, name)(*given)


def _compared(sign: str) -> Any:
    return lambda builder, a, b: builder.fcmp_ordered(sign, a, b)


def _root(builder: Any, a: Any) -> Any:
    return builder.call(declared(builder, f"llvm.sqrt.v{LANES}f64", EIGHT, EIGHT), [a])


def _magnitude(builder: Any, a: Any) -> Any:
    return builder.call(declared(builder, f"llvm.fabs.v{LANES}f64", EIGHT, EIGHT), [a])


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
