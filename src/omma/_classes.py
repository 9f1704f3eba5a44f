"""Classes and label sets as users have them: any whole numbers, text, categories, lists of labels.

Predictions are judged over the classes that occur in either vector, sorted, as scikit-learn does; a
fixed set is given by its ``labels``, or by their number.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import check_positive_int, shown
from omma.rows.frames import values_of
from omma.rows.sets import SETS, is_label_sets, plain_array, rows_of


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
        found.append(_indicators(owner, parameter, given, places, known, width, outside))
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


def _indicators(
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
