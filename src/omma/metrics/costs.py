"""A user's own table of what each prediction is worth for each true class."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omma._validate import shown
from omma.counts import Counts
from omma.metrics.base import Metric


@dataclass(frozen=True, repr=False, eq=False)
class Costs(Metric):
    """The average worth of a prediction; made by ``omma.metrics.costs``."""

    needs_matrix = True

    worth: NDArray[np.float64]
    name: str = "costs"
    formula: str = "Σ over (true i, predicted j) of matrix[i, j] · C[i, j]"
    multiclass: bool = True
    single_label: bool = True
    concave: bool = True
    smooth: bool = True
    linear: bool = True
    linear_fractional: bool = True

    def check_labels(self, m: int) -> None:
        if m != len(self.worth):
            raise ValueError(
                f"{self.name} has a matrix for {len(self.worth)} classes, got {m} columns"
            )

    def value(self, counts: Counts, zero_division: float = 0.0) -> float:
        self.check_counts(counts)
        if counts.matrix is None:
            raise ValueError(
                f"{self.name} needs counts of class pairs: make them by "
                "Counts.from_labels(…, matrix=True) or Counts.from_confusion"
            )
        return float((self.worth * counts.matrix).sum() / counts.n)

    @property
    def matrix(self) -> NDArray[np.float64]:
        return self.worth

    def to_json(self) -> Any:
        return {"costs": self.worth.tolist(), "name": self.name}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Costs) and np.array_equal(self.worth, other.worth)

    def __hash__(self) -> int:
        return hash(self.worth.tobytes())


def costs(matrix: ArrayLike, *, name: str = "costs") -> Costs:
    """A metric that is linear in the m×m confusion matrix: ``Σ matrix[i, j] · C[i, j]``.

    Parameters
    ----------
    matrix : array-like of shape (m, m)
        What predicting class j is worth where class i is true. The library maximizes: write gains
        as positive numbers and costs as negative ones. The gains of a row's predictions are
        ``eta @ matrix``, and a class of probability zero may be the best of them.
    name : str

    Examples
    --------
    A false alarm costs 1, a missed fraud 20:

    >>> import omma
    >>> fraud = omma.metrics.costs([[0, -1], [-20, 0]])
    >>> omma.replay(omma.OMMA(fraud), [[0.97, 0.03], [0.9, 0.1]], [0, 1]).classes
    array([0, 1], dtype=int32)
    """
    worth = np.array(matrix, dtype=np.float64)
    if worth.ndim != 2 or worth.shape[0] != worth.shape[1] or len(worth) < 2:
        raise ValueError(
            f"matrix of costs must have the shape (m, m) of at least 2 classes, got {worth.shape}"
        )
    if not np.isfinite(worth).all():
        raise ValueError(f"matrix of costs must hold finite numbers, got {shown(matrix)}")
    others = worth + np.where(np.eye(len(worth), dtype=bool), np.inf, 0.0)
    if (np.diag(worth) < others.min(axis=1)).all():
        warnings.warn(
            "matrix of costs makes every mistake worth more than being right: "
            "write costs as negative numbers",
            UserWarning,
            stacklevel=2,
        )
    worth.flags.writeable = False
    return Costs(worth, name)
