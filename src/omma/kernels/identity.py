"""What a user's function is made of, as a key: its code, constants, and all that it refers to.

Two functions with the same identity compile to the same machine code. What cannot be told for sure
(an object of an unknown class, a module that may change) has no identity, and is not cached.
"""

from __future__ import annotations

import builtins
import hashlib
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

# Their functions change with a version only, which is part of every key of the cache.
KNOWN_MODULES = ("builtins", "math", "cmath", "numpy")
PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))


class _UnknownError(Exception):
    """Something of which it cannot be told whether it stays the same."""


def identity(function: Callable[..., Any]) -> str | None:
    """A key for a function, plain or compiled; None where that cannot be told for sure.

    >>> def twice(tp, fp, fn, tn):
    ...     return 2 * tp
    >>> def thrice(tp, fp, fn, tn):
    ...     return 3 * tp
    >>> identity(twice) == identity(twice), identity(twice) == identity(thrice)
    (True, False)
    """
    try:
        return hashlib.sha256(repr(_told(function, ())).encode()).hexdigest()
    except _UnknownError:
        return None


def _told(value: Any, within: tuple[Any, ...]) -> Any:
    """A value as a nested tuple of texts and bytes that is another for another value."""
    kind = type(value)
    if kind in PLAIN:
        return kind.__name__, repr(value)
    if kind in (tuple, frozenset):
        parts = [_told(part, within) for part in value]
        return kind.__name__, parts if kind is tuple else sorted(map(repr, parts))
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufc":
        return "array", value.dtype.str, value.shape, value.tobytes()
    if kind is CodeType:
        return _told_code(value, within)
    if hasattr(value, "py_func") and hasattr(value, "targetoptions"):
        options = sorted((name, repr(one)) for name, one in value.targetoptions.items())
        return "compiled", options, _told(value.py_func, within)
    if kind is FunctionType:
        return _told_function(value, within)
    return _told_known(value)


def _told_known(value: Any) -> Any:
    """A module that is known, or one of its functions or types, by its name."""
    if isinstance(value, ModuleType) and value.__name__ in KNOWN_MODULES:
        return "module", value.__name__
    name = getattr(value, "__name__", "")
    for module in KNOWN_MODULES:
        if name and getattr(sys.modules.get(module), name, None) is value:
            return "known", module, name
    raise _UnknownError


def _told_code(code: CodeType, within: tuple[Any, ...]) -> Any:
    signature = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return "code", signature, names, code.co_code, _told(code.co_consts, within)


def _told_function(function: FunctionType, within: tuple[Any, ...]) -> Any:
    if function in within:
        return "itself", within.index(function)
    within = (*within, function)
    parts: list[Any] = [_told(function.__code__, within), _told(function.__defaults__, within)]
    parts += [(name, _told(one, within)) for name, one in (function.__kwdefaults__ or {}).items()]
    for cell in function.__closure__ or ():
        try:
            parts.append(_told(cell.cell_contents, within))
        except ValueError as error:  # a cell that nothing was put into yet
            raise _UnknownError from error
    home = str(function.__globals__.get("__name__"))
    if not home.startswith("omma.kernels."):  # the cache knows these sources
        parts += [
            (name, _told(one, within)) for name, one in _globals_of(function.__code__, function)
        ]
    return "function", parts


def _globals_of(code: CodeType, function: FunctionType) -> Iterator[tuple[str, Any]]:
    """All that a function and those inside it may mean by names that are not their own."""
    for name in code.co_names:
        if name in function.__globals__:
            yield name, function.__globals__[name]
        elif hasattr(builtins, name):
            yield name, getattr(builtins, name)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_of(constant, function)
