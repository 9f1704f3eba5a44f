"""Machine code on disk: found again only where it was made from the same sources.

Numba looks at the file of the entry alone; a change to a helper in another file would leave old
machine code in use. Here everything is stamped with a hash of all kernel sources, taken when they
are imported (under a millisecond), and with the versions of NumPy and llvmlite; Numba adds its own,
Python's and the processor's. Times of files play no part, so that a copy, or a layer of a container
image, keeps its cache.

A signature may hold a user's own compiled function, whose type is new in each process. In the key
its ``identity`` stands for it, and what is saved leaves it out: a key of its code, its constants
and all that it refers to, so that two functions with the same identity compile to the same machine
code. What cannot be told for sure (an object of an unknown class, a module that may change) has
none. A function without, or whose identity has changed since it was compiled, is not looked for and
not saved.
"""

import builtins
import copy
import hashlib
import sys
from collections.abc import Callable, Iterator
from importlib.resources import files
from pickle import PicklingError
from types import CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite
import numpy as np
from numba.core import types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.typing.templates import signature

from omma.kernels.pointer import Held

# Their functions change with a version only, which is part of every key of the cache.
KNOWN_MODULES = ("builtins", "math", "cmath", "numpy")
PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
MOST_OWN = 64  # entries with a user's function, for each kernel; then they start anew


def hash_of_sources() -> str:
    """A hash of all files of the kernels."""
    found = sorted(
        (one.name, one.read_bytes())
        for one in files("omma.kernels").iterdir()
        if one.name.endswith(".py")
    )
    return hashlib.sha256(repr(found).encode()).hexdigest()


STAMP = (hash_of_sources(), np.__version__, llvmlite.__version__)


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


def _key_of(kind: Any) -> Any:
    """A type as part of a key: the identity of a user's function in place of its own type."""
    if isinstance(kind, types.Dispatcher):
        first = getattr(kind.dispatcher, "identity", None)
        # What was compiled first stays in use: a global that changed since makes it unknown.
        if first is None or first != identity(kind.dispatcher):
            raise _UnknownError
        return "own", first
    if hasattr(kind, "instance_class"):
        return kind.instance_class.__qualname__, *map(_key_of, kind.types)
    if isinstance(kind, Held):
        return "held", _key_of(kind.of)
    return kind


def _holds_function(kind: Any) -> bool:
    if isinstance(kind, Held):
        return _holds_function(kind.of)
    if hasattr(kind, "instance_class"):
        return any(map(_holds_function, kind.types))
    return isinstance(kind, types.Dispatcher)


class KernelFile(IndexDataCacheFile):
    """The files of one kernel; an index of classes that are gone is one of other sources."""

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except (ImportError, AttributeError):
            return {}


class OwnFile(KernelFile):
    """The files for entries with a user's function: they do not grow without end."""

    def save(self, key: Any, data: Any) -> None:
        if len(self._load_index()) >= MOST_OWN:
            self.flush()
        # With its key: another process may be about to read a file that this one writes anew.
        super().save(key, (key, data))

    def load(self, key: Any) -> Any:
        found, data = super().load(key) or (None, None)
        return data if found == key else None


class KernelCache(FunctionCache):
    """The cache of one kernel; ``made_of`` is its type where it was made of a user's function."""

    def __init__(self, py_func: Any, made_of: Any = None) -> None:
        super().__init__(py_func)
        path, base = self._impl.locator.get_cache_path(), self._impl.filename_base
        self._made_of = made_of
        self._cache_file = KernelFile(path, base, STAMP)
        self._own_file = OwnFile(path, f"{base}-own", STAMP)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        if not self._is_own(sig):
            return super()._load_overload(sig, target_context)
        try:
            payload = self._own_file.load(self._own_key(sig, target_context.codegen()))
        except (_UnknownError, ImportError):  # of the module that the function came from
            return None
        if payload is None:
            return None
        found = self._impl.rebuild(target_context, payload)
        found.fndesc.argtypes = tuple(sig)
        return found._replace(signature=signature(found.signature.return_type, *sig))

    def _save_overload(self, sig: Any, data: Any) -> None:
        if not self._is_own(sig):
            super()._save_overload(sig, data)
            return
        if data.library.has_dynamic_globals:  # such as a large array: an address in this process
            return
        try:
            key = self._own_key(sig, data.codegen)
            self._own_file.save(key, _without_arguments(self._impl.reduce(data)))
        except (_UnknownError, PicklingError):
            return

    def _is_own(self, sig: Any) -> bool:
        return self._made_of is not None or any(map(_holds_function, sig))

    def _own_key(self, sig: Any, codegen: Any) -> Any:
        made_of = None if self._made_of is None else _key_of(self._made_of)
        return made_of, tuple(map(_key_of, sig)), codegen.magic_tuple()


def _without_arguments(payload: tuple[Any, ...]) -> tuple[Any, ...]:
    """A compiled result as its parts, without the types of its arguments: those are in the key."""
    library, described, environment, called, *rest = payload
    described = copy.copy(described)
    described.argtypes = ()
    return library, described, environment, signature(called.return_type), *rest
