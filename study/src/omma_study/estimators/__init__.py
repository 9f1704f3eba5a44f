"""Estimators of label probabilities: what decisions are made from.

Each is a frozen configuration. ``fit(X, y)`` gives a model with ``predict_proba(X)`` and a
``report`` on how it was fitted. ``OnlineLinear`` learns as rows come: ``estimates(X, y)``.
"""

from omma_study.estimators.adam import LinearAdam
from omma_study.estimators.boosted import BoostedModel, BoostedTrees
from omma_study.estimators.linear import LinearModel
from omma_study.estimators.logistic import LogisticRegression
from omma_study.estimators.multinomial import Multinomial
from omma_study.estimators.online import OnlineLinear, OnlineModel

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
