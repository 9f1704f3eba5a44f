"""Single rows and small batches, checked, in the form that kernels take.

Kernels do not check shapes and label ids, so every row is checked here before it is decided or
counted. A dense row is an array over all labels. A sparse row is a pair of label ids and
probabilities; its true labels and predictions are label ids, too.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import shown
from omma.rows.arrays import (
    DenseProbabilities,
    Probabilities,
    SparseProbabilities,
    csr,
    meaning,
    plain_array,
    read_probabilities,
    unflagged,
)
from omma.rows.labels import TrueLabels, read_labels

SparseRow = tuple[NDArray[np.int32], NDArray[np.float64]]
Row = NDArray[np.float64] | SparseRow


class PartlyKnown(NamedTuple):
    """True labels of a partly labelled row, and the ids of the unknown ones."""

    true: NDArray[Any]
    unknown: NDArray[np.int32]


# Probabilities


def single_row(owner: str, eta: Any, m: int) -> Row | None:
    """Read eta as one row; None if it is a matrix. Kernels check the values of dense rows."""
    if sparse.issparse(eta):
        return probability_rows(owner, eta, True, m)[0] if eta.shape == (1, m) else None
    array = plain_array(f"eta of {owner}", eta, hint="")
    if array.ndim == 2 or (m == 1 and array.size != 1):
        return None
    row = _matrix(owner, "eta", array, m)[0]
    if row.dtype.kind not in "fiub":
        raise TypeError(f"eta of {owner} must hold real numbers, got the type {row.dtype}")
    return unflagged(np.ascontiguousarray(row, dtype=np.float64))


def one_row(owner: str, eta: Any, m: int) -> Row:
    """Read eta as one row, which may be a pair of ids and values; a matrix is refused."""
    # With two labels, a pair of numbers is a dense row.
    if isinstance(eta, tuple) and len(eta) == 2 and m != 2:
        ids, values = (np.atleast_1d(plain_array(f"eta of {owner}", part, hint="")) for part in eta)
        if ids.ndim != 1 or ids.shape != values.shape or ids.dtype.kind not in "iu":
            raise ValueError(
                f"a sparse row of {owner} must be label ids and as many probabilities, got shapes "
                f"{ids.shape} and {values.shape}"
            )
        eta = sparse.csr_array((values, ids, np.array([0, len(ids)])), shape=(1, m))
    row = single_row(owner, eta, m)
    if row is None:
        raise ValueError(f"eta of {owner} must be one row of {m} labels, got {np.shape(eta)}")
    return row


def probabilities_of_row(row: Row, m: int) -> Probabilities:
    """A row as a sequence of one row, for code that reads sequences."""
    if isinstance(row, tuple):
        ids, values = row
        return SparseProbabilities(csr((values, ids, np.array([0, len(ids)])), (1, m)))
    return DenseProbabilities(row[np.newaxis])


def probability_rows(owner: str, eta: Any, is_sparse: bool, m: int) -> list[Row]:
    """Read and check probabilities of one row or several; ``is_sparse`` says their layout."""
    eta = read_probabilities(owner, _matrix(owner, "eta", eta, m))
    if eta.wrong_row is not None:
        raise ValueError(f"eta of {owner} must hold {eta.explain(eta.wrong_row)}")
    if eta.is_sparse != is_sparse:
        raise ValueError(f"eta and prediction of {owner} must both be sparse, or both not")
    if not is_sparse:
        return list(np.ascontiguousarray(eta.array, dtype=np.float64))
    ids, values, starts, ends = eta.block(np.arange(eta.n))
    # Copies, as learners keep rows while users may overwrite their arrays.
    return [
        (ids[start:end].copy(), values[start:end].astype(np.float64))
        for start, end in zip(starts, ends, strict=True)
    ]


def _matrix(owner: str, parameter: str, values: Any, m: int) -> Any:
    """Read one row or several as a matrix of m columns."""
    if sparse.issparse(values):
        if values.shape[-1] != m:
            raise ValueError(f"{parameter} of {owner} must have {m} labels, got {values.shape[-1]}")
        return values
    array = plain_array(f"{parameter} of {owner}", values, hint="")
    # A vector is one row of m labels, but for one label it is several rows.
    matrix = array.reshape(-1, 1) if m == 1 and array.ndim < 2 else np.atleast_2d(array)
    is_text = parameter != "eta" and matrix.dtype.kind not in "fiubO"
    if matrix.ndim != 2 or matrix.shape[1] != m or is_text:
        raise ValueError(
            f"{parameter} of {owner} must have the shape ({m},) or (rows, {m}), got {array.shape} "
            f"of type {array.dtype}"
        )
    return matrix


# Labels and predictions


def prediction_rows(owner: str, prediction: Any, is_sparse: bool, m: int) -> list[NDArray[Any]]:
    """Read predictions of one row or several: indicators, or the label ids of sparse rows."""
    matrix = _matrix(owner, "prediction", prediction, m)
    labels = read_labels(owner, matrix, matrix.shape[0], m, "prediction")
    # NaN is an unknown label; a prediction is always known.
    if labels.known is not None or labels.missing is not None:
        raise ValueError(f"prediction of {owner} must hold only 0 and 1, got nan")
    return _rows(labels, np.int8, is_sparse)


def label_rows(
    owner: str, y: Any, is_sparse: bool, m: int, *, are_ids: bool = False
) -> list[NDArray[Any] | PartlyKnown | None]:
    """Read true labels of one row or several; if they ``are_ids``, one class for each row.

    NaN is an unknown label; a row of only unknown labels becomes None.
    """
    array = plain_array(f"y of {owner}", y, hint="") if are_ids else _matrix(owner, "y", y, m)
    values = np.atleast_1d(array) if are_ids else array  # one class may be a bare number
    return _rows(read_labels(owner, values, values.shape[0], m), np.float64, is_sparse)


def are_ids(y: Any, count: int, m: int) -> bool:
    """Whether true labels of ``count`` rows are one class id each, and not indicators."""
    if y is None or sparse.issparse(y) or m == 1:
        return False
    shape = np.shape(y)
    # For a single row, a vector of length m has its indicators.
    return not shape or (len(shape) == 1 and (count, *shape) != (1, m))


def labels_of_row(owner: str, parameter: str, values: Any, is_sparse: bool, m: int) -> Any:
    """Read the prediction or the true labels of one row; a sparse row may list label ids."""
    # A list of another length than m can only have ids.
    if is_sparse and not sparse.issparse(values) and np.shape(values) != (m,):
        ids = np.atleast_1d(plain_array(f"{parameter} of {owner}", values, hint=""))
        is_list = ids.ndim == 1 and (ids.dtype.kind in "iu" or not len(ids))
        if not is_list or (len(ids) and not (ids.min() >= 0 and ids.max() < m)):
            raise ValueError(
                f"{parameter} of {owner} must be label ids from 0 to {m - 1}, got {shown(values)}"
            )
        return np.unique(ids).astype(np.int32)
    read: Any = prediction_rows if parameter == "prediction" else label_rows
    rows = read(owner, values, is_sparse, m)
    if len(rows) != 1:
        raise ValueError(f"{parameter} of {owner} must be one row, got {len(rows)}")
    return rows[0]


def _rows(labels: TrueLabels, dtype: Any, is_sparse: bool) -> list[Any]:
    """Split labels into rows: indicators, or ids of a sparse row; None for an unknown row."""
    if is_sparse:
        starts, ends, ids = labels.block(np.arange(labels.values.shape[0]))
        rows: list[Any] = [ids[start:end].copy() for start, end in zip(starts, ends, strict=True)]
    else:
        indicators = labels.values.toarray() if labels.is_sparse else labels.values
        rows = list(indicators.astype(dtype))
    if labels.missing is not None:
        unknown = np.split(labels.missing.indices, labels.missing.indptr[1:-1])
        pairs = zip(rows, unknown, strict=True)
        rows = [PartlyKnown(row, ids) if len(ids) else row for row, ids in pairs]
    if labels.known is not None:
        rows = [row if known else None for row, known in zip(rows, labels.known, strict=True)]
    return rows


def refuse_row(owner: str, values: NDArray[np.float64]) -> None:
    """Raise an error if a value is no probability."""
    wrong = values[~((values >= 0) & (values <= 1))]
    if len(wrong):
        raise ValueError(
            f"eta of {owner} must hold probabilities from 0 to 1, got {wrong[0]:g}{meaning(values)}"
        )


def refuse_indicators(owner: str, parameter: str, values: NDArray[Any]) -> None:
    """Raise an error if a value is neither zero nor one."""
    wrong = values[(values != 0) & (values != 1)]
    if len(wrong):
        raise ValueError(f"{parameter} of {owner} must hold only 0 and 1, got {wrong[0]:g}")
