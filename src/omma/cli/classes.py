"""Classes by their names, in one column of a text file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

import numpy as np

from omma._validate import nearest
from omma.datasets import Matrix
from omma.datasets._cells import is_number, split
from omma.datasets._opened import opened
from omma.datasets.matrices import TABLES, file_ending, split_address

Row = tuple[int, list[str]]  # number of the line, and its cells


def read_classes(path: str, names: tuple[str, ...] | None, id_column: str | None) -> Matrix | None:
    """Class ids of a column that holds names of the probabilities' columns, else None."""
    ending, compressed = file_ending(split_address(path)[0])
    if names is None or ending not in TABLES:
        return None
    with opened(Path(path), compressed) as file:
        rows = _rows(file, TABLES[ending])
        first = list(islice(rows, 2))
        which = _id_place(first, id_column)
        width = 1 if which is None else 2
        if len(first) < 2 or any(len(cells) != width for _, cells in first):
            return None
        place = 0 if which is None else 1 - which
        if is_number(first[1][1][place]):
            return None
        header = which is not None or first[0][1][place] not in names
        body = list(chain(first[header:], rows))
    found = [_class(path, row, place, width, names) for row in body]
    ids = None if which is None else tuple(cells[which] for _, cells in body)
    return Matrix(np.array(found), None, ids)


def _rows(file: Iterable[str], separator: str) -> Iterator[Row]:
    for number, line in enumerate(file, start=1):
        cells = split(line, separator)
        if any(cells):
            yield number, cells


def _id_place(first: list[Row], id_column: str | None) -> int | None:
    head = first[0][1] if first else []
    return head.index(id_column) if id_column in head else None


def _class(path: str, row: Row, place: int, width: int, names: tuple[str, ...]) -> int:
    number, cells = row
    if len(cells) != width:
        raise ValueError(f"{path}, line {number}: expected {width} cells, got {len(cells)}")
    if cells[place] not in names:
        raise ValueError(
            f"{path}, line {number}: expected the name of a column of the probabilities, got "
            f"{cells[place]!r}{nearest(cells[place], names)}"
        )
    return names.index(cells[place])
