"""Logistic regressions by scikit-learn: one for each label, or one of all classes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special
from sklearn import linear_model
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array, check_X_y, gen_batches
from threadpoolctl import threadpool_limits

from omma.calibration import log_loss

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
# Two values to each power of ten.
GRID = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
BLOCK = 1 << 22  # numbers computed at a time when probabilities are predicted


def check_positive(estimator: Any, *names: str) -> None:
    """Options that are set must be numbers above 0."""
    for name in names:
        value = getattr(estimator, name)
        numbers = value if isinstance(value, tuple | list) else (value,)
        if value is not None and not all(isinstance(v, int | float) and v > 0 for v in numbers):
            owner = type(estimator).__name__
            raise ValueError(f"{name} of {owner} must be above 0, got {value!r}")


def read_features(X: Any) -> Any:
    """Finite features of single or double precision, dense or CSR."""
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    if sparse.issparse(X):
        X.check_format()  # compiled loops would follow indices that point outside
    return X


def read_sample(X: Any, y: Any, n_labels: int | None) -> tuple[Any, Any, int]:
    """Features, and labels as CSR indicators or as class ids, with how many there are."""
    # A matrix holds indicators, a vector class ids.
    is_indicator = sparse.issparse(y) or np.ndim(y) == 2
    X, y = check_X_y(read_features(X), y, accept_sparse="csr", multi_output=is_indicator)
    if is_indicator:
        y = sparse.csr_array(y)
        y.check_format()
        values, m = y.data, y.shape[1]
    else:
        values, y = y, y.astype(np.int64)
        m = n_labels or int(y.max()) + 1
    is_valid = np.isin(values, (0, 1)) if is_indicator else (values == y) & (y >= 0) & (y < m)
    if not is_valid.all():
        raise ValueError(
            "y must hold 0 and 1 in a matrix, or whole numbers from 0 as class ids, below n_labels "
            "where that is set"
        )
    return X, y, m


def indicators(ids: Rows, m: int) -> Any:
    """Class ids as a CSR matrix, in which each row has a one in the column of its class.

    >>> indicators(np.array([1, 0]), 3).toarray().tolist()
    [[0, 1, 0], [1, 0, 0]]
    """
    ones = np.ones(len(ids), dtype=np.int8)
    return sparse.csr_array((ones, ids, np.arange(len(ids) + 1)), shape=(len(ids), m))


def standardised(standardise: bool | str, X: Any) -> tuple[Any, StandardScaler | None]:
    """Features of mean 0 and deviation 1, and their scaler; "auto" is where X is dense."""
    if standardise not in (True, False, "auto") or (standardise is True and sparse.issparse(X)):
        raise ValueError(
            f"standardise must be True, False or 'auto', and not True for sparse X, whose zeros it "
            f"would fill; got {standardise!r}"
        )
    scales = not sparse.issparse(X) if standardise == "auto" else standardise
    if not scales:
        return X, None
    scaler = StandardScaler(copy=True).fit(X)
    return scaler.transform(X), scaler


@dataclass(frozen=True)
class LinearModel:
    """A fitted linear model.

    Attributes
    ----------
    weights : ndarray or CSR of shape (d, m)
        Of features as the scaler gives them.
    intercept : ndarray of shape (m,)
        Minus infinity for a label that was never seen: its probability is 0. Infinity for one
        that was seen in every row: its probability is 1.
    link : {"logistic", "softmax"}
        Each label by itself, or one class a row.
    scaler : StandardScaler, optional
    keep : int, optional
        How many probabilities to keep in each row; the others are taken as zero, and the result is
        a CSR matrix.
    report : dict
        How it was fitted, in numbers and words that go into JSON.
    """

    weights: Any
    intercept: Floats
    link: str
    scaler: Any = None
    keep: int | None = None
    report: dict[str, Any] = field(default_factory=dict)

    def predict_proba(self, X: Any) -> Any:
        """Probability of each label in each row: (n, m), or CSR where ``keep`` is given."""
        X = read_features(X)
        m = len(self.intercept)
        keep = self.keep if self.keep is not None and self.keep < m else None
        blocks: list[Any] = []
        step = max(1, BLOCK // (m + X.shape[1]))  # all rows at once may not fit the memory
        for part in gen_batches(X.shape[0], step):
            rows = X[part] if self.scaler is None else self.scaler.transform(X[part])
            scores = rows @ self.weights
            scores = scores.toarray() if sparse.issparse(scores) else np.asarray(scores)
            eta = probabilities(scores + self.intercept, self.link)
            blocks.append(eta if keep is None else keep_largest(eta, keep))
        return np.concatenate(blocks) if keep is None else sparse.vstack(blocks, format="csr")


def probabilities(scores: Floats, link: str) -> Floats:
    """Scores (n, m) through the logistic function, or through softmax."""
    return special.expit(scores) if link == "logistic" else special.softmax(scores, axis=1)


def keep_largest(eta: Floats, keep: int) -> Any:
    """The largest probabilities of each row as CSR, without zeros; ties go to the lowest label.

    >>> keep_largest(np.array([[0.2, 0.5, 0.2], [0.0, 0.0, 0.1]]), 2).toarray()
    array([[0.2, 0.5, 0. ],
           [0. , 0. , 0.1]])
    """
    # Stable, so that of equal probabilities the lowest label comes first.
    order = np.argsort(-eta, axis=1, kind="stable")[:, :keep]
    largest = np.zeros_like(eta)
    np.put_along_axis(largest, order, np.take_along_axis(eta, order, axis=1), axis=1)
    return sparse.csr_array(largest)


def choose(grid: Sequence[float], loss: Callable[[float], float]) -> tuple[float, dict[str, Any]]:
    """Walk from the middle of the grid to the least loss; return the value and a report.

    Log-loss first falls and then rises with the strength of regularization, so the walk stops
    at the first value that is no better.

    >>> value, report = choose((1.0, 2.0, 3.0, 4.0, 5.0), lambda value: (value - 3.8) ** 2)
    >>> value, list(report["grid"]), report["at_edge"]
    (4.0, ['3', '4', '5'], False)
    """
    values = sorted({float(value) for value in grid})
    losses: dict[float, float] = {}

    def at(place: int) -> float:
        value = values[place]
        if value not in losses:
            losses[value] = float(np.nan_to_num(loss(value), nan=math.inf))
        return losses[value]

    # Up first, then down: one of the two directions ends at once.
    best = (len(values) - 1) // 2
    for step in (1, -1):
        while 0 <= best + step < len(values) and at(best + step) < at(best):
            best += step
    least = at(best)
    return values[best], {
        "log_loss": least if math.isfinite(least) else None,
        "grid": {f"{v:g}": losses[v] for v in sorted(losses) if math.isfinite(losses[v])},
        "at_edge": best in (0, len(values) - 1),
    }


def sample(n: int, most: int, rng: np.random.Generator) -> Rows:
    """All of n rows or, if there are more than ``most``, a random part, in rising order."""
    return np.arange(n) if n <= most else np.sort(rng.permutation(n)[:most])


def folds(n: int, count: int, rng: np.random.Generator) -> list[tuple[Rows, Rows]]:
    """Random folds of n rows: (to fit on, to judge by) each."""
    parts = np.array_split(rng.permutation(n), count)
    return [(np.setdiff1d(np.arange(n), part), np.sort(part)) for part in parts]


def held_out_loss(model: LinearModel, X: Any, y: Any) -> float:
    """The log-loss of labels or classes that the model saw; NaN if there is nothing to judge by.

    Of others the log-loss is 0 or infinite, whatever the model.
    """
    seen = np.isfinite(model.intercept)
    if model.link == "softmax":
        X, y = X[seen[y]], y[seen[y]]
    else:
        model = replace(model, weights=model.weights[:, seen], intercept=model.intercept[seen])
        y = y[:, np.flatnonzero(seen)]
    return log_loss(model.predict_proba(X), y) if 0 not in y.shape else np.nan


def cross_validated(
    estimator: Any, X: Any, y: Any, rng: np.random.Generator, fitted: Callable[..., LinearModel]
) -> tuple[float, dict[str, Any]]:
    """The C of the grid with the least mean log-loss over folds, and a report.

    ``fitted(X, y, C)`` is the model of some rows.
    """
    n = X.shape[0]
    parts = folds(n, min(estimator.folds, n), rng)

    def mean_loss(C: float) -> float:
        losses = [
            held_out_loss(fitted(X[fit], y[fit], C), X[judge], y[judge]) for fit, judge in parts
        ]
        # Folds in which all labels, or all rows, are new to the model do not count.
        judged = [loss for loss in losses if not np.isnan(loss)]
        return float(np.mean(judged)) if judged else np.nan

    C, report = choose(estimator.grid, mean_loss)
    labels = {"labels": y.shape[1]} if y.ndim == 2 else {}
    words = f"{labels['labels']} labels in {n} rows" if labels else f"{n} rows"
    chosen_on = {"folds": estimator.folds, "rows": n, **labels}
    return C, {**report, "chosen": f"cross-validated log-loss of {words}", "chosen_on": chosen_on}


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
    intercept_scaling: float = 1.0
    tol: float = 0.01
    seed: int = 0
    n_jobs: int = 1

    def __post_init__(self) -> None:
        names = ("C", "grid", "folds", "max_rows", "max_labels", "keep", "intercept_scaling")
        check_positive(self, *names, "tol")

    def fit(self, X: Any, y: Any, n_labels: int | None = None) -> LinearModel:
        """Fit a model for each label: to indicators, or to class ids, each as a label.

        Class ids of 0 and 1 alone are one yes or no, hence one label, unless ``n_labels`` is 2.
        """
        X, Y, m = read_sample(X, y, n_labels)
        if not sparse.issparse(Y):
            Y = indicators(Y, m)
            # Of a yes or no the second class is the yes.
            Y = Y[:, [1]] if m <= 2 and n_labels != 2 else Y
        X, scaler = standardised(self.standardise, X)
        C, chosen = self._choose(X, Y) if self.C is None else (float(self.C), {})
        weights, intercept = self._solve(X, Y, C, self.truncate)
        never, always = (int(test(intercept).sum()) for test in (np.isneginf, np.isposinf))
        labels = {"labels": len(intercept), "never": never, "always": always}
        report = {"C": C, "rows": X.shape[0], **chosen, **labels}
        if self.truncate:
            report["stored_weights"] = int(weights.nnz)
        return LinearModel(weights, intercept, "logistic", scaler, self.keep, report)

    def _solve(self, X: Any, Y: Any, C: float, truncate: float = 0.0) -> tuple[Any, Floats]:
        """Weights (d, m), stored sparse if truncated, and intercepts (m,).

        Labels run in threads, which share X. LIBLINEAR's primal solver draws nothing at random and
        BLAS is held to one thread, so every number of jobs gives the same bits.
        """
        columns = Y.tocsc()
        columns.eliminate_zeros()
        with threadpool_limits(1, "blas"), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a solver at its limit will do
            warnings.simplefilter("ignore", FutureWarning)
            fitted = joblib.Parallel(self.n_jobs, prefer="threads")(
                joblib.delayed(self._fit_label)(X, positive, C, truncate)
                for positive in np.split(columns.indices, columns.indptr[1:-1])
            )
        weights, intercept = zip(*fitted, strict=True)
        stacked = sparse.hstack(weights, format="csr") if truncate else np.array(weights).T
        return stacked, np.array(intercept)

    def _fit_label(self, X: Any, positive: Any, C: float, truncate: float) -> tuple[Any, float]:
        """Weights and intercept of the label that these rows have."""
        n, d = X.shape
        if len(positive) in (0, n):  # a label of no row or of all: its probability is 0 or 1
            weights, intercept = np.zeros(d), np.inf if len(positive) else -np.inf
        else:
            model = linear_model.LogisticRegression(
                C=C, solver="liblinear", intercept_scaling=self.intercept_scaling, tol=self.tol,
                max_iter=1000,
            ).fit(X, np.bincount(positive, minlength=n))  # fmt: skip
            weights, intercept = model.coef_[0].astype(np.float64), float(model.intercept_[0])
        if truncate:
            weights = np.where(np.abs(weights) < truncate, 0.0, weights)
            return sparse.csc_array(weights[:, np.newaxis]), intercept
        return weights, intercept

    def _choose(self, X: Any, Y: Any) -> tuple[float, dict[str, Any]]:
        """The common C, and a report on how it was found."""
        rng = np.random.default_rng(self.seed)
        rows = sample(X.shape[0], self.max_rows, rng)
        X, Y = X[rows], Y[rows]
        seen = Y.sum(axis=0)
        # Labels of all rows or of none have no loss to compare.
        varied = np.flatnonzero((seen > 0) & (seen < len(rows)))
        labels = varied[sample(len(varied), self.max_labels, rng)]
        if not len(labels) or len(rows) < 2:
            return 1.0, {"chosen": "nothing to choose by"}
        Y = Y.tocsc()[:, labels].tocsr()

        def fitted(X: Any, Y: Any, C: float) -> LinearModel:
            return LinearModel(*self._solve(X, Y, C), "logistic")

        return cross_validated(self, X, Y, rng, fitted)


@dataclass(frozen=True)
class Multinomial:
    """L2-regularized multinomial logistic regression: class probabilities that add up to one.

    It minimizes ``|W|²/2 + C · Σ cross-entropy`` by Newton's method with conjugate gradients,
    through scikit-learn, in double precision; intercepts are free. A class that no row of the
    training part has gets the probability 0.

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
        Stop where no component of the gradient of the mean loss is larger. L-BFGS stops at 1e-4 by
        default: with C = 300 on 20 Newsgroups single probabilities are then up to 0.38 from those
        of the minimum. From 1e-8 on none moves by more than 1e-4.
    choosing_tol : float
        The same while C is chosen, where a rough minimum will do.
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
    tol: float = 1e-8
    choosing_tol: float = 1e-4
    max_iter: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        check_positive(self, "C", "grid", "folds", "max_rows", "tol", "choosing_tol", "max_iter")

    def fit(self, X: Any, y: Any, n_labels: int | None = None) -> LinearModel:
        """Fit to class ids; ``n_labels`` says how many there are, where y may lack the last."""
        X, ids, m = read_sample(X, y, n_labels)
        if sparse.issparse(ids):
            raise ValueError("y of Multinomial must hold a class id for each row, got a matrix")
        X, scaler = standardised(self.standardise, X)
        C, chosen = self._choose(X, ids, m) if self.C is None else (float(self.C), {})
        # In single precision the gradient cannot be brought near zero.
        weights, intercept, steps = self._solve(X.astype(np.float64), ids, m, C, self.tol)
        report = {"C": C, "rows": len(ids), **chosen, "classes": m}
        report |= {"never": m - len(np.unique(ids)), "converged": steps < self.max_iter}
        return LinearModel(weights, intercept, "softmax", scaler, report=report)

    def _solve(self, X: Any, ids: Rows, m: int, C: float, tol: float) -> tuple[Floats, Floats, int]:
        """Weights (d, m), intercepts (m,) and the number of steps."""
        weights, intercept = np.zeros((X.shape[1], m)), np.full(m, -np.inf)
        seen = np.unique(ids)
        # scikit-learn refuses to fit one class.
        if len(seen) == 1:
            intercept[seen] = 0.0
            return weights, intercept, 0
        model = linear_model.LogisticRegression(
            C=C, solver="newton-cg", tol=tol, max_iter=self.max_iter
        )
        with threadpool_limits(1, "blas"), warnings.catch_warnings():
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

        def fitted(X: Any, ids: Rows, C: float) -> LinearModel:
            weights, intercept, _ = self._solve(X, ids, m, C, self.choosing_tol)
            return LinearModel(weights, intercept, "softmax")

        return cross_validated(self, X[rows], ids[rows], rng, fitted)
