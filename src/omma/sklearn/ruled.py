"""A classifier with a fixed rule."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from omma._validate import shown
from omma.rule import Rule
from omma.sklearn._problem import BINARY, MULTICLASS, Problem, labels_problem
from omma.sklearn.classifier import Probabilities, where_inner_has

OWNER = "RuledClassifier"


class RuledClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose decisions are made by a rule: what ``Rule.to_sklearn`` returns.

    It generalizes ``FixedThresholdClassifier`` to classes and labels. A trained estimator is used
    as it is; ``fit`` trains a clone of it, and does not change the rule.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``
    rule : omma.Rule
        A rule of one label decides between two classes; a rule with k=1 and a label for each class
        predicts classes; any other predicts indicators of labels.
    pos_label : optional
        The positive class of two, for a rule of one label; None is the second.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from omma import Rule
    >>> X, y = load_iris(return_X_y=True)
    >>> rule = Rule([1.0, 1.0, 3.0], [0.0, 0.0, 0.0], k=1)  # favour the third class
    >>> rule.to_sklearn(LogisticRegression(max_iter=500).fit(X, y)).predict(X[[0, 77, 149]])
    array([0, 2, 2])
    """

    def __init__(self, estimator: Any, rule: Rule, *, pos_label: Any = None) -> None:
        self.estimator = estimator
        self.rule = rule
        self.pos_label = pos_label

    def fit(self, X: Any, y: Any, **params: Any) -> RuledClassifier:
        """Train a clone of the estimator; the rule does not change.

        Parameters
        ----------
        X, y, **params
            As of the estimator's own ``fit``.

        Returns
        -------
        RuledClassifier
            Itself.
        """
        self.estimator_ = clone(self.estimator).fit(X, y, **params)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        check_is_fitted(self._trained())  # raises its own error where it is not
        return True

    @property
    def classes_(self) -> Any:
        """The classes of the estimator."""
        return self._trained().classes_

    def predict(self, X: Any) -> NDArray[Any] | sparse.csr_matrix:
        """Decide rows by the rule.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), or indicators of shape (n_samples, n_labels)
            Classes, or indicators, which are sparse if the probabilities are.
        """
        check_is_fitted(self)
        problem = self._problem()
        return problem.decode(self.rule.predict(problem.eta(self._trained(), X)))

    @where_inner_has("predict_proba")
    def predict_proba(self, X: Any) -> Probabilities:
        """The estimator's probabilities."""
        return self._trained().predict_proba(X)

    def _trained(self) -> Any:
        return getattr(self, "estimator_", self.estimator)

    def _problem(self) -> Problem:
        """The problem that the rule decides, by its shape and the classes of the estimator."""
        estimator, m = self._trained(), self.rule.m
        own = estimator.classes_
        # Estimators of many labels have a list of classes for each, OneVsRestClassifier a flag.
        if isinstance(own, list | tuple) or getattr(estimator, "multilabel_", False):
            return labels_problem(OWNER, m)
        classes = np.asarray(own)
        known = classes.tolist()
        if len(known) == m:
            if self.rule.k != 1:
                return labels_problem(OWNER, m)
            return Problem(OWNER, MULTICLASS, classes, None, classes.dtype)
        if m != 1 or len(known) != 2:
            raise ValueError(
                f"rule of {OWNER} must have a label for each of {shown(known)}, or one "
                f"for the positive of two classes, got {m}"
            )
        # One threshold for the positive of two classes, as of FixedThresholdClassifier.
        positive_class = known[1] if self.pos_label is None else self.pos_label
        if positive_class not in known:
            raise ValueError(
                f"pos_label of {OWNER} must be one of {shown(known)}, got {shown(positive_class)}"
            )
        positive = known.index(positive_class)
        return Problem(OWNER, BINARY, classes, None, classes.dtype, positive=positive)
