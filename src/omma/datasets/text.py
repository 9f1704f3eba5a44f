"""Text files, compressed or not, and what is said of a line that does not fit."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from omma._validate import shown
from omma.npz import largest

OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
COMPRESSORS: dict[str, Any] = {
    "": nullcontext,
    # Without name and time in it, equal content gives equal files.
    ".gz": lambda file: gzip.GzipFile("", "wb", fileobj=file, mtime=0),
    ".bz2": partial(bz2.BZ2File, mode="wb"),
    ".xz": partial(lzma.LZMAFile, mode="wb"),
}
# What the standard library raises for text that is cut short, spoiled or not text at all. An
# OSError without a number comes from bz2; those of the system have one.
DAMAGED = (EOFError, OSError, lzma.LZMAError, zlib.error, UnicodeError)
# How UTF-16 text starts: programs for Windows write these marks. Without one, every other byte of
# Western text is zero.
MARKS = (b"\xff\xfe", b"\xfe\xff")


class _Bounded(io.RawIOBase):
    """Bytes of a compressed file, up to what one of its size should unpack to."""

    def __init__(self, path: Path, inner: BinaryIO) -> None:
        self.path, self.inner, self.left = path, inner, largest(path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self.inner.read(len(buffer))
        buffer[: len(chunk)] = chunk
        self.left -= len(chunk)  # against archives that unpack to more than any memory
        if self.left < 0:
            raise ValueError(
                f"{self.path} unpacks to more than {largest(self.path):,} bytes, which is more "
                "than a file of this size should: unpack it first"
            )
        return len(chunk)

    def close(self) -> None:
        self.inner.close()
        super().close()


@contextmanager
def opened_bytes(path: Path) -> Iterator[io.BufferedReader]:
    """A file to read bytes from, unpacked where its name says that it is compressed.

    Errors of content that is damaged, or no text, name the file.
    """
    opener = OPENERS.get(path.suffix.lower())
    try:
        if opener is None:
            file = path.open("rb")
        else:
            file = io.BufferedReader(_Bounded(path, opener(path, "rb")), 1 << 16)
        with file:
            yield file
    except DAMAGED as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # no such file, no right to read it
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        if isinstance(error, UnicodeDecodeError):
            reason = f"it is no UTF-8 text ({error.reason} at byte {error.start}): save it as that"
        raise ValueError(f"{path} cannot be read: {reason}") from error


@contextmanager
def opened_text(path: Path, newline: str | None = "", errors: str = "strict") -> Iterator[TextIO]:
    """A file to read text from; a mark that comes first is left out."""
    with opened_bytes(path) as file:
        start = file.peek(4)[:4]
        if start[:2] in MARKS or start[1::2] == b"\0\0":
            raise ValueError(f"{path} is UTF-16 text, and must be UTF-8: save it as that")
        yield io.TextIOWrapper(file, encoding="utf-8-sig", errors=errors, newline=newline)


def text_lines(path: Path, errors: str = "strict") -> list[str]:
    """All lines of a file; ``errors`` is what becomes of bytes that are no text, as in ``open``."""
    with opened_text(path, errors=errors) as file:
        return list(file)


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers, from one, and lines without their ends; odd bytes as Python writes them."""
    # Odd bytes in comments or names are no reason to refuse a file.
    with opened_text(path, None, "backslashreplace") as file:
        for number, line in enumerate(file, start=1):
            yield number, line.rstrip("\r\n")


def ending(path: Path) -> str:
    """How the name ends, without the ending of a compressed file."""
    return _unpacked(path).suffix.lower()


def bare_name(path: Path) -> str:
    """The name without endings."""
    return _unpacked(path).stem


def _unpacked(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() in OPENERS else path


def wrong(path: Path, line: int, expected: str, got: Any) -> ValueError:
    """The error for a line: where it is, what was expected, what came."""
    return ValueError(f"{path}, line {line}: expected {expected}, got {shown(got)}")


@contextmanager
def compressing(file: BinaryIO, compressed: str) -> Iterator[TextIO]:
    """Text that goes into an open file."""
    with COMPRESSORS[compressed](file) as inner:
        text = io.TextIOWrapper(inner, encoding="utf-8", newline="")
        yield text
        text.flush()
        text.detach()  # or closing the text would close the file, which is not ours
