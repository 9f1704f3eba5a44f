"""Single rows and small batches, checked and laid out for the kernels.

This is the door for everything that is decided or counted a row at a time. Kernels follow shapes
and label ids without looking: nothing passes that does not fit. A sparse row is a pair (label ids,
probabilities), with the ids of its true and of its predicted labels.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import shown
from omma.rows.arrays import check_kind, from_objects, meaning, sound_csr, unflagged

SparseRow = tuple[NDArray[np.int32], NDArray[np.float64]]
Row = NDArray[np.float64] | SparseRow


class Partly(NamedTuple):
    """True labels of a row that is labelled in part: as those of others, and which are unknown."""

    true: NDArray[Any]
    unknown: NDArray[np.int32]


def single_row(owner: str, eta: Any, m: int) -> Row | None:
    """Eta as one row, or None where it is a matrix."""
    if type(eta) is np.ndarray:
        array = eta
    elif sparse.issparse(eta):
        return sparse_row(owner, eta, m) if eta.shape == (1, m) else None
    else:
        array = _array(owner, "eta", eta)
    if array.ndim == 2 or (m == 1 and array.size != 1):
        return None
    if array.ndim == 0 and m == 1:
        array = array[np.newaxis]
    if array.shape != (m,):
        raise ValueError(
            f"eta of {owner} must have the shape ({m},) or (rows, {m}), got {array.shape}"
        )
    check_kind(owner, array, array.dtype)
    return unflagged(np.ascontiguousarray(array, dtype=np.float64))


def one_row(owner: str, eta: Any, m: int) -> Row:
    """The same, a pair of ids and values included; a matrix of several rows is refused."""
    if isinstance(eta, tuple) and len(eta) == 2 and m != 2:
        eta = _from_pair(owner, eta, m)
    row = single_row(owner, eta, m)
    if row is None:
        raise ValueError(f"eta of {owner} must be one row of {m} labels, got {np.shape(eta)}")
    return row


def _from_pair(owner: str, pair: Any, m: int) -> Any:
    ids, values = (np.atleast_1d(_array(owner, "eta", part)) for part in pair)
    if ids.ndim != 1 or ids.shape != values.shape or ids.dtype.kind not in "iu":
        raise ValueError(
            f"a sparse row of {owner} must be label ids and as many probabilities, got shapes "
            f"{ids.shape} and {values.shape}"
        )
    return sparse.csr_array((values, ids, np.array([0, len(ids)])), shape=(1, m))


def _array(owner: str, parameter: str, given: Any) -> NDArray[Any]:
    try:
        return np.asarray(given)
    except ValueError as error:  # rows of several lengths
        raise ValueError(
            f"{parameter} of {owner} must be rows of one length, got {shown(given)}"
        ) from error


def sparse_row(owner: str, matrix: Any, m: int) -> SparseRow:
    """The ids and values of a sparse matrix of one row."""
    row = check_csr(owner, "eta", matrix, m)
    check_kind(owner, row, row.dtype)
    if not row.has_canonical_format:
        row = row.copy()
        row.sum_duplicates()
    start, end = row.indptr
    return row.indices[start:end].astype(np.int32), row.data[start:end].astype(np.float64)


def indicator_rows(
    owner: str, parameter: str, given: Any, kind: Any, thin: bool, m: int
) -> list[NDArray[Any]]:
    """Indicators of one row or several: arrays over labels, or, ``thin``, ids of sparse rows."""
    if not sparse.issparse(given):
        array = _array(owner, parameter, given)
        given = array.reshape(-1, 1) if m == 1 else np.atleast_2d(array)
        if given.ndim != 2 or given.shape[1] != m or given.dtype.kind not in "fiub":
            raise ValueError(
                f"{parameter} of {owner} must have the shape ({m},) or (rows, {m}), got "
                f"{array.shape} of type {array.dtype}"
            )
        refuse_indicators(owner, parameter, given)
        if not thin:
            return list(np.ascontiguousarray(given, dtype=kind))
    if sparse.issparse(given):
        given = check_csr(owner, parameter, given, m)
    matrix = sparse.csr_array(given, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    refuse_indicators(owner, parameter, matrix.data)
    if not thin:
        return list(matrix.toarray().astype(kind))
    ids = np.split(matrix.indices.astype(np.int32), matrix.indptr[1:-1])
    return [np.ascontiguousarray(one) for one in ids]


def label_rows(owner: str, given: Any, thin: bool, m: int) -> list[NDArray[Any] | Partly | None]:
    """True labels of one row or several: NaN is unknown; None stands for a row of nothing else."""
    cleaned, unknown = _without_nan(owner, given, m)
    rows = indicator_rows(owner, "y", cleaned, np.float64, thin, m)
    if unknown is None:
        return list(rows)
    found: list[NDArray[Any] | Partly | None] = []
    for row, missing in zip(rows, unknown, strict=True):
        some = Partly(row, missing) if len(missing) else row
        found.append(None if len(missing) == m else some)
    return found


def _without_nan(owner: str, given: Any, m: int) -> tuple[Any, list[NDArray[np.int32]] | None]:
    """Labels with zeros in place of NaN, and the ids of those of each row; None where none is."""
    if sparse.issparse(given):
        matrix = sparse.csr_array(check_csr(owner, "y", given, m), copy=True)
        matrix.sum_duplicates()
        nan = np.isnan(matrix.data) if matrix.dtype.kind == "f" else np.zeros(matrix.nnz, np.bool_)
        if not nan.any():
            return given, None
        ends = np.searchsorted(np.flatnonzero(nan), matrix.indptr[1:-1])
        matrix.data[nan] = 0.0
        return matrix, np.split(matrix.indices[nan].astype(np.int32), ends)
    array = _array(owner, "y", given)
    array = array.reshape(-1, 1) if m == 1 else array
    nan = np.isnan(array) if array.dtype.kind == "f" else np.zeros(0, np.bool_)
    if not nan.any() or array.ndim not in (1, 2) or array.shape[-1] != m:
        return given, None  # others say what is wrong with it
    ids = [np.flatnonzero(one).astype(np.int32) for one in np.atleast_2d(nan)]
    return np.where(nan, 0.0, array), ids


def labels_of_row(owner: str, parameter: str, given: Any, thin: bool, m: int) -> NDArray[Any]:
    """Indicators of one row; of a sparse row also its label ids, as they are."""
    if thin and not sparse.issparse(given) and np.shape(given) != (m,):
        ids = np.atleast_1d(_array(owner, parameter, given))
        fits = ids.ndim == 1 and (ids.dtype.kind in "iu" or not len(ids))
        if not fits or (len(ids) and not (ids.min() >= 0 and ids.max() < m)):
            raise ValueError(
                f"{parameter} of {owner} must be label ids from 0 to {m - 1}, got {shown(given)}"
            )
        return np.unique(ids).astype(np.int32)
    kind = np.int8 if parameter == "prediction" else np.float64
    rows = indicator_rows(owner, parameter, given, kind, thin, m)
    if len(rows) != 1:
        raise ValueError(f"{parameter} of {owner} must be one row, got {len(rows)}")
    return rows[0]


def probability_rows(owner: str, eta: Any, thin: bool, m: int) -> list[Row]:
    """Probabilities of one row or several, checked; ``thin`` says whether they must be sparse."""
    matrix: Any = eta if sparse.issparse(eta) else _array(owner, "eta", eta)
    one = single_row(owner, matrix, m)
    if one is not None:
        rows = [one]
    elif matrix.ndim != 2 or matrix.shape[1] != m:
        if m == 1 and matrix.ndim == 1:
            return probability_rows(owner, matrix.reshape(-1, 1), thin, m)
        raise ValueError(
            f"eta of {owner} must have the shape ({m},) or (rows, {m}), got {tuple(matrix.shape)}"
        )
    elif sparse.issparse(matrix):
        csr = check_csr(owner, "eta", matrix, m)
        rows = [sparse_row(owner, csr[[i]], m) for i in range(csr.shape[0])]
    else:
        check_kind(owner, matrix, matrix.dtype)
        rows = list(np.ascontiguousarray(matrix, dtype=np.float64))
    for row in rows:
        refuse_row(owner, row[1] if isinstance(row, tuple) else row)
        if isinstance(row, tuple) != thin:
            raise ValueError(f"eta and prediction of {owner} must both be sparse, or both not")
    return rows


def are_ids(y: Any, count: int, m: int) -> bool:
    """Whether true labels of some rows are a class each, and not indicators."""
    if y is None or sparse.issparse(y) or m == 1:
        return False
    shape = np.shape(y)
    return not shape or (len(shape) == 1 and (count, *shape) != (1, m))


def class_rows(
    owner: str, given: Any, thin: bool, m: int, budget: int | None
) -> list[NDArray[Any] | None]:
    """True labels of rows of one class each; None stands for a class that is NaN: unknown."""
    ids = from_objects(np.atleast_1d(_array(owner, "y", given)))
    known = ~np.isnan(ids) if ids.dtype.kind == "f" else np.ones(len(ids), dtype=np.bool_)
    made = one_hot(owner, ids[known], m, budget)
    rows = iter(indicator_rows(owner, "y", made, np.float64, thin, m))
    return [next(rows) if one else None for one in known]


def one_hot(owner: str, ids: NDArray[Any], m: int, budget: int | None) -> Any:
    """Class ids as indicators."""
    if budget is None:
        raise ValueError(
            f"y of {owner} has class ids, and the policy has no budget: pass k=1 to predict "
            "one class a row, or y as indicators"
        )
    whole = ids.dtype.kind in "iu" or (ids.dtype.kind == "f" and (ids == np.floor(ids)).all())
    if not whole or not ((ids >= 0) & (ids < m)).all():
        raise ValueError(
            f"class ids in y of {owner} must be whole numbers from 0 to {m - 1}, got "
            f"{shown(ids.tolist())}"
        )
    places = np.arange(len(ids) + 1)
    columns = ids.astype(np.int64)
    return sparse.csr_array((np.ones(len(ids)), columns, places), shape=(len(ids), m))


def check_csr(owner: str, parameter: str, given: Any, m: int) -> Any:
    """A sound CSR matrix of m labels."""
    matrix = sound_csr(owner, parameter, given)
    if matrix.shape[1] != m:
        raise ValueError(f"{parameter} of {owner} must have {m} labels, got {matrix.shape[1]}")
    return matrix


def refuse_row(owner: str, values: NDArray[np.float64]) -> None:
    """Say which value is no probability, if one is not."""
    fine = (values >= 0) & (values <= 1)
    if not fine.all():
        raise ValueError(
            f"eta of {owner} must hold probabilities from 0 to 1, got {values[~fine][0]:g}"
            f"{meaning(values)}"
        )


def refuse_indicators(owner: str, parameter: str, values: NDArray[Any]) -> None:
    """Say which value is neither zero nor one, if one is."""
    fine = (values == 0) | (values == 1)
    if not fine.all():
        raise ValueError(f"{parameter} of {owner} must hold only 0 and 1, got {values[~fine][0]:g}")


def alone(ids: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where a list that is the only one starts, and ends."""
    return np.zeros(1, dtype=np.int64), np.array([len(ids)], dtype=np.int64)


def as_block(row: Row) -> tuple[NDArray[Any], ...]:
    """One row as kernels take blocks of rows."""
    if isinstance(row, tuple):
        return (*row, *alone(row[0]))
    return row[np.newaxis], np.zeros(1, dtype=np.int64)


def as_table(rows: Any) -> Any:
    """One row as a table of one."""
    return range(rows.shape[0]) if sparse.issparse(rows) else np.atleast_2d(rows)
