"""Tables with a column, or several, of labels."""

import csv
import math
import re
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from omma._validate import nearest
from omma.datasets._columns import meant
from omma.datasets.dataset import Dataset
from omma.datasets.fast_csv import read_large
from omma.datasets.formats.part import Part, assemble, is_finite
from omma.datasets.text import ending, numbered_lines, opened_text, wrong

DELIMITERS = (",", ";", "\t")
Column = int | str
Table = Iterator[tuple[int, list[str]]]


def read_csv(
    path: str | Path,
    test: str | Path | None = None,
    *,
    labels: Column | Sequence[Column] = -1,
    header: bool | None = None,
    delimiter: str | None = None,
    task: str | None = None,
    name: str | None = None,
) -> Dataset:
    r"""Read a table whose other columns are numbers.

    Parameters
    ----------
    path : str or Path
        Plain or compressed (.gz, .bz2, .xz).
    test : str or Path, optional
        File of the test part.
    labels : int, str, or a sequence of them
        The column of the class, by name or by index; the last by default. A sequence names
        columns of 0 and 1, one a label.
    header : bool, optional
        Whether the first line names the columns. By default it does; but a first line that could
        as well be a row, because all its features are numbers, is an error.
    delimiter : str, optional
        By default a tab in a file that ends in .tsv; else a comma, or where the first line has
        none a semicolon or a tab.
    task : {"binary", "multiclass"}, optional
        By default binary if there are two classes.
    name : str, optional
        By default that of the file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from omma.datasets import read_csv
    >>> _ = Path("toy.csv").write_text("width,kind,height\n1,cat,2\n3,dog,4\n")
    >>> toy = read_csv("toy.csv", labels="kind")
    >>> toy.X.tolist(), toy.y.tolist(), toy.labels
    ([[1.0, 2.0], [3.0, 4.0]], [0, 1], ('cat', 'dog'))
    """
    paths = [Path(one) for one in (path, test) if one is not None]
    cut = delimiter or delimiter_of(paths[0])
    single = isinstance(labels, int | str)
    columns = [labels] if isinstance(labels, int | str) else list(labels)
    parts, names = [], None
    for one in paths:
        with opened_text(one, errors="backslashreplace") as file:
            lines = _lines(one, csv.reader(file, delimiter=cut, skipinitialspace=True))
            part, names = _part(one, lines, columns, cut, header=header, single=single)
        parts.append(part)
    return assemble(paths[0], parts, name=name, labels=names, task=task)


def delimiter_of(path: Path) -> str:
    """What stands between the cells of the first line, outside of quotes."""
    if ending(path) == ".tsv":
        return "\t"
    lines = (line for _, line in numbered_lines(path) if line.strip())
    bare = re.sub(r'"[^"]*"', "", next(lines, ""))
    return next((cut for cut in DELIMITERS if cut in bare), ",")


def _part(
    path: Path,
    lines: Table,
    columns: list[Column],
    cut: str,
    *,
    header: bool | None,
    single: bool,
) -> tuple[Part, list[str] | None]:
    """Features and labels of one file, and the names of labels if there are several."""
    number, line = next(lines, (1, []))
    if not line:
        raise wrong(path, 1, "a table", "an empty file")
    names = None if header is False else [cell.strip() for cell in line]
    places = [_place(path, column, names, len(line)) for column in columns]
    taken = set(places)
    rest = [j for j in range(len(line)) if j not in taken]
    if not rest:
        raise wrong(path, number, "columns of features beside those of labels", cut.join(line))
    by_name = any(isinstance(column, str) for column in columns)
    if header is None and not by_name and all(is_finite(line[j]) for j in rest):
        raise wrong(
            path,
            number,
            "names of columns (pass header=False if this is a row, or header=True)",
            cut.join(line),
        )
    titles = None if names is None or single else [names[j] for j in places]
    words = tuple(places) if single else ()
    found = read_large(path, cut, len(line), named=names is not None, words=words)
    part = None if found is None else _large_part(*found, rest, places)
    if part is None:
        table = lines if names is not None else chain([(number, line)], lines)
        part = _small_part(path, table, len(line), rest, places, single=single)
    return part, titles


def _large_part(
    numbers: np.ndarray, words: list[list[str]], rest: list[int], places: list[int]
) -> Part | None:
    """What the fast way has found, the class as a word; None where something is wrong."""
    with np.errstate(over="ignore"):  # which makes it infinite
        features = (numbers if words else numbers[:, rest]).astype(np.float32)
    labels: Any = words[0] if words else numbers[:, places]
    right = all(map(str.strip, labels)) if words else bool(np.isin(labels, (0, 1)).all())
    if not right or not np.isfinite(features).all():
        return None
    return Part(features, labels if words else sparse.csr_array(labels.astype(np.int8)))


def _small_part(
    path: Path, table: Table, width: int, rest: list[int], places: list[int], *, single: bool
) -> Part:
    """Line by line, each of which is named if it is wrong."""
    values, marks, numbers = array("f"), [], []
    for number, cells in table:
        if len(cells) != width:
            raise wrong(path, number, f"{width} cells", f"{len(cells)}")
        try:
            values.extend([float(cells[j]) for j in rest])
        except ValueError:
            _explain(path, number, cells, rest)
        numbers.append(number)
        marks.append([cells[j] for j in places])
    features = np.frombuffer(values, np.float32).reshape(len(numbers), len(rest))
    _check_finite(path, features, numbers)
    if not single:
        return Part(features, _indicators(path, marks, numbers))
    for number, (cell,) in zip(numbers, marks, strict=True):
        if not cell.strip():
            raise wrong(path, number, "a class", cell)
    return Part(features, [mark[0] for mark in marks])


def _lines(path: Path, rows: Any) -> Table:
    """Line numbers and cells, without empty lines."""
    try:
        for cells in rows:
            if cells:
                yield rows.line_num, cells
    except csv.Error as error:
        raise wrong(path, rows.line_num, f"cells ({error})", "something else") from error


def _place(path: Path, column: Column, names: list[str] | None, width: int) -> int:
    """The index of a column given by name or index."""
    if isinstance(column, int):
        if not -width <= column < width:
            raise wrong(path, 1, f"labels to be a column from {-width} to {width - 1}", column)
        return column % width
    if names is None or column not in names:
        hint = "pass header=True to use names" if names is None else "names of this file"
        raise wrong(path, 1, f"labels to be {hint}{nearest(column, names or ())}", column)
    return names.index(column)


def _explain(path: Path, number: int, cells: list[str], rest: list[int]) -> None:
    for j in rest:
        try:
            float(cells[j])
        except ValueError:
            error = wrong(path, number, f"a number in column {j + 1}", cells[j])
            raise ValueError(f"{error}{meant(cells[j])}") from None


def _check_finite(path: Path, features: np.ndarray, numbers: list[int]) -> None:
    bad = ~np.isfinite(features).all(axis=1)
    if bad.any():
        row = int(bad.argmax())
        value = next(float(cell) for cell in features[row] if not math.isfinite(cell))
        raise wrong(path, numbers[row], "finite numbers", value)


def _indicators(path: Path, marks: list[list[str]], numbers: list[int]) -> sparse.csr_array:
    table = np.empty((len(marks), len(marks[0]) if marks else 0), np.int8)
    for place, (number, row) in enumerate(zip(numbers, marks, strict=True)):
        for column, cell in enumerate(row):
            if not is_finite(cell) or float(cell) not in (0.0, 1.0):
                raise wrong(path, number, "0 or 1 in a column of a label", cell)
            table[place, column] = float(cell)
    return sparse.csr_array(table)
