"""Rows of ``predict`` and ``update`` in the form that kernels take, checked before any is counted.

Functions named ``quick_…`` are for the usual case, one row of arrays. They return None, without an
error, for any other row.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import check_number, shown
from omma.metrics import Metric
from omma.online.codec import Decision, are_label_ids
from omma.policies import Policy
from omma.rows.arrays import HEAVIEST, read_numbers, read_weights
from omma.rows.row import (
    PartlyKnown,
    SparseRow,
    label_rows,
    prediction_rows,
    probability_rows,
)

CSR = (sparse.csr_array, sparse.csr_matrix)
FLOAT64 = np.dtype(np.float64)


def quick_csr_row(matrix: Any, m: int) -> SparseRow | None:
    """The ids and values that a CSR matrix of one row stores; the ids may be anything."""
    if type(matrix) not in CSR or matrix.shape != (1, m):
        return None
    ids, values, indptr = matrix.indices, matrix.data, matrix.indptr
    is_whole = len(ids) == len(values) == indptr[1] and indptr[0] == 0
    if not is_whole or ids.dtype != np.int32 or not (ids.flags.carray and values.flags.carray):
        return None
    return ids, values


def quick_label_ids(y: Any, m: int) -> NDArray[Any] | None:
    """The labels of a sparse row of indicators."""
    stored = quick_csr_row(y, m)
    if stored is None:
        return None
    ids, values = stored[0].copy(), stored[1]
    return ids if are_label_ids(ids, m) and (values == 1).all() else None


def quick_indicators(y: Any, m: int) -> NDArray[np.float64] | None:
    """One row of indicators, in memory of its own: kernels write to it."""
    if type(y) is list and len(y) == m > 1:
        y = np.array(y)
    if type(y) is not np.ndarray or y.shape != (m,) or y.dtype.kind not in "fiub":
        return None
    indicators = y.astype(FLOAT64)
    # NaN marks labels that are unknown; a dot product finds one faster than isnan and any.
    is_partial = y.dtype.kind == "f" and np.isnan(indicators.dot(indicators))
    return None if is_partial else indicators


@lru_cache(maxsize=100)
def _empty_row(kind: Any, m: int) -> Any:
    return kind((1, m), dtype=np.int8)


def csr_of_ids(ids: NDArray[np.int32], m: int, kind: Any = CSR[0]) -> Any:
    """A CSR matrix of one row, with ones at the labels of these ids.

    SciPy's constructor checks the arrays, which takes longer than deciding the row. So all
    attributes but the arrays are copied from an empty matrix.

    >>> csr_of_ids(np.array([2, 0], dtype=np.int32), 3).toarray()
    array([[1, 0, 1]], dtype=int8)
    """
    row = kind.__new__(kind)
    vars(row).update(vars(_empty_row(kind, m)))
    row.data, row.indices = np.ones(len(ids), dtype=np.int8), ids.copy()
    row.indptr = np.array((0, len(ids)), dtype=np.int32)
    return row


def refuse_two_columns(eta: Any, metric: Metric | None) -> None:
    """Refuse both probabilities of a binary problem, such as ``predict_proba`` gives.

    >>> refuse_two_columns(np.array([[0.3, 0.7], [0.9, 0.1]]), None)
    Traceback (most recent call last):
    ...
    ValueError: a learner of one label takes one probability a row, got 2 columns: pass eta[:, 1]
    """
    shape = np.shape(eta)
    # A vector has a row for each number, unless it is a pair that adds up to one.
    is_pair = shape == (2,) and not sparse.issparse(eta) and abs(float(sum(eta)) - 1.0) < 1e-6
    if shape[1:] == (2,) or is_pair:
        if metric is not None:
            metric.check_labels(2)
        two_rows = ", or for two rows eta of shape (2, 1)" if is_pair else ""
        raise ValueError(
            "a learner of one label takes one probability a row, got 2 columns: pass "
            f"eta[{'' if is_pair else ':, '}1]{two_rows}"
        )


def indicators_of_names(prediction: Any, names: NDArray[Any]) -> NDArray[np.int8]:
    """Names of classes, as ``predict`` returns them, as indicators."""
    classes = np.asarray(prediction)
    indicators = (classes[..., np.newaxis] == names).astype(np.int8)
    if not indicators.any(axis=-1).all():
        wrong = str(classes[~indicators.any(axis=-1)].ravel()[0])
        raise ValueError(
            f"prediction of update must be among {shown(names.tolist())}, got {wrong!r}"
        )
    return np.asarray(indicators)


def decisions_of(
    owner: str, prediction: Any, eta: Any, m: int, moved: bool = False
) -> list[Decision]:
    """A decision for each row of a prediction, with its probabilities where they are known."""
    is_sparse = sparse.issparse(prediction)
    rows = prediction_rows(owner, prediction, is_sparse, m)
    etas: list[Any] = [None] * len(rows)
    if eta is not None:
        etas = probability_rows(owner, eta, is_sparse, m)
        check_as_many(owner, "eta", len(etas), "predictions", len(rows))
    return [Decision(*row, moved) for row in zip(rows, etas, strict=True)]


def check_as_many(owner: str, parameter: str, rows: int, others: str, count: int) -> None:
    """Refuse a number of rows that differs from that of ids or predictions."""
    if rows != count:
        raise ValueError(
            f"{parameter} of {owner} must have as many rows as there are {others}, {count}, got "
            f"{rows}"
        )


def labels_of(
    y: Any,
    count: int,
    is_sparse: bool,
    m: int,
    policy: Policy,
    metric: Metric | None,
    has_ids: bool,
    can_miss: bool,
) -> list[Any]:
    """True labels of each row, ids where it ``is_sparse``; None where none of them is known.

    ``has_ids`` says that y is a class for each row, ``can_miss`` that a row without labels counts.
    """
    only = "only what counts estimates, as omma.Auto, learns without labels"
    if y is None:
        if not can_miss:
            raise ValueError(f"y of update must be given: {only}")
        return [None] * count
    if has_ids and policy.budget is None:
        raise ValueError(
            "y of update has class ids, and the policy has no budget: pass k=1 to predict "
            "one class a row, or y as indicators"
        )
    rows = label_rows("update", y, is_sparse, m, are_ids=has_ids)
    whole = policy.whole_rows(metric)  # why rows must be labelled in full, or None
    for row in rows:
        if row is None and not can_miss:
            raise ValueError(f"y of update must have a label that is known in each row: {only}")
        if isinstance(row, PartlyKnown) and whole is not None:
            raise ValueError(
                f"y of update must have all labels of a row or none{whole}, got a part"
            )
        if metric is not None and metric.single_label and isinstance(row, np.ndarray):
            classes = len(row) if is_sparse else int(row.sum())
            if classes != 1:
                raise ValueError(
                    "y of update must have exactly one label a row for "
                    f"{metric.name}, got {classes}"
                )
    return rows


def weights_of(weight: Any, count: int) -> list[float]:
    """The weight of each row."""
    # The usual case, which needs no array.
    if type(weight) is float and 0.0 <= weight <= HEAVIEST:
        return [weight] * count
    weights = read_numbers("update", "weight", weight).ravel()
    if len(weights) != 1:
        return list(map(float, read_weights("update", weights, count, "weight")))
    return [check_number("update", "weight", weights[0].item(), low=0.0, high=HEAVIEST)] * count
