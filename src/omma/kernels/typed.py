"""Types of what a kernel computes, found once for each operator and kinds of its arguments.

At every place where two numbers are added, Numba asks all that it knows to add, in turn: strings,
lists, dates, arrays; and once more where it makes code of it. That took a third of the time in
which a kernel is compiled, though a few dozen combinations of an operator and types come again and
again. Here answers are kept, for as long as the process lives.
"""

from __future__ import annotations

import builtins
import operator
from typing import Any, Final

from numba.core import types
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering, NopythonTypeInference

# Of these, answers depend on the types of the arguments alone.
PLAIN: Final = frozenset(
    one for room in (operator, builtins) for one in vars(room).values() if callable(one)
)

_SIGNATURES: Final[dict[Any, Any]] = {}
_KNOWN: Final[dict[Any, Any]] = {}


def _key(function: Any, args: Any, kws: Any) -> Any:
    return function, tuple(args), tuple(sorted(kws.items()))


class Known(types.Function):
    """An operator that remembers its signatures."""

    def __init__(self, of: Any) -> None:
        super().__init__(tuple(of.templates))
        self._of = of

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """The signature for arguments of such types."""
        key = _key(self._of, args, kws)
        if key not in _SIGNATURES:
            _SIGNATURES[key] = self._of.get_call_type(context, args, kws)
        return _SIGNATURES[key]

    def get_impl_key(self, sig: Any) -> Any:
        """What makes code of it."""
        return self._of.get_impl_key(sig)


class _Context:
    """A typing context of Numba's, with what it answered before.

    Answers are kept with the type that an operator has now: that is another one once somebody
    teaches Numba to add something new.
    """

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class Inferring(_Context):
    """The one that types are inferred by."""

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """The signature of a call."""
        if getattr(func, "typing_key", func) not in PLAIN:
            return self._real.resolve_function_type(func, args, kws)
        key = _key(self._real._lookup_global(func) or func, args, kws)
        if key in _SIGNATURES:
            return _SIGNATURES[key]
        found = self._real.resolve_function_type(func, args, kws)
        if found is not None:
            _SIGNATURES[key] = found
        return found

    def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
        """The signature of writing into an array."""
        key = _key(self._real._lookup_global(operator.setitem), (target, index, value), {})
        if key not in _SIGNATURES:
            _SIGNATURES[key] = self._real.resolve_setitem(target, index, value)
        return _SIGNATURES[key]


class Lowered(_Context):
    """The one that code is made by."""

    def resolve_value_type(self, val: Any) -> Any:
        """The type of an operator; it remembers."""
        found = self._real._lookup_global(val) if val in PLAIN else None
        if not isinstance(found, types.Function):
            return self._real.resolve_value_type(val)
        if found not in _KNOWN:
            _KNOWN[found] = Known(found)
        return _KNOWN[found]


@register_pass(mutates_CFG=True, analysis_only=False)
class Inference(NopythonTypeInference):
    """Finds the types of all that a kernel computes."""

    def run_pass(self, state: Any) -> Any:
        real = state.typingctx
        state.typingctx = Inferring(real)
        try:
            return super().run_pass(state)
        finally:
            state.typingctx = real


class KernelLower(Lower):
    """Makes code of a kernel."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.context.typing_context = Lowered(self.context.typing_context)


@register_pass(mutates_CFG=True, analysis_only=False)
class Lowering(NativeLowering):
    """The same as a step of the compiler."""

    @property
    def lowering_class(self) -> type[KernelLower]:
        """What makes the code."""
        return KernelLower
