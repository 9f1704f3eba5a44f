"""Datasets in CSV and TSV files, whose labels are a column of classes or several columns."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from omma._validate import nearest
from omma.datasets.dataset import LARGEST, Dataset, assemble, is_finite
from omma.datasets.tables import SEPARATORS, CsvTable
from omma.datasets.text import ending, text_lines, wrong

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
    r"""Read a table of numbers with one column of classes, or with several columns of labels.

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
        Whether the first line has the names of the columns. By default it has; but a first line
        whose features are all numbers could be a row, and is an error.
    delimiter : str, optional
        By default guessed from the first lines: a comma, a semicolon, a tab or a bar.
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
    features, targets, names = [], [], None
    for file in paths:
        table = CsvTable(
            file,
            text_lines(file, "backslashreplace"),  # names of classes may hold wrong bytes
            separator=delimiter,
            default=SEPARATORS.get(ending(file), ","),
            header=header is not False,
        )
        delimiter = table.separator  # the test part may be too short to tell its own
        values, target, names = _read_part(table, labels, header)
        features.append(values)
        targets.append(target)
    return assemble(paths[0], features, targets, name=name, labels=names, task=task)


def _read_part(
    table: CsvTable, labels: Column | Sequence[Column], header: bool | None
) -> tuple[Any, Any, list[str] | None]:
    """Features and labels of one file, and the names of labels if there are several."""
    has_class = isinstance(labels, int | str)
    columns: list[Any] = [labels] if isinstance(labels, int | str) else list(labels)
    path, first = table.path, table.first
    names = None if header is False else first
    # A class is read as text, whatever it looks like; several labels are read as numbers.
    places = [_place(path, column, names, len(first)) for column in columns]
    features = [place for place in range(len(first)) if place not in places]
    text = str(table.separator).join(first)
    if not features:
        raise wrong(path, 1, "columns of features beside those of labels", text)
    # Columns that are chosen by name need a line of names.
    by_name = any(isinstance(column, str) for column in columns)
    if header is None and not by_name and all(is_finite(first[place]) for place in features):
        expected = "names of columns (pass header=False if this is a row, or header=True)"
        raise wrong(path, 1, expected, text)
    numbers, texts, lines = table.read(
        features if has_class else [*features, *places], places if has_class else ()
    )
    values, target = np.split(numbers, [len(features)], axis=1)
    for block, is_right, expected in (
        # Features are float32: larger numbers would become infinite.
        (values, np.abs(values) <= LARGEST, "finite numbers"),
        (target, (target == 0) | (target == 1), "0 or 1 in a column of a label"),
    ):
        if not is_right.all():
            row, column = np.argwhere(~is_right)[0]
            got = f"{block[row, column]:g}"
            raise ValueError(f"{path}, line {lines[row]}: expected {expected}, got {got}")
    values = values.astype(np.float32)
    if not has_class:
        titles = None if names is None else [names[place] for place in places]
        return values, sparse.csr_array(target.astype(np.int8)), titles
    if "" in texts[0]:
        raise wrong(path, lines[texts[0].index("")], "a class", "")
    return values, texts[0], None


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
