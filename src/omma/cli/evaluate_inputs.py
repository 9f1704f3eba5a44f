"""Files of probabilities and labels for ``omma evaluate``: read, checked, and brought in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import omma
from omma._validate import nearest, repeated, shown
from omma.cli.lines import Names
from omma.datasets import Matrix, read_matrix
from omma.datasets.class_names import read_labels, stems
from omma.datasets.matrices import column_names
from omma.policies.base import whole_for
from omma.rows.arrays import meaning


@dataclass(frozen=True)
class Inputs:
    """What files hold: labels may be missing from the batch; notes are for the user.

    ``rows`` is what the column that names rows is called, and its cells.
    """

    batch: omma.Batch
    notes: tuple[str, ...] = ()
    rows: tuple[str, tuple[str, ...]] | None = None

    @property
    def y(self) -> Any:
        """Labels, or None."""
        return None if self.batch.labels is None else self.batch.labels.values

    def without(self, rows: NDArray[np.bool_], why: str) -> Inputs:
        """The same without some rows, and a note that says how many and why."""
        note = f"{int(rows.sum()):,} of {self.batch.n:,} rows {why}"
        names = self.rows
        if names is not None:
            cells = zip(names[1], rows, strict=True)
            names = (names[0], tuple(cell for cell, is_left_out in cells if not is_left_out))
        return Inputs(self.batch.take(~rows), (*self.notes, note), names)

    def whole(self, metrics: list[tuple[omma.Metric, int | None]]) -> Inputs:
        """Without rows that are labelled in part, where a metric is about one class a row."""
        labels = self.batch.labels
        if labels is None or labels.missing is None:
            return self
        for metric, _ in metrics:
            reason = whole_for(metric)
            if reason is not None:
                part = np.diff(labels.missing.indptr) > 0  # rows with unknown entries
                if part.all():
                    labels.refuse_partly_known(labels.owner, reason)
                why = f"lack some labels, and are left out: {metric.name} is about one class a row"
                return self.without(part, why)
        return self

    @property
    def rows_known(self) -> NDArray[np.float64]:
        """In how many rows each label is known."""
        labels, m = self.batch.labels, self.batch.m
        known = np.full(m, float(self.batch.n))
        if labels is not None and labels.missing is not None:
            known -= np.bincount(labels.missing.indices, minlength=m)
        return known


def check_task(
    batch: omma.Batch, metrics: list[tuple[omma.Metric, int | None]], at_most: int | None = None
) -> None:
    """Refuse metrics and budgets that do not go with the data, and say what to pass."""
    m = batch.m
    if at_most is not None and at_most > m:
        raise ValueError(f"--at-most must be at most the number of labels, {m}, got {at_most}")
    for metric, k in metrics:
        # Classifiers return two columns for a binary problem, of which the second is positive.
        if metric.binary and m == 2:
            raise ValueError(
                f"{metric.name} takes the probability of one label, and there are 2 columns: pass "
                "--column 1 for the second, or a macro_ or multiclass_ metric"
            )
        metric.check_labels(m)
        if k is not None and k > m:
            raise ValueError(f"k must be at most the number of labels, {m}, got {k}")
        if batch.class_ids and k is None and not metric.multiclass:
            raise ValueError(
                f"the labels are class ids, and {metric.name} has no budget: pass -k 1 to predict "
                "one class a row, or labels as columns of 0 and 1"
            )
        needs_one = metric.multiclass and m > 1 and batch.labels is not None
        if needs_one and batch.odd_row is not None:
            row, count = batch.odd_row
            raise ValueError(
                f"the labels must be one class a row for {metric.name}, got {count} in row {row}; "
                "for rows of several labels choose a macro_ or micro_ metric"
            )


def read_inputs(
    eta: str,
    labels: str | None,
    *,
    id_column: str | None = None,
    column: str | None = None,
    by_position: bool = False,
    order: Names | None = None,
) -> Inputs:
    """Read both files; rows and columns of labels are brought into the order of probabilities.

    ``order`` is that of the columns in the end, where they have names.
    """
    has_ids = _files_with_ids([path for path in (eta, labels) if path is not None], id_column)
    probabilities = read_matrix(eta, id_column=id_column if eta in has_ids else None)
    if not probabilities.values.size:
        raise ValueError(f"{eta} must have at least one row and label, got none")
    # One column may be chosen of the probabilities; labels are paired with all of them first.
    place = None if column is None else _place(eta, probabilities, column)
    chosen = probabilities if place is None else _columns(probabilities, [place])
    batch = _checked(eta, chosen)
    rows = None if probabilities.ids is None else (id_column or "", probabilities.ids)
    if labels is None:
        return Inputs(batch, rows=rows)
    # The name of the only column is that of the positive class.
    positive = chosen.names[0] if chosen.names and len(chosen.names) == 1 else None
    own_ids = id_column if labels in has_ids else None
    truth = read_labels(labels, probabilities.names, own_ids, positive)
    truth, notes = _paired_rows(eta, labels, probabilities.ids, truth)
    if positive is not None and positive in (truth.names or ()):
        # A file of all labels, of which one is judged.
        truth = _columns(truth, [(truth.names or ()).index(positive)])
    elif _width(truth) > 1:  # indicators; a single column is one label, or class ids
        _check_width(eta, labels, probabilities, truth)
        if truth.names and probabilities.names and not by_position:
            truth, column_notes = _paired_columns(eta, labels, probabilities.names, truth)
            notes += column_notes
        truth = truth if place is None else _columns(truth, [place])
    y = _checked_labels(eta, labels, chosen, truth)
    if order is not None and chosen.names is not None and chosen.names != order:
        if set(chosen.names) != set(order):
            raise ValueError(
                f"{eta} must have the columns of --eta, {_listed(order)}, got "
                f"{_listed(chosen.names)}"
            )
        places = [chosen.names.index(name) for name in order]
        chosen = _columns(chosen, places)
        batch = _checked(eta, chosen)
        # Of classes, the new place of each, where it is known; of indicators, the columns.
        new_ids = np.append(np.argsort(places), np.nan)
        y = y[:, places] if y.ndim == 2 else new_ids[np.nan_to_num(y, nan=-1).astype(np.int64)]
    is_partial = y.dtype.kind == "f" and np.isnan(_stored(y)).any()
    # Whole numbers are what kernels read; NaN, a label that is not known, needs floats.
    if not is_partial:
        y = y.astype(np.int64 if y.ndim == 1 and batch.m > 1 else np.int8)
    inputs = Inputs(batch.labelled(labels, y), tuple(notes), rows)
    known = inputs.batch.labels.known if is_partial else None  # type: ignore[union-attr]
    if known is not None:
        if not known.any():
            raise ValueError(f"{labels} must have labels to judge by, got empty cells alone")
        inputs = inputs.without(
            ~known, "have no labels and were skipped (omma stream can use them)"
        )
    return replace(inputs, batch=inputs.batch.ready())


def _files_with_ids(files: list[str], id_column: str | None) -> list[str]:
    """The files that have the column that names rows; one of them must."""
    if id_column is None:
        return []
    names = {path: column_names(path) or () for path in files}
    has_ids = [path for path in files if id_column in names[path]]
    if not has_ids:
        known = list(dict.fromkeys(name for path in files for name in names[path]))
        hint = nearest(id_column, known) or (f"; there are {shown(known)}" if known else "")
        raise ValueError(f"no file has a column {id_column!r}, which --id asks for{hint}")
    return has_ids


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


def _columns(matrix: Matrix, places: list[int]) -> Matrix:
    """Some columns in another order; a single one is dense."""
    if matrix.values.ndim == 1:
        return matrix
    values = matrix.values[:, places]
    if len(places) == 1:
        values = values.toarray() if sparse.issparse(values) else np.ascontiguousarray(values)
    names = None if matrix.names is None else tuple(matrix.names[place] for place in places)
    return Matrix(values, names, matrix.ids)


def _stored(values: Any) -> Any:
    return np.ravel(values.data if sparse.issparse(values) else values)


def _checked(path: str, matrix: Matrix) -> omma.Batch:
    """Refuse what is no probability; a column with a name may be there by mistake."""
    try:
        return replace(omma.Batch.read(path, matrix.values).check(path), names=matrix.names)
    except ValueError as error:
        stored, hint = _stored(matrix.values), ""
        if not meaning(stored):  # else the sentence says what they may be
            is_whole = np.isfinite(stored).all() and (stored == np.floor(stored)).all()
            if len(stored) and is_whole and stored.min() >= 0:
                hint = "; whole numbers look like labels: are --eta and --labels swapped?"
            elif matrix.names is not None and not sparse.issparse(matrix.values):
                values = matrix.values.reshape(len(matrix.values), -1)
                # The first in the order of rows, which is the one that the sentence tells.
                wrong = int(np.argmin((values >= 0) & (values <= 1)))
                name = matrix.names[wrong % len(matrix.names)]
                hint = (
                    f", the column {shown(name)}: if it names rows, pass --id {name or repr('')}; "
                    "to take one column and leave the others out, pass --column NAME"
                )
        raise ValueError(f"{error}{hint}") from error


def _swapped(probabilities: Matrix, truth: Matrix) -> str:
    """Whether labels were given as probabilities, as the end of a sentence."""
    # Labels are whole numbers and probabilities fractions: here each file looks like the other.
    first, second = _stored(probabilities.values), _stored(truth.values)
    is_whole, has_fractions = (first == np.floor(first)).all(), (second != np.floor(second)).any()
    is_inside = len(second) and second.min() >= 0 and second.max() <= 1
    is_swapped = is_whole and has_fractions and is_inside
    return "; are --eta and --labels swapped?" if is_swapped else ""


def _check_width(eta: str, labels: str, probabilities: Matrix, truth: Matrix) -> None:
    """As many columns of labels as of probabilities; one more may name rows."""
    m, width = _width(probabilities), _width(truth)
    if width != m:
        known = set(probabilities.names or ())
        extra = [name for name in truth.names or () if name not in known]
        hint = f"; if {extra[0]!r} names rows, pass --id {extra[0]}" if extra else ""
        hint = _swapped(probabilities, truth) or hint
        raise ValueError(
            f"{labels} must have {m} columns as {eta}, or one with class ids, got {width}{hint}"
        )


def _checked_labels(eta: str, labels: str, probabilities: Matrix, truth: Matrix) -> Any:
    """Class ids or indicators, of as many rows as the probabilities."""
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
    # NaN is not equal to itself: a label that is not known is not wrong.
    if _width(truth) == 1 and m > 1:
        ids = np.ravel(y.toarray() if sparse.issparse(y) else y)
        wrong = np.flatnonzero(~((ids >= 0) & (ids < m) & (ids == np.floor(ids))) & (ids == ids))
        if len(wrong):
            hint = "; if the first class is 1, write numbers from 0" if (ids == m).any() else hint
            raise ValueError(
                f"{labels} must hold class ids from 0 to {m - 1}, got {ids[wrong[0]]:g} in row "
                f"{wrong[0]}{hint}"
            )
        return ids
    stored = _stored(y)
    wrong = stored[(stored != 0) & (stored != 1) & (stored == stored)]
    if len(wrong):
        raise ValueError(f"{labels} must hold only 0 and 1, got {wrong[0]:g}{hint}")
    return y.tocsr() if sparse.issparse(y) else np.asarray(y)


def _paired_rows(
    eta: str, labels: str, ids: Names | None, truth: Matrix
) -> tuple[Matrix, list[str]]:
    """Labels in the order of the probabilities' rows, which ids tell where both have them."""
    own = truth.ids
    if ids is None or own is None or ids == own:
        return truth, []
    for path, names in ((eta, ids), (labels, own)):
        twice = repeated(names)
        if twice is not None:
            raise ValueError(f"{path} must name each row once, got the id {twice!r} twice")
    places, known = {name: place for place, name in enumerate(own)}, set(ids)
    for path, absent, second in (
        (labels, (name for name in ids if name not in places), eta),
        (eta, (name for name in own if name not in known), labels),
    ):
        for name in absent:
            raise ValueError(f"{path} has no row with the id {name!r}, which {second} has")
    order = [places[name] for name in ids]
    note = f"Rows of {labels} were put in the order of {eta}, by their ids."
    return replace(truth, values=truth.values[order], ids=ids), [note]


def _paired_columns(eta: str, labels: str, names: Names, truth: Matrix) -> tuple[Matrix, list[str]]:
    """Columns of labels in the order of the probabilities', which their names tell."""
    own = truth.names or ()
    # Programs that know no names give columns their numbers.
    numbers = tuple(str(number) for number in range(len(own)))
    if own == names or numbers in (own, names):
        return truth, []
    wanted_names: Sequence[str] = names
    if set(own) != set(names):
        # p_sport and y_sport have one stem.
        wanted_names, own = stems(names), stems(own)
        if set(own) != set(wanted_names):
            missing = [name for name in names if name not in set(truth.names or ())]
            if len(missing) < len(names):
                raise ValueError(
                    f"{labels} must have the columns of {eta}, got none named {missing[0]!r}"
                )
            raise ValueError(
                f"{eta} and {labels} must name their columns alike, got {names[0]!r} and "
                f"{(truth.names or ())[0]!r}: rename them, or pass --by-position if both have one "
                "order"
            )
    if tuple(own) == tuple(wanted_names):
        return truth, []
    place = {name: number for number, name in enumerate(own)}
    values = truth.values[:, [place[name] for name in wanted_names]]
    note = f"Columns of {labels} were put in the order of {eta}, by their names."
    return replace(truth, values=values, names=names), [note]


def _listed(names: Names) -> str:
    more = ", …" if len(names) > 9 else ""
    return ", ".join(names[:9]) + more
