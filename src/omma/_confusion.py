"""Confusion counts of true labels and predictions.

Classes may be whole numbers, text, categories or lists of labels. The classes are those that occur
in either vector, sorted, as in scikit-learn, or a fixed set given by ``labels`` or its size.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from omma._validate import check_positive_int, shown
from omma.rows.arrays import canonical, is_missing, plain_array, read_weights, sound_csr
from omma.rows.frames import SETS, is_label_sets, open_table, rows_of
from omma.rows.labels import matrix_of_classes, split_missing
from omma.state_parts import in_proportion

OWNER = "Counts.from_labels"


def confusion_of(
    y_true: Any,
    y_pred: Any,
    sample_weight: ArrayLike | None,
    n_labels: int | None,
    *,
    matrix: bool,
    whole: str = "",
) -> tuple[Any, ...]:
    """Cells (tp, predicted, positive) of shape (3, m), rows, and pairs of classes or None.

    Where ``whole`` is not empty, a row must have all of its labels or none; ``whole`` says why.
    """
    true, predicted, missing = _indicators(y_true, y_pred, n_labels)
    n, m = true.shape
    weights = read_weights(OWNER, sample_weight, n, "sample_weight")
    weight = weights if len(weights) else np.ones(n)
    if missing is not None:
        lacking = np.diff(missing.indptr)
        partly = np.flatnonzero((lacking > 0) & (lacking < m))
        whole = whole or ("to count pairs of classes" if matrix else "")
        if whole and len(partly):
            raise ValueError(
                f"y_true must have all labels of a row or none {whole}, got a part of them in row "
                f"{partly[0]}"
            )
        if (lacking == m).all():
            raise ValueError("y_true must have a label that is known, got nan alone")
        # A row without labels counts nothing, and a label counts where it is known.
        weight = np.where(lacking < m, weight, 0.0)
        predicted = predicted - predicted.multiply(missing)
    weighted = sparse.diags_array(weight) @ predicted
    tp = true.multiply(weighted)
    cells = np.stack(
        [np.asarray(part).ravel() for part in (tp.sum(axis=0), weighted.sum(axis=0), weight @ true)]
    )
    rows = float(np.cumsum(weight)[-1])  # in the order of the sums above: n − positive may be 0
    pairs = (true.T @ weighted).toarray() if matrix else None
    if missing is not None:  # as if each label were known in all rows
        cells = in_proportion(cells, rows, weight @ missing)
    return cells, rows, pairs


def _indicators(y_true: Any, y_pred: Any, n_labels: int | None) -> tuple[Any, Any, Any]:
    """Both as CSR float64 matrices of one shape, and where the first is unknown, if anywhere."""
    check_positive_int(OWNER, "n_labels", n_labels, optional=True)
    table = open_table(OWNER, "y_true", y_true)
    true = _numbers("y_true", table.values)
    predicted = _numbers("y_pred", open_table(OWNER, "y_pred", y_pred, table.names).values)
    m = n_labels
    if m is None:  # matrices have a width; of class ids the largest tells
        widths = [y.shape[1] for y in (true, predicted) if y.ndim == 2]
        ids = [int(y.max(initial=0)) + 1 for y in (true, predicted) if y.ndim == 1]
        m = max(widths or ids)
    true, predicted = _csr("y_true", true, m), _csr("y_pred", predicted, m)
    if true.shape != predicted.shape:
        raise ValueError(
            "y_true and y_pred must have one shape, got "
            f"{true.shape} and {predicted.shape} (rows, labels)"
        )
    if not all(true.shape):
        raise ValueError(
            f"y_true and y_pred must have at least one row and label, got shape {true.shape}"
        )
    true, missing = split_missing(true)
    outside = true.data[~((true.data >= 0) & (true.data <= 1))]
    if len(outside):
        raise ValueError(f"y_true must hold numbers from 0 to 1, got {shown(float(outside[0]))}")
    wrong = predicted.data[~np.isin(predicted.data, (0.0, 1.0))]
    if len(wrong):
        raise ValueError(f"y_pred must hold only 0 and 1, got {wrong[0]:g}")
    return true, predicted, missing


def _numbers(name: str, y: Any) -> Any:
    """A sparse matrix, or an array of numbers in one or two dimensions."""
    if sparse.issparse(y):
        return sound_csr(OWNER, name, y)
    array = plain_array(name, y)
    if array.dtype.kind in "USO" and any(isinstance(value, str) for value in array.flat):
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


def _csr(name: str, y: Any, m: int) -> Any:
    """A matrix as it is; a vector as the column of one label, or as the indicators of class ids."""
    if y.ndim == 2:
        return canonical(sparse.csr_array(y, dtype=np.float64))
    if m == 1:  # the 0/1 labels of a binary problem, not ids of classes
        return sparse.csr_array(y[:, np.newaxis], dtype=np.float64)
    return sparse.csr_array(matrix_of_classes(OWNER, name, y, m), dtype=np.float64)


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

    ``labels`` are the columns (default: all that occur, sorted); ``n_labels`` adds columns of
    classes that never occur. ``outside`` allows classes that are not among ``labels``: they have no
    column, but their rows count.

    >>> true, predicted = class_indicators("score", ["b", "c"], ["c", "c"])
    >>> true.toarray().tolist(), predicted.toarray().tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]])
    >>> sets = [["sports"], ["music", "news"]]
    >>> class_indicators("score", sets, sets)[0].toarray().tolist()  # music, news, sports
    [[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """
    check_positive_int(owner, "n_labels", n_labels, optional=True)
    reader = _members if is_label_sets(y_true) or is_label_sets(y_pred) else _classes
    pair = {name: reader(owner, name, y) for name, y in (("y_true", y_true), ("y_pred", y_pred))}
    n, other_n = (len(ends) - 1 for _, ends in pair.values())
    if n != other_n:
        raise ValueError(
            f"y_true and y_pred of {owner} must have one length, got {n} and {other_n}"
        )
    if labels is None:
        known = _sorted_classes(owner, set().union(*(classes for classes, _ in pair.values())))
    else:
        known = [] if isinstance(labels, str) else np.asarray(labels).ravel().tolist()
        if not known or len(set(known)) != len(known):
            raise ValueError(
                f"labels of {owner} must be at least one class, and none twice, got {shown(labels)}"
            )
    width = len(known) if n_labels is None else n_labels
    if len(known) > width:
        raise ValueError(
            f"n_labels of {owner} must be at least the number of classes, which is {len(known)}, "
            f"got {n_labels}"
        )
    column_of = {label: j for j, label in enumerate(known)}
    matrices = []
    for parameter, (classes, ends) in pair.items():
        columns = np.array([column_of.get(label, -1) for label in classes], dtype=np.int64)
        inside = columns >= 0  # classes that are not among ``labels`` have no column
        if not outside and not inside.all():
            wrong = classes[int(np.argmin(inside))]
            raise ValueError(
                f"{parameter} of {owner} must hold the classes {shown(known)}, got {shown(wrong)}"
            )
        rows = np.repeat(np.arange(n), np.diff(ends))[inside]
        entries = (np.ones(len(rows)), (rows, columns[inside]))
        matrices.append(sparse.csr_array(entries, shape=(n, width)))
    return matrices[0], matrices[1]


def _classes(owner: str, parameter: str, y: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """One class a row, as Python's own numbers and text, and where each row ends."""
    values = plain_array(f"{parameter} of {owner}", open_table(owner, parameter, y).values)
    if values.dtype.kind in "US" and isinstance(y, list | tuple):
        values = np.array(y, dtype=object)  # NumPy has made text of numbers among text
    if values.ndim != 1:
        raise ValueError(
            f"{parameter} of {owner} must be classes of shape (rows,), got shape {values.shape}"
        )
    classes = values.tolist()
    if values.dtype.kind == "f":
        is_class = np.isfinite(values) & (values == np.floor(values))
    else:  # missing values are no classes, and NaT is none that equals itself
        is_class = np.array([not is_missing(label) and label == label for label in classes])
    if not is_class.all():
        row = int(is_class.argmin())
        raise ValueError(
            f"{parameter} of {owner} must hold classes, which are whole numbers or text, got "
            f"{shown(classes[row])} in row {row}"
        )
    return classes, np.arange(len(classes) + 1)


def _members(owner: str, parameter: str, y: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """The labels of all rows one after another, and where each row ends."""
    rows = rows_of(y)
    if rows is None or not all(isinstance(row, SETS) for row in rows):
        raise ValueError(
            f"{parameter} of {owner} must be lists of labels where the other is, got {shown(y)}"
        )
    sets = [tuple(dict.fromkeys(row)) for row in rows]  # a label counts once a row
    return [label for row in sets for label in row], np.cumsum([0, *map(len, sets)])


def _sorted_classes(owner: str, classes: set[Any]) -> list[Any]:
    try:
        return sorted(classes)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in classes})
        raise TypeError(
            f"classes in y_true and y_pred of {owner} must be of one kind, got "
            f"{' and '.join(kinds)}"
        ) from error


def is_vector(y: Any) -> bool:
    """Whether y has one class for each row, not a column for each label."""
    if sparse.issparse(y) or is_label_sets(y):
        return False
    if hasattr(y, "shape"):
        return len(y.shape) == 1
    return not (isinstance(y, list | tuple) and len(y) and np.ndim(y[0]))
