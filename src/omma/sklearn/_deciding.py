"""What a fitted classifier keeps, and decisions by its rule, which change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from omma.calibration.online import OnlineCalibrator
from omma.counts import Counts
from omma.held import Held
from omma.metrics import metric as find_metric
from omma.metrics.scoring import value_with
from omma.online import OnlineClassifier
from omma.policies import OMMA, Auto
from omma.rule import Rule
from omma.sklearn._probabilities import probabilities
from omma.sklearn._target import CLASSES, OWNER, YES, Target
from omma.state import Calibration


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


class Decides(ClassifierMixin):  # type: ignore[misc]
    """The part of ``MetricClassifier`` that decides, by what is known after ``fit``."""

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

    def predict(self, X: Any) -> Any:
        """Decide rows by the rule; nothing changes.

        Returns
        -------
        Classes, or indicators in the type of y: sparse where y was, or where probabilities are.
        """
        check_is_fitted(self)
        eta = probabilities(self.estimator_, X, self._target).values
        return self._target.decode(self.rule_.predict(eta))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy; for labels, the part of rows with every label right, columns found by name."""
        check_is_fitted(self)
        return float(super().score(X, self._target.ordered(y), sample_weight))

    @available_if(inner_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """The estimator's probabilities."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    @available_if(inner_has("predict_log_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """The logarithms of the estimator's probabilities."""
        check_is_fitted(self)
        return self.estimator_.predict_log_proba(X)

    @available_if(inner_has("predict_proba"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """How far probabilities are above what the rule asks for.

        Where it is above zero, ``predict`` says yes; among several classes the largest is
        predicted. So what decides by scores, such as ``OneVsRestClassifier``, decides by the rule.

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes or n_labels)
        """
        check_is_fitted(self)
        eta = probabilities(self.estimator_, X, self._target).values
        return decision_scores(self.rule_, eta, self._target)

    @property
    def thresholds_(self) -> NDArray[np.float64]:
        """The probability from which each label is predicted."""
        check_is_fitted(self)
        if self.rule_.k is not None:
            raise AttributeError(
                f"thresholds_ of {OWNER} exist where each label is decided by itself; here "
                f"{self.rule_.k} a row are ranked by rule_.slope * probability + rule_.offset"
            )
        return self.rule_.thresholds

    @property
    def limits_(self) -> tuple[Held, ...]:
        """How limits stand, by ``counts_``."""
        check_is_fitted(self)
        return self._learner.limits


Floats = NDArray[np.float64]
HAIR = np.finfo(np.float64).tiny  # a score of zero counts as no


def decision_scores(rule: Rule, eta: Any, target: Target) -> Floats:
    """(n,) for two classes, else a column for each class or label."""
    dense = eta.toarray() if sparse.issparse(eta) else np.asarray(eta, dtype=np.float64)
    decided = np.asarray(rule.predict(dense)).reshape(len(dense), target.m)
    eta = dense.reshape(decided.shape).astype(np.float64)
    gains = _gains(rule, eta)
    if target.kind == CLASSES:
        two = gains.shape[1] == 2
        return _signed((gains[:, 1] - gains[:, 0]) / 2, decided[:, 1]) if two else gains
    seats = rule.at_most if rule.k is None else rule.k
    if seats is None:
        scores = _above(rule, eta, decided)
    else:
        last = np.sort(gains, axis=1)[:, [-seats]]
        scores = _signed(gains - (last if rule.k else np.maximum(last, 0.0)), decided)
    if target.kind != YES:
        return scores
    if target.positive == 1:
        return scores[:, 0]
    return _signed(-scores[:, 0], 1 - decided[:, 0])  # the second class is the one that says no


def _gains(rule: Rule, eta: Floats) -> Floats:
    """Gains in the units of a probability; labels of probability zero are behind all others."""
    values = _calibrated(rule, eta)
    gains = values * rule.slope + rule.offset
    if rule.matrix is not None:
        gains = gains + values @ rule.matrix
    else:
        gains = np.where(eta > 0, gains, gains.min() - 1.0)
    unit = np.abs(rule.slope).max() if rule.matrix is None else np.abs(rule.matrix).max()
    return np.asarray(gains / (unit or 1.0), dtype=np.float64)


def _calibrated(rule: Rule, eta: Floats) -> Floats:
    """Probabilities as the rule takes them."""
    if rule.calibration is None:
        return eta
    found = Calibration.start(rule.m)
    found.take(*rule.calibration)
    calibrated = OnlineCalibrator.from_arrays(found.arrays()).predict(eta)
    return np.asarray(calibrated, dtype=np.float64).reshape(eta.shape)


def _above(rule: Rule, eta: Floats, decided: Any) -> Floats:
    """How far each probability is above its threshold; where there is none, yes above every no."""
    cuts = rule.thresholds
    plain = np.isfinite(cuts) & (rule.slope > 0)
    return _signed(
        np.where(plain, eta - np.where(plain, cuts, 0.0), eta - 2 + 3 * decided), decided
    )


def _signed(scores: Floats, decided: Any) -> Floats:
    """Above zero where the rule says yes, at most zero elsewhere: ties and roundings may differ."""
    return np.where(decided == 1, np.maximum(scores, HAIR), np.minimum(scores, 0.0))
