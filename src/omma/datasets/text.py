"""Text files, compressed or not, and the error for a line that is wrong."""

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
    # Without a name and a time inside, equal content gives equal files.
    ".gz": lambda file: gzip.GzipFile("", "wb", fileobj=file, mtime=0),
    ".bz2": partial(bz2.BZ2File, mode="wb"),
    ".xz": partial(lzma.LZMAFile, mode="wb"),
}
# Errors of the standard library for a file that is cut short, damaged or no text. An OSError
# without a number comes from bz2; those of the operating system have one.
DAMAGED = (EOFError, OSError, lzma.LZMAError, zlib.error, UnicodeError)
# The first bytes of UTF-16 text, which programs for Windows write. Without such a mark, every
# second byte of Western text is zero.
MARKS = (b"\xff\xfe", b"\xfe\xff")


class _Bounded(io.RawIOBase):
    """The unpacked bytes of a compressed file; refuses to unpack far more than its size."""

    def __init__(self, path: Path, inner: BinaryIO) -> None:
        self.path, self.inner, self.left = path, inner, largest(path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self.inner.read(len(buffer))
        buffer[: len(chunk)] = chunk
        self.left -= len(chunk)  # a small archive can unpack to more than any memory
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
    """Open a file to read bytes; its ending says whether it is compressed.

    Errors for damaged content, or for content that is no text, name the file.
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
            raise  # no such file, or no permission to read it
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        if isinstance(error, UnicodeDecodeError):
            reason = f"it is no UTF-8 text ({error.reason} at byte {error.start}): save it as that"
        raise ValueError(f"{path} cannot be read: {reason}") from error


@contextmanager
def opened_text(path: Path, newline: str | None = "", errors: str = "strict") -> Iterator[TextIO]:
    """Open a file to read UTF-8 text; a byte order mark is skipped."""
    with opened_bytes(path) as file:
        start = file.peek(4)[:4]
        if start[:2] in MARKS or start[1::2] == b"\0\0":
            raise ValueError(f"{path} is UTF-16 text, and must be UTF-8: save it as that")
        yield io.TextIOWrapper(file, encoding="utf-8-sig", errors=errors, newline=newline)


def text_lines(path: Path, errors: str = "strict") -> list[str]:
    """All lines of a text file; ``errors`` is that of Python's ``open``."""
    with opened_text(path, errors=errors) as file:
        return list(file)


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers, from one, and lines without their line ends; wrong bytes are escaped."""
    # Wrong bytes in comments or names are no reason to refuse a file.
    with opened_text(path, None, "backslashreplace") as file:
        for number, line in enumerate(file, start=1):
            yield number, line.rstrip("\r\n")


def ending(path: Path) -> str:
    """The ending of the name, such as .csv; that of compression is left out."""
    return _unpacked(path).suffix.lower()


def bare_name(path: Path) -> str:
    """The name without endings."""
    return _unpacked(path).stem


def _unpacked(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() in OPENERS else path


def wrong(path: Path, line: int, expected: str, got: Any) -> ValueError:
    """The error for a line: the file, the line, what was expected and what the line has."""
    return ValueError(f"{path}, line {line}: expected {expected}, got {shown(got)}")


@contextmanager
def compressing(file: BinaryIO, path: Path) -> Iterator[TextIO]:
    """Open a text file inside a binary file, compressed as the ending of ``path`` says."""
    with COMPRESSORS.get(path.suffix.lower(), nullcontext)(file) as inner:
        text = io.TextIOWrapper(inner, encoding="utf-8", newline="")
        yield text
        text.flush()
        text.detach()  # otherwise the text file would close the binary file of the caller
