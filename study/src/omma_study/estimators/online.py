"""A linear model that learns as rows come: predict a row, then learn from it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import check_choice, check_number, check_positive_int, shown
from omma.calibration import log_loss
from omma.rows.arrays import unflagged
from omma_study.estimators import _shared
from omma_study.estimators.adam import Floats, Moments, check_adam, hyperparameters
from omma_study.estimators.choosing import choose
from omma_study.estimators.kernels import run_dense, run_sparse

OWNER = "OnlineLinear"
RATES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)
PENALTIES = (1e-6, 1e-5, 1e-4)
CHOOSE = "choose"


@dataclass(frozen=True)
class OnlineLinear:
    """A linear model updated by Adam after every row: estimates for a stream, from nothing.

    Each row is predicted first and learned from then. Labels are learned by the logistic loss,
    each by itself; class ids by cross-entropy of the softmax.

    What is computed: step t has the gradient ``(η - y) x + l2 · w`` of the weights (intercepts are
    not regularized), and moves ``w`` by
    ``learning_rate · m / (1 - β1ᵗ) / (√(v / (1 - β2ᵗ)) + ε)``, where m and v are Adam's running
    means of the gradient and its square. A dense row does that for all features. A sparse row does
    it only for those that it stores, as PyTorch's ``SparseAdam`` does: for all others m, v, w
    and the pull of l2 stay as they are until the feature is seen again, while t counts all rows.

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
    >>> model.predict_proba(X[0])
    array([0.452, 0.394, 0.154])
    >>> model = model.partial_fit(X[0], y[0])
    >>> bool((model.predict_proba(X[1]) == eta[1]).all())
    True
    """

    learning_rate: float | None = None
    l2: float | str = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    rates: tuple[float, ...] = RATES
    penalties: tuple[float, ...] = PENALTIES
    prefix: int = 5000
    standardise: bool | str = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        check_adam(OWNER, self)
        if self.l2 != CHOOSE:
            check_number(OWNER, "l2", self.l2, low=0.0)
        check_positive_int(OWNER, "prefix", self.prefix)
        if self.standardise != CHOOSE:
            _shared.check_standardise(OWNER, self.standardise)

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
        if self.learning_rate is None:
            raise ValueError(
                f"learning_rate of {OWNER} must be a number to start row by row, got None: there "
                "are no rows yet to choose it by"
            )
        if CHOOSE in (self.l2, self.standardise):
            raise ValueError(
                f"l2 and standardise of {OWNER} must not be 'choose' to start row by row: there "
                "are no rows yet to choose them by"
            )
        d = check_positive_int(OWNER, "n_features", n_features)
        m = check_positive_int(OWNER, "n_labels", n_labels)
        check_choice(OWNER, "link", link, ("logistic", "softmax"))
        standardise = self.standardise is True or (self.standardise == "auto" and not sparse)
        hyper = hyperparameters(self, self.learning_rate, float(self.l2))
        return OnlineModel(Moments.start(d, m, self.seed), hyper, link, standardise)

    def estimates(
        self, X: Any, y: Any, n_labels: int | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Probabilities of every row, each predicted before it is learned.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n, d)
            Rows in the order they come.
        y : indicators of shape (n, m), dense or sparse, or class ids of shape (n,)
        n_labels : int, optional
            How many classes there are, where y may lack the last ones.

        Returns
        -------
        eta : ndarray of shape (n, m)
        report : dict
            The learning rate and, if it was chosen, the log-loss of each that was tried; the
            log-loss of all estimates.
        """
        X, (y, m, link) = _shared.read_sample(OWNER, X, y, n_labels, _shared.read_either)
        if self.standardise != CHOOSE:
            _shared.wants_scaling(OWNER, self.standardise, X)
        best, chosen = self, dict[str, Any]()
        if self.learning_rate is None or CHOOSE in (self.l2, self.standardise):
            best, chosen = self._choose(X[: self.prefix], y[: self.prefix], m, link)
        rate = best.learning_rate
        assert rate is not None
        eta = best._run(X, y, m, link, rate)
        report = {"learning_rate": rate, "l2": best.l2, "log_loss": log_loss(eta, y), **chosen}
        return eta, report

    def _run(self, X: Any, y: Any, m: int, link: str, rate: float) -> Floats:
        model = replace(self, learning_rate=rate).start(
            X.shape[1], m, link, sparse=sparse.issparse(X)
        )
        return model.run(X, true_labels(y), learns=True, predicts=True)

    def _candidates(self, dense: bool) -> list[OnlineLinear]:
        """What there is to choose from, but for the learning rate."""
        penalties = (0.0, *self.penalties) if self.l2 == CHOOSE else (self.l2,)
        ways = ((True, False) if dense else (False,)) if self.standardise == CHOOSE else (None,)
        return [
            replace(self, l2=l2, standardise=self.standardise if way is None else way)
            for way in ways
            for l2 in penalties
        ]

    def _choose(self, X: Any, y: Any, m: int, link: str) -> tuple[OnlineLinear, dict[str, Any]]:
        """The candidate whose best learning rate has the least log-loss."""
        rates = self.rates if self.learning_rate is None else (self.learning_rate,)
        candidates = self._candidates(not sparse.issparse(X))
        choices = [
            choose(rates, lambda rate, one=one: log_loss(one._run(X, y, m, link, rate), y))  # type: ignore[misc]
            for one in candidates
        ]
        losses = [choice.losses[choice.value] for choice in choices]
        place = int(np.argmin(losses))
        choice, best = choices[place].report, candidates[place]
        words = f"progressive log-loss of the first {X.shape[0]} rows"
        report = {"chosen": words, "grid": choice["grid"], "at_edge": choice["at_edge"]}
        if len(candidates) > 1:
            report["standardise"] = best.standardise
            report["tried"] = [
                {"l2": one.l2, "standardise": one.standardise, "log_loss": loss}
                for one, loss in zip(candidates, losses, strict=True)
            ]
        return replace(best, learning_rate=choices[place].value), report


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
    hyper: Floats
    link: str
    standardise: bool
    stats: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.stats = np.zeros((2, self.n_features))

    @property
    def n_features(self) -> int:
        """How many features a row has."""
        return len(self.moments.weights) - 1

    @property
    def n_labels(self) -> int:
        """How many labels or classes there are."""
        return int(self.moments.weights.shape[1])

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of rows (n, d), or of one row (d,); nothing is changed."""
        alone = not sparse.issparse(X) and np.ndim(X) == 1
        rows = self._read(X)
        eta = self.run(rows, None, learns=False, predicts=True)
        return eta[0] if alone else eta

    def partial_fit(self, X: Any, y: Any) -> OnlineModel:
        """Learn from rows (n, d) with their labels, one after another, or from one row (d,)."""
        rows = self._read(X)
        if np.ndim(X) == 1 and not sparse.issparse(X):
            y = np.reshape(y, -1) if self.link == "softmax" else np.reshape(y, (1, -1))
        if self.link == "softmax":
            given, _ = _shared.read_classes("partial_fit", y, self.n_labels)
        elif not _shared.is_indicator(y):
            raise ValueError(
                f"y of partial_fit must be indicators of shape (rows, {self.n_labels}), "
                f"got {shown(y)}"
            )
        else:
            given = _shared.read_indicators("partial_fit", y, self.n_labels)
        _shared.check_rows_fit("partial_fit", rows, given.shape[0])
        self.run(rows, true_labels(given), learns=True, predicts=False)
        return self

    def run(self, X: Any, true: Any, *, learns: bool, predicts: bool) -> Floats:
        """Rows that are known to be good through the kernel."""
        n, m = X.shape[0], self.n_labels
        eta = np.empty((n if predicts else 0, m))
        empty = np.empty(0, dtype=np.int64)
        true = true or (empty, empty, np.empty(0, dtype=np.int32))
        state = self.moments
        flags = learns, self.link == "softmax"
        adam = self.hyper, state.clock
        arrays = state.weights, state.first, state.second, np.empty(self.n_features), np.empty(m)
        run: Any = run_sparse if sparse.issparse(X) else run_dense
        if sparse.issparse(X):
            indptr = X.indptr.astype(np.int64)
            stored = unflagged(X.indices), unflagged(X.data), indptr[:-1], indptr[1:]
            run(*stored, *true, *flags, *adam, *arrays, eta)
        else:
            run(unflagged(X), *true, *flags, self.standardise, *adam, self.stats, *arrays, eta)
        return eta

    def _read(self, X: Any) -> Any:
        given = X if sparse.issparse(X) else np.atleast_2d(np.asarray(X))
        rows = _shared.read_features("OnlineModel", given, self.n_features)
        if self.standardise and sparse.issparse(rows):
            raise ValueError(
                "X of OnlineModel must be dense, since features are standardised, got a sparse "
                "matrix: start the model with sparse=True"
            )
        return rows


def true_labels(y: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Labels as kernels read them: those of row t are ``ids[starts[t]:ends[t]]``."""
    if sparse.issparse(y):
        indptr = y.indptr.astype(np.int64)
        return indptr[:-1], indptr[1:], y.indices.astype(np.int32)
    places = np.arange(len(y) + 1, dtype=np.int64)
    return places[:-1], places[1:], y.astype(np.int32)
