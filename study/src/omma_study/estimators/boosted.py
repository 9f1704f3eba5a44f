"""Boosted trees: probabilities whose errors have no simple shape."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import check_number, check_positive_int, check_seed
from omma_study.estimators import _shared

OWNER = "BoostedTrees"
Floats = NDArray[np.float64]


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
        check_positive_int(OWNER, "rounds", self.rounds)
        check_number(OWNER, "rate", self.rate, low=0.0, strict=True)
        check_seed(OWNER, self.seed)

    def fit(self, X: Any, y: Any, n_labels: int | None = None) -> BoostedModel:
        """Fit to indicators of shape (n, m), or to class ids where ``n_labels`` is given."""
        _shared.require_sklearn(OWNER)
        read = _shared.read_indicators if n_labels is None else _shared.read_classes
        features, found = _shared.read_sample(OWNER, X, y, n_labels, read)
        columns = found.toarray().T if n_labels is None else found[:1]
        dense = _dense(features)
        models = tuple(self._fitted(dense, column) for column in columns)
        return BoostedModel(
            models, n_labels or len(columns), {"rounds": self.rounds, "rows": len(dense)}
        )

    def _fitted(self, X: Floats, y: NDArray[Any]) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier

        if len(np.unique(y)) < 2:
            return int(y[0])  # there is nothing to learn
        made = HistGradientBoostingClassifier(
            max_iter=self.rounds,
            learning_rate=self.rate,
            early_stopping=False,
            random_state=self.seed,
        )
        with _shared.one_thread(None):  # more of them wait for each other where processors are busy
            return made.fit(X, y)


@dataclass(frozen=True)
class BoostedModel:
    """What fitting gives: a model of all classes, or one for each label, or what never varied."""

    models: tuple[Any, ...]
    n_labels: int
    report: dict[str, Any] = field(default_factory=dict)

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each label in each row."""
        dense = _dense(_shared.read_features("predict_proba", X))
        found = np.zeros((len(dense), self.n_labels))
        of_classes = len(self.models) < self.n_labels
        for place, model in enumerate(self.models):
            if isinstance(model, int):
                found[:, model if of_classes else place] = 1.0 if of_classes else model
            elif of_classes:
                found[:, model.classes_] = model.predict_proba(dense)
            else:
                found[:, place] = model.predict_proba(dense)[:, 1]
        return found


def _dense(X: Any) -> Any:
    return X.toarray() if sparse.issparse(X) else X
