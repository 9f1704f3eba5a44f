"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
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
    path = Path(path)
    part = path.with_name(f"{path.name}.{os.urandom(4).hex()}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
