"""Compiling so that nobody is left wondering: a line where it takes long, and Ctrl-C works.

Numba's compiler does not look at signals. So it runs in a thread of its own, and the caller waits
for it in short turns. A caller that is interrupted leaves the thread to finish: its result is there
for the next call. A process that ends meanwhile stops it at the next step of the compiler.

Only a first call with new types comes here; all others are answered by Numba's dispatcher in C.
"""

import atexit
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from numba.core import event
from numba.core.compiler_lock import global_compiler_lock

from omma.kernels import kinds
from omma.kernels.pointer import Held

LONG = 1.0  # seconds of compiling after which it is said
TURN = 0.05  # seconds between looks at signals
PATIENCE = 5.0  # seconds that a process which ends waits for the compiler to stop


def say(line: str) -> None:
    """Write a line to standard error, unless OMMA_QUIET is set or there is no such place."""
    if os.environ.get("OMMA_QUIET", "") in ("", "0") and sys.stderr is not None:
        sys.stderr.write(f"omma: {line}\n")
        sys.stderr.flush()


def patient(dispatcher: Any, title: str) -> Any:
    """Let a compiled function compile in a thread, for callers that wait and may be interrupted."""
    compile_here: Callable[[Any], Any] = dispatcher.compile

    def compile_there(sig: Any) -> Any:
        if global_compiler_lock.is_locked():  # by this thread, which would wait for itself
            return compile_here(sig)
        misses = dispatcher.stats.cache_misses
        return _waited_for(
            lambda: compile_here(sig), lambda: sig in misses, f"{title}{_subject(sig)}"
        )

    dispatcher.compile = compile_there
    return dispatcher


def _waited_for(work: Callable[[], Any], compiles: Callable[[], bool], what: str) -> Any:
    """The result of some work in a thread; says what it is once it has compiled for long."""
    result: Future[Any] = Future()
    thread = threading.Thread(target=_fulfil, args=(result, work), daemon=True)
    thread.start()
    said, started = False, time.monotonic()
    try:
        while thread.is_alive():
            thread.join(TURN)
            if not said and time.monotonic() - started > LONG and compiles():
                say(f"compiling {what}, once for this machine…")
                said = True
    except BaseException:
        _stop_at_exit(thread)
        raise
    return result.result()


class _Pause:
    """The garbage collector rests while some thread compiles: that takes a twelfth less time.

    The compiler makes millions of objects that live as long as it runs, and looking through them
    again and again frees nothing. Threads that compile at once share one rest.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._compiling = 0
        self._was_on = False

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._compiling == 0:
                self._was_on = gc.isenabled()
                gc.disable()
            self._compiling += 1
        try:
            yield
        finally:
            with self._lock:
                self._compiling -= 1
                if self._compiling == 0 and self._was_on:
                    gc.enable()


_rest = _Pause()


def _fulfil(result: Future[Any], work: Callable[[], Any]) -> None:
    try:
        with _rest():
            result.set_result(work())
    except BaseException as error:  # the caller raises it
        result.set_exception(error)


def _subject(sig: tuple[Any, ...]) -> str:
    """Whose kernel it is, such as " of macro rate metrics", by the types it is compiled for."""
    words = [word for kind in sig for word in _words(kind)]
    if "own" in words:
        return " of your own metric"
    return f" of {' '.join(words)} metrics" if words else ""


def _words(kind: Any) -> Iterator[str]:
    """A kind of metric in words: its class, and those of its parts that are kinds too."""
    if isinstance(kind, Held):
        yield from _words(kind.of)
    if hasattr(kind, "instance_class"):
        if kind.instance_class.__module__ == kinds.__name__:
            yield kind.instance_class.__name__.lower()
        for part in kind.types:
            yield from _words(part)


class _Stop(event.Listener):
    """Ends, by an exception, what a thread compiles for nobody."""

    def __init__(self, thread: threading.Thread) -> None:
        self.thread = thread

    def on_start(self, event: Any) -> None:
        if threading.current_thread() is self.thread:
            raise SystemExit

    def on_end(self, event: Any) -> None:
        """Nothing to do: the next step will not start."""


def _stop_at_exit(thread: threading.Thread) -> None:
    """Before the interpreter ends: LLVM must not run on while the process is taken apart."""

    def stop() -> None:
        if thread.is_alive():
            event.register("numba:run_pass", _Stop(thread))
            thread.join(PATIENCE)

    atexit.register(stop)
