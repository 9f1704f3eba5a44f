"""Delimited text: CSV, TSV, and numbers with blanks between them.

All parts of omma read and write such text by this module, line by line or as a whole file. So a
separator, header, id, number, class or missing value is the same for datasets and for all commands.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from omma._validate import shown

# Words for a label that is true, and for one that is false. Only the words of one pair go together:
# a column of "y" and "no" is a column of classes.
TRUTH_PAIRS = (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"), ("positive", "negative"))
TRUTHS = {word: 1.0 - place for pair in TRUTH_PAIRS for place, word in enumerate(pair)}
MISSING = ("", "nan", "na", "n/a", "null", "<na>")  # as pandas, R and SQL write an unknown value
SEPARATORS = ("\t", ";", "|", ",")
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
QUOTED = re.compile(r'"[^"]*"')
# The first characters of spreadsheet formulas (OWASP, "CSV Injection"), full-width ones included.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

Row = tuple[int, list[str]]  # the number of the line, and its cells


# Lines to cells.


def separator_of(lines: Sequence[str], default: str | None) -> str | None:
    """Guess the separator from the first lines; ``default`` where they do not tell.

    >>> [separator_of(lines, ",") for lines in (["a;b", "0,5;1"], ["a|b"], ["a", "0,5"])]
    [';', '|', ';']
    """
    bare = [QUOTED.sub("", line) for line in lines if line.strip()][:2]
    for sign in SEPARATORS:
        counts = {line.count(sign) for line in bare}
        if len(counts) == 1 and 0 not in counts:  # all lines have the same number of cells
            return sign
    first = bare[0] if bare else ""
    if default is not None and default in first:
        return default
    ragged = next((sign for sign in SEPARATORS if sign in first), None)
    # One column of numbers with decimal commas has no separator at all.
    is_decimal = len(bare) > 1 and DECIMAL_COMMA.fullmatch(bare[1].strip())
    return ragged or (";" if is_decimal else default)


def rows(
    lines: Iterable[str], separator: str | None, path: Path | str | None = None
) -> Iterator[Row]:
    """The line number and the cells of each row; blank lines are skipped.

    A cell in quotes may span several lines. Without a separator, cells are separated by blanks.
    Errors name the line if there is a ``path``.
    """
    if separator is None:  # several blanks are one separator
        lines, separator = (" ".join(line.split()) for line in lines), " "
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    try:
        for cells in reader:
            if cells and cells != [""]:  # not a blank line
                yield reader.line_num, list(map(str.strip, cells))
    except csv.Error as error:  # a cell of more than 131,072 characters, or a lone \r
        where = "" if path is None else f"{path}, line {reader.line_num}: "
        raise ValueError(f"{where}expected cells, got something else ({error})") from error


def split(line: str, separator: str | None) -> list[str]:
    """The cells of one line."""
    return next((cells for _, cells in rows([line], separator)), [])


# The meaning of a cell or a line.


def is_number(cell: str) -> bool:
    """Whether a cell is a number, with a decimal point or comma."""
    try:
        float(cell)
    except ValueError:
        return DECIMAL_COMMA.fullmatch(cell) is not None
    return True


def to_number(cell: str, separator: str | None = ",") -> float:
    """A number; true is 1 and false is 0. A comma is a decimal one unless it separates cells.

    >>> [to_number(cell) for cell in ("0.5", "True", "FALSE")], to_number("0,5", ";")
    ([0.5, 1.0, 0.0], 0.5)
    """
    try:
        return float(cell)
    except ValueError:  # the rare case last: most cells are numbers
        if cell.lower() in TRUTH_PAIRS[0]:
            return TRUTHS[cell.lower()]
        if separator != "," and DECIMAL_COMMA.fullmatch(cell):
            return float(cell.replace(",", "."))
        raise


def to_label(cell: str, separator: str | None = ",") -> float:
    """A label as a number: yes, true, t, y and positive are 1; a missing one is NaN.

    >>> [to_label(cell) for cell in ("1", "yes", "N", "")]
    [1.0, 1.0, 0.0, nan]
    """
    word = cell.lower()
    if word in TRUTHS:
        return TRUTHS[word]
    return float("nan") if word in MISSING else to_number(cell, separator)


def is_missing(cell: str) -> bool:
    """Whether the value of a cell is missing.

    >>> [is_missing(cell) for cell in ("", "NaN", "nancy")]
    [True, True, False]
    """
    return cell.lower() in MISSING


def meant(cell: str) -> str:
    """A hint for an error about a cell that is no number; empty if there is none.

    >>> meant("0,5")
    '; if the comma is a decimal one, write a point: 0.5'
    >>> meant("45 %")
    '; if these are percent, pass percent=True'
    """
    word = cell.strip()
    if DECIMAL_COMMA.fullmatch(word):
        return f"; if the comma is a decimal one, write a point: {word.replace(',', '.')}"
    if word.endswith("%") and is_number(word[:-1]):
        return "; if these are percent, pass percent=True"
    return ""


def is_header(cells: list[str], below: Sequence[list[str]] = ()) -> bool:
    """Whether the first line has names of columns: words, or the numbers of the columns from 0 on.

    Words such as yes and no are names only if the line below has no word of their pair; a single
    letter, such as y, also if it does not occur again. The numbers 0 and 1 may be labels, too: they
    are names if fractions follow.
    """
    words = [cell for cell in cells if not is_number(cell)]
    after = below[0] if below else []
    if not words:
        # pandas calls columns without names 0, 1, 2, …
        numbered = cells == [str(number) for number in range(len(cells))]
        return numbered and (len(cells) > 2 or bool(_fractions(after)))
    if len(cells) == len(after) and all(
        _is_truth_row(cell, [row[place] for row in below if place < len(row)])
        for place, cell in enumerate(cells)
    ):
        return False  # labels without a header
    fractions = _fractions(cells)
    if fractions:
        raise ValueError(
            f"expected names of columns or numbers, got {shown(words[0])} and "
            f"{shown(fractions[0])}; if a column names the rows, put a line with names first"
        )
    return True


def _is_truth_row(first: str, below: list[str]) -> bool:
    """Whether the first cell of a column is a label like the cells below it, and no name."""
    if is_number(first):
        return True
    word = first.lower()
    pair = next((pair for pair in TRUTH_PAIRS if word in pair), ())
    return below[0].lower() in pair and (len(word) > 1 or first in below)


def _fractions(cells: list[str]) -> list[str]:
    return [cell for cell in cells if is_number(cell) and not cell.isdecimal()]


def parse_cell(
    where: str,
    column: str | int,
    cell: str,
    *,
    separator: str | None = ",",
    is_label: bool = False,
    percent: bool = False,
    ids_by: str = "",
) -> float:
    """The number in a cell; the error names the column, by name or place, and gives a hint.

    ``ids_by`` is the parameter by which a caller names the column of ids, if there is one.
    """
    text = cell.rstrip("% ") if percent else cell
    try:
        return to_label(text, separator) if is_label else to_number(text, separator)
    except ValueError as error:
        title = f"the column {shown(column)}" if isinstance(column, str) else f"column {column + 1}"
        hint = meant(text)
        if not hint and isinstance(column, str) and ids_by:
            hint = f"; if it names rows, pass {ids_by}={shown(column)}"
        got = f"{shown(text)}{hint}" if text else "nothing"
        raise ValueError(f"{where}: expected a number in {title}, got {got}") from error


# Writing.


def csv_line(cells: Iterable[str], separator: str = ",") -> str:
    r"""A line of CSV.

    >>> csv_line(["a", "b,c"])
    'a,"b,c"\n'
    """
    return (separator.join(csv_cell(cell, separator) for cell in cells) or '""') + "\n"


def csv_cell(cell: str, separator: str = ",") -> str:
    """A cell of CSV, in quotes if it needs them: ``csv.writer`` forgets carriage returns."""
    if any(sign in cell for sign in (separator, '"', "\n", "\r")):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def spreadsheet_text(cell: str) -> str:
    """A cell that no spreadsheet runs as a formula: an apostrophe in front makes it text.

    >>> [spreadsheet_text(cell) for cell in ("=1+1", "-5", "a=b")]
    ["'=1+1", '-5', 'a=b']
    """
    return f"'{cell}" if cell.startswith(FORMULA_STARTS) and not is_number(cell) else cell
