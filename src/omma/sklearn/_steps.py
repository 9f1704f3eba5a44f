"""Rows decided one after another, each learned before the next."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma.online import OnlineClassifier
from omma.sklearn._target import CLASSES, Target


def decide_rows(
    learner: OnlineClassifier,
    eta: Any,
    labels: Any,
    weights: NDArray[Any] | None,
    target: Target,
) -> Any:
    """The decisions of a learner, which learns the labels of each row after it."""
    n = eta.shape[0]
    thin = sparse.issparse(eta)
    rows = eta if thin else eta.reshape(n, target.m)
    decisions = []
    for i in range(n):
        decisions.append(learner.predict(rows[[i]] if thin else rows[i]))
        weight = 1.0 if weights is None else float(weights[i])
        learner.update(_row_of(labels, i, target), weight=weight)
    if thin:
        return sparse.vstack(decisions, format="csr")
    found = np.array(decisions, dtype=np.int8).reshape(n, target.m)
    return found if rows.ndim == eta.ndim else found[:, 0]


def _row_of(labels: Any, i: int, target: Target) -> Any:
    """The true labels of a row as indicators."""
    if sparse.issparse(labels):
        return labels[[i]]
    if target.kind != CLASSES:
        return np.atleast_1d(labels[i])
    row = np.zeros(target.m, dtype=np.int8)
    row[labels[i]] = 1
    return row
