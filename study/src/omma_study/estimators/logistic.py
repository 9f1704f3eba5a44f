"""One logistic regression a label, by LIBLINEAR."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from omma._validate import check_choice, check_number, check_positive_int
from omma.calibration import log_loss
from omma_study.estimators._shared import read_indicators, read_sample, require_sklearn, scaled
from omma_study.estimators.choosing import GRID, check_regularized, choose, folds, sample
from omma_study.estimators.linear import LinearModel
from omma_study.estimators.solvers import fit_in_batches, fit_labels

OWNER = "LogisticRegression"


@dataclass(frozen=True)
class LogisticRegression:
    """L2-regularized logistic regression, one for each label, as in the paper.

    LIBLINEAR solves them, through scikit-learn. It minimizes ``|w|²/2 + C · Σ log-loss`` for each
    label; its intercept is the weight of a further feature that is always ``intercept_scaling``,
    so it is regularized too.

    A label that no row of the training part has gets the probability 0, one that all rows
    have gets 1: there is nothing to learn them from.

    Parameters
    ----------
    C : float, optional
        How much the data count against the size of weights. Default: the value of ``grid`` with
        the least log-loss in cross-validation, one C for all labels. At most ``max_rows``
        rows and ``max_labels`` labels, drawn by ``seed``, are used to choose it.
    grid : sequence of float
    folds, max_rows, max_labels : int
    truncate : float
        Weights smaller than this are set to zero and the rest is stored sparse. The paper has 0.01
        for its large problems, 0 (the default) keeps all.
    keep : int, optional
        How many probabilities to keep in each row; they then come as a CSR matrix. The
        paper has 100 for its large problems.
    standardise : bool or "auto"
        Bring features to mean 0 and deviation 1; "auto" does so where X is dense.
    solver : {"liblinear", "newton"}
        The latter is our own: the same minimum, found for 16 labels at a time. On sparse text it
        is two to three times as fast; on other data LIBLINEAR may be as fast or faster.
    intercept_scaling : float
    tol : float
        When to stop, as LIBLINEAR's ``-e``.
    seed : int
    n_jobs : int
        How many labels to fit at a time; the result is the same.

    Examples
    --------
    >>> import numpy as np
    >>> from omma_study.estimators import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 4))
    >>> y = (X[:, :2] + rng.normal(size=(500, 2)) > 1).astype(np.int8)  # two labels
    >>> model = LogisticRegression().fit(X, y)
    >>> model.predict_proba(X[:2]).round(2)
    array([[0.15, 0.14],
           [0.07, 0.23]])
    >>> model.report["C"]
    1.0
    """

    C: float | None = None
    grid: tuple[float, ...] = GRID
    folds: int = 3
    max_rows: int = 10_000
    max_labels: int = 10
    truncate: float = 0.0
    keep: int | None = None
    standardise: bool | str = "auto"
    solver: str = "liblinear"
    intercept_scaling: float = 1.0
    tol: float = 0.01
    seed: int = 0
    n_jobs: int = 1

    def __post_init__(self) -> None:
        check_regularized(OWNER, self, "max_labels", "n_jobs")
        check_number(OWNER, "truncate", self.truncate, low=0.0)
        check_positive_int(OWNER, "keep", self.keep, optional=True)
        check_choice(OWNER, "solver", self.solver, ("liblinear", "newton"))
        check_number(OWNER, "intercept_scaling", self.intercept_scaling, low=0.0, strict=True)

    def fit(self, X: Any, y: Any, n_labels: int | None = None) -> LinearModel:
        """Fit one model for each label.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n, d)
        y : indicators of shape (n, m), dense or sparse, or class ids of shape (n,)
            Class ids give one model a class; ids of 0 and 1 alone are one yes or no, m = 1.
        n_labels : int, optional
            How many classes there are, where y may lack the last ones.
        """
        require_sklearn(OWNER)
        X, Y = read_sample(OWNER, X, y, n_labels, read_indicators)
        X, undo = scaled(OWNER, self.standardise, X)
        C, chosen = self._choose(X, Y) if self.C is None else (float(self.C), {})
        weights, intercept = self._solve(X, Y, C, self.truncate)
        weights, intercept = undo(weights, intercept)
        never, always = (int(test(intercept).sum()) for test in (np.isneginf, np.isposinf))
        labels = {"labels": len(intercept), "never": never, "always": always}
        report = {"C": C, "rows": X.shape[0], **chosen, **labels}
        if self.truncate:
            report["stored_weights"] = int(weights.nnz)
        return LinearModel(weights, intercept, "logistic", self.keep, report)

    def _solve(self, X: Any, Y: Any, C: float, truncate: float = 0.0) -> Any:
        solve = fit_labels if self.solver == "liblinear" else fit_in_batches
        return solve(X, Y, C, truncate, self.intercept_scaling, self.tol, self.n_jobs)

    def _choose(self, X: Any, Y: Any) -> tuple[float, dict[str, Any]]:
        """The common C, and a report on how it was found."""
        rng = np.random.default_rng(self.seed)
        rows = sample(X.shape[0], self.max_rows, rng)
        X, Y = X[rows], Y[rows]
        seen = Y.sum(axis=0)
        varied = np.flatnonzero((seen > 0) & (seen < len(rows)))
        labels = varied[sample(len(varied), self.max_labels, rng)]
        parts = folds(len(rows), min(self.folds, len(rows)), rng)
        if not len(labels) or len(rows) < 2:
            return 1.0, {"chosen": "nothing to choose by"}
        Y = Y.tocsc()[:, labels].tocsr()
        choice = choose(self.grid, lambda C: self._loss(X, Y, parts, C))
        words = f"cross-validated log-loss of {len(labels)} labels in {len(rows)} rows"
        chosen = {"folds": self.folds, "rows": len(rows), "labels": len(labels)}
        return choice.value, {**choice.report, "chosen": words, "chosen_on": chosen}

    def _loss(self, X: Any, Y: Any, parts: Any, C: float) -> float:
        """Mean log-loss over folds, of labels that the rest of the rows had something to say of."""
        losses = []
        for fit, judge in parts:
            weights, intercept = self._solve(X[fit], Y[fit], C)
            learned = np.flatnonzero(np.isfinite(intercept))
            model = LinearModel(weights[:, learned], intercept[learned], "logistic")
            if len(learned):
                losses.append(log_loss(model.predict_proba(X[judge]), Y[judge][:, learned]))
        return float(np.mean(losses)) if losses else np.nan
