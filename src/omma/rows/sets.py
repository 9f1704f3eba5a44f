"""Labels of each row as a collection of names or ids, such as [["sports"], ["music", "news"]]."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import nearest, shown

SETS = (list, tuple, set, frozenset)


def is_label_sets(y: Any) -> bool:
    """Whether every row is a collection of labels: sets, or lists of which one holds text.

    Lists of numbers are rows of an indicator matrix.

    >>> is_label_sets([["sports"], ["music", "news"], []]), is_label_sets([[0, 1], [1, 1]])
    (True, False)
    """
    rows = rows_of(y)
    if rows is None or not all(isinstance(row, SETS) for row in rows):
        return False
    return any(
        isinstance(row, set | frozenset) or any(isinstance(one, str) for one in row) for row in rows
    )


def rows_of(y: Any) -> list[Any] | None:
    """The rows of a list, or of a vector of objects; None where there can be no sets."""
    if isinstance(y, list | tuple):
        return list(y) if len(y) and isinstance(y[0], SETS) else None
    if getattr(y, "ndim", len(getattr(y, "shape", ()))) != 1 or not len(y):
        return None
    if isinstance(y, np.ndarray):
        return y.tolist() if y.dtype == object else None
    return list(y) if hasattr(y, "to_list") and isinstance(next(iter(y)), SETS) else None


def plain_array(what: str, y: Any) -> NDArray[Any]:
    """An array; rows of several lengths are refused with a word on label sets."""
    try:
        return np.asarray(y)
    except ValueError as error:
        raise ValueError(
            f"{what} must have rows of one length, got {shown(y)}: pass labels of rows as sets, "
            "such as [{1}, {1, 2}], or indicators of 0 and 1"
        ) from error


def indicators_of_sets(
    owner: str, parameter: str, y: Any, names: Sequence[str] | None, m: int
) -> Any:
    """Label sets as CSR indicators of m labels; labels are known by name, or else by their ids.

    >>> indicators_of_sets("replay", "y", [["b"], ["a", "b"], []], ("a", "b"), 2).toarray().tolist()
    [[0, 1], [1, 1], [0, 0]]
    """
    places = {} if names is None else {name: place for place, name in enumerate(names)}
    ids, ends = [], [0]
    for row, labels in enumerate(rows_of(y) or []):
        found = {_place(owner, parameter, row, one, places, m) for one in labels}
        ids += sorted(found)
        ends.append(len(ids))
    parts = (np.ones(len(ids), np.int8), np.array(ids, np.int32), np.array(ends, np.int64))
    return sparse.csr_array(parts, shape=(len(ends) - 1, m))


def _place(owner: str, parameter: str, row: int, label: Any, places: dict[str, int], m: int) -> int:
    if label in places:
        return places[label]
    if isinstance(label, int | np.integer) and not isinstance(label, bool) and 0 <= label < m:
        return int(label)
    known = f"among {shown(list(places))}" if places else f"ids from 0 to {m - 1}"
    hint = nearest(str(label), list(places)) if places else ""
    raise ValueError(
        f"labels in {parameter} of {owner} must be {known}, got {shown(label)} in row {row}{hint}"
    )
