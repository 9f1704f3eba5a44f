"""The paper's linear model for one class a row: cross-entropy, minimized by Adam in batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import check_number, check_positive_int, check_seed
from omma.calibration import log_loss
from omma_study.estimators._shared import check_standardise, read_either, read_sample, scaled
from omma_study.estimators.choosing import check_grid, choose, folds, sample
from omma_study.estimators.kernels import step_all
from omma_study.estimators.linear import LinearModel, probabilities

Floats = NDArray[np.float64]


@dataclass
class Moments:
    """Weights (d + 1, m), the last row being intercepts, with their running means, and a clock."""

    weights: Floats
    first: Floats
    second: Floats
    clock: NDArray[np.int64]

    @classmethod
    def start(cls, d: int, m: int, seed: int) -> Moments:
        """Weights drawn evenly from ±1/√d, as PyTorch's linear layer does."""
        bound = 1 / np.sqrt(max(d, 1))
        weights = np.random.default_rng(seed).uniform(-bound, bound, size=(d + 1, m))
        zeros = np.zeros((2, d + 1, m))
        return cls(weights, zeros[0], zeros[1], np.zeros(2, dtype=np.int64))


def check_adam(owner: str, estimator: Any) -> None:
    """Options that every model learned by Adam has."""
    if estimator.learning_rate is not None:
        check_number(owner, "learning_rate", estimator.learning_rate, low=0.0, strict=True)
    for name in ("beta1", "beta2"):
        if check_number(owner, name, getattr(estimator, name), low=0.0, high=1.0) == 1.0:
            raise ValueError(f"{name} of {owner} must be below 1, got 1")
    check_number(owner, "epsilon", estimator.epsilon, low=0.0, strict=True)
    for name in ("rates", "penalties"):
        object.__setattr__(estimator, name, check_grid(owner, name, getattr(estimator, name)))
    check_seed(owner, estimator.seed)


def hyperparameters(estimator: Any, learning_rate: float, l2: float) -> Floats:
    """Numbers in the order that kernels read them."""
    return np.array([learning_rate, estimator.beta1, estimator.beta2, estimator.epsilon, l2])


OWNER = "LinearAdam"


@dataclass(frozen=True)
class LinearAdam:
    """A linear model fitted by Adam: softmax for class ids, logistic for labels.

    It minimizes the mean cross-entropy of a batch plus ``l2 · |w|²/2``, intercepts apart, going
    over the rows ``epochs`` times in an order drawn by ``seed``. All weights move at each step.
    A class that no row of the training part has is learned to be improbable; it does not get 0.

    Parameters
    ----------
    learning_rate, l2 : float, optional
        Default: first the rate, then l2, with the least log-loss on a fifth of at most ``max_rows``
        rows, drawn by ``seed``, after fitting on the others.
    rates, penalties : sequence of float
        What to choose from.
    epochs, batch, max_rows : int
    beta1, beta2, epsilon : float
        Adam's own.
    standardise : bool or "auto"
        Bring features to mean 0 and deviation 1; "auto" does so where X is dense.
    seed : int

    Examples
    --------
    >>> import numpy as np
    >>> from omma_study.estimators import LinearAdam
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=300)
    >>> X = np.eye(3)[y] + rng.normal(size=(300, 3))
    >>> model = LinearAdam(learning_rate=0.01, l2=1e-4, epochs=50).fit(X, y)
    >>> model.predict_proba(X[:2]).round(1), y[:2]
    (array([[0.1, 0.1, 0.8],
           [0.2, 0.7, 0.1]]), array([2, 1]))
    """

    learning_rate: float | None = None
    l2: float | None = None
    rates: tuple[float, ...] = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
    penalties: tuple[float, ...] = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
    epochs: int = 20
    batch: int = 256
    max_rows: int = 10_000
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    standardise: bool | str = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        check_adam(OWNER, self)
        if self.l2 is not None:
            check_number(OWNER, "l2", self.l2, low=0.0)
        for name in ("epochs", "batch", "max_rows"):
            check_positive_int(OWNER, name, getattr(self, name))
        check_standardise(OWNER, self.standardise)

    def fit(self, X: Any, y: Any, n_labels: int | None = None) -> LinearModel:
        """Fit on class ids of shape (n,), or on indicators of shape (n, m)."""
        X, (y, m, link) = read_sample(OWNER, X, y, n_labels, read_either)
        X, undo = scaled(OWNER, self.standardise, X)
        rate, l2, chosen = self._choose(X, y, m, link)
        weights, intercept = self._solve(X, y, m, link, rate, l2)
        weights, intercept = undo(weights, intercept)
        report = {"learning_rate": rate, "l2": l2, "epochs": self.epochs, "rows": X.shape[0]}
        return LinearModel(weights, intercept, link, report={**report, "labels": m, **chosen})

    def _solve(
        self, X: Any, y: Any, m: int, link: str, rate: float, l2: float
    ) -> tuple[Floats, Floats]:
        """Weights (d, m) and intercepts (m,) after all epochs."""
        state = Moments.start(X.shape[1], m, self.seed)
        hyper = hyperparameters(self, rate, l2)
        rng = np.random.default_rng(self.seed)
        gradient = np.empty_like(state.weights)
        for _ in range(self.epochs):
            order = rng.permutation(X.shape[0])
            for start in range(0, len(order), self.batch):
                rows = order[start : start + self.batch]
                features = X[rows]
                scores = features @ state.weights[:-1] + state.weights[-1]
                errors = subtract_labels(probabilities(scores, link), y[rows]) / len(rows)
                gradient[:-1] = features.T @ errors
                gradient[-1] = errors.sum(axis=0)
                step_all(gradient, hyper, state.clock, state.weights, state.first, state.second)
        return state.weights[:-1].copy(), state.weights[-1].copy()

    def _choose(self, X: Any, y: Any, m: int, link: str) -> tuple[float, float, dict[str, Any]]:
        """Learning rate, l2, and a report on how they were found."""
        rate, l2 = self.learning_rate, self.l2
        rng = np.random.default_rng(self.seed)
        rows = sample(X.shape[0], self.max_rows, rng)
        if (rate is not None and l2 is not None) or len(rows) < 5:
            return 0.01 if rate is None else rate, 0.0 if l2 is None else l2, {}
        X, y = X[rows], y[rows]
        fit, judge = folds(len(rows), 5, rng)[0]

        def loss(rate: float, l2: float) -> float:
            model = LinearModel(*self._solve(X[fit], y[fit], m, link, rate, l2), link)
            return log_loss(model.predict_proba(X[judge]), y[judge])

        report: dict[str, Any] = {"chosen": f"log-loss of {len(judge)} held-out rows"}
        if rate is None:
            choice = choose(self.rates, lambda rate: loss(rate, l2 or 0.0))
            rate, report["rates"] = choice.value, choice.report
        if l2 is None:
            choice = choose(self.penalties, lambda l2: loss(rate, l2))
            l2, report["penalties"] = choice.value, choice.report
        return rate, l2, report


def subtract_labels(eta: Floats, y: Any) -> Floats:
    """Probability minus label, in place."""
    if sparse.issparse(y):
        entries = y.tocoo()
        eta[entries.coords[0], entries.coords[1]] -= 1.0
    else:
        eta[np.arange(len(y)), y] -= 1.0
    return eta
