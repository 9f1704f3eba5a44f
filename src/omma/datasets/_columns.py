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
from omma.datasets._cells import is_header, is_number, is_truth, split, to_number

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
    top = next(iter(lines), "")
    cells = split(top, separator)
    if not cells:
        raise ValueError(f"{path}, line 1: expected names of columns or numbers, got nothing")
    names: Names = None
    which = None
    second = _next_row(lines)
    if is_header(path, cells, None if second is None else split(second, separator)):
        names, which = named_columns(path, tuple(cells), id_column)
    elif id_column is not None:
        raise ValueError(
            f"{path}, line 1: expected names of columns, {id_column!r} among them, got none"
        )
    if names is not None and second is None:
        raise ValueError(f"{path} must have rows of numbers, got none")
    ids: list[str] = []
    first = [line for line in (None if names else top, second) if line is not None]
    body: Iterable[str] = chain(first, lines)
    if which is not None:
        body = _without(body, separator, which, len(cells), ids)
    # Slower, so only where the first rows have them.
    truths = any(is_truth(cell) for line in first for cell in split(line, separator))
    try:
        values = np.loadtxt(
            body,
            delimiter=separator,
            ndmin=2,
            comments=None,
            quotechar='"',
            encoding=None,
            converters=to_number if truths else None,
        )
    except ValueError as error:
        _explain(path, lines, separator, cells, names, which, error)
    if values.shape[1] != len(cells) - (which is not None):  # the first of them after the names
        _explain(path, lines, separator, cells, names, which, None)
    return values, names, tuple(ids) if which is not None else None


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
    if not names[0] and len(names) > 1:
        raise ValueError(
            f"{path}, line 1: expected labels only, got the unnamed first column, which seems to "
            "number rows (write the CSV with index=False, or pass --id '', which is id_column='')"
        )
    if names[0].lower() in ID_NAMES and len(names) > 1:
        raise ValueError(
            f"{path}, line 1: expected labels only, got the column {names[0]!r}, which seems to "
            f"name rows: pass id_column={names[0]!r} (--id {names[0]}), or leave it out"
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


def _next_row(lines: Lines) -> str | None:
    return next((line for line in lines if line.strip()), None)


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
        if place != which and not is_number(cell) and not is_truth(cell):
            after = which is not None and place > which
            refuse_word(where, None if names is None else names[place - after], cell)
    raise ValueError(f"{where}: expected numbers: {error}") from error


def first_names(path: Path, file: Iterable[str], separator: str | None) -> Names:
    """What the first line calls the columns, if it has words."""
    lines = Lines(file)
    cells, second = split(next(iter(lines), ""), separator), _next_row(lines)
    after = None if second is None else split(second, separator)
    return tuple(cells) if is_header(path, cells, after) else None


def write(
    file: TextIO,
    matrix: Any,
    names: Names,
    separator: str,
    rows: tuple[str, tuple[str, ...]] | None,
) -> None:
    """A line for each row, some rows at a time where the matrix is sparse."""
    table = csv.writer(file, delimiter=separator, lineterminator="\n")
    if names is not None:
        table.writerow(names if rows is None else (rows[0], *names))
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
            table.writerow([name, *(digits % cell for cell in np.ravel(row).tolist())])
