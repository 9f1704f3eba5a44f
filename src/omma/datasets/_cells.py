"""Cells of a line of text: numbers, yes and no, or words; and what odd ones may mean."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from omma._validate import shown

TRUTHS = {"true": 1.0, "false": 0.0}
ANSWERS = {"yes": 1, "y": 1, "t": 1, "positive": 1, "no": 0, "n": 0, "f": 0, "negative": 0}
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas", " ": "blanks"}
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)


def split(line: str, separator: str | None) -> list[str]:
    """The cells of a line."""
    line = line.strip("\r\n")
    if separator is None:
        return line.split()
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]
    except csv.Error as error:  # a cell of more than 131,072 characters, or a lone \r
        raise ValueError(f"expected cells, got something else ({error})") from error


def meant(cell: str) -> str:
    """What a cell that is no number may mean, as the end of a sentence; or nothing.

    >>> meant("0,5")
    '; if the comma is a decimal one, write a point: 0.5'
    >>> meant("yes")
    '; write 1 for yes and 0 for no'
    >>> meant("45 %")
    '; write 0.45 for 45 %'
    """
    word = cell.strip().lower()
    if DECIMAL_COMMA.fullmatch(word):
        return f"; if the comma is a decimal one, write a point: {word.replace(',', '.')}"
    if word in ANSWERS:
        return "; write 1 for yes and 0 for no"
    if word.endswith("%") and is_number(word[:-1]):
        return f"; write {float(word[:-1]) / 100:g} for {cell.strip()}"
    return ""


def separated(line: str, separator: str | None) -> str:
    """What else stands between the cells of a line, as the end of a sentence; or nothing.

    >>> separated("a;b;c", ",")
    '; semicolons seem to stand between its cells: write commas'
    """
    wanted = SEPARATORS[separator or " "]
    for sign in (";", "\t", "|", ","):
        if sign != separator and sign in line and (separator or " ") not in line.strip():
            more = ", or let its name end in .tsv" if sign == "\t" and separator else ""
            more = ", or let its name end in .csv" if sign == "," else more
            return f"; {SEPARATORS[sign]} seem to stand between its cells: write {wanted}{more}"
        if sign == ";" and separator == "," and re.search(r"\d,\d+\s*;", line):
            return "; semicolons seem to stand between its cells, and decimal commas in them: " + (
                "write commas between cells and a point in numbers"
            )
    return ""


def is_number(cell: str) -> bool:
    """Whether a cell is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def is_truth(cell: str) -> bool:
    """Whether a cell says true or false, as pandas and others write it."""
    return cell.lower() in TRUTHS


def to_number(cell: str) -> float:
    """A number; true is 1 and false is 0.

    >>> [to_number(cell) for cell in ("0.5", "True", "FALSE")]
    [0.5, 1.0, 0.0]
    """
    truth = TRUTHS.get(cell.strip().lower())
    return float(cell) if truth is None else truth


def are_truths(cells: list[str]) -> bool:
    """Whether a line is of true and false, with numbers among them or not."""
    return any(map(is_truth, cells)) and all(is_truth(one) or is_number(one) for one in cells)


def is_header(path: Path | str, cells: list[str], after: list[str] | None = None) -> bool:
    """Whether the first line has names: words, or the numbers of the columns from zero on.

    True and false are names only where the line after them is not of the same kind. The numbers 0
    and 1 may be labels too: they are names where fractions follow.
    """
    words = [cell for cell in cells if not is_number(cell)]
    if not words:
        numbered = cells == [str(number) for number in range(len(cells))]
        return numbered and (len(cells) > 2 or _has_fractions(after or []))
    if after is not None and are_truths(cells) and are_truths(after):
        return False
    fractions = [cell for cell in cells if is_number(cell) and not cell.isdecimal()]
    if fractions:
        raise ValueError(
            f"{path}, line 1: expected names of columns or numbers, got {shown(words[0])} and "
            f"{shown(fractions[0])}; if a column names the rows, put a line with names first"
        )
    return True


def _has_fractions(cells: list[str]) -> bool:
    return any(is_number(cell) and not cell.isdecimal() for cell in cells)
