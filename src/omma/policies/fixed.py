"""Rules that never change: what people use today, and what the others are compared with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omma._run import Plan
from omma._validate import check_number, check_positive_int
from omma.policies.base import LinearPolicy


@dataclass(frozen=True)
class Threshold(LinearPolicy):
    """Predict every label whose probability reaches a constant.

    >>> import omma
    >>> eta, y = [[0.7, 0.5, 0.2]], [[1, 0, 0]]
    >>> omma.replay(omma.Threshold(0.5), eta, y, metric="macro_f1").predictions
    array([[1, 1, 0]], dtype=int8)
    """

    threshold: float = 0.5

    def __post_init__(self) -> None:
        check_number("Threshold", "threshold", self.threshold, low=0.0, high=1.0)

    @property
    def objective(self) -> None:
        return None

    @property
    def budget(self) -> None:
        return None

    def plan(self, m: int) -> Plan:
        return Plan(k=None, fixed=np.stack((np.ones(m), np.full(m, -float(self.threshold)))))


@dataclass(frozen=True)
class TopK(LinearPolicy):
    """Predict the k most probable labels.

    >>> import omma
    >>> omma.replay(omma.TopK(1), [[0.3, 0.5, 0.5]], [1], metric="multiclass_accuracy").classes
    array([1], dtype=int32)
    """

    k: int

    def __post_init__(self) -> None:
        check_positive_int("TopK", "k", self.k)

    @property
    def objective(self) -> None:
        return None

    @property
    def budget(self) -> int:
        return self.k

    def plan(self, m: int) -> Plan:
        return Plan(k=self.k, fixed=np.stack((np.ones(m), np.zeros(m))))
