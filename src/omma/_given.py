"""What callers of a learner give, one row or several, in the form that the kernels take.

Everything is checked before anything is counted. ``thin`` rows are sparse: ids of labels in place
of indicators.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._rows import unflagged
from omma._validate import shown
from omma.policies.base import SparseRow, refuse_indicators, refuse_row, sparse_row

Row = NDArray[np.float64] | SparseRow


def single_row(eta: Any, m: int) -> Row | None:
    """Eta as one row, or None where it is a matrix."""
    if type(eta) is np.ndarray:
        array = eta
    elif sparse.issparse(eta):
        if eta.shape != (1, m):
            return None
        check_ids("eta", eta.tocsr(), m)
        return sparse_row(eta)
    else:
        array = np.asarray(eta)
    if array.ndim == 2 or (m == 1 and array.size != 1):
        return None
    if array.ndim == 0 and m == 1:
        array = array[np.newaxis]
    if array.shape != (m,):
        raise ValueError(
            f"eta of predict must have the shape ({m},) or (rows, {m}), got {array.shape}"
        )
    if array.dtype.kind not in "fiub":
        raise TypeError(f"eta of predict must hold real numbers, got the type {array.dtype}")
    return unflagged(np.ascontiguousarray(array, dtype=np.float64))


def indicator_rows(parameter: str, given: Any, kind: Any, thin: bool, m: int) -> list[NDArray[Any]]:
    """Indicators of one row or several: arrays over labels, or ids of sparse rows."""
    if not sparse.issparse(given):
        array = np.asarray(given)
        given = array.reshape(-1, 1) if m == 1 else np.atleast_2d(array)
        if given.ndim != 2 or given.shape[1] != m or given.dtype.kind not in "fiub":
            raise ValueError(
                f"{parameter} of update must have the shape ({m},) or (rows, {m}), got "
                f"{array.shape} of type {array.dtype}"
            )
        refuse_indicators(parameter, given)
        if not thin:
            return list(np.ascontiguousarray(given, dtype=kind))
    matrix = sparse.csr_array(given, copy=True)
    check_ids(parameter, matrix, m)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    refuse_indicators(parameter, matrix.data)
    if not thin:
        return list(matrix.toarray().astype(kind))
    ids = np.split(matrix.indices.astype(np.int32), matrix.indptr[1:-1])
    return [np.ascontiguousarray(one) for one in ids]


def probability_rows(eta: Any, thin: bool, m: int) -> list[Row]:
    """Probabilities of one row or several, checked; ``thin`` says whether they must be sparse."""
    matrix: Any = eta if sparse.issparse(eta) else np.asarray(eta)
    one = single_row(matrix, m)
    if one is not None:
        rows = [one]
    elif sparse.issparse(matrix):
        csr = matrix.tocsr()
        rows = [sparse_row(csr[[i]]) for i in range(csr.shape[0])]
    else:
        table = np.asarray(matrix, dtype=np.float64).reshape(-1, m)
        rows = list(np.ascontiguousarray(table))
    for row in rows:
        values = row[1] if isinstance(row, tuple) else row
        if not ((values >= 0) & (values <= 1)).all():
            refuse_row(values)
        if isinstance(row, tuple) != thin:
            raise ValueError("eta and prediction of update must both be sparse, or both not")
    return rows


def are_ids(y: Any, count: int, m: int) -> bool:
    """Whether true labels of some rows are a class each, and not indicators."""
    if y is None or sparse.issparse(y) or m == 1:
        return False
    shape = np.shape(y)
    return not shape or (len(shape) == 1 and (count, *shape) != (1, m))


def one_hot(ids: NDArray[Any], m: int, budget: int | None) -> Any:
    """Class ids as indicators."""
    if budget is None:
        raise ValueError(
            "y of update has class ids, and the policy has no budget: pass k=1 to predict "
            "one class a row, or y as indicators"
        )
    if ids.dtype.kind not in "iu" or not ((ids >= 0) & (ids < m)).all():
        raise ValueError(
            f"class ids in y of update must be whole numbers from 0 to {m - 1}, got "
            f"{shown(ids.tolist())}"
        )
    places = np.arange(len(ids) + 1)
    return sparse.csr_array((np.ones(len(ids)), ids, places), shape=(len(ids), m))


def check_ids(parameter: str, matrix: Any, m: int) -> None:
    """Refuse stored label ids that no label has: kernels follow ids without looking."""
    if matrix.shape[1] != m:
        raise ValueError(f"{parameter} must have {m} labels, got {matrix.shape[1]}")
    if matrix.nnz and not (matrix.indices.min() >= 0 and matrix.indices.max() < m):
        raise ValueError(
            f"label ids stored in {parameter} must be from 0 to {m - 1}, got "
            f"{matrix.indices.min()} to {matrix.indices.max()}"
        )


def as_table(rows: Any) -> Any:
    """One row as a table of one."""
    return range(rows.shape[0]) if sparse.issparse(rows) else np.atleast_2d(rows)


def as_sparse(rows: list[NDArray[Any]], m: int, kind: Any) -> Any:
    """Sparse indicators from the label ids of each row."""
    ids = np.concatenate(rows)
    indptr = np.concatenate(([0], np.cumsum([len(row) for row in rows])))
    return kind((np.ones(len(ids), dtype=np.int8), ids, indptr), shape=(len(rows), m))
