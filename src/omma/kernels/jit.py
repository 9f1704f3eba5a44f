"""The compiler's flags, decided once.

An ``entry`` is called from Python and keeps its machine code on disk, so that a second process does
not compile again (``cache``); it compiles in a thread, so that Ctrl-C works (``compiling``). A
``helper`` is called by other compiled functions only and becomes part of their loops. A function
``by_kind`` is another for each kind of its first argument: which one is decided while compiling, so
that an entry holds the metric, the budget and the feedback it was asked for, and nothing else.
(With every metric in every kernel the first answer took twenty seconds.)

``error_model="numpy"`` divides as IEEE 754 says instead of branching to raise, which lets loops
become vector instructions. Fast-math stays off: it would let two callers of one helper round
differently, and stepping must equal replaying bit for bit. ``_nrt=False`` leaves reference counts
alone: nothing here makes or keeps an array, and counting references to views took half the time
of a row. So scratch space comes from the caller, and slices are copied by loops. Wrappers for
callers in Python and C, which Numba adds to everything, are made for entries only: without them
compilation takes a tenth less. Inlining is left to LLVM (``forceinline``): Numba's own infers the
types of the whole caller again for every call it replaces, which took twice as long. Helpers are
optimized within their callers only (``lean``).
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import numba
from numba.core import types
from numba.extending import overload

from omma.kernels.cache import KernelCache, identity
from omma.kernels.compiling import patient
from omma.kernels.lean import PartCompiler, WholeCompiler

Function = TypeVar("Function", bound=Callable[..., Any])

POINTED: dict[str, Any] = {
    "error_model": "numpy",
    "_nrt": False,
    "pipeline_class": WholeCompiler,
}
FLAGS: dict[str, Any] = {**POINTED, "no_cfunc_wrapper": True}
BESIDE: dict[str, Any] = {**FLAGS, "no_cpython_wrapper": True, "pipeline_class": PartCompiler}
INSIDE: dict[str, Any] = {**BESIDE, "forceinline": True}


def _compiled(function: Function, **options: Any) -> Function:
    njit: Any = numba.njit  # its stubs do not know of all options
    compiled: Function = njit(**options)(function)
    return compiled


def function(plain: Function) -> Function:
    """Compile a function that both Python and compiled functions call, made from a user's own."""
    return _kept(_compiled(plain, **FLAGS), "your own metric", own=True)


def helper(function: Function) -> Function:
    """Compile a function that becomes part of the compiled loops that call it."""
    return _compiled(function, **INSIDE)


def section(function: Function) -> Function:
    """Compile a function that compiled functions call outside their inner loops."""
    return _compiled(function, **BESIDE)


def entry(title: str) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that Python calls, and keep the result on disk.

    ``title`` says what is compiled where that takes long. The function lets other threads run
    meanwhile: a grid of replays shares its data between threads.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        return _kept(_compiled(function, **FLAGS, nogil=True), title)

    return compiled


def pointed(title: str) -> Callable[[Callable[..., Any]], Any]:
    """The same for a function that compiled ones call by its address; see ``omma.kernels.pointer``.

    That is what the wrapper for callers in C serves.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        return _kept(_compiled(function, **POINTED, no_cpython_wrapper=True), title)

    return compiled


def _kept(compiled: Any, title: str, own: bool = False) -> Any:
    """A compiled function with its place on disk, which is patient with those who wait for it."""
    if not hasattr(compiled, "py_func"):  # the compiler is switched off
        return compiled
    compiled.identity = identity(compiled) if own else None
    with suppress(RuntimeError):  # no folder can be written to: compiled in every process
        compiled._cache = KernelCache(compiled.py_func, types.Dispatcher(compiled) if own else None)
    return patient(compiled, title)


def by_kind(described: Callable[..., Any]) -> Any:
    """A function with a case for each kind of its first argument, a named tuple.

    ``@function.case(Macro, Rate)`` adds the case of a ``Macro`` whose field ``of`` is a ``Rate``;
    ``@function.case(Macro)`` serves all others, ``@function.case(None)`` what is None, and
    ``@function.case()`` whatever is left. What is decorated says what the cases do; itself it does
    nothing, and serves what is None where no case does.
    """
    cases: dict[tuple[Any, ...], Callable[..., Any]] = {(None,): described}

    def found(outer: Any, inner: Any) -> Any:
        return cases.get((outer, inner)) or cases.get((outer,)) or cases.get(())

    def function(*arguments: Any) -> Any:
        """Run the case as plain Python, for those who switch the compiler off."""
        first = arguments[0]
        kind = None if first is None else type(first)
        return found(kind, type(getattr(first, "of", None)))(*arguments)

    def pick(*types: Any) -> Any:
        first = types[0]
        kind = getattr(first, "instance_class", None)
        inside = dict(zip(getattr(first, "fields", ()), getattr(first, "types", ()), strict=False))
        return found(kind, getattr(inside.get("of"), "instance_class", None))

    def case(*kinds: Any) -> Callable[[Function], Function]:
        def add(one: Function) -> Function:
            cases[kinds] = one
            return one

        return add

    register: Any = overload  # its stubs do not know of all options
    register(function, jit_options=INSIDE, strict=False)(pick)
    function.__name__ = described.__name__
    function.__doc__ = described.__doc__
    function.case = case  # type: ignore[attr-defined]
    return function
