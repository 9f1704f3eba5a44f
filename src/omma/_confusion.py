"""Rows of labels set against rows of predictions, and added up.

Classes and label sets come as users have them: any whole numbers, text, categories, lists of
labels. They are judged over the classes that occur in either vector, sorted, as scikit-learn does;
a fixed set is given by its ``labels``, or by their number.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from omma._validate import check_positive_int, shown
from omma.rows.arrays import read_weights, sound_csr
from omma.rows.frames import opened, values_of
from omma.rows.index import check_same_rows
from omma.rows.labels import split_missing
from omma.rows.sets import SETS, is_label_sets, plain_array, rows_of
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
        return sound_csr("Counts.from_labels", name, y)
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


def class_indicators(
    owner: str,
    y_true: Any,
    y_pred: Any,
    *,
    labels: Sequence[Any] | None = None,
    n_labels: int | None = None,
    outside: bool = True,
) -> tuple[Any, Any]:
    """Two vectors of classes, or two lists of label sets, as CSR indicators of one width.

    ``labels`` are the columns wanted (default: all that occur, sorted); ``n_labels`` widens them
    by classes that never occur. ``outside`` allows classes that are not among ``labels``: they
    have no column, and their rows count for the others.

    >>> true, predicted = class_indicators("score", ["b", "c"], ["c", "c"])
    >>> true.toarray().tolist(), predicted.toarray().tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]])
    >>> sets = [["sports"], ["music", "news"]]
    >>> class_indicators("score", sets, sets)[0].toarray().tolist()  # music, news, sports
    [[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """
    check_positive_int(owner, "n_labels", n_labels, optional=True)
    reader = _members if is_label_sets(y_true) or is_label_sets(y_pred) else _classes
    true, ends = reader(owner, "y_true", y_true)
    predicted, other_ends = reader(owner, "y_pred", y_pred)
    if len(ends) != len(other_ends):
        raise ValueError(
            f"y_true and y_pred of {owner} must have one length, got {len(ends) - 1} and "
            f"{len(other_ends) - 1}"
        )
    known = _known(owner, true, predicted, labels)
    width = len(known) if n_labels is None else n_labels
    if len(known) > width:
        raise ValueError(
            f"n_labels of {owner} must be at least the number of classes, which is {len(known)}, "
            f"got {n_labels}"
        )
    found = []
    for parameter, given, places in (
        ("y_true", true, ends),
        ("y_pred", predicted, other_ends),
    ):
        found.append(_columns(owner, parameter, given, places, known, width, outside))
    return found[0], found[1]


def is_vector(y: Any) -> bool:
    """Whether it holds one class a row, and not a column for each label."""
    return not sparse.issparse(y) and not is_label_sets(y) and _ndim(y) == 1


def _ndim(y: Any) -> int:
    if hasattr(y, "shape"):
        return len(y.shape)
    return 2 if isinstance(y, list | tuple) and len(y) and np.ndim(y[0]) else 1


def _classes(owner: str, parameter: str, y: Any) -> tuple[list[Any] | NDArray[Any], NDArray[Any]]:
    """One class a row."""
    values = plain_array(f"{parameter} of {owner}", values_of(owner, parameter, y))
    if values.dtype.kind in "US" and isinstance(y, list | tuple):
        values = np.array(y, dtype=object)  # NumPy has made text of numbers among text
    if values.ndim != 1:
        raise ValueError(
            f"{parameter} of {owner} must be classes of shape (rows,), got shape {values.shape}"
        )
    if values.dtype.kind == "f":
        wrong = np.flatnonzero(~np.isfinite(values) | (values != np.floor(values)))
    elif values.dtype.kind == "O":
        wrong = np.array([i for i, one in enumerate(values.tolist()) if _is_missing(one)], int)
    else:
        wrong = np.empty(0, int)
    if len(wrong):
        raise ValueError(
            f"{parameter} of {owner} must hold classes, which are whole numbers or text, got "
            f"{shown(values[wrong[0]].item() if values.dtype.kind == 'f' else values[wrong[0]])} "
            f"in row {wrong[0]}"
        )
    return values, np.arange(len(values) + 1)


def _is_missing(one: Any) -> bool:
    """None, NaN and what pandas has in their place are no classes: they do not equal themselves."""
    return one is None or type(one).__name__ == "NAType" or bool(one != one)


def _members(owner: str, parameter: str, y: Any) -> tuple[list[Any], NDArray[Any]]:
    """The labels of all rows one after another, and where each row ends."""
    rows = rows_of(y)
    if rows is None or not all(isinstance(row, SETS) for row in rows):
        raise ValueError(
            f"{parameter} of {owner} must be lists of labels where the other is, got {shown(y)}"
        )
    sets = [tuple(dict.fromkeys(row)) for row in rows]
    return [one for row in sets for one in row], np.cumsum([0, *map(len, sets)])


def _known(owner: str, true: Any, predicted: Any, labels: Iterable[Any] | None) -> list[Any]:
    """The classes that have a column, in order."""
    if labels is not None:
        given = [] if isinstance(labels, str) else np.asarray(labels).ravel().tolist()
        if not given or len(set(given)) != len(given):
            raise ValueError(
                f"labels of {owner} must be at least one class, and none twice, got {shown(labels)}"
            )
        return given
    found = set(_plain(true)) | set(_plain(predicted))
    try:
        return sorted(found)
    except TypeError as error:
        kinds = sorted({type(one).__name__ for one in found})
        raise TypeError(
            f"classes in y_true and y_pred of {owner} must be of one kind, got "
            f"{' and '.join(kinds)}"
        ) from error


def _plain(values: Any) -> list[Any]:
    """The different classes, as Python's own numbers and text."""
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        return list(np.unique(values).tolist())
    return list(dict.fromkeys(values.tolist() if isinstance(values, np.ndarray) else values))


def _columns(
    owner: str,
    parameter: str,
    values: Any,
    ends: NDArray[Any],
    known: list[Any],
    width: int,
    outside: bool,
) -> Any:
    """A row of ones and zeros for each row of classes."""
    place = {one: j for j, one in enumerate(known)}
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        unique, inverse = np.unique(values, return_inverse=True)
        members = unique.tolist()
    else:
        members = list(values)
        inverse = np.arange(len(members))
    ids = np.array([place.get(one, -1) for one in members], dtype=np.int64)
    if not outside and (ids < 0).any():
        wrong = members[int(np.flatnonzero(ids < 0)[0])]
        raise ValueError(
            f"{parameter} of {owner} must hold the classes {shown(known)}, got {shown(wrong)}"
        )
    columns = ids[inverse]
    row_of = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    kept = columns >= 0
    return sparse.csr_array(
        (np.ones(int(kept.sum())), (row_of[kept], columns[kept])), shape=(len(ends) - 1, width)
    )
