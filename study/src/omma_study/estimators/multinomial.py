"""Multinomial logistic regression: one class a row."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.calibration import log_loss
from omma_study.estimators._shared import (
    one_thread,
    read_classes,
    read_sample,
    require_sklearn,
    scaled,
)
from omma_study.estimators.choosing import GRID, check_regularized, choose, folds, sample
from omma_study.estimators.linear import LinearModel

OWNER = "Multinomial"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Multinomial:
    """L2-regularized multinomial logistic regression: class probabilities that add up to one.

    It minimizes ``|W|²/2 + C · Σ cross-entropy`` by L-BFGS, through scikit-learn; intercepts are
    free. A class that no row of the training part has gets the probability 0.

    Parameters
    ----------
    C : float, optional
        How much the data count against the size of weights. Default: the value of ``grid`` with
        the least log-loss in cross-validation, on at most ``max_rows`` rows drawn by ``seed``.
    grid : sequence of float
    folds, max_rows : int
    standardise : bool or "auto"
        Bring features to mean 0 and deviation 1; "auto" does so where X is dense.
    tol : float
    max_iter : int
    seed : int

    Examples
    --------
    >>> import numpy as np
    >>> from omma_study.estimators import Multinomial
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=300)
    >>> X = np.eye(3)[y] + rng.normal(size=(300, 3))
    >>> model = Multinomial(C=1.0).fit(X, y)
    >>> model.predict_proba(X[:2]).round(2), y[:2]
    (array([[0.1 , 0.05, 0.85],
           [0.21, 0.67, 0.12]]), array([2, 1]))
    """

    C: float | None = None
    grid: tuple[float, ...] = GRID
    folds: int = 3
    max_rows: int = 20_000
    standardise: bool | str = "auto"
    tol: float = 1e-4
    max_iter: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        check_regularized(OWNER, self, "max_iter")

    def fit(self, X: Any, y: Any, n_labels: int | None = None) -> LinearModel:
        """Fit on class ids.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n, d)
        y : class ids of shape (n,)
        n_labels : int, optional
            How many classes there are, where y may lack the last ones.
        """
        require_sklearn(OWNER)
        X, (ids, m) = read_sample(OWNER, X, y, n_labels, read_classes)
        X, undo = scaled(OWNER, self.standardise, X)
        C, chosen = self._choose(X, ids, m) if self.C is None else (float(self.C), {})
        weights, intercept, steps = self._solve(X, ids, m, C)
        weights, intercept = undo(weights, intercept)
        report = {"C": C, "rows": len(ids), **chosen, "classes": m}
        report |= {"never": m - len(np.unique(ids)), "converged": steps < self.max_iter}
        return LinearModel(weights, intercept, "softmax", report=report)

    def _solve(
        self, X: Any, ids: NDArray[np.int64], m: int, C: float
    ) -> tuple[Floats, Floats, int]:
        """Weights (d, m), intercepts (m,) and the number of steps."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        weights, intercept = np.zeros((X.shape[1], m)), np.full(m, -np.inf)
        seen = np.unique(ids)
        if len(seen) == 1:
            intercept[seen] = 0.0
            return weights, intercept, 0
        model = LogisticRegression(C=C, tol=self.tol, max_iter=self.max_iter)
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the report says if it converged
            model.fit(X, ids)
        if len(seen) == 2:  # scikit-learn keeps the second class alone
            weights[:, seen[1]], intercept[seen] = model.coef_[0], (0.0, model.intercept_[0])
        else:
            weights[:, seen], intercept[seen] = model.coef_.T, model.intercept_
        return weights, intercept, int(model.n_iter_[0])

    def _choose(self, X: Any, ids: Any, m: int) -> tuple[float, dict[str, Any]]:
        """C, and a report on how it was found."""
        rng = np.random.default_rng(self.seed)
        rows = sample(len(ids), self.max_rows, rng)
        if len(rows) < 2 or len(np.unique(ids[rows])) == 1:
            return 1.0, {"chosen": "nothing to choose by"}
        X, ids = X[rows], ids[rows]
        parts = folds(len(rows), min(self.folds, len(rows)), rng)

        def loss(C: float) -> float:
            losses = []
            for fit, judge in parts:
                weights, intercept, _ = self._solve(X[fit], ids[fit], m, C)
                known = judge[np.isfinite(intercept[ids[judge]])]
                if len(known):
                    eta = LinearModel(weights, intercept, "softmax").predict_proba(X[known])
                    losses.append(log_loss(eta, ids[known]))
            return float(np.mean(losses)) if losses else np.nan

        choice = choose(self.grid, loss)
        words = f"cross-validated log-loss of {len(rows)} rows"
        chosen = {"folds": self.folds, "rows": len(rows)}
        return choice.value, {**choice.report, "chosen": words, "chosen_on": chosen}
