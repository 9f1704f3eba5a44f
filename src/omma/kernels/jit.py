"""Compilation of functions, and the cache of their machine code.

An ``entry`` is called from Python; its machine code is cached on disk. A ``helper`` is called only
by other compiled functions and is inlined. A function ``by_kind`` has a case for each kind (type)
of its first argument; the case is chosen at compile time.

Flags: with ``error_model="numpy"`` division follows IEEE 754 and has no branch that raises, so
loops are vectorized. Fast-math is off, because it would let two callers of one helper round
differently. ``_nrt=False`` switches off reference counting: kernels never allocate or keep arrays,
and counting references to views took half the time of a row.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite import ir
from numba.core import event, types
from numba.extending import intrinsic, overload

config: Any = numba.config  # as Any: its type stubs lack some settings
COMMON: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
INLINED: Any = {**COMMON, "no_cpython_wrapper": True, "forceinline": True}


def cache_folder() -> Path | None:
    """Return the folder for machine code of exactly these sources; None if there is no safe folder.

    Numba compares only the source file of an entry. After a change to a helper in another file, it
    would use old machine code. Therefore the folder is named after a hash of all sources. Whoever
    can write machine code to the folder can run it as this user, so the folder must belong to this
    user, with no access for others.
    """
    sources = sorted(
        (source.name, source.read_bytes())
        for source in files(__package__).iterdir()
        if source.name.endswith(".py")
    )
    # Numba's own index checks its version and the processor, but not these.
    versions = (np.__version__, llvmlite.__version__, config.BOUNDSCHECK)
    name = hashlib.sha256(repr((sources, versions)).encode()).hexdigest()[:16]
    chosen = config.CACHE_DIR  # the environment variable NUMBA_CACHE_DIR
    folder = (Path(chosen) if chosen else user_cache() / "omma") / f"omma-kernels-{name}"
    with suppress(OSError):  # with a read-only home, every process compiles again
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "getuid"):
            status = folder.lstat()
            if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
                warnings.warn(
                    f"{folder} belongs to another user, so omma keeps no machine code there: set "
                    "NUMBA_CACHE_DIR to a folder of your own",
                    RuntimeWarning,
                    stacklevel=2,
                )
                return None
            if stat.S_IMODE(status.st_mode) & 0o077:
                folder.chmod(0o700)
        return folder
    return None


def user_cache() -> Path:
    """Return the cache directory of this user on this operating system."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


CACHE = cache_folder()


@contextmanager
def in_cache_folder() -> Iterator[None]:
    """Declare functions in this context to cache their machine code in the folder of omma.

    Numba chooses the folder when a function is declared, so its configuration is changed only for
    that moment.
    """
    before = config.CACHE_DIR
    try:
        config.CACHE_DIR = "" if CACHE is None else str(CACHE)
        yield
    finally:
        config.CACHE_DIR = before


def entry(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls: cached on disk, and it releases the GIL."""
    njit: Any = numba.njit  # as Any: its type stubs lack some options
    with in_cache_folder():
        return njit(**COMMON, nogil=True, cache=CACHE is not None)(function)


def helper(function: Callable[..., Any]) -> Any:
    """Compile a function that is inlined into the compiled functions that call it."""
    njit: Any = numba.njit
    return njit(**INLINED)(function)


def by_kind(described: Callable[..., Any]) -> Any:
    """Make a function with a case for each kind of its first argument (named tuple, array, None).

    ``@function.case(MacroTerm)`` adds the case for ``MacroTerm``, ``@function.case(np.ndarray)``
    that for arrays, and ``@function.case(None)`` that for None. ``@function.case()`` adds the
    default, for every kind without a case of its own.
    """
    cases: dict[Any, Callable[..., Any]] = {}
    every_other = object()

    def function(*arguments: Any) -> Any:
        """Run the case as plain Python, if the compiler is switched off."""
        kind = None if arguments[0] is None else type(arguments[0])
        return (cases.get(kind) or cases[every_other])(*arguments)

    def pick(*kinds: Any) -> Any:
        """Choose the case by Numba types; the type of a named tuple knows its class."""
        kind = getattr(kinds[0], "instance_class", None)
        kind = np.ndarray if isinstance(kinds[0], types.Array) else kind
        return cases.get(kind) or cases.get(every_other)

    def case(kind: Any = every_other) -> Callable[[Any], Any]:
        def add(implementation: Any) -> Any:
            cases[kind] = implementation
            return implementation

        return add

    register: Any = overload
    register(function, jit_options=INLINED, strict=False)(pick)
    function.__name__ = described.__name__
    function.__doc__ = described.__doc__
    function.case = case  # type: ignore[attr-defined]
    return function


# Intrinsics, and the plain functions that replace them if the compiler is switched off.


def plain_form(native: Any) -> Callable[[Callable[..., Any]], Any]:
    """Use a function only with the compiler switched off; compiled functions call ``native``."""
    return lambda plain: plain if config.DISABLE_JIT else native


@intrinsic
def _fma(context, a, b, c):
    def generate(target, builder, signature, values):
        return builder.fma(*values)

    return types.float64(types.float64, types.float64, types.float64), generate


@intrinsic
def _bits_of(context, number):
    def generate(target, builder, signature, values):
        return builder.bitcast(values[0], ir.IntType(64))

    return types.uint64(types.float64), generate


@intrinsic
def _number_of(context, bits):
    def generate(target, builder, signature, values):
        return builder.bitcast(values[0], ir.DoubleType())

    return types.float64(types.uint64), generate


@plain_form(_fma)
def fma(a: float, b: float, c: float) -> Any:
    """a·b + c with a single rounding if the processor has it (plain Python rounds twice)."""
    return np.float64(a) * b + c


@plain_form(_bits_of)
def bits_of(number: float) -> Any:
    """Return the bits of a float64 as a uint64."""
    return np.float64(number).view(np.uint64)


@plain_form(_number_of)
def number_of(bits: int) -> Any:
    """Return the float64 with these bits (uint64)."""
    return np.uint64(bits).view(np.float64)


# Functions that loops call by address, so that a loop is compiled once for all of them. Arrays are
# passed as pointers to float64, all other arguments as integers.

NUMBERS = types.CPointer(types.float64)


def by_address(function: Callable[..., Any], *kinds: Any, kept: bool = True) -> Any:
    """Compile a function for ``call``.

    ``kinds`` are the types of its parameters, each NUMBERS or ``types.intp``; it returns intp.
    ``kept`` says whether its machine code may be cached on disk. With the compiler switched off,
    the function itself is returned.
    """
    if config.DISABLE_JIT:
        return function
    cfunc: Any = numba.cfunc  # as Any: its type stubs lack some options
    with in_cache_folder():
        keep = kept and CACHE is not None
        return cfunc(types.intp(*kinds), error_model="numpy", cache=keep)(function)


def address_of(function: Any) -> Any:
    """Return the address of a function from ``by_address``, to be passed to ``call``."""
    return function if config.DISABLE_JIT else function.address


@intrinsic
def _call(context, address, arguments):
    kinds = [NUMBERS if isinstance(kind, types.Array) else types.intp for kind in arguments]

    def native(target, builder, value, kind, wanted):
        if wanted is NUMBERS:
            return target.make_array(kind)(target, builder, value).data
        return target.cast(builder, value, kind, wanted)

    def generate(target, builder, signature, values):
        given = [
            native(target, builder, builder.extract_value(values[1], i), *pair)
            for i, pair in enumerate(zip(arguments, kinds, strict=True))
        ]
        parameters = [target.get_value_type(kind) for kind in kinds]
        function = ir.FunctionType(target.get_value_type(types.intp), parameters).as_pointer()
        return builder.call(builder.inttoptr(values[0], function), given)

    return types.intp(types.intp, arguments), generate


def call(function, *arguments):
    """Call a function by its address; with the compiler switched off, call the function itself."""
    return function(*arguments)


@overload(call, jit_options=INLINED)
def _overload_call(function, *arguments):
    return lambda function, *arguments: _call(function, arguments)


@intrinsic
def _read_as(context, numbers, template):
    def generate(target, builder, signature, arguments):
        # A tuple of float64, nested or not, is stored as its numbers one after another. A user's
        # function takes the space of one number. It is known by its type, and never read.
        kind = target.get_value_type(template).as_pointer()
        return builder.load(builder.bitcast(arguments[0], kind))

    return template(NUMBERS, template), generate


@plain_form(_read_as)
def read_as(numbers, template):
    """Read numbers from memory as a nested tuple of the same kind as ``template``.

    ``numbers`` is a pointer to float64 (NUMBERS).
    """
    return _filled(template, iter(numbers))


def _filled(template, numbers):
    if isinstance(template, tuple):
        parts = [_filled(part, numbers) for part in template]
        return type(template)(*parts) if hasattr(template, "_fields") else tuple(parts)
    number = next(numbers)
    return number if isinstance(template, float) else template  # or a user's function


@plain_form(numba.carray)  # type: ignore[attr-defined]
def as_array(numbers, shape):
    """View the numbers at an address as an array of ``shape``.

    With the compiler switched off, ``numbers`` is already an array.
    """
    return numbers


# A message on standard error if compilation takes long, so that users know why they wait.

PATIENCE = 1.0  # seconds of compilation before the message


class _Announcer(event.Listener):
    """Prints a message when compilation has taken longer than PATIENCE."""

    def __init__(self) -> None:
        self.here = threading.local()  # threads compile independently
        self.said = False  # the message is written once per process

    def on_start(self, event: Any) -> None:
        """Start a timer at the outermost function; functions that it calls compile within it."""
        self.here.depth = getattr(self.here, "depth", 0) + 1
        module = getattr(event.data.get("dispatcher"), "__module__", "")
        if self.here.depth == 1 and module.startswith("omma."):
            self.here.timer = threading.Timer(PATIENCE, self.say)
            self.here.timer.daemon = True
            self.here.timer.start()

    def on_end(self, event: Any) -> None:
        self.here.depth -= 1
        if self.here.depth == 0 and hasattr(self.here, "timer"):
            self.here.timer.cancel()
            del self.here.timer

    def say(self) -> None:
        if not self.said:
            self.said = True
            announce()


def announce() -> None:
    """Write to standard error that kernels are being compiled, unless OMMA_QUIET is set."""
    if os.environ.get("OMMA_QUIET", "") in ("", "0") and sys.stderr is not None:
        sys.stderr.write("omma: compiling for this machine, once…\n")
        sys.stderr.flush()


ANNOUNCER = _Announcer()
event.register("numba:compile", ANNOUNCER)
