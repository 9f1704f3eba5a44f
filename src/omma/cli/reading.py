"""Files of probabilities and labels: read, and brought into one order."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from omma._validate import nearest, repeated, shown
from omma.cli.classes import read_labels, stems
from omma.cli.inputs import Inputs
from omma.datasets import Matrix, read_matrix
from omma.datasets.matrices import column_names
from omma.rows.arrays import meaning
from omma.rows.batch import Batch

Names = tuple[str, ...]
Files = tuple[str, str]  # of the probabilities, and of the labels


def read_inputs(
    eta: str,
    labels: str | None,
    *,
    id_column: str | None = None,
    column: str | None = None,
    by_position: bool = False,
) -> Inputs:
    """Read both files; rows and columns of labels are brought into the order of probabilities."""
    own = _id_columns((eta, labels), id_column)
    probabilities = read_matrix(eta, id_column=own[eta])
    if not probabilities.values.shape[0] or not probabilities.values.size:
        raise ValueError(f"{eta} must have at least one row and label, got none")
    place = None if column is None else _place(eta, probabilities, column)
    chosen = probabilities if place is None else _column(probabilities, place)
    batch = replace(_checked(eta, chosen), names=chosen.names)
    rows = None if probabilities.ids is None else (id_column or "", probabilities.ids)
    if labels is None:
        return Inputs(batch, rows=rows)
    one = chosen.names[0] if chosen.names and len(chosen.names) == 1 else None
    truth = read_labels(labels, probabilities.names, own[labels], one)
    truth, notes = _paired_rows((eta, labels), probabilities, truth)
    if one is not None and one in (truth.names or ()):
        truth = _column(truth, (truth.names or ()).index(one))
    elif _width(truth) > 1:
        _check_width(eta, labels, probabilities, truth)
        if truth.names and probabilities.names and not by_position:
            truth, more = _paired_columns((eta, labels), probabilities.names, truth)
            notes += more
        truth = truth if place is None else _column(truth, place)
    y = _fitted(eta, labels, chosen, truth)
    if y.dtype.kind != "f" or not np.isnan(_stored(y)).any():
        y = y.astype(np.int64 if getattr(y, "ndim", 2) == 1 and batch.m > 1 else np.int8)
        return Inputs(batch.labelled(labels, y).ready(), tuple(notes), rows)
    found = batch.labelled(labels, y)
    assert found.labels is not None
    some = found.labels.known
    if some is not None and not some.any():
        raise ValueError(f"{labels} must have labels to judge by, got empty cells alone")
    made = Inputs(found, tuple(notes), rows)
    if some is not None:
        made = made.without(~some, "have no labels and were skipped (omma stream can use them)")
    return replace(made, batch=made.batch.ready())


def _id_columns(paths: Iterable[str | None], id_column: str | None) -> dict[str, str | None]:
    """The column that names rows, for each file that has it; one of them must."""
    files = [path for path in paths if path is not None]
    if id_column is None:
        return dict.fromkeys(files)
    names = {path: column_names(path) or () for path in files}
    found = [path for path in files if id_column in names[path]]
    if not found:
        known = list(dict.fromkeys(name for path in files for name in names[path]))
        hint = nearest(id_column, known) or (f"; there are {shown(known)}" if known else "")
        raise ValueError(f"no file has a column {id_column!r}, which --id asks for{hint}")
    return {path: id_column if path in found else None for path in files}


def _width(matrix: Matrix) -> int:
    return 1 if matrix.values.ndim == 1 else int(matrix.values.shape[1])


def _place(path: str, matrix: Matrix, column: str) -> int:
    """Where a column is that is asked for by its name or its number."""
    names, m = matrix.names or (), _width(matrix)
    if column in names:
        return names.index(column)
    if column.isdecimal() and int(column) < m:
        return int(column)
    hint = nearest(column, names) or f"; it has {m}"
    raise ValueError(f"{path} has no column {column!r}{hint}")


def _column(matrix: Matrix, place: int) -> Matrix:
    """One column: the probability of a yes, or whether it is one."""
    if matrix.values.ndim == 1:
        return matrix
    taken = matrix.values[:, [place]]
    dense = taken.toarray() if sparse.issparse(taken) else np.ascontiguousarray(taken)
    return Matrix(dense, (matrix.names or ())[place : place + 1] or None, matrix.ids)


def _checked(path: str, matrix: Matrix) -> Batch:
    """Refuse what is no probability; a column with a name may be there by mistake."""
    try:
        return Batch.read(path, matrix.values).check(path)
    except ValueError as error:
        told = meaning(_stored(matrix.values))
        hint = "" if told else _look_like_labels(matrix.values)
        name = None if hint or told else _odd_column(matrix)
        if name is not None:
            hint = (
                f", the column {shown(name)}: if it names rows, pass --id {name or repr('')}; to "
                "take one column and leave the others out, pass --column NAME"
            )
        raise ValueError(f"{error}{hint}") from error


def _stored(values: Any) -> Any:
    return np.ravel(values.data if sparse.issparse(values) else values)


def _look_like_labels(values: Any) -> str:
    """Whether numbers that are no probabilities may be labels, as the end of a sentence."""
    stored = _stored(values)
    if not len(stored) or not np.isfinite(stored).all():
        return ""
    whole = (stored == np.floor(stored)).all() and stored.min() >= 0
    return "; whole numbers look like labels: are --eta and --labels swapped?" if whole else ""


def _swapped(probabilities: Matrix, truth: Matrix) -> str:
    """Whether labels were given as probabilities, as the end of a sentence."""
    first, second = _stored(probabilities.values), _stored(truth.values)
    whole, fractions = (first == np.floor(first)).all(), (second != np.floor(second)).any()
    inside = len(second) and second.min() >= 0 and second.max() <= 1
    return "; are --eta and --labels swapped?" if whole and fractions and inside else ""


def _odd_column(matrix: Matrix) -> str | None:
    """The name of the first column that holds something else than probabilities."""
    if matrix.names is None or sparse.issparse(matrix.values):
        return None
    values = matrix.values.reshape(len(matrix.values), -1)
    right = ((values >= 0) & (values <= 1)).all(axis=1)
    row = values[np.flatnonzero(~right)[0]]
    return matrix.names[int(np.flatnonzero(~((row >= 0) & (row <= 1)))[0])]


def _check_width(eta: str, labels: str, probabilities: Matrix, truth: Matrix) -> None:
    """As many columns of labels as of probabilities; one more may name rows."""
    m, found = _width(probabilities), _width(truth)
    if found == m:
        return
    known = set(probabilities.names or ())
    more = [name for name in truth.names or () if name not in known]
    hint = f"; if {more[0]!r} names rows, pass --id {more[0]}" if more else ""
    hint = _swapped(probabilities, truth) or hint
    raise ValueError(
        f"{labels} must have {m} columns as {eta}, or one with class ids, got {found}{hint}"
    )


def _fitted(eta: str, labels: str, probabilities: Matrix, truth: Matrix) -> Any:
    """Labels in a shape that goes with the probabilities."""
    n, m, y = probabilities.values.shape[0], _width(probabilities), truth.values
    if y.shape[0] != n:
        hint = "they must be of the same rows"
        if abs(y.shape[0] - n) == 1:
            hint = "perhaps the first line of one of them has names, and that of the other has not"
        elif _width(truth) == 1 and y.shape[0] < n:
            hint = "a line with nothing in it is no row: write nan where a label is unknown"
        raise ValueError(
            f"{labels} must have as many rows as {eta}, which has {n:,}, got {y.shape[0]:,}; {hint}"
        )
    hint = _swapped(probabilities, truth)
    if _width(truth) == 1 and m > 1:
        return _class_ids(labels, np.ravel(y.toarray() if sparse.issparse(y) else y), m, hint)
    return _indicators(labels, y, hint)


def _class_ids(path: str, ids: Any, m: int, hint: str) -> Any:
    known = ~np.isnan(ids) if ids.dtype.kind == "f" else np.ones(len(ids), dtype=np.bool_)
    wrong = np.flatnonzero(known & ~((ids >= 0) & (ids < m) & (ids == np.floor(ids))))
    if len(wrong):
        one = "; if the first class is 1, write numbers from 0" if (ids == m).any() else hint
        raise ValueError(
            f"{path} must hold class ids from 0 to {m - 1}, got {ids[wrong[0]]:g} in row "
            f"{wrong[0]}{one}"
        )
    return ids


def _indicators(path: str, y: Any, hint: str) -> Any:
    stored = y.data if sparse.issparse(y) else np.asarray(y)
    wrong = stored[(stored != 0) & (stored != 1) & ~(stored != stored)]  # NaN is not itself
    if len(wrong):
        raise ValueError(f"{path} must hold only 0 and 1, got {wrong[0]:g}{hint}")
    return y.tocsr() if sparse.issparse(y) else np.asarray(y)


def _paired_rows(files: Files, first: Matrix, second: Matrix) -> tuple[Matrix, list[str]]:
    """The second file in the order of the first's rows, which ids tell where both have them."""
    wanted, own = first.ids, second.ids
    if wanted is None or own is None or wanted == own:
        return second, []
    for path, ids in zip(files, (wanted, own), strict=True):
        twice = repeated(ids)
        if twice is not None:
            raise ValueError(f"{path} must name each row once, got the id {twice!r} twice")
    places, known = {name: place for place, name in enumerate(own)}, set(wanted)
    for here, there, absent in (
        (*files[::-1], (name for name in wanted if name not in places)),
        (*files, (name for name in own if name not in known)),
    ):
        for name in absent:
            raise ValueError(f"{here} has no row with the id {name!r}, which {there} has")
    order = [places[name] for name in wanted]
    note = f"Rows of {files[1]} were put in the order of {files[0]}, by their ids."
    return replace(second, values=second.values[order], ids=wanted), [note]


def _paired_columns(files: Files, names: Names, labels: Matrix) -> tuple[Matrix, list[str]]:
    """Columns of labels in the order of the probabilities', which their names tell."""
    own = labels.names or ()
    if own == names or _numbered(own) or _numbered(names):
        return labels, []
    wanted: Sequence[str] = names
    if set(own) != set(names):
        wanted, own = stems(names), stems(own)
        if set(own) != set(wanted):
            raise ValueError(_mismatch(files, names, labels.names or ()))
    if tuple(own) == tuple(wanted):
        return labels, []
    place = {name: number for number, name in enumerate(own)}
    places = [place[name] for name in wanted]
    note = f"Columns of {files[1]} were put in the order of {files[0]}, by their names."
    return replace(labels, values=labels.values[:, places], names=names), [note]


def _numbered(names: Sequence[str]) -> bool:
    """Whether columns have numbers for names, as programs give them that know no names."""
    return list(names) == [str(number) for number in range(len(names))]


def _mismatch(files: Files, names: Names, own: Names) -> str:
    eta, labels = files
    held = set(own)
    missing = [name for name in names if name not in held]
    if len(missing) < len(names):
        return f"{labels} must have the columns of {eta}, got none named {missing[0]!r}"
    return (
        f"{eta} and {labels} must name their columns alike, got {names[0]!r} and {own[0]!r}: "
        "rename them, or pass --by-position if both have one order"
    )
