"""Estimators of label probabilities: what decisions are made from.

Each is a frozen configuration. ``fit(X, y)`` gives a model with ``predict_proba(X)`` and a
``report`` on how it was fitted. ``OnlineLinear`` learns as rows come.
"""

from omma.estimators.linear import LinearModel
from omma.estimators.logistic import LogisticRegression
from omma.estimators.multinomial import Multinomial

__all__ = [
    "LinearModel",
    "LogisticRegression",
    "Multinomial",
]
