"""Probabilities and labels of a user who has files: read, and brought into one order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from omma._rows import check_rows, read_probabilities
from omma._validate import nearest
from omma.cli.classes import read_classes
from omma.datasets import Matrix, read_matrix
from omma.datasets.matrices import TABLES as SEPARATORS, file_ending, split_address
from omma.metrics import Metric


@dataclass(frozen=True)
class Inputs:
    """What files hold: ``y`` is None where there are no labels; notes are for the user."""

    eta: Any
    y: Any
    names: tuple[str, ...] | None
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.eta.shape[0])

    @property
    def m(self) -> int:
        """Number of labels."""
        return 1 if self.eta.ndim == 1 else int(self.eta.shape[1])

    @property
    def class_ids(self) -> bool:
        """Whether labels are one class id a row."""
        return self.y is not None and self.y.ndim == 1 and self.m > 1

    @property
    def shown_names(self) -> tuple[str, ...]:
        """Names of the labels, or their numbers."""
        return self.names or tuple(str(label) for label in range(self.m))

    def sentence(self) -> str:
        """The data in a few words."""
        rows = f"{self.n:,} row{'s' * (self.n != 1)}"
        kind = "sparse probabilities" if sparse.issparse(self.eta) else "probabilities"
        if self.m == 1:
            return f"{rows}, one yes or no each; {self._positive()}"
        what = "classes, one a row" if self.class_ids else "labels"
        return f"{rows}, {self.m:,} {what}; {kind}, {self._positive()}"

    def _positive(self) -> str:
        if self.y is None:
            return "no labels."
        if self.class_ids:
            found = np.bincount(self.y.astype(np.int64), minlength=self.m)
            return f"the rarest class is in {int(found.min()):,} rows."
        per_row = self.y.sum() / max(1, self.n)
        if self.m == 1:
            return f"{100 * per_row:.3g} % are positive."
        rarest = int(np.asarray(self.y.sum(axis=0)).min())
        return f"{per_row:.3g} labels a row, the rarest in {rarest:,} rows."


def read_inputs(
    eta: str, labels: str | None, *, id_column: str | None = None, column: str | None = None
) -> Inputs:
    """Read both files; labels are brought into the order of the probabilities' columns."""
    probabilities = _read(eta, id_column)
    if column is not None:
        probabilities = _one_column(eta, probabilities, column)
    if not probabilities.values.shape[0] or not probabilities.values.size:
        raise ValueError(f"{eta} must have at least one row and label, got none")
    check_rows(eta, read_probabilities(eta, probabilities.values))
    if labels is None:
        return Inputs(probabilities.values, None, probabilities.names)
    truth = read_classes(labels, probabilities.names, id_column) or _read(labels, id_column)
    _check_ids(eta, labels, probabilities.ids, truth.ids)
    y, notes = _fitted(eta, labels, probabilities, truth)
    return Inputs(probabilities.values, y, probabilities.names, notes)


def _read(path: str, id_column: str | None) -> Matrix:
    """A file; the column that names rows is looked for where there may be one."""
    has_columns = file_ending(split_address(path)[0])[0] in (*SEPARATORS, ".parquet")
    return read_matrix(path, id_column=id_column if has_columns else None)


def _one_column(path: str, matrix: Matrix, column: str) -> Matrix:
    """One column by its name or its number: the probability of a yes."""
    names = matrix.names or ()
    values = matrix.values
    m = 1 if values.ndim == 1 else values.shape[1]
    if column in names:
        place = names.index(column)
    elif column.isdecimal() and int(column) < m:
        place = int(column)
    else:
        hint = nearest(column, names) or f"; it has {m}"
        raise ValueError(f"{path} has no column {column!r}{hint}")
    if values.ndim == 1:
        return matrix
    taken = values[:, [place]]
    dense = taken.toarray() if sparse.issparse(taken) else np.ascontiguousarray(taken)
    return Matrix(dense, names[place : place + 1] or None, matrix.ids)


def _check_ids(eta: str, labels: str, first: Any, second: Any) -> None:
    """Rows with names must be the same rows, in the same order."""
    if first is None or second is None or first == second:
        return
    for row, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            raise ValueError(
                f"{eta} and {labels} must have the same rows in one order, got {one!r} and "
                f"{other!r} in row {row}"
            )


def _fitted(
    eta: str, labels: str, probabilities: Matrix, truth: Matrix
) -> tuple[Any, tuple[str, ...]]:
    """Labels in a shape that goes with the probabilities."""
    n = probabilities.values.shape[0]
    m = 1 if probabilities.values.ndim == 1 else probabilities.values.shape[1]
    y = truth.values
    notes: tuple[str, ...] = ()
    if y.shape[0] != n:
        raise ValueError(
            f"{labels} must have as many rows as {eta}, which has {n:,}, got {y.shape[0]:,}"
        )
    one_column = y.ndim == 1 or y.shape[1] == 1
    if one_column and m > 1:
        ids = np.ravel(y.toarray() if sparse.issparse(y) else y)
        return _class_ids(labels, ids, m), ()
    if not one_column and y.shape[1] != m:
        raise ValueError(
            f"{labels} must have {m} columns as {eta}, or one with class ids, got {y.shape[1]}"
        )
    if not one_column and truth.names and probabilities.names:
        y, notes = _by_name(eta, labels, probabilities.names, truth)
    return _indicators(labels, y), notes


def _class_ids(path: str, ids: Any, m: int) -> Any:
    wrong = np.flatnonzero(~((ids >= 0) & (ids < m) & (ids == np.floor(ids))))
    if len(wrong):
        raise ValueError(
            f"{path} must hold class ids from 0 to {m - 1}, got {ids[wrong[0]]:g} in row {wrong[0]}"
        )
    return ids.astype(np.int64)


def _indicators(path: str, y: Any) -> Any:
    stored = y.data if sparse.issparse(y) else np.asarray(y)
    wrong = stored[(stored != 0) & (stored != 1)]
    if len(wrong):
        raise ValueError(f"{path} must hold only 0 and 1, got {wrong[0]:g}")
    return y.astype(np.int8)


def _by_name(
    eta: str, labels: str, names: tuple[str, ...], truth: Matrix
) -> tuple[Any, tuple[str, ...]]:
    """Columns of labels in the order of the probabilities', where both files name the same."""
    own = truth.names or ()
    if own == names:
        return truth.values, ()
    if set(own) == set(names):
        places = [own.index(name) for name in names]
        return truth.values[:, places], (f"Columns of {labels} were put in the order of {eta}.",)
    missing = [name for name in names if name not in own]
    if len(missing) < len(names):
        raise ValueError(f"{labels} must have the columns of {eta}, got none named {missing[0]!r}")
    return truth.values, (
        f"{eta} and {labels} name their columns differently: taken in the order they have.",
    )


def check_task(inputs: Inputs, metrics: list[tuple[Metric, int | None]]) -> None:
    """Refuse metrics and budgets that do not go with the data, and say what to pass."""
    for metric, k in metrics:
        if metric.binary and inputs.m == 2:
            raise ValueError(
                f"{metric.name} takes the probability of one label, and there are 2 columns: pass "
                "--column 1 for the second, or a macro_ or multiclass_ metric"
            )
        metric.check_labels(inputs.m)
        if k is not None and k > inputs.m:
            raise ValueError(f"k must be at most the number of labels, {inputs.m}, got {k}")
        if inputs.class_ids and k is None and not metric.multiclass:
            raise ValueError(
                f"the labels are class ids, and {metric.name} has no budget: pass -k 1 to predict "
                "one class a row, or labels as columns of 0 and 1"
            )
