"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of ``path`` when all is written.

    It is written beside the path and moved, so that a reader never sees half a file, and an error
    leaves what was there before.

    >>> with replacing("note.txt") as file:
    ...     _ = file.write(b"whole")
    >>> Path("note.txt").read_text()
    'whole'
    """
    given = Path(path)
    if given.exists() and not given.is_file():  # /dev/stdout is written to, never replaced
        with given.open("wb") as file:
            yield file
        return
    target = Path(os.path.realpath(given))  # a link stays one
    part = target.with_name(f"{target.name}.{os.urandom(4).hex()}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException as error:
        with suppress(OSError):  # the first error is the one to tell
            part.unlink()
        if isinstance(error, OSError) and str(error.filename) == str(part):
            raise OSError(error.errno, error.strerror, str(path)) from error  # as users named it
        raise
