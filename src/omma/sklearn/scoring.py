"""Metrics of omma as scorers, for ``scoring`` of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import make_scorer as _make_scorer

from omma._validate import check_positive_int
from omma.metrics import Metric, MetricName, read_target
from omma.metrics.target import Target
from omma.rule import simple_rule
from omma.sklearn._problem import labels_problem


def make_scorer(
    metric: MetricName | str | Metric,
    *,
    k: int | None = None,
    pos_label: Any = None,
    zero_division: float = 0.0,
) -> Any:
    """Make a scorer of a metric, for ``cross_val_score``, ``GridSearchCV`` and the like.

    Parameters
    ----------
    metric : str or omma.Metric
        Its budget may follow an @, as in "macro_f1@3".
    k : int, optional
        A budget: if the estimator predicts k labels per row, its decisions are scored, otherwise
        its k most probable labels.
    pos_label : optional
        The positive class, for metrics of one label; None is 1.
    zero_division : float
        The value of a rate of 0/0; NaN leaves its label out.

    Returns
    -------
    callable
        A function of (estimator, X, y) for ``scoring``.

    Raises
    ------
    ValueError
        If ``k`` is not the budget after the @.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from omma.sklearn import make_scorer
    >>> X, y = load_wine(return_X_y=True)
    >>> cross_val_score(GaussianNB(), X, y, scoring=make_scorer("multiclass_gmean")).round(2)
    array([0.95, 0.98, 0.97, 0.94, 1.  ])
    """
    judged_by, own_k = read_target(metric)
    check_positive_int("make_scorer", "k", k, optional=True)
    if None not in (k, own_k) and k != own_k:
        raise ValueError(
            f"k of make_scorer must be that of {metric!r} where both are given, got {k}"
        )
    budget = own_k if k is None else k
    if budget is not None:  # it may have to ask the estimator for probabilities
        return BudgetScorer(judged_by, budget, zero_division)
    return _make_scorer(_Score(judged_by), pos_label=pos_label, zero_division=zero_division)


class _Score:
    """A metric as a function of labels and predictions that can be pickled."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.__name__ = metric.name

    def __call__(
        self,
        y_true: Any,
        y_pred: Any,
        sample_weight: Any = None,
        pos_label: Any = None,
        zero_division: float = 0.0,
    ) -> float:
        return self.metric.score(
            y_true, y_pred, sample_weight, pos_label=pos_label, zero_division=zero_division
        )


class BudgetScorer:
    """Scores decisions of k labels a row: what ``make_scorer("macro_f1@3")`` returns."""

    def __init__(self, metric: Metric, k: int, zero_division: float = 0.0) -> None:
        self.metric, self.k, self.zero_division = metric, k, zero_division

    def __call__(self, estimator: Any, X: Any, y_true: Any, sample_weight: Any = None) -> float:
        """The metric of the estimator's decisions on some rows."""
        y_pred = estimator.predict(X)
        is_vector = np.ndim(y_true) == 1 and not sparse.issparse(y_true)
        if is_vector and self.k > 1:  # one class per row: the k most probable ones are scored
            classes = np.asarray(estimator.classes_)
            y_true = (np.asarray(y_true)[:, np.newaxis] == classes).astype(np.int8)
            eta = np.asarray(estimator.predict_proba(X))
            y_pred = simple_rule(self.k, len(classes)).predict(eta)
        # The estimator's own decisions are scored if each row has k labels.
        elif not is_vector and (np.asarray(y_pred.sum(axis=1)) != self.k).any():
            problem = labels_problem("make_scorer", y_pred.shape[1])
            y_pred = simple_rule(self.k, problem.m).predict(problem.eta(estimator, X))
        return self.metric.score(y_true, y_pred, sample_weight, zero_division=self.zero_division)

    def __repr__(self) -> str:
        return f"make_scorer({str(Target(self.metric.name, self.k))!r})"
