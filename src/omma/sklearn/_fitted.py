"""What a fitted classifier keeps: its estimator, its learner, the rule, and how it went."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omma.counts import Counts
from omma.metrics import metric as find_metric
from omma.metrics.scoring import value_with
from omma.online import OnlineClassifier
from omma.policies import OMMA, Auto
from omma.rule import Rule
from omma.sklearn._target import Target


class History(NamedTuple):
    """The metric so far, at some numbers of rows."""

    rows: NDArray[np.int64]
    values: NDArray[np.float64]


def inner_has(method: str) -> Callable[[Any], bool]:
    """Whether the estimator, fitted or not, has a method; if not, its own error says so."""

    def check(self: Any) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    return check


class Fitted:
    """What ``MetricClassifier`` knows after ``fit``; its other parts stand on this."""

    estimator: Any
    metric: Any
    zero_division: float
    history_: History
    n_samples_seen_: int
    _target: Target
    _learner: OnlineClassifier

    def _begin(self, estimator: Any, target: Target, policy: OMMA | Auto) -> None:
        """Forget what was learned before."""
        self.estimator_ = estimator
        self.classes_ = target.classes
        self._target = target
        self._learner = OnlineClassifier(policy, target.m, names=target.names)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))
            elif hasattr(self, name):
                delattr(self, name)

    def _keep(self, rule: Rule, rows: int) -> None:
        self.rule_ = rule
        self.counts_: Counts = self._learner.counts
        self.value_ = self._value(self._learner)
        self.n_samples_seen_ = int(rows)

    def _value(self, learner: OnlineClassifier) -> float | None:
        """The metric of what a learner has counted; None before that."""
        if learner.value is None:
            return None
        return value_with(find_metric(self.metric), learner.counts, self.zero_division)
