"""A file that one process at a time may write, by a lock that the system frees by itself."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from weakref import WeakSet

# Far behind the text of the file: on Windows nobody else can read a locked byte.
_PLACE = 1 << 30


class InUseError(OSError):
    """Another process has the lock."""


class _LockFile:
    """An open file or folder, locked for as long as it is open.

    It is closed when the last reference to it goes, whatever interrupts its user.
    """

    def __init__(self, path: str | Path, flags: int) -> None:
        self.owner = os.getpid()
        self.descriptor = os.open(path, flags, 0o644)
        _all_locks.add(self)

    def close(self) -> None:
        if self.descriptor >= 0:
            descriptor, self.descriptor = self.descriptor, -1
            os.close(descriptor)

    def __del__(self) -> None:
        if hasattr(self, "descriptor"):  # which it was not if it could not be opened
            self.close()


_all_locks: WeakSet[_LockFile] = WeakSet()


@contextmanager
def locked(path: str | Path, holder: str) -> Iterator[None]:
    """Hold a lock on ``path`` against other processes; their error names the ``holder``.

    The lock is on ``path.lock`` beside it, as ``path`` itself may be replaced. A lock file that a
    killed process left behind locks nothing. A forked child does not hold the lock.

    >>> with locked("learner.npz", "omma stream"):
    ...     Path("learner.npz.lock").exists()
    True
    >>> Path("learner.npz.lock").exists()
    False
    """
    target = Path(os.path.realpath(path))  # two names of one file share its lock
    beside = target.with_name(f"{target.name}.lock")
    lock = _taken(beside, str(path))
    try:
        os.ftruncate(lock.descriptor, 0)
        os.write(lock.descriptor, f"{holder}, process {lock.owner}".encode())
        yield
    finally:
        if lock.owner == os.getpid():
            _removed(beside, lock)


@contextmanager
def locked_folder(folder: str | Path) -> Iterator[None]:
    """Hold a lock on a folder against other processes, whatever happens to its files.

    No lock file is needed, which somebody could delete. Where folders cannot be locked (Windows,
    some network file systems), nothing is done.
    """
    if sys.platform == "win32":  # where the lock file cannot be deleted while it is open
        yield
        return
    lock = _LockFile(folder, os.O_RDONLY)
    try:
        try:
            take_lock(lock.descriptor)
        except BlockingIOError as error:
            raise InUseError(f"{folder} is in use by another process") from error
        except OSError:  # a file system that locks no folders
            lock.close()
        yield
    finally:
        lock.close()


def _taken(beside: Path, path: str) -> _LockFile:
    """The lock file, open and locked."""
    while True:
        lock = _LockFile(beside, os.O_RDWR | os.O_CREAT)
        try:
            take_lock(lock.descriptor)
        except (BlockingIOError, PermissionError) as error:  # the latter on Windows
            who = os.read(lock.descriptor, 200).decode("utf-8", "replace") or "another process"
            lock.close()
            raise InUseError(f"{path} is in use by {who}") from error
        # Its owner may have removed the file between both steps; then others lock a new one.
        if has_name(lock.descriptor, beside):
            return lock
        lock.close()


def _removed(beside: Path, lock: _LockFile) -> None:
    """Remove the lock file and unlock it; Windows can only remove a file that is closed."""
    if sys.platform == "win32":
        lock.close()
        with suppress(OSError):  # somebody else has opened it by now, and will remove it
            beside.unlink()
        return
    try:
        # Only while the name is that of the file that is locked here: that may have been deleted,
        # and another process may lock a new one of the same name.
        with suppress(OSError):  # a file that stays locks nothing
            if has_name(lock.descriptor, beside):
                beside.unlink()
    finally:
        lock.close()


def has_name(descriptor: int, path: Path) -> bool:
    """Whether an open file still has this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _let_go() -> None:
    """Close all locks in a forked child: there they would outlive the process that holds them."""
    for lock in tuple(_all_locks):
        lock.close()


if sys.platform == "win32":
    import msvcrt

    def take_lock(descriptor: int) -> None:
        """Lock an open file against other processes, or raise an OSError at once."""
        os.lseek(descriptor, _PLACE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)

else:
    import fcntl

    os.register_at_fork(after_in_child=_let_go)

    def take_lock(descriptor: int) -> None:
        """Lock an open file against other processes, or raise an OSError at once."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
