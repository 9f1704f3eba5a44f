"""Estimators of label probabilities: what decisions are made from.

Each is a frozen configuration. ``fit(X, y)`` gives a model with ``predict_proba(X)`` and a
``report`` on how it was fitted. ``OnlineLinear`` learns as rows come: ``estimates(X, y)``.
"""

from omma.estimators.adam import LinearAdam
from omma.estimators.boosted import BoostedModel, BoostedTrees
from omma.estimators.linear import LinearModel
from omma.estimators.logistic import LogisticRegression
from omma.estimators.multinomial import Multinomial
from omma.estimators.online import OnlineLinear, OnlineModel

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
