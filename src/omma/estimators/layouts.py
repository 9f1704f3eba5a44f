"""The shapes in which other libraries give probabilities, brought to one: rows by labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]


def to_columns(found: Any, known: Any, m: int, classes: bool) -> Any:
    """What scikit-learn's ``predict_proba`` returned, as (n, m).

    Parameters
    ----------
    found : (n, classes), (n, m), (n, 2), (n, m, 2) or a list of m arrays (n, 1 or 2)
    known : the model's ``classes_``, or None
    m : int
    classes : bool
        Whether a row has one class, not labels.

    Examples
    --------
    >>> to_columns(np.array([[0.3, 0.7]]), np.array([0, 2]), 3, classes=True)
    array([[0.3, 0. , 0.7]])
    >>> to_columns([np.array([[0.3, 0.7]]), np.array([[1.0]])], [[0, 1], [0]], 2, classes=False)
    array([[0.7, 0. ]])
    """
    if isinstance(found, list | tuple):
        every = known if known is not None else [None] * len(found)
        columns = [_positive(np.asarray(each), own) for each, own in zip(found, every, strict=True)]
        return _checked(np.stack(columns, axis=1), m)
    if sparse.issparse(found):
        return _checked(found.tocsr(), m)
    array = np.asarray(found, dtype=np.float64)
    if array.ndim == 3:
        return _checked(np.ascontiguousarray(array[:, :, 1]), m)
    if classes:
        return _checked(_spread(array, known, m), m)
    if m == 1:
        return _positive(array.reshape(len(array), -1), known)[:, np.newaxis]
    return _checked(array, m)


def _spread(array: Floats, known: Any, m: int) -> Floats:
    """Each class the model knows in the column of its id."""
    if known is None or isinstance(known, list):
        return array
    eta = np.zeros((len(array), m))
    eta[:, np.asarray(known, dtype=np.int64)] = array
    return eta


def _positive(array: NDArray[Any], known: Any) -> Floats:
    """The probability of one among the classes of one label."""
    ids = list(range(array.shape[1])) if known is None else [int(value) for value in known]
    if array.shape[1] == 1 and len(ids) != 1:
        return np.asarray(array[:, 0], dtype=np.float64)
    if 1 not in ids:
        return np.zeros(len(array))
    return np.asarray(array[:, ids.index(1)], dtype=np.float64)


def _checked(eta: Any, m: int) -> Any:
    if eta.shape[1] != m:
        raise ValueError(
            f"predict_proba of the model of Wrapped must give {m} labels, got shape {eta.shape}"
        )
    return eta


def from_river(found: Any, m: int, classes: bool) -> Floats:
    """What river's ``predict_proba_one`` returned, as (m,).

    Classes it does not name get 0; where it names none, nothing is known, and all are even.

    >>> from_river({0: 0.25, 2: 0.75}, 3, classes=True)
    array([0.25, 0.  , 0.75])
    >>> from_river({0: {False: 0.9, True: 0.1}, 1: {False: 1.0}}, 2, classes=False)
    array([0.1, 0. ])
    """
    if not found:
        return np.full(m, 1 / m if classes else 0.5)
    if m == 1 and not classes and not any(isinstance(each, dict) for each in found.values()):
        return np.array([float(found.get(True, 0.0))])
    eta = np.zeros(m)
    for label, value in found.items():
        eta[int(label)] = float(value.get(True, 0.0) if isinstance(value, dict) else value)
    return eta
