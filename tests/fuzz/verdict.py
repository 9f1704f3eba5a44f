"""Whose error it is: the library's own sentence, or something that slipped through.

An error is the library's own if the line that raised it is a ``raise`` in its source, if it is of
a kind that callers expect, if it is one line that is not too long, and if it names the file or the
parameter with its owner. So ``int("x")`` inside a reader is not, though it is a ValueError.
"""

from __future__ import annotations

import ast
import re
import traceback
from functools import cache
from pathlib import Path

import omma

SOURCE = str(Path(omma.__file__).parent)
KINDS = (ValueError, TypeError, OSError, ImportError)
OWNER = re.compile(r"\bof (update|Rule|(a |a multi-label )?Dataset|[a-z]+_[a-z_]+)\b")
LONGEST = 1000


@cache
def _raises(file: str) -> list[tuple[int, int]]:
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Raise))
    return [(node.lineno, node.end_lineno or node.lineno) for node in found]


def fault(error: BaseException, path: Path) -> str | None:
    """What is wrong with an error, or None if it is as it should be."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = str(error)
    came = f"{type(error).__name__}: {text[:300]} ({last.filename}:{last.lineno})"
    if not isinstance(error, KINDS):
        return came
    raised = last.filename.startswith(SOURCE) and any(
        first <= (last.lineno or 0) <= end for first, end in _raises(last.filename)
    )
    if not raised:
        return f"not raised by omma: {came}"
    if "\n" in text or len(text) > LONGEST:
        return f"not one sentence: {text[:300]!r}"
    if str(path.parent) not in text and path.name not in text and not OWNER.search(text):
        return f"names neither file nor owner: {text[:300]}"
    return None
