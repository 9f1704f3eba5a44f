"""Files that are written completely or not at all."""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from omma._lock import has_name, take_lock

CREATE = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file that replaces ``path`` when it is complete.

    It is written beside the path and moved, so that a reader never sees half a file, and an error
    leaves the old file. Permissions stay as they were. A part that a killed process left behind is
    removed by the next one that writes to the same path.

    >>> with replacing("note.txt") as file:
    ...     _ = file.write(b"whole")
    >>> Path("note.txt").read_text()
    'whole'
    """
    named = Path(path)
    if named.exists() and not named.is_file():  # /dev/stdout is written to, never replaced
        with named.open("wb") as file:
            yield file
        return
    target = Path(os.path.realpath(named))  # a link stays one
    try:
        with _replacing(target) as file:
            yield file
    except OSError as error:
        if str(error.filename).endswith(".part") and target.name in str(error.filename):
            raise OSError(error.errno, error.strerror, str(path)) from error  # as users named it
        raise


@contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    # Never readable by more people than the file that it will replace.
    part, file = _new_part(target, 0o666 if mode is None else 0o600)
    try:
        with file:
            yield file
            file.flush()
            if mode is not None:
                os.chmod(part, mode)
            os.fsync(file.fileno())
            if sys.platform != "win32":  # before the lock goes, which keeps the part from others
                os.replace(part, target)
        if sys.platform == "win32":  # where an open file cannot be moved
            os.replace(part, target)
    except BaseException:
        with suppress(OSError):  # the first error is the one to report
            part.unlink()
        raise
    sync_folder(target.parent)


def _new_part(target: Path, mode: int) -> tuple[Path, BinaryIO]:
    """A new file beside the target, locked for as long as its writer lives."""
    number = 0
    while True:
        part = target.with_name(f"{target.name}.{number}.part")
        try:
            handle = os.open(part, CREATE, mode)
        except FileExistsError:
            number += not _removed_abandoned(part)  # the next name, if that one is written to
            continue
        file = os.fdopen(handle, "wb")
        if _lock(file, part):
            return part, file
        file.close()  # taken for abandoned in the moment before it was locked


def _lock(file: BinaryIO, part: Path) -> bool:
    """Mark a part as being written to, until this process closes it or dies."""
    if sys.platform == "win32":
        return True
    try:
        take_lock(file.fileno())
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks; then nothing is ever taken for abandoned
        return True
    return has_name(file.fileno(), part)  # from now on nobody else removes it


def _removed_abandoned(part: Path) -> bool:
    """Remove a part that no living writer has locked; False if its writer may be alive."""
    if sys.platform == "win32":
        return False
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_NOFOLLOW), "wb") as file:
            take_lock(file.fileno())
            # Only while the name is that of the file that is locked here.
            if has_name(file.fileno(), part):
                part.unlink()
    except FileNotFoundError:  # somebody else has removed it
        return True
    except OSError:  # no file of ours, or locked by its writer
        return False
    return True


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that the new name is on disk, too."""
    if sys.platform == "win32":
        return
    with suppress(OSError):  # not all folders can; then the name is as safe as it gets
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
