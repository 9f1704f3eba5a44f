"""Fixed rules: a threshold, the top k, and any rule that was made before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from omma._validate import check_number, check_positive_int, shown
from omma.metrics import Metric, MetricName, metric as find_metric
from omma.plan import Plan, fixed_plan
from omma.policies.base import Policy, whole_for
from omma.rows.frames import Names
from omma.rule import Rule


class FixedPolicy(Policy):
    """A policy that learns nothing; ``metric`` is the one that it was made for, if any."""

    metric: Any = None

    @property
    def objective(self) -> Metric | None:
        return self.metric  # type: ignore[no-any-return]

    @property
    def needs_labels(self) -> bool:
        return False

    def whole_rows(self, metric: Metric | None) -> str | None:
        return whole_for(metric)


@dataclass(frozen=True)
class Threshold(FixedPolicy):
    """Predict every label whose probability reaches a constant.

    >>> import omma
    >>> eta, y = [[0.7, 0.5, 0.2]], [[1, 0, 0]]
    >>> omma.replay(omma.Threshold(0.5), eta, y, metric="macro_f1").predictions
    array([[1, 1, 0]], dtype=int8)
    """

    threshold: float = 0.5

    def __post_init__(self) -> None:
        threshold = check_number("Threshold", "threshold", self.threshold, low=0.0, high=1.0)
        self._set(threshold=threshold)

    def plan(self, m: int) -> Plan:
        # η − threshold ≥ 0
        return fixed_plan(np.ones(m), np.full(m, -float(self.threshold)), None)


@dataclass(frozen=True)
class TopK(FixedPolicy):
    """Predict the k most probable labels.

    >>> import omma
    >>> omma.replay(omma.TopK(1), [[0.3, 0.5, 0.5]], [1], metric="multiclass_accuracy").classes
    array([1], dtype=int32)
    """

    k: int

    def __post_init__(self) -> None:
        self._set(k=check_positive_int("TopK", "k", self.k))

    @property
    def budget(self) -> int:
        return self.k

    def plan(self, m: int) -> Plan:
        # The k largest η; of equals, the lowest labels.
        return fixed_plan(np.ones(m), np.zeros(m), self.k)


@dataclass(frozen=True)
class FixedRule(FixedPolicy):
    """Decide every row by a fixed rule.

    >>> import omma
    >>> policy = omma.FixedRule(omma.Rule([1.0, 1.0], [-0.2, -0.8]))
    >>> omma.replay(policy, [[0.3, 0.5]], [[1, 0]], metric="macro_f1").predictions
    array([[1, 0]], dtype=int8)
    """

    decision: Rule  # or its JSON
    metric: MetricName | Metric | str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.decision, str):
            self._set(decision=Rule.from_json(self.decision))
        if not isinstance(self.decision, Rule):
            raise TypeError(f"decision of FixedRule must be a Rule, got {shown(self.decision)}")
        if self.metric is not None:
            self._set(metric=find_metric(self.metric))

    @property
    def names(self) -> Names | None:
        return self.decision.names

    @property
    def budget(self) -> int | None:
        return self.decision.k

    def check_labels(self, m: int) -> None:
        super().check_labels(m)
        if m != self.decision.m:
            raise ValueError(f"FixedRule is for {self.decision.m} labels, got {m}")

    def plan(self, m: int) -> Plan:
        return self.decision.plan  # which may have a matrix of costs or a calibration

    @property
    def needs_eta(self) -> bool:
        return self.decision.calibration is not None
