"""Decisions of a fitted classifier by its rule, and what they are made of; nothing changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from omma.held import Held
from omma.sklearn._decision import decision_scores
from omma.sklearn._fitted import Fitted, inner_has
from omma.sklearn._probabilities import probabilities
from omma.sklearn._target import OWNER


class Decides(ClassifierMixin, Fitted):  # type: ignore[misc]
    """The part of ``MetricClassifier`` that decides."""

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
