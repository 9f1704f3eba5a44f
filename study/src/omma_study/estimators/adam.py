"""Linear models by Adam: the paper's for classes, in batches, and one that learns as rows come."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numba
import numpy as np
from scipy import sparse

from omma.calibration import log_loss
from omma_study.estimators.linear import (
    Floats,
    LinearModel,
    Rows,
    check_positive,
    choose,
    folds,
    indicators,
    probabilities,
    read_features,
    read_sample,
    sample,
    standardised,
)

CHOOSE = "choose"
LIMIT = 10.0  # deviations; rare features and the first rows would be far beyond otherwise
# As the library's kernels: divisions by zero do not raise, so loops can be vectorized.
compiled = numba.njit(error_model="numpy", nogil=True, cache=True)


@compiled
def _pace(hyper, step):  # type: ignore[no-untyped-def]
    """The rate and the root of v̂ / v at a step; powers are slow, so once a row."""
    rate, beta1, beta2 = hyper[:3]
    return rate / (1.0 - beta1**step), np.sqrt(1.0 - beta2**step)


@compiled
def _move(gradient, hyper, pace, weight, first, second):  # type: ignore[no-untyped-def]
    """Move some weights by one step of Adam, in place.

    m ← β1·m + (1 − β1)·g, v ← β2·v + (1 − β2)·g², w ← w − rate·m̂ / (√v̂ + ε), where m̂ and v̂ are
    corrected for means that start at zero (Kingma and Ba, algorithm 1).
    """
    beta1, beta2, epsilon = hyper[1:4]
    rate, root = pace
    # A loop, as array expressions would make an array for each term, and take twice as long.
    for j in range(weight.shape[0]):
        first[j] += (gradient[j] - first[j]) * (1.0 - beta1)
        second[j] = beta2 * second[j] + (1.0 - beta2) * gradient[j] * gradient[j]
        weight[j] -= rate * first[j] / (np.sqrt(second[j]) / root + epsilon)


@compiled
def _run(  # type: ignore[no-untyped-def]
    is_sparse, starts, features, data, true_starts, true, learns, softmax, standardise, hyper,
    stats, weights, first, second, clock, eta,
):  # fmt: skip
    """Predict each row into ``eta``, then learn from it if asked to.

    Row t stores ``data[starts[t]:starts[t + 1]]``. A sparse row has their features beside; of a
    dense row ``features`` has all, once. ``true`` has the labels of row t, as CSR does.
    """
    intercept = weights.shape[0] - 1
    l2, intercept_l2 = hyper[4:]
    for t in range(starts.shape[0] - 1):
        row = data[starts[t] : starts[t + 1]].astype(np.float64)
        places = features[starts[t] : starts[t + 1]] if is_sparse else features
        values = row
        if standardise:
            deviation = np.where(stats[1] > 0.0, np.sqrt(stats[1] / max(clock[1], 1)), 1.0)
            values = np.clip((row - stats[0]) / deviation, -LIMIT, LIMIT)
            # Before the second row there is no deviation: all features are zero.
            values *= clock[1] > 1
        scores = weights[intercept].copy()
        for i in range(values.shape[0]):
            scores += values[i] * weights[places[i]]
        if softmax:
            scores = np.exp(scores - scores.max())  # no overflow
            scores /= scores.sum()
        else:
            # 1 / (1 + e^−s) from e^−|s|, which never overflows.
            small = np.exp(-np.abs(scores))
            scores = np.where(scores >= 0.0, 1.0, small) / (1.0 + small)
        eta[t] = scores
        if not learns:
            continue
        for place in range(true_starts[t], true_starts[t + 1]):
            scores[true[place]] -= 1.0  # from here on errors, η − y
        clock[0] += 1
        pace = _pace(hyper, clock[0])
        for i in range(values.shape[0]):
            f = places[i]
            gradient = scores * values[i] + l2 * weights[f]
            _move(gradient, hyper, pace, weights[f], first[f], second[f])
        last = weights[intercept], first[intercept], second[intercept]
        _move(scores + intercept_l2 * weights[intercept], hyper, pace, *last)
        if standardise:  # Welford's recurrence for mean and squared deviations
            clock[1] += 1
            away = row - stats[0]
            stats[0] += away / clock[1]
            stats[1] += away * (row - stats[0])


class Moments(NamedTuple):
    """Weights (d + 1, m), the last row being intercepts, with their running means, and a clock.

    All four are changed in place.
    """

    weights: Floats
    first: Floats
    second: Floats
    clock: Rows  # steps, and rows seen by a running standardization

    @classmethod
    def start(cls, d: int, m: int, seed: int) -> Moments:
        """Weights drawn evenly from ±1/√d, as PyTorch's linear layer does."""
        bound = 1 / np.sqrt(max(d, 1))
        weights = np.random.default_rng(seed).uniform(-bound, bound, size=(d + 1, m))
        first, second = np.zeros((2, d + 1, m))
        return cls(weights, first, second, np.zeros(2, dtype=np.int64))


def _hyperparameters(
    estimator: Any, rate: float, l2: float, intercept_l2: float = 0.0
) -> tuple[float, ...]:
    """What compiled loops call ``hyper``, in this order."""
    return rate, estimator.beta1, estimator.beta2, estimator.epsilon, l2, intercept_l2


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
        check_positive(self, "learning_rate", "rates", "penalties", "epochs", "batch", "max_rows")

    def fit(self, X: Any, y: Any, n_labels: int | None = None) -> LinearModel:
        """Fit on class ids of shape (n,), or on indicators of shape (n, m)."""
        X, y, m = read_sample(X, y, n_labels)
        link = "logistic" if sparse.issparse(y) else "softmax"
        X, scaler = standardised(self.standardise, X)
        rate, l2, chosen = self._choose(X, y, m, link)
        weights, intercept = self._solve(X, y, m, link, rate, l2)
        report = {"learning_rate": rate, "l2": l2, "epochs": self.epochs, "rows": X.shape[0]}
        report |= {"labels": m, **chosen}
        return LinearModel(weights, intercept, link, scaler, report=report)

    def _solve(
        self, X: Any, y: Any, m: int, link: str, rate: float, l2: float
    ) -> tuple[Floats, Floats]:
        """Weights (d, m) and intercepts (m,) after all epochs."""
        state = Moments.start(X.shape[1], m, self.seed)
        hyper = _hyperparameters(self, rate, l2)
        rng = np.random.default_rng(self.seed)
        gradient = np.empty_like(state.weights)
        every_weight = [array.ravel() for array in state[:3]]  # views: all move at each step
        truth = y if sparse.issparse(y) else indicators(y, m)
        for _ in range(self.epochs):
            order = rng.permutation(X.shape[0])
            for start in range(0, len(order), self.batch):
                rows = order[start : start + self.batch]
                features = X[rows]
                scores = features @ state.weights[:-1] + state.weights[-1]
                errors = (probabilities(scores, link) - truth[rows].toarray()) / len(rows)
                gradient[:-1] = features.T @ errors + l2 * state.weights[:-1]
                gradient[-1] = errors.sum(axis=0)
                state.clock[0] += 1
                pace = _pace(hyper, state.clock[0])
                _move(gradient.ravel(), hyper, pace, *every_weight)
        return state.weights[:-1], state.weights[-1]

    def _choose(self, X: Any, y: Any, m: int, link: str) -> tuple[float, float, dict[str, Any]]:
        """Learning rate, l2, and a report on how they were found."""
        rate, l2 = self.learning_rate, self.l2
        rng = np.random.default_rng(self.seed)
        rows = sample(X.shape[0], self.max_rows, rng)
        if (rate is not None and l2 is not None) or len(rows) < 5:
            return 0.01 if rate is None else rate, 0.0 if l2 is None else l2, {}
        X, y = X[rows], y[rows]
        # A single split: each loss is a whole fit.
        fit, judge = folds(len(rows), 5, rng)[0]

        def loss(rate: float, l2: float) -> float:
            model = LinearModel(*self._solve(X[fit], y[fit], m, link, rate, l2), link)
            return log_loss(model.predict_proba(X[judge]), y[judge])

        report: dict[str, Any] = {"chosen": f"log-loss of {len(judge)} held-out rows"}
        if rate is None:
            rate, report["rates"] = choose(self.rates, lambda rate: loss(rate, l2 or 0.0))
        if l2 is None:
            l2, report["penalties"] = choose(self.penalties, lambda l2: loss(rate, l2))
        return rate, l2, report


@dataclass(frozen=True)
class OnlineLinear:
    """A linear model updated by Adam after every row: estimates for a stream, from nothing.

    Each row is predicted first and learned from then. Labels are learned by the logistic loss,
    each by itself; class ids by cross-entropy of the softmax.

    What is computed: step t has the gradient ``(η - y) x + l2 · w`` of the weights (intercepts are
    not regularized, unless asked for), and moves ``w`` by
    ``learning_rate · m / (1 - β1ᵗ) / (√(v / (1 - β2ᵗ)) + ε)``, where m and v are Adam's running
    means of the gradient and its square. A dense row does that for all features. A sparse row does
    it only for those that it stores, as PyTorch's ``SparseAdam`` does: for all others m, v, w
    and the pull of l2 stay as they are until the feature is seen again, while t counts all rows.
    The paper's code steps all weights at each row, intercepts regularized: ``dense=True,
    regularise_intercept=True, learning_rate=0.005, l2=1e-5, standardise=False``.

    Parameters
    ----------
    learning_rate : float, optional
        Default: the one of ``rates`` with the least log-loss when the first ``prefix`` rows are
        predicted and learned one by one; then the whole sequence starts anew with it.
    l2 : float or "choose"
        "choose" takes the one of ``penalties`` that goes with the least such log-loss.
    beta1, beta2, epsilon : float
        Adam's own.
    rates, penalties : sequence of float
    prefix : int
        A longer one costs as many passes over it, and chooses better where rows are alike at first.
    standardise : bool, "auto" or "choose"
        See each feature in deviations from its mean, both of the rows before, and at most 10 of
        them; "auto" does so where X is dense, "choose" where that has the less log-loss.
    dense : bool
        Step all weights at each row, also where rows are sparse; X is then held as a dense array.
    regularise_intercept : bool
    seed : int
        Of the weights to start with, drawn evenly from ±1/√d.

    Examples
    --------
    >>> import numpy as np
    >>> from omma_study.estimators import OnlineLinear
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=2000)
    >>> X = np.eye(3)[y] + 0.5 * rng.normal(size=(2000, 3))
    >>> eta, report = OnlineLinear().estimates(X, y)
    >>> float((eta[1000:].argmax(axis=1) == y[1000:]).mean()), report["learning_rate"]
    (0.867, 0.03)

    Row by row, as you serve, it gives the same:

    >>> model = OnlineLinear(learning_rate=0.03).start(n_features=3, n_labels=3, link="softmax")
    >>> model.predict_proba(X[:1])
    array([[0.452, 0.394, 0.154]])
    >>> model = model.partial_fit(X[:1], y[:1])
    >>> bool((model.predict_proba(X[1:2]) == eta[1]).all())
    True
    """

    learning_rate: float | None = None
    l2: float | str = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    rates: tuple[float, ...] = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)
    penalties: tuple[float, ...] = (1e-6, 1e-5, 1e-4)
    prefix: int = 5000
    standardise: bool | str = "auto"
    dense: bool = False
    regularise_intercept: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        check_positive(self, "learning_rate", "rates", "penalties", "prefix")

    def start(
        self, n_features: int, n_labels: int, link: str = "logistic", *, sparse: bool = False
    ) -> OnlineModel:
        """A model that has seen nothing, to be used row by row.

        Parameters
        ----------
        n_features, n_labels : int
        link : {"logistic", "softmax"}
            Labels, each by itself, or one class a row.
        sparse : bool
            Whether rows will come as sparse matrices; only what ``standardise="auto"`` means
            depends on it.
        """
        if self.learning_rate is None or CHOOSE in (self.l2, self.standardise):
            raise ValueError(
                "learning_rate, l2 and standardise of OnlineLinear must be set to start row by "
                "row: there are no rows yet to choose them by"
            )
        scales = not sparse if self.standardise == "auto" else bool(self.standardise)
        if scales and sparse:
            raise ValueError("standardise of OnlineLinear must be False for sparse rows")
        l2 = float(self.l2)
        hyper = _hyperparameters(self, self.learning_rate, l2, l2 * self.regularise_intercept)
        moments, stats = Moments.start(n_features, n_labels, self.seed), np.zeros((2, n_features))
        return OnlineModel(moments, hyper, link, scales, stats)

    def estimates(self, X: Any, y: Any, n_labels: int | None = None) -> tuple[Floats, Any]:
        """Probabilities (n, m) of each row, predicted before it was learned from, and a report."""
        X, y, m = read_sample(X, y, n_labels)
        if self.dense and sparse.issparse(X):
            X = X.toarray()
        best, chosen = self._choose(X[: self.prefix], y[: self.prefix], m)
        eta = best._run(X, y, m)
        report = {"learning_rate": best.learning_rate, "l2": best.l2, "log_loss": log_loss(eta, y)}
        return eta, {**report, **chosen}

    def _run(self, X: Any, y: Any, m: int) -> Floats:
        link = "logistic" if sparse.issparse(y) else "softmax"
        model = self.start(X.shape[1], m, link, sparse=sparse.issparse(X))
        return model.run(X, y)

    def _choose(self, X: Any, y: Any, m: int) -> tuple[OnlineLinear, dict[str, Any]]:
        """The candidate whose best learning rate has the least log-loss."""
        if self.learning_rate is not None and CHOOSE not in (self.l2, self.standardise):
            return self, {}
        rates = self.rates if self.learning_rate is None else (self.learning_rate,)
        penalties = (0.0, *self.penalties) if self.l2 == CHOOSE else (self.l2,)
        ways: Any = (self.standardise,)
        if self.standardise == CHOOSE:
            ways = (False,) if sparse.issparse(X) else (True, False)
        tried = []
        for way, l2 in product(ways, penalties):
            candidate = replace(self, l2=l2, standardise=way)
            rate, report = choose(
                rates,
                lambda rate, candidate=candidate: log_loss(  # type: ignore[misc]
                    replace(candidate, learning_rate=rate)._run(X, y, m), y
                ),
            )
            tried.append((report, replace(candidate, learning_rate=rate)))
        # Of equals the first: standardised, and with the least l2.
        report, best = min(tried, key=lambda pair: pair[0]["log_loss"])
        words = f"progressive log-loss of the first {X.shape[0]} rows"
        summary = {"chosen": words, "grid": report["grid"], "at_edge": report["at_edge"]}
        if len(tried) > 1:
            summary["standardise"] = best.standardise
            summary["tried"] = [
                {
                    "l2": candidate.l2,
                    "standardise": candidate.standardise,
                    "log_loss": report["log_loss"],
                }
                for report, candidate in tried
            ]
        return best, summary


@dataclass
class OnlineModel:
    """A linear model as it stands: predict rows, learn from rows; it can be pickled.

    Attributes
    ----------
    moments : Moments
        Weights and what Adam remembers.
    link : {"logistic", "softmax"}
    standardise : bool
    """

    moments: Moments
    hyper: tuple[float, ...]
    link: str
    standardise: bool
    stats: Floats  # mean and squared deviations of features

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of rows (n, d); nothing is changed."""
        return self.run(read_features(X), None)

    def partial_fit(self, X: Any, y: Any) -> OnlineModel:
        """Learn from rows (n, d) with their labels, one after another."""
        X, y, _ = read_sample(X, y, None)
        self.run(X, y)
        return self

    def run(self, X: Any, y: Any) -> Floats:
        """Predict each row, and learn from it where there are labels."""
        n, d = X.shape
        state, m = self.moments, self.moments.weights.shape[1]
        if d != len(state.weights) - 1 or (self.standardise and sparse.issparse(X)):
            raise ValueError(
                f"X of OnlineModel must have {len(state.weights) - 1} features, and be dense where "
                f"features are standardised; got {X.shape}"
            )
        # Labels beyond those of the model would be followed out of its arrays.
        width = m if y is None else y.shape[1] if sparse.issparse(y) else y.max() + 1
        if width > m or (y is not None and sparse.issparse(y) != (self.link == "logistic")):
            raise ValueError(
                f"y of OnlineModel must be indicators of {m} labels, or class ids below {m} where "
                "the link is softmax"
            )
        if sparse.issparse(X):
            rows = X.indptr.astype(np.int64), X.indices, X.data
        else:  # every row stores all features, which are named once
            rows = np.arange(n + 1) * d, np.arange(d), np.ascontiguousarray(X).ravel()
        if y is None:
            truth = sparse.csr_array((n, m), dtype=np.int8)  # nothing to learn from
        else:
            truth = y if sparse.issparse(y) else indicators(y, m)
        eta = np.empty((n, m))
        flags = y is not None, self.link == "softmax", self.standardise
        _run(
            sparse.issparse(X), *rows, truth.indptr.astype(np.int64),
            truth.indices.astype(np.int64), *flags, self.hyper, self.stats, *state, eta,
        )  # fmt: skip
        return eta
