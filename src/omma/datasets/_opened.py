"""Text files, compressed or not."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from omma.datasets.formats.text import OPENERS

COMPRESSED = tuple(OPENERS)
# What the standard library raises for text that is cut short, spoiled or not text at all.
DAMAGED = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error, UnicodeDecodeError)


def opened(path: Path, compressed: str) -> TextIO:
    """A file to read text from; the mark that some programs put first is left out."""
    opener = OPENERS.get(compressed, open)
    file: TextIO = opener(path, "rt", encoding="utf-8-sig", newline="")
    return file


@contextmanager
def compressing(file: BinaryIO, compressed: str) -> Iterator[TextIO]:
    """Text that goes into an open file."""
    inner: Any = file
    if compressed == ".gz":
        # Without name and time in it, equal content gives equal files.
        inner = gzip.GzipFile("", fileobj=file, mode="wb", mtime=0)
    elif compressed:
        inner = {".bz2": bz2.BZ2File, ".xz": lzma.LZMAFile}[compressed](file, "wb")
    text = io.TextIOWrapper(inner, encoding="utf-8", newline="")
    yield text
    text.flush()
    text.detach()
    if compressed:
        inner.close()
