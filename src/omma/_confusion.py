"""Rows of labels set against rows of predictions, and added up."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from omma._validate import check_positive_int, shown
from omma.rows.arrays import read_weights
from omma.rows.frames import opened
from omma.rows.index import check_same_rows
from omma.rows.labels import split_missing
from omma.rows.sets import plain_array
from omma.state import in_proportion

Vector = NDArray[np.float64]


def confusion_of(
    y_true: Any,
    y_pred: Any,
    sample_weight: ArrayLike | None,
    n_labels: int | None,
    *,
    matrix: bool,
    whole: str,
) -> tuple[Any, ...]:
    """What ``Counts`` is made of: tp, predicted, positive, rows, and pairs of classes or None."""
    owner = "Counts.from_labels"
    given = {"y_true": y_true, "y_pred": y_pred, "sample_weight": sample_weight}
    check_same_rows(owner, given)
    true, predicted, missing = _indicators(y_true, y_pred, n_labels)
    n = true.shape[0]
    weights = read_weights(owner, sample_weight, n, "sample_weight")
    weight = weights if len(weights) else np.ones(n)
    if missing is not None:
        whole = whole or ("to count pairs of classes" if matrix else "")
        weight = np.where(_any_known(missing, whole), weight, 0.0)
        predicted = predicted - predicted.multiply(missing)
    weighted = sparse.diags_array(weight) @ predicted
    cells = (_column_sums(true.multiply(weighted)), _column_sums(weighted), weight @ true)
    rows = float(np.cumsum(weight)[-1])  # in the order of the sums above: n − positive may be 0
    pairs = (true.T @ weighted).toarray() if matrix else None
    if missing is not None:
        cells = tuple(in_proportion(np.stack(cells), rows, weight @ missing))
    return *cells, rows, pairs


def _any_known(missing: Any, whole: str) -> NDArray[np.bool_]:
    """Which rows have a label that is known."""
    lacking, m = np.diff(missing.indptr), missing.shape[1]
    halves = np.flatnonzero((lacking > 0) & (lacking < m))
    if whole and len(halves):
        raise ValueError(
            f"y_true must have all labels of a row or none {whole}, got a part of them in row "
            f"{halves[0]}"
        )
    if (lacking == m).all():
        raise ValueError("y_true must have a label that is known, got nan alone")
    found: NDArray[np.bool_] = lacking < m
    return found


def _column_sums(matrix: Any) -> Vector:
    return np.asarray(matrix.sum(axis=0), dtype=np.float64).ravel()


def _indicators(y_true: Any, y_pred: Any, n_labels: int | None) -> tuple[Any, Any, Any]:
    """Both as CSR float64 matrices of one shape, and where the first is unknown, if anywhere."""
    check_positive_int("Counts.from_labels", "n_labels", n_labels, optional=True)
    given = opened("Counts.from_labels", "y_true", y_true)
    other = opened("Counts.from_labels", "y_pred", y_pred, given.names)
    true, predicted = _as_matrix("y_true", given.values), _as_matrix("y_pred", other.values)
    m = n_labels
    if m is None:
        widths = [given.shape[1] for given in (true, predicted) if given.ndim == 2]
        tops = [int(given.max(initial=0)) + 1 for given in (true, predicted) if given.ndim == 1]
        m = max(widths or tops)
    true = _one_layout("y_true", true, m)
    predicted = _one_layout("y_pred", predicted, m)
    if true.shape != predicted.shape:
        raise ValueError(
            "y_true and y_pred must have one shape, got "
            f"{true.shape} and {predicted.shape} (rows, labels)"
        )
    if true.shape[0] == 0:
        raise ValueError("y_true and y_pred must have at least one row, got none")
    true, missing = split_missing(true)
    if true.nnz and not (true.data.min() >= 0 and true.data.max() <= 1):
        outside = true.data[~((true.data >= 0) & (true.data <= 1))]
        raise ValueError(f"y_true must hold numbers from 0 to 1, got {shown(float(outside[0]))}")
    if predicted.nnz and not np.isin(predicted.data, (0.0, 1.0)).all():
        wrong = predicted.data[~np.isin(predicted.data, (0.0, 1.0))][0]
        raise ValueError(f"y_pred must hold only 0 and 1, got {wrong:g}")
    return true, predicted, missing


def _as_matrix(name: str, y: Any) -> Any:
    if sparse.issparse(y):
        return y
    array = plain_array(name, y)
    if array.dtype.kind in "USO" and any(isinstance(one, str) for one in array.flat):
        raise ValueError(
            f"{name} must hold numbers, got the classes {shown(array.ravel()[:3].tolist())}: pass "
            "class ids from 0 on, such as numpy.unique(classes, return_inverse=True)[1]"
        )
    if array.dtype.kind not in "fiub" or array.ndim not in (1, 2):
        raise ValueError(
            f"{name} must be numbers of shape (rows, labels), or class ids of shape (rows,), got "
            f"shape {array.shape} of type {array.dtype}"
        )
    return array


def _one_layout(name: str, y: Any, m: int) -> Any:
    if y.ndim == 2:
        matrix = sparse.csr_array(y, dtype=np.float64)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return matrix
    if m == 1:
        return sparse.csr_array(y[:, np.newaxis], dtype=np.float64)
    if len(y) and not (y.min() >= 0 and y.max() < m and (y == np.floor(y)).all()):
        wrong = y[~((y >= 0) & (y < m) & (y == np.floor(y)))][0]
        raise ValueError(
            f"class ids in {name} must be whole numbers from 0 to {m - 1}, got {wrong}"
        )
    places = np.arange(len(y) + 1)
    return sparse.csr_array((np.ones(len(y)), y.astype(np.int64), places), shape=(len(y), m))
