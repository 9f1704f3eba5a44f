"""Features brought to mean zero and deviation one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import shown
from omma.estimators._data import row_blocks

Floats = NDArray[np.float64]
Undo = Callable[[Any, Floats], tuple[Any, Floats]]


@dataclass(frozen=True)
class Scaling:
    """Mean and deviation of each feature; a feature that never varies is only shifted."""

    center: Floats
    scale: Floats

    def apply(self, X: NDArray[Any]) -> NDArray[Any]:  # noqa: N803
        """The features as they are fitted, in the type they came in."""
        scaled = np.empty_like(X)
        for rows in row_blocks(len(X), X.shape[1]):
            scaled[rows] = (X[rows] - self.center) / self.scale
        return scaled

    def undo(self, weights: Any, intercept: Floats) -> tuple[Any, Floats]:
        """Weights (d, m), sparse or not, and intercepts for features as they come."""
        if sparse.issparse(weights):
            weights = (sparse.diags_array(1 / self.scale) @ weights).tocsr()
        else:
            weights = weights / self.scale[:, np.newaxis]
        return weights, intercept - self.center @ weights


def scaled(owner: str, standardise: Any, X: Any) -> tuple[Any, Undo]:  # noqa: N803
    """Features as they are fitted, and what brings weights and intercepts back from there."""
    if not wants_scaling(owner, standardise, X):
        return X, lambda weights, intercept: (weights, intercept)
    scaling = learn_scaling(X)
    return scaling.apply(X), scaling.undo


def wants_scaling(owner: str, standardise: Any, X: Any) -> bool:  # noqa: N803
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


def learn_scaling(X: NDArray[Any]) -> Scaling:  # noqa: N803
    """Mean and deviation over all rows."""
    center = X.mean(axis=0, dtype=np.float64)
    total = np.zeros(X.shape[1])
    for rows in row_blocks(len(X), X.shape[1]):
        total += ((X[rows] - center) ** 2).sum(axis=0)
    scale = np.sqrt(total / len(X))
    # Rounding leaves a trace of deviation where there is none.
    constant = scale <= 1e-7 * np.maximum(1e-30, np.abs(center))
    scale[constant] = 1.0
    return Scaling(center, scale)
