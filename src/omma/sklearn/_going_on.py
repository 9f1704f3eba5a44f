"""Rows that come after: the rule learns from each, and the estimator where it can."""

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from omma.metrics import metric as find_metric
from omma.online import OnlineClassifier
from omma.policies.best_mixture import top
from omma.rule import Rule
from omma.sklearn._checks import check_same_classes, checked, policy_of, route, vector
from omma.sklearn._deciding import Decides, History, inner_has
from omma.sklearn._probabilities import probabilities
from omma.sklearn._target import CLASSES, LABELS, Target, read_target


class GoesOn(Decides):
    """The part of ``MetricClassifier`` that goes on learning."""

    pos_label: Any

    @available_if(inner_has("partial_fit"))  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        **params: Any,
    ) -> Any:
        """Go on learning: first the rule, by deciding these rows, and then the estimator.

        The rows are decided one after another by the estimator as it was before it saw them. The
        very first rows cannot be: they train the estimator alone, and until more come, decisions
        are the usual ones. Where the estimator refuses the rows, the rule is as it was.

        Parameters
        ----------
        X, y, sample_weight, params
            As of ``fit``.
        classes : array-like, optional
            All classes that may come; needed in the first call, unless y holds indicators.
        """
        X, y, weights = checked(X, y, sample_weight, "partial_fit")
        first = not hasattr(self, "estimator_")
        extra: dict[str, Any] = {} if classes is None else {"classes": classes}
        if first:
            target = read_target(y, find_metric(self.metric), vector(classes), self.pos_label)
            if classes is None and target.kind != LABELS:
                raise ValueError("classes must be passed on the first call to partial_fit.")
        else:
            target = self._target
            check_same_classes(target, classes)
        labels, y = target.encode(y), target.ordered(y)
        estimator = clone(self.estimator) if first else self.estimator_
        routed = route(self, "partial_fit", sample_weight, params).estimator.partial_fit
        if first:
            policy = policy_of(self, target)
            estimator.partial_fit(X, y, **extra, **routed)
            self._begin(estimator, target, policy)
            k = policy.budget  # before anything was counted, decisions are the usual ones
            usual = Rule(*top(k, target.m), k, at_most=policy.at_most).named(target.names)
            self._keep(usual, _num_samples(X))
            self.history_ = History(np.empty(0, dtype=np.int64), np.empty(0))
            return self
        _, learner = self._decided(X, labels, weights)
        estimator.partial_fit(X, y, **extra, **routed)
        self._go_on(learner, _num_samples(X))
        return self

    def step(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Decide rows one after another, learning the labels of each before the next.

        The rule learns, the estimator does not: ``partial_fit`` does both. What is returned was
        decided before the labels were looked at, so that it can be judged by them.

        Returns
        -------
        As of ``predict``.

        Examples
        --------
        >>> from sklearn.datasets import make_classification
        >>> from sklearn.linear_model import LogisticRegression
        >>> from omma.sklearn import MetricClassifier
        >>> X, y = make_classification(1000, weights=[0.9], random_state=0)
        >>> model = MetricClassifier(LogisticRegression(), metric="f1", random_state=0)
        >>> decided = model.fit(X[:500], y[:500]).step(X[500:], y[500:])
        >>> decided.shape, model.counts_.n
        ((500,), 1000.0)
        """
        check_is_fitted(self)
        X, y, weights = checked(X, y, sample_weight, "step")
        decisions, learner = self._decided(X, self._target.encode(y), weights)
        found = self._target.decode(decisions)
        self._go_on(learner, 0)
        return found

    def _decided(
        self, X: Any, labels: Any, weights: NDArray[Any] | None
    ) -> tuple[Any, OnlineClassifier]:
        """Decisions on rows, each learned before the next, and a learner that has learned all."""
        learner = deepcopy(self._learner)  # should anything fail on the way, ours is as it was
        eta = probabilities(self.estimator_, X, self._target).values
        return decide_rows(learner, eta, labels, weights, self._target), learner

    def _go_on(self, learner: OnlineClassifier, trained_on: int) -> None:
        """Take over what a learner has learned, once all else is done."""
        rows, values = self.history_
        value = self._value(learner)
        worth = np.nan if value is None else value
        self.history_ = History(np.append(rows, round(learner.counts.n)), np.append(values, worth))
        self._learner = learner
        self._keep(learner.rule, self.n_samples_seen_ + trained_on)


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
