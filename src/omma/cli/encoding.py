"""What is printed is UTF-8 everywhere: tables and help have letters that other codes lack."""

from __future__ import annotations

import codecs
import io
import sys


def print_utf8() -> None:
    """Let standard output and error take any letter.

    Redirected output is cp1252 on Windows, which has no η and would end a report in the middle.
    """
    for stream in (sys.stdout, sys.stderr):
        # Anything else was put there by a caller, who knows better.
        if isinstance(stream, io.TextIOWrapper) and not _is_utf8(stream.encoding):
            stream.reconfigure(encoding="utf-8", errors=stream.errors)


def _is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name == "utf-8"
