"""What estimators share: features and labels laid out for fitting, and scikit-learn."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import check_positive_int, require, shown
from omma.rows.arrays import sound_csr
from omma.rows.labels import read_sparse_labels

BLOCK = 1 << 22  # numbers made at a time when probabilities are computed
Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
Undo = Callable[[Any, Floats], tuple[Any, Floats]]


def require_sklearn(owner: str) -> None:
    """Say how to get scikit-learn where it is missing."""
    require("sklearn", f"{owner} needs", '"omma[sklearn]"', "scikit-learn")


@contextmanager
def one_thread(of: str | None = "blas") -> Iterator[None]:
    """Leave the processors to the labels, so that the result does not depend on their number.

    None is all that scikit-learn compiles.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api=of):
        yield


def read_features(owner: str, X: Any, d: int | None = None) -> Any:
    """A CSR matrix, or a C-ordered array of float32 or float64, all of it finite."""
    found = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    if found.dtype.kind not in "fiub":
        raise TypeError(f"X of {owner} must hold real numbers, got the type {found.dtype}")
    if found.ndim != 2:
        raise ValueError(f"X of {owner} must have the shape (rows, features), got {found.shape}")
    if d is not None and found.shape[1] != d:
        raise ValueError(f"X of {owner} must have {d} features as in fit, got {found.shape[1]}")
    if found.dtype.type not in (np.float32, np.float64):
        found = found.astype(np.float64)
    if sparse.issparse(found):
        found = _tidy(found)
        values = found.data
    else:
        found = values = np.ascontiguousarray(found)
    if not np.isfinite(values).all():
        raise ValueError(f"X of {owner} must hold finite numbers, got NaN or infinity")
    return found


def _tidy(matrix: Any) -> Any:
    """Sorted entries without duplicates, and int32 indices as LIBLINEAR and kernels need them."""
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.indices.dtype != np.int32 and matrix.nnz < 2**31:
        parts = (matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32))
        matrix = type(matrix)(parts, shape=matrix.shape)
    return matrix


def read_sample(
    owner: str, X: Any, y: Any, n_labels: int | None, read: Callable[..., Any]
) -> tuple[Any, Any]:
    """Features, and labels as one of the functions below reads them, of as many rows."""
    features, found = read_features(owner, X), read(owner, y, n_labels)
    check_rows_fit(owner, features, (found[0] if isinstance(found, tuple) else found).shape[0])
    return features, found


def check_rows_fit(owner: str, X: Any, rows: int) -> None:
    """As many labels as rows, and at least one."""
    if X.shape[0] != rows:
        raise ValueError(f"y of {owner} must have {X.shape[0]} rows as X has, got {rows}")
    if not rows:
        raise ValueError(f"X of {owner} must have at least one row, got none")


def is_indicator(y: Any) -> bool:
    """Whether labels are given as a matrix of zeros and ones, not as one class id a row."""
    return sparse.issparse(y) or np.ndim(y) == 2


def read_classes(owner: str, y: Any, n_labels: int | None) -> tuple[Ids, int]:
    """Class ids of each row, and how many classes there are."""
    check_positive_int(owner, "n_labels", n_labels, optional=True)
    ids = np.asarray(y)
    if ids.ndim != 1 or ids.dtype.kind not in "fiub":
        raise ValueError(f"y of {owner} must hold a class id for each row, got {shown(y)}")
    wrong = np.flatnonzero(~((ids >= 0) & (ids == np.floor(ids))))
    if not len(ids):
        raise ValueError(f"y of {owner} must have at least one row, got none")
    if len(wrong):
        raise ValueError(
            f"class ids in y of {owner} must be whole numbers of at least 0, "
            f"got {ids[wrong[0]]} in row {wrong[0]}"
        )
    ids = ids.astype(np.int64)
    m = int(ids.max()) + 1 if n_labels is None else n_labels
    if ids.max() >= m:
        raise ValueError(f"class ids in y of {owner} must be below n_labels={m}, got {ids.max()}")
    return ids, m


def read_indicators(owner: str, y: Any, n_labels: int | None) -> Any:
    """Labels as a CSR matrix of ones.

    Class ids become one column a class; ids of 0 and 1 alone are one yes or no, hence one column,
    unless ``n_labels`` says otherwise.
    """
    if not is_indicator(y):
        ids, m = read_classes(owner, y, n_labels if n_labels != 1 else 2)
        if n_labels == 1 or (n_labels is None and m <= 2):
            return sparse.csr_array(ids[:, np.newaxis].astype(np.int8))
        ones = np.ones(len(ids), dtype=np.int8)
        return sparse.csr_array((ones, ids, np.arange(len(ids) + 1)), shape=(len(ids), m))
    given = y if sparse.issparse(y) else np.asarray(y)
    if given.dtype.kind not in "fiub":
        raise TypeError(f"y of {owner} must hold numbers, got the type {given.dtype}")
    found = read_sparse_labels(owner, sound_csr(owner, "y", sparse.csr_array(given)), "y")
    if n_labels is not None and found.shape[1] != n_labels:
        raise ValueError(f"y of {owner} must have n_labels={n_labels} columns, got {found.shape}")
    return found


def read_either(owner: str, y: Any, n_labels: int | None) -> tuple[Any, int, str]:
    """Labels as indicators or class ids, how many there are, and the link that fits them."""
    if is_indicator(y):
        labels = read_indicators(owner, y, n_labels)
        return labels, labels.shape[1], "logistic"
    return *read_classes(owner, y, n_labels), "softmax"


def row_blocks(n: int, width: int) -> Iterator[slice]:
    """Slices of rows so that a block of this width stays small."""
    step = max(1, BLOCK // max(1, width))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def scaled(owner: str, standardise: Any, X: Any) -> tuple[Any, Undo]:
    """Features brought to mean zero and deviation one where that is wanted, in their own type.

    A feature that never varies is only shifted. What comes with them brings weights (d, m), sparse
    or not, and intercepts back to features as they came.
    """
    if not wants_scaling(owner, standardise, X):
        return X, lambda weights, intercept: (weights, intercept)
    center = X.mean(axis=0, dtype=np.float64)
    total = np.zeros(X.shape[1])
    for rows in row_blocks(len(X), X.shape[1]):
        total += ((X[rows] - center) ** 2).sum(axis=0)
    scale = np.sqrt(total / len(X))
    # Rounding leaves a trace of deviation where there is none.
    constant = scale <= 1e-7 * np.maximum(1e-30, np.abs(center))
    scale[constant] = 1.0
    found = np.empty_like(X)
    for rows in row_blocks(len(X), X.shape[1]):
        found[rows] = (X[rows] - center) / scale

    def undo(weights: Any, intercept: Floats) -> tuple[Any, Floats]:
        if sparse.issparse(weights):
            weights = (sparse.diags_array(1 / scale) @ weights).tocsr()
        else:
            weights = weights / scale[:, np.newaxis]
        return weights, intercept - center @ weights

    return found, undo


def wants_scaling(owner: str, standardise: Any, X: Any) -> bool:
    """What ``standardise`` means for these features."""
    if standardise == "auto":
        return not sparse.issparse(X)
    if standardise is True and sparse.issparse(X):
        raise ValueError(
            f"standardise of {owner} must be False or 'auto' for sparse X, whose zeros it would "
            "fill, got True"
        )
    return bool(standardise)


def check_standardise(owner: str, standardise: Any) -> None:
    """True, False or 'auto'."""
    if not isinstance(standardise, bool) and standardise != "auto":
        raise ValueError(
            f"standardise of {owner} must be True, False or 'auto', got {shown(standardise)}"
        )
