"""Matrices as columns of text: CSV, TSV, or numbers with blanks between them."""

import csv
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, TextIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import nearest, repeated, shown
from omma.datasets.fast_csv import read_large

TRUTHS = {"true": 1.0, "false": 0.0}
ANSWERS = {"yes": 1, "y": 1, "t": 1, "positive": 1, "no": 0, "n": 0, "f": 0, "negative": 0}
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas", " ": "blanks"}
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
Names = tuple[str, ...] | None
# What programs call a column that numbers the rows; pandas leaves the name of its own empty.
ID_NAMES = ("", "id", "ids", "index", "row", "row_id", "rowid", "unnamed: 0", "__index_level_0__")
# How formulas begin in spreadsheets (OWASP, "CSV Injection"), the wide signs of East Asia included.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
BLOCK = 1 << 20  # numbers written at a time


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
        return numbered and (len(cells) > 2 or bool(_fractions(after or [])))
    if after is not None and are_truths(cells) and are_truths(after):
        return False
    fractions = _fractions(cells)
    if fractions:
        raise ValueError(
            f"{path}, line 1: expected names of columns or numbers, got {shown(words[0])} and "
            f"{shown(fractions[0])}; if a column names the rows, put a line with names first"
        )
    return True


def _fractions(cells: list[str]) -> list[str]:
    return [cell for cell in cells if is_number(cell) and not cell.isdecimal()]


class Table:
    """Lines of a table that know which of them was read last, for the message if it is wrong."""

    def __init__(self, path: Path, lines: Iterable[str], separator: str | None) -> None:
        self.path, self.separator = path, separator
        self._lines = iter(lines)
        self.number, self.last = 0, ""
        self.top = next(iter(self), "")
        self.first = self.cells(self.top)
        if not self.first:
            raise ValueError(f"{path}, line 1: expected names of columns or numbers, got nothing")
        self.second = next((line for line in self if line.strip()), None)
        after = None if self.second is None else self.cells(self.second)
        self.named = is_header(path, self.first, after)

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.number += 1
            self.last = line
            yield line

    def cells(self, line: str) -> list[str]:
        """The cells of a line."""
        try:
            return split(line, self.separator)
        except ValueError as error:
            raise ValueError(f"{self.path}, line {self.number}: {error}") from error

    def without(self, lines: Iterable[str], which: int, ids: list[str]) -> Iterator[str]:
        """Lines without one column, whose cells are noted."""
        for line in lines:
            cells = self.cells(line)
            if not cells:
                continue
            if len(cells) != len(self.first):
                raise ValueError("too few or too many")
            ids.append(cells.pop(which))
            rest = (self.separator or " ").join(cells)
            if not rest.strip():  # NumPy would pass over it, and ids and numbers fall apart
                raise ValueError("nothing beside the id")
            yield rest

    def explain(self, names: Names, which: int | None, error: ValueError | None) -> NoReturn:
        """Say what is wrong with the line that was read last, and what it may mean."""
        cells = self.cells(self.last)
        where, hint = f"{self.path}, line {self.number}", separated(self.last, self.separator)
        if len(cells) != len(self.first) or error is None:
            raise ValueError(
                f"{where}: expected {len(self.first)} cells, as in line 1, got {len(cells)}{hint}"
            ) from error
        for place, cell in enumerate(cells):
            if place != which and not is_number(cell) and not is_truth(cell):
                after = which is not None and place > which
                refuse_word(where, None if names is None else names[place - after], cell, hint)
        reason = " ".join(str(error).split())
        raise ValueError(f"{where}: expected numbers: {reason}{hint}") from error


def read(
    path: Path, file: Iterable[str], separator: str | None, id_column: str | None
) -> tuple[NDArray[np.float64], Names, Names]:
    """Numbers, with names where the first line has words, and ids where a column has them."""
    table = Table(path, file, separator)
    names: Names = None
    which = None
    if table.named:
        try:
            names, which = named_columns(path, tuple(table.first), id_column)
        except ValueError as error:
            hint = separated(table.top, separator)
            raise ValueError(f"{error}{hint}") from error
        if table.second is None:
            raise ValueError(f"{path} must have rows of numbers, got none")
    elif id_column is not None:
        raise ValueError(
            f"{path}, line 1: expected names of columns, {id_column!r} among them, got none"
        )
    words = () if which is None else (which,)
    fast = read_large(path, separator, len(table.first), named=table.named, words=words)
    if fast is not None:
        return fast[0], names, tuple(cell.strip() for cell in fast[1][0]) if words else None
    ids: list[str] = []
    values = _numbers(table, names, which, ids)
    return values, names, None if which is None else tuple(ids)


def _numbers(table: Table, names: Names, which: int | None, ids: list[str]) -> NDArray[np.float64]:
    first = [line for line in (None if names else table.top, table.second) if line is not None]
    body: Iterable[str] = chain(first, table)
    if which is not None:
        body = table.without(body, which, ids)
    # Slower, so only where the first rows have them.
    truths = any(is_truth(cell) for line in first for cell in table.cells(line))
    try:
        values = np.loadtxt(
            body,
            delimiter=table.separator,
            ndmin=2,
            comments=None,
            quotechar='"',
            encoding=None,
            converters=to_number if truths else None,
        )
    except ValueError as error:
        table.explain(names, which, error)
    if values.shape[1] != len(table.first) - (which is not None):  # the first after the names
        table.explain(names, which, None)
    return values


def named_columns(
    path: Path | str, names: tuple[str, ...], id_column: str | None
) -> tuple[tuple[str, ...], int | None]:
    """Names of the labels, and the place of the column that names rows."""
    which = None
    if id_column is not None:
        if id_column not in names:
            hint = nearest(id_column, names) or f"; it has {shown(list(names))}"
            raise ValueError(f"{path} has no column {id_column!r}{hint}")
        which = names.index(id_column)
    elif not names[0] and len(names) > 1:
        raise ValueError(
            f"{path}, line 1: expected labels only, got the unnamed first column, which seems to "
            "number rows (write the CSV with index=False, or pass --id '', which is id_column='')"
        )
    elif names[0].lower() in ID_NAMES and len(names) > 1:
        raise ValueError(
            f"{path}, line 1: expected labels only, got the column {names[0]!r}, which seems to "
            f"name rows: pass id_column={names[0]!r} (--id {names[0]}), or leave it out"
        )
    twice = repeated(names)
    if twice is not None:
        raise ValueError(f"{path}, line 1: expected distinct names, got {shown(twice)} twice")
    if which is not None and len(names) == 1:
        raise ValueError(f"{path} must have columns of numbers beside {id_column!r}, got none")
    return (names, None) if which is None else (names[:which] + names[which + 1 :], which)


def refuse_word(where: str, name: str | None, cell: Any, hint: str = "") -> NoReturn:
    """Say which cell is no number, and what it may mean or its column be."""
    column = "" if name is None else f" in the column {shown(name)}"
    if isinstance(cell, str) and not cell:
        raise ValueError(f"{where}: expected a number{column}, got nothing{hint}")
    hint = hint or (meant(cell) if isinstance(cell, str) else "")
    if not hint and name is not None:
        hint = f"; if it names rows, pass id_column={shown(name)} (--id {name[:60]})"
    raise ValueError(f"{where}: expected a number{column}, got {shown(cell)}{hint}")


def first_names(path: Path, file: Iterable[str], separator: str | None) -> Names:
    """What the first line calls the columns, if it has words."""
    table = Table(path, file, separator)
    return tuple(table.first) if table.named else None


def write(
    file: TextIO,
    matrix: Any,
    names: Names,
    separator: str,
    rows: tuple[str, tuple[str, ...]] | None,
) -> None:
    """A line for each row, some rows at a time where the matrix is sparse."""
    if names is not None:
        file.write(csv_line(names if rows is None else (rows[0], *names), separator))
    digits = "%d" if matrix.dtype.kind in "iub" else "%.17g"  # so many read back the same
    columns = 1 if matrix.ndim == 1 else max(1, matrix.shape[1])
    step = max(1, BLOCK // columns)
    for start in range(0, matrix.shape[0], step):
        block = matrix[start : start + step]
        dense = block.toarray() if sparse.issparse(block) else block
        if rows is None:
            np.savetxt(file, dense, fmt=digits, delimiter=separator)
            continue
        for name, row in zip(rows[1][start : start + step], dense, strict=True):
            numbers = (digits % number for number in np.ravel(row).tolist())
            file.write(separator.join((csv_cell(name, separator), *numbers)) + "\n")


def csv_line(cells: Iterable[str], separator: str = ",") -> str:
    r"""A line of CSV.

    >>> csv_line(["a", "b,c"])
    'a,"b,c"\n'
    """
    return (separator.join(csv_cell(cell, separator) for cell in cells) or '""') + "\n"


def csv_cell(cell: str, separator: str = ",") -> str:
    """A cell of CSV, in quotes where it needs them: ``csv.writer`` forgets carriage returns."""
    if any(sign in cell for sign in (separator, '"', "\n", "\r")):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def spreadsheet_text(cell: str) -> str:
    """A cell that no spreadsheet runs as a formula: an apostrophe makes it text.

    >>> [spreadsheet_text(cell) for cell in ("=1+1", "-5", "a=b")]
    ["'=1+1", '-5', 'a=b']
    """
    return f"'{cell}" if cell.startswith(FORMULA_STARTS) and not is_number(cell) else cell
