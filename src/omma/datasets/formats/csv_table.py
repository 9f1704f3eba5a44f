"""Tables with a column, or several, of labels."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from omma._validate import nearest
from omma.datasets.csv_text import Complaint, CsvFile, TableColumns
from omma.datasets.dataset import Dataset
from omma.datasets.formats.part import Part, assemble, is_finite
from omma.datasets.text import ending, numbered_lines, opened_text, wrong

DELIMITERS = (",", ";", "\t")
Column = int | str


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
    paths = [Path(file) for file in (path, test) if file is not None]
    separator = delimiter or delimiter_of(paths[0])
    parts, names = [], None
    for file in paths:
        with opened_text(file, errors="backslashreplace") as lines:
            part, names = _part(CsvFile(file, lines, separator), labels, header)
        parts.append(part)
    return assemble(paths[0], parts, name=name, labels=names, task=task)


def delimiter_of(path: Path) -> str:
    """What stands between the cells of the first line, outside of quotes."""
    if ending(path) == ".tsv":
        return "\t"
    lines = (line for _, line in numbered_lines(path) if line.strip())
    bare = re.sub(r'"[^"]*"', "", next(lines, ""))
    return next((sign for sign in DELIMITERS if sign in bare), ",")


def _part(
    table: CsvFile, labels: Column | Sequence[Column], header: bool | None
) -> tuple[Part, list[str] | None]:
    """Features and labels of one file, and the names of labels if there are several."""
    has_class = isinstance(labels, int | str)
    columns: list[Any] = [labels] if isinstance(labels, int | str) else list(labels)
    first = table.first
    names = None if header is False else first
    places = [_place(table.path, column, names, len(first)) for column in columns]
    features = [place for place in range(len(first)) if place not in places]
    text = str(table.separator).join(first)
    if not features:
        raise wrong(table.path, 1, "columns of features beside those of labels", text)
    by_name = any(isinstance(column, str) for column in columns)
    if header is None and not by_name and all(is_finite(first[place]) for place in features):
        raise wrong(
            table.path,
            1,
            "names of columns (pass header=False if this is a row, or header=True)",
            text,
        )

    def parts_of(columns: TableColumns) -> tuple[Any, Any]:
        if has_class:  # the one column of text
            return columns.numbers, columns.texts[0]
        return columns.numbers[:, features], columns.numbers[:, places]

    def complain(columns: TableColumns) -> Complaint | None:
        numbers, target = parts_of(columns)
        infinite = ~(np.abs(numbers) <= np.finfo(np.float32).max)
        if infinite.any():
            row = int(infinite.any(axis=1).argmax())
            return row, "finite numbers", numbers[row][infinite[row]][0].item()
        if has_class:
            return (target.index(""), "a class", "") if "" in target else None
        odd = ~np.isin(target, (0.0, 1.0))
        row = int(odd.any(axis=1).argmax()) if odd.any() else -1
        expected = "0 or 1 in a column of a label"
        return None if row < 0 else (row, expected, f"{target[row][odd[row]][0]:g}")

    text_places = tuple(places) if has_class else ()
    numbers, target = parts_of(table.columns(names is not None, text_places, complain=complain))
    if has_class:
        return Part(numbers.astype(np.float32), target), None
    titles = None if names is None else [names[place] for place in places]
    return Part(numbers.astype(np.float32), sparse.csr_array(target.astype(np.int8))), titles


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
