"""Files of scored rows: probabilities with labels, in one file or in two, are read as a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import nearest, shown
from omma.datasets.column_roles import (
    Names,
    find_column,
    find_columns,
    find_roles,
    matrix_roles,
    some_names,
    untold_columns,
)
from omma.datasets.json_lines import JsonLines
from omma.datasets.label_values import (
    are_truths,
    join_rows,
    labels_hint,
    paired_labels,
    with_late_labels,
)
from omma.datasets.matrices import (
    Matrix,
    file_ending,
    read_array,
    read_matrix,
    read_roles,
    split_address,
)
from omma.datasets.tables import (
    NAMED_COLUMNS,
    SEPARATORS,
    Table,
    named_table,
)
from omma.datasets.text import ending, numbered_lines
from omma.rows.arrays import meaning
from omma.rows.batch import Batch

ColumnNames = str | Sequence[str] | None

JSON_LINES = ".jsonl"


@dataclass(frozen=True)
class Scored:
    """The content of files of scored rows.

    Attributes
    ----------
    batch : Batch
        Probabilities, and labels if there are any, for ``omma.choose``, ``omma.replay`` and others.
    notes : tuple of str
        Sentences about rows that were skipped, and rows or columns that were reordered.
    rows : tuple of str and tuple of str, or None
        The name of the column of ids, and the ids.
    logged : Batch or None
        All rows, with those that were skipped; None if no row was skipped.
    """

    batch: Batch
    notes: tuple[str, ...] = ()
    rows: tuple[str, Names] | None = None
    logged: Batch | None = None

    def without(self, rows: NDArray[np.bool_], why: str) -> Scored:
        """The same without some rows; a note says how many and why."""
        note = f"{int(rows.sum()):,} of {self.batch.n:,} rows {why}"
        names = self.rows and (self.rows[0], tuple(compress(self.rows[1], ~rows)))
        logged = self.batch if self.logged is None else self.logged
        return Scored(self.batch.take(~rows), (*self.notes, note), names, logged)


def read_scored(
    eta: str | Path,
    labels: str | Path | None = None,
    *,
    id: str | None = None,  # noqa: A002
    probability: ColumnNames = None,
    label: ColumnNames = None,
    positive: str | None = None,
    column: str | None = None,
    percent: bool = False,
    by_position: bool = False,
    skip_unmatched: bool = False,
    order: Names | None = None,
) -> Scored:
    r"""Read probabilities and labels from files, pair their rows and columns, and check them.

    Parameters
    ----------
    eta : str or Path
        File of the probabilities: .csv, .tsv, .parquet, .npz, .npy, .txt as for ``read_matrix``, or
        .jsonl with the lines of ``omma stream``.
    labels : str or Path, optional
        File of the true labels: columns of 0 and 1 (or yes and no, true and false), or one column
        of class ids or names. It may be the same file as ``eta``, if this is a table of both.
    id : str, optional
        The column that names rows; by default "id", if there is one. If both files have it, rows
        are joined by it.
    probability, label : str or sequence of str, optional
        The columns of probabilities, and those of labels: names, numbers, or the start of several
        names, such as "p_". By default, labels are the columns ``y_NAME``, or a column y, label,
        class or target, and all other columns are probabilities.
    positive : str, optional
        The positive class, if labels are two classes and there is one column of probabilities.
    column : str, optional
        Use only this column of the probabilities, after labels are paired with all of them.
    percent : bool
        Divide probabilities by 100.
    by_position : bool
        Pair columns by their positions, not by their names.
    skip_unmatched : bool
        Skip rows that only one of two files has; by default they are an error.
    order : tuple of str, optional
        The order of the labels in the batch, if the columns have names.

    Returns
    -------
    Scored

    Examples
    --------
    >>> from pathlib import Path
    >>> from omma.datasets import read_scored
    >>> _ = Path("scored.csv").write_text("tx;p_fraud;is_fraud\na;0,9;yes\nb;0,2;no\n")
    >>> scored = read_scored("scored.csv", "scored.csv", probability="p_fraud", id="tx")
    >>> scored.batch, scored.batch.values.tolist(), scored.rows
    (<batch of 2 rows, 1 labels>, [[0.9], [0.2]], ('tx', ('a', 'b')))
    """
    eta, labels = str(eta), None if labels is None else str(labels)
    chosen_eta, chosen_labels = _listed(probability), _listed(label)
    if labels is None and chosen_labels:
        labels = eta
    if scored_ending(eta) == JSON_LINES:
        if labels not in (None, eta):
            raise ValueError(f"{eta} has its labels with it: leave {labels} out")
        if id not in (None, "id"):
            raise ValueError(f'{eta} has ids as "id": leave id={id!r} out')
        probabilities, truth = _from_json_lines(eta)
    else:
        probabilities, truth = _from_files(eta, labels, id, chosen_eta, chosen_labels, percent)
    if not probabilities.values.size:
        raise ValueError(f"{eta} must have at least one row and label, got none")
    if percent:
        probabilities = replace(probabilities, values=probabilities.values / 100.0)
    notes: list[str] = []
    if truth is not None and probabilities.ids is not None and truth.ids is not None:
        probabilities, truth, notes = join_rows(probabilities, truth, skip_unmatched)
    # Even if only one column is used, labels are first paired with all of them.
    place = None if column is None else find_column(eta, probabilities.titles, column)
    chosen = probabilities if place is None else probabilities.columns([place])
    batch = checked_batch(chosen, labels in (None, eta))
    ids = probabilities.ids
    rows = None if ids is None else ("id" if id is None else id, ids)
    if truth is None:
        return Scored(batch, tuple(notes), rows)
    y = paired_labels(probabilities, truth, place, positive, by_position, notes)
    try:
        batch = batch.labelled(truth.path, y)
    except ValueError as error:
        raise ValueError(f"{error}{labels_hint(chosen, truth, y)}") from error
    if order is not None and chosen.names is not None and chosen.names != order:
        chosen, y = reordered(chosen, y, order)
        batch = checked_batch(chosen, labels in (None, eta)).labelled(truth.path, y)
    scored = Scored(batch.ready(), tuple(notes), rows)
    known = None if batch.labels is None else batch.labels.known
    if known is None:
        return scored
    if not known.any():
        raise ValueError(f"{truth.path} must have labels to judge by, got empty cells alone")
    return scored.without(~known, "have no labels and were skipped (omma stream can use them)")


# Reading files.


def _listed(columns: ColumnNames) -> list[str]:
    return [columns] if isinstance(columns, str) else list(columns or ())


def scored_ending(path: str) -> str:
    """The ending of a file of scored rows, which may also be .jsonl."""
    file = split_address(path)[0]
    return JSON_LINES if ending(file) == JSON_LINES else file_ending(file)


def _from_files(
    eta: str,
    labels: str | None,
    id_column: str | None,
    chosen: list[str],
    chosen_labels: list[str],
    percent: bool,
) -> tuple[Matrix, Matrix | None]:
    """Probabilities and labels of one file or two; the names of both are read before any row."""
    tables = {
        path: named_table(Path(path), ids_by="id", percent=percent and path == eta)
        for path in dict.fromkeys((eta, labels))
        if path is not None and scored_ending(path) in NAMED_COLUMNS
    }
    if labels == eta and eta in tables:
        return _from_one_table(tables[eta], id_column, chosen, chosen_labels)
    # One of two files may lack ids, but not both.
    known = dict.fromkeys(name for table in tables.values() for name in table.names or ())
    if id_column is not None and id_column not in known:
        names = f"; there are {some_names(known)}" if known else ""
        hint = nearest(id_column, known) or names
        raise ValueError(f"no file has a column {id_column!r}, which id asks for{hint}")
    matrix = _read_columns(eta, tables.get(eta), id_column, chosen, "probability")
    if labels is None:
        return matrix, None
    return matrix, _read_columns(
        labels, tables.get(labels), id_column, chosen_labels, "label", matrix.names
    )


def _read_columns(
    path: str,
    table: Table | None,
    id_column: str | None,
    chosen: list[str],
    parameter: str,
    classes: Names | None = None,
) -> Matrix:
    """Probabilities or labels of a file of their own: all columns, or those that are chosen.

    ``table`` is None if the file is no table. ``classes`` are the names of the probabilities: a
    first line with a single word may be one of them.
    """
    is_label = parameter == "label"
    if table is None:
        matrix = read_array(*split_address(path)) if is_label else read_matrix(path)
        if matrix.values.dtype.kind == "S":
            matrix = replace(matrix, values=np.char.decode(matrix.values, "utf-8"))
        if chosen:
            columns = find_columns(path, matrix.titles, chosen, parameter)
            matrix = matrix.columns([*columns], tuple(columns.values()) if matrix.names else None)
        return replace(matrix, path=path)
    names = table.names or ()
    if id_column is None and len(names) > 1 and "id" not in chosen:
        id_column = "id"
    if id_column is not None and names.count(id_column) > 1:
        raise ValueError(f"{path}, line 1: expected distinct names, got {id_column!r} twice")
    id_column = id_column if id_column in names else None  # a file need not have ids
    roles = matrix_roles(table, id_column, chosen, parameter)
    matrix = read_roles(table, roles)[is_label]
    is_words = matrix.values.dtype.kind == "O"
    if names and table.width == 1 and is_words and ending(Path(path)) in SEPARATORS:
        # The only word of the first line is the name of the column, unless it is a class: the name
        # of a column of probabilities, or the class of a later row.
        is_class = names[0] in (classes or ()) and not are_truths({*matrix.values})
        if names[0] in matrix.values or is_class:
            values = np.concatenate([np.array(names, dtype=object), matrix.values])
            matrix = Matrix(values, path=path, lines=[1, *(matrix.lines or ())])
    return matrix


def _from_one_table(
    table: Table,
    id_column: str | None,
    chosen: list[str],
    labels: list[str],
) -> tuple[Matrix, Matrix]:
    """Probabilities and labels of one table, which the names of its columns tell apart."""
    path = str(table.path)
    if table.names is None:
        raise ValueError(
            f"{path}, line 1: expected names of columns, which tell probabilities from labels, got "
            "none"
        )
    roles = find_roles(path, table.names, id_column, chosen, labels)
    # Columns that the caller did not choose may be anything, such as text about the row.
    for place in roles.eta if not chosen else ():
        if table.is_text(place) and not table.percent:
            taken = (roles.id, *roles.labels)
            raise untold_columns(path, "probability", table.names, taken, table.names[place])
    return with_late_labels(*read_roles(table, roles))


def _from_json_lines(path: str) -> tuple[Matrix, Matrix | None]:
    """Read the lines of a stream: labels come with their row, or in a later line by its id."""
    reader, numbers, eta, y, ids = JsonLines(None), [], [], [], []
    for number, text in numbered_lines(Path(path)):
        try:
            line = reader.read(text)
            if line is None or (line.eta is None and line.y is None):
                continue
            # The first row with probabilities sets the number of labels.
            if reader.n_labels is None and line.eta is not None:
                reader.n_labels = reader.width = len(line.eta)
            if reader.n_labels is None:
                raise ValueError("expected probabilities before labels")
            if line.eta is None and line.id is None:
                raise ValueError("expected an id with labels alone")
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from error
        numbers.append(number)
        # A line with only labels gets a row of NaN; its labels move to their row at the end.
        eta.append(np.full(reader.n_labels, np.nan) if line.eta is None else line.eta)
        y.append(line.y)
        ids.append("" if line.id is None else str(line.id))
    if not eta:
        raise ValueError(f"{path} must have lines with probabilities, got none")
    row_ids = tuple(ids) if any(ids) else None
    matrix = Matrix(np.array(eta), reader.names, row_ids, path, numbers)
    if all(labels is None for labels in y):
        return matrix, None
    m = matrix.width
    # A whole number is a class if there are several labels, and else the label itself.
    is_class = m > 1 and any(isinstance(labels, int) for labels in y)
    values = np.full(len(y) if is_class else (len(y), m), np.nan)
    for row, labels in enumerate(y):
        if labels is None:
            continue
        if isinstance(labels, int) != is_class and m > 1:
            raise ValueError(
                f"{matrix.where(row)}: expected labels of one kind, class ids or lists"
            )
        values[row] = labels
    return with_late_labels(matrix, replace(matrix, values=values))


def reordered(chosen: Matrix, y: Any, order: Names) -> tuple[Matrix, Any]:
    """Columns of probabilities and labels in another order."""
    names = chosen.names or ()
    if set(names) != set(order):
        raise ValueError(
            f"{chosen.path} must have the columns of eta, {some_names(order)}, got "
            f"{some_names(names)}"
        )
    places = [names.index(name) for name in order]
    # A class gets the new place of its label (NaN stays NaN); indicators are reordered.
    new_ids = np.append(np.argsort(places), np.nan)
    y = y[:, places] if y.ndim == 2 else new_ids[np.nan_to_num(y, nan=-1).astype(np.int64)]
    return chosen.columns(places), y


def checked_batch(matrix: Matrix, may_have_labels: bool) -> Batch:
    """Check probabilities; the error may say that a column was read by mistake."""
    try:
        batch = Batch.read(matrix.path, matrix.values).check(matrix.path)
        return replace(batch, names=matrix.names)
    except ValueError as error:
        # The error may end in a guess about the numbers; here a parameter helps.
        hint = meaning(matrix.stored) or _odd_column(matrix, may_have_labels)
        fix = ": pass percent=True" if "percent, divide" in hint else ""
        raise ValueError(f"{str(error).removesuffix(hint)}{hint}{fix}") from error


def _odd_column(matrix: Matrix, may_have_labels: bool) -> str:
    """A hint about a column that holds no probabilities, as the end of a sentence."""
    stored = matrix.stored
    is_whole = np.isfinite(stored).all() and (stored == np.floor(stored)).all()
    if len(stored) and is_whole and stored.min() >= 0:
        swapped = "; whole numbers look like labels: are eta and labels swapped?"
        return swapped if stored.max() > 100 else f"{swapped} For percent pass percent=True"
    if matrix.names is None or sparse.issparse(matrix.values):
        return ""
    values = matrix.values.reshape(len(matrix.values), -1)
    # The column of the first wrong value in the order of rows, which the error quotes.
    wrong = int(np.argmin((values >= 0) & (values <= 1))) % len(matrix.names)
    name, cells = matrix.names[wrong], values[:, wrong]
    is_whole = bool(np.isfinite(cells).all() and (cells == np.floor(cells)).all())
    fix = "name the columns of probabilities by probability='NAME'"
    if is_whole and len(np.unique(cells)) == len(cells):
        fix = f"if it names rows, pass id={name!r}; else {fix}"
    elif is_whole and may_have_labels:
        fix = f"if it holds the labels, pass label={name!r}; else {fix}"
    return f", the column {shown(name)}: {fix}"
