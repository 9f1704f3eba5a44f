"""A file that one process at a time may write: locked by the system, which frees it by itself."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

# Far behind what the file says: on Windows nobody else can read the byte that is locked.
_PLACE = 1 << 30


class InUseError(OSError):
    """Another process has the lock."""


@contextmanager
def locked(path: str | Path, what: str) -> Iterator[None]:
    """Keep all others away from ``path`` who ask for the same; ``what`` tells them who has it.

    The lock is on ``path.lock`` beside it, as ``path`` itself may be replaced meanwhile. A file
    left behind by a process that was killed locks nothing.

    >>> with locked("learner.npz", "omma stream"):
    ...     Path("learner.npz.lock").exists()
    True
    >>> Path("learner.npz.lock").exists()
    False
    """
    target = Path(os.path.realpath(path))  # two names of one file share its lock
    beside = target.with_name(f"{target.name}.lock")
    file = _taken(beside, str(path))
    try:
        file.truncate(0)
        file.write(f"{what}, process {os.getpid()}".encode())
        file.flush()
        yield
    finally:
        _removed(beside, file)


def _taken(beside: Path, path: str) -> BinaryIO:
    """The lock file, open and locked."""
    while True:
        file = os.fdopen(os.open(beside, os.O_RDWR | os.O_CREAT, 0o644), "r+b", buffering=0)
        try:
            _lock(file.fileno())
        except (BlockingIOError, PermissionError) as error:  # the latter on Windows
            who = file.read(200).decode("utf-8", "replace") or "another process"
            file.close()
            raise InUseError(f"{path} is in use by {who}") from error
        # Its owner may have removed the file between both steps; then others lock a new one.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), os.stat(beside)):
                return file
        file.close()


def _removed(beside: Path, file: BinaryIO) -> None:
    """Give the lock back; the file goes first, except on Windows, where that needs it closed."""
    if sys.platform == "win32":
        file.close()
        with suppress(OSError):  # somebody else has opened it by now, and will remove it
            beside.unlink()
    else:
        with suppress(FileNotFoundError):
            beside.unlink()
        file.close()


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, _PLACE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
