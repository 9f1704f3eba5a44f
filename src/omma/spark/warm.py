"""Compiling once for each host: one worker compiles, the others of its host wait for the result."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from omma.spark.columns import Columns

if sys.platform != "win32":
    import fcntl

_DONE: set[Any] = set()


@contextmanager
def compiled_once(policy: Any, columns: Columns) -> Iterator[None]:
    """Let one process of a host at a time run its first batch of a kind.

    The first of them may compile for seconds, and leaves machine code on the disk that the others
    read in a fraction of one. Later batches of a process do not wait for anything.
    """
    what = (repr(policy), columns.eta, columns.y is None)
    if what in _DONE or sys.platform == "win32":
        yield
        return
    os.environ.setdefault("OMMA_QUIET", "1")  # the log of a worker is nobody's terminal
    place = Path(tempfile.gettempdir()) / f"omma-compiling-{os.getuid()}"
    handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)  # freed with the file, or with the process
        yield
    finally:
        os.close(handle)
    _DONE.add(what)
