"""The compiler's flags, decided once.

Three kinds of compiled function live in this room. An ``entry`` is called from Python and keeps
its machine code on disk, so a second process does not compile again. A ``helper`` is called by
other compiled functions only and is always made part of their loops; a ``section`` is called by
them once a row or less, so that its code need not be repeated.

``error_model="numpy"`` divides as IEEE 754 says instead of branching to raise, which lets loops
become vector instructions. Fast-math stays off: it would let two callers of one helper round
differently, and stepping must equal replaying bit for bit. ``_nrt=False`` leaves reference counts
alone: nothing here makes or keeps an array, and counting references to views took half the time
of a row. So scratch space comes from the caller, and slices are copied by loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def _compile(function: Function, **options: bool) -> Function:
    njit: Any = numba.njit  # its stubs do not know of _nrt
    compiled: Function = njit(error_model="numpy", _nrt=False, **options)(function)
    return compiled


def helper(function: Function) -> Function:
    """Compile a function that becomes part of the compiled loops that call it."""
    return _compile(function, forceinline=True)


def section(function: Function) -> Function:
    """Compile a function that only compiled functions call, and not in their inner loops."""
    return _compile(function)


def entry(function: Function) -> Function:
    """Compile a function that Python calls, and keep the result on disk.

    It lets other threads run meanwhile: a grid of replays shares its data between threads.
    """
    return _compile(function, cache=True, nogil=True)


def uncached(function: Function) -> Function:
    """Compile an entry again without the disk.

    A signature that holds a user's own compiled function is never found again by a new process:
    saving it would only let the cache grow.
    """
    return _compile(getattr(function, "py_func", function), nogil=True)
