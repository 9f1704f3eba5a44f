"""Boosted trees: probabilities whose errors have no simple shape."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from omma_study.estimators.linear import check_positive, read_sample


@dataclass(frozen=True)
class BoostedTrees:
    """Gradient-boosted trees by scikit-learn: one model of all classes, or one for each label.

    Features are made dense, so it is for sets with few of them. A label or class that no row of the
    training part has gets the probability 0.

    Parameters
    ----------
    rounds : int
        How many trees a class, or label, gets at most.
    rate : float
        How much each of them counts.
    seed : int

    Examples
    --------
    >>> import numpy as np
    >>> from omma_study.estimators import BoostedTrees
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> y = (X[:, :2] ** 2 > 1).astype(np.int8)  # no linear model would see it
    >>> model = BoostedTrees(rounds=20).fit(X, y)
    >>> bool(((model.predict_proba(X) > 0.5) == y).mean() > 0.95)
    True
    """

    rounds: int = 100
    rate: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        check_positive(self, "rounds", "rate")

    def fit(self, X: Any, y: Any, n_labels: int | None = None) -> BoostedModel:
        """Fit to indicators of shape (n, m), or to class ids; those of a binary set are a label."""
        X, y, m = read_sample(X, y, n_labels)
        X = X.toarray() if sparse.issparse(X) else X
        if sparse.issparse(y):
            models = [self._fitted(X, column) for column in y.toarray().T]
        else:
            models, m = [self._fitted(X, y)], m if n_labels else 1
        return BoostedModel(tuple(models), m, {"rounds": self.rounds, "rows": len(X)})

    def _fitted(self, X: Any, y: Any) -> Any:
        if len(np.unique(y)) < 2:
            return DummyClassifier().fit(X, y)  # there is nothing to learn: its class has 1
        model = HistGradientBoostingClassifier(
            max_iter=self.rounds, learning_rate=self.rate, early_stopping=False,
            random_state=self.seed,
        )  # fmt: skip
        with threadpool_limits(1):  # threads wait for each other where processors are busy
            return model.fit(X, y)


@dataclass(frozen=True)
class BoostedModel:
    """A model of all classes, or one for each label."""

    models: tuple[Any, ...]
    n_labels: int
    report: dict[str, Any] = field(default_factory=dict)

    def predict_proba(self, X: Any) -> Any:
        """Probability of each label in each row."""
        X = X.toarray() if sparse.issparse(X) else np.asarray(X)
        eta = np.zeros((len(X), self.n_labels))
        for label, model in enumerate(self.models):
            probabilities = model.predict_proba(X)
            if len(self.models) < self.n_labels:
                # One model of several classes has a column for each class that it saw.
                eta[:, model.classes_] = probabilities
            else:
                # The classes are 0 and 1, or the only one of these that was seen.
                eta[:, label] = probabilities @ model.classes_
        return eta
