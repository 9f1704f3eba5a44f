"""Tables and pictures of pages: how they are written."""

import re
from pathlib import Path

FOLDER, DPI = Path(__file__).parent / "images", 150


def save(pictures):
    """Draw pictures, functions by name, and write them into their folder."""
    for name, draw in pictures.items():
        draw().savefig(FOLDER / f"{name}.png", dpi=DPI, facecolor="white")


def markdown(heads, rows, words=1):
    """A table in Markdown; its first ``words`` columns hold words, the others numbers."""
    rule = ["---"] * words + ["---:"] * (len(heads) - words)
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rule, *rows))


def replaced(page, marker, table):
    """The text of a page with a new table below a marker, which is a comment of HTML."""
    old = rf"(<!-- {re.escape(marker)} -->\n\n)(?:\|.*\n)*"
    return re.sub(old, lambda match: f"{match[1]}{table}\n", page)


def without_repeats(names):
    """A column of names in which rows below the first one of a name are empty."""
    return names.where(names.ne(names.shift()), "")
