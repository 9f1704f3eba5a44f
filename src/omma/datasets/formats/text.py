"""Text files, compressed or not, and what is said of a line that does not fit."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omma._validate import shown

OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def open_text(path: Path, newline: str | None = None) -> Any:
    """The file as text; bytes that are no UTF-8 are shown as they are written in Python."""
    opener = OPENERS.get(path.suffix.lower(), open)
    return opener(path, "rt", encoding="utf-8", errors="backslashreplace", newline=newline)


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers, from one, and lines without their ends."""
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            yield number, line.rstrip("\r\n")


def ending(path: Path) -> str:
    """How the name ends, without the ending of a compressed file."""
    inner = path.with_suffix("") if path.suffix.lower() in OPENERS else path
    return inner.suffix.lower()


def bare_name(path: Path) -> str:
    """The name without endings."""
    inner = path.with_suffix("") if path.suffix.lower() in OPENERS else path
    return inner.stem


def wrong(path: Path, line: int, expected: str, got: Any) -> ValueError:
    """The error for a line: where it is, what was expected, what came."""
    return ValueError(f"{path}:{line}: expected {expected}, got {shown(got)}")
