"""Estimators of label probabilities: what decisions are made from.

Each is a frozen configuration. ``fit(X, y)`` gives a model with ``predict_proba(X)`` and a
``report`` on how it was fitted. ``OnlineLinear`` learns as rows come: ``estimates(X, y)``.
"""

from omma_study.estimators.adam import LinearAdam, OnlineLinear, OnlineModel
from omma_study.estimators.linear import LinearModel, LogisticRegression, Multinomial
from omma_study.estimators.trees import BoostedModel, BoostedTrees

__all__ = [
    "BoostedModel",
    "BoostedTrees",
    "LinearAdam",
    "LinearModel",
    "LogisticRegression",
    "Multinomial",
    "OnlineLinear",
    "OnlineModel",
]
