"""Probabilities of rows by models that have not seen them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from omma.sklearn._probabilities import probabilities
from omma.sklearn._target import OWNER, Target


@dataclass(frozen=True)
class Sample:
    """Rows to learn a rule from: probabilities, true labels as omma takes them, weights."""

    eta: Any
    y: Any
    weights: NDArray[Any] | None

    def take(self, rows: NDArray[np.int64]) -> Sample:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Sample(self.eta[rows], self.y[rows], weights)


def out_of_fold(
    estimator: Any,
    X: Any,
    y: Any,
    target: Target,
    splits: Iterable[tuple[Any, Any]],
    fit_params: dict[str, Any],
    weights: NDArray[Any] | None,
) -> tuple[Sample, list[Any]]:
    """Train a clone on each training part, and take its probabilities of the other part."""
    labels = target.encode(y)
    models, parts, rows = [], [], []
    for train, test in splits:
        params = _check_method_params(X, fit_params, indices=train)
        model = clone(estimator).fit(_safe_indexing(X, train), _safe_indexing(y, train), **params)
        models.append(model)
        parts.append(probabilities(model, _safe_indexing(X, test), target))
        rows.append(np.asarray(test))
    if not models:
        raise ValueError(f"cv of {OWNER} must give at least one split, got none")
    every = np.concatenate([np.flatnonzero(test) if test.dtype == bool else test for test in rows])
    taken = None if weights is None else weights[every]
    return Sample(_stacked(parts), labels[every], taken), models


def _stacked(parts: list[Any]) -> Any:
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack([sparse.csr_array(part) for part in parts], format="csr")
    return np.concatenate(parts)
