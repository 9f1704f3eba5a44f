"""Matrices as columns of text: CSV, TSV, or numbers with blanks between them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, TextIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import nearest, shown

Names = tuple[str, ...] | None
# What programs call a column that numbers the rows; pandas leaves the name of its own empty.
ID_NAMES = ("", "id", "ids", "index", "row", "row_id", "rowid", "unnamed: 0", "__index_level_0__")
BLOCK = 1 << 20  # numbers written at a time


class Lines:
    """Lines that remember which of them was read last, for the message if it is wrong."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self.number = 0
        self.last = ""

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.number += 1
            self.last = line
            yield line


def read(
    path: Path, file: Iterable[str], separator: str | None, id_column: str | None
) -> tuple[NDArray[np.float64], Names, Names]:
    """Numbers, with names where the first line has words, and ids where a column has them."""
    lines = Lines(file)
    cells = split(next(iter(lines), ""), separator)
    if not cells:
        raise ValueError(f"{path}, line 1: expected names of columns or numbers, got nothing")
    names: Names = None
    which = None
    if is_header(path, cells):
        names, which = named_columns(path, tuple(cells), id_column)
    elif id_column is not None:
        raise ValueError(
            f"{path}, line 1: expected names of columns, {id_column!r} among them, got none"
        )
    ids: list[str] = []
    first = lines.last if names is None else _next_row(path, lines)
    body: Iterable[str] = chain([first], lines)
    if which is not None:
        body = _without(body, separator, which, len(cells), ids)
    try:
        values = np.loadtxt(body, delimiter=separator, ndmin=2, comments=None, quotechar='"')
    except ValueError as error:
        _explain(path, lines, separator, cells, names, which, error)
    if values.shape[1] != len(cells) - (which is not None):  # the first of them after the names
        _explain(path, lines, separator, cells, names, which, None)
    return values, names, tuple(ids) if which is not None else None


def split(line: str, separator: str | None) -> list[str]:
    """The cells of a line."""
    line = line.strip("\r\n")
    if separator is None:
        return line.split()
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]


def is_number(cell: str) -> bool:
    """Whether a cell is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def is_header(path: Path | str, cells: list[str]) -> bool:
    """Whether the first line has names: words, or the numbers of the columns from zero on."""
    words = [cell for cell in cells if not is_number(cell)]
    if not words:
        return len(cells) > 2 and cells == [str(number) for number in range(len(cells))]
    fractions = [cell for cell in cells if is_number(cell) and not cell.isdecimal()]
    if fractions:
        raise ValueError(
            f"{path}, line 1: expected names of columns or numbers, got {words[0]!r} and "
            f"{fractions[0]!r}; if a column names the rows, put a line with names first"
        )
    return True


def named_columns(
    path: Path | str, names: tuple[str, ...], id_column: str | None
) -> tuple[tuple[str, ...], int | None]:
    """Names of the labels, and the place of the column that names rows."""
    if id_column is not None:
        if id_column not in names:
            hint = nearest(id_column, names) or f"; it has {shown(list(names))}"
            raise ValueError(f"{path} has no column {id_column!r}{hint}")
        which = names.index(id_column)
        return names[:which] + names[which + 1 :], which
    if names[0].lower() in ID_NAMES and len(names) > 1:
        raise ValueError(
            f"{path}, line 1: expected labels only, got the column {names[0]!r}, which seems to "
            f"name rows: pass id_column={names[0]!r} (--id {names[0] or repr('')}), or leave it out"
        )
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise ValueError(f"{path}, line 1: expected distinct names, got {twice[0]!r} twice")
    return names, None


def refuse_word(where: str, name: str | None, cell: Any) -> NoReturn:
    """Say which cell is no number, and what to do if its column names rows."""
    column = "" if name is None else f" in the column {name!r}"
    if isinstance(cell, str) and not cell:
        raise ValueError(f"{where}: expected a number{column}, got nothing")
    hint = "" if name is None else f"; if it names rows, pass id_column={name!r} (--id {name})"
    raise ValueError(f"{where}: expected a number{column}, got {shown(cell)}{hint}")


def _next_row(path: Path, lines: Lines) -> str:
    for line in lines:
        if line.strip():
            return line
    raise ValueError(f"{path} must have rows of numbers, got none")


def _without(
    lines: Iterable[str], separator: str | None, which: int, width: int, ids: list[str]
) -> Iterator[str]:
    """Lines without one column, whose cells are noted."""
    for line in lines:
        cells = split(line, separator)
        if not cells:
            continue
        if len(cells) != width:
            raise ValueError("too few or too many")
        ids.append(cells.pop(which))
        yield (separator or " ").join(cells)


def _explain(
    path: Path,
    lines: Lines,
    separator: str | None,
    first: list[str],
    names: Names,
    which: int | None,
    error: ValueError | None,
) -> NoReturn:
    """Say what is wrong with the line that was read last."""
    cells = split(lines.last, separator)
    where = f"{path}, line {lines.number}"
    if len(cells) != len(first) or error is None:
        raise ValueError(
            f"{where}: expected {len(first)} cells, as in line 1, got {len(cells)}"
        ) from error
    for place, cell in enumerate(cells):
        if place != which and not is_number(cell):
            after = which is not None and place > which
            refuse_word(where, None if names is None else names[place - after], cell)
    raise ValueError(f"{where}: expected numbers: {error}") from error


def write(file: TextIO, matrix: Any, names: Names, separator: str) -> None:
    """A line for each row, some rows at a time where the matrix is sparse."""
    if names is not None:
        csv.writer(file, delimiter=separator, lineterminator="\n").writerow(names)
    digits = "%d" if matrix.dtype.kind in "iub" else "%.17g"  # so many read back the same
    columns = 1 if matrix.ndim == 1 else max(1, matrix.shape[1])
    step = max(1, BLOCK // columns)
    for start in range(0, matrix.shape[0], step):
        rows = matrix[start : start + step]
        dense = rows.toarray() if sparse.issparse(rows) else rows
        np.savetxt(file, dense, fmt=digits, delimiter=separator)
