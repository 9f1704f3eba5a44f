"""Probabilities in every shape that classifiers give them, and out-of-fold probabilities."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params, _num_samples

from omma.rows.batch import Batch
from omma.rows.frames import open_table
from omma.sklearn._problem import BINARY, MULTILABEL, OWNER, Problem

ROUNDING = 1e-6  # how far beyond 0 and 1 a probability may lie and still be one


def probabilities(estimator: Any, X: Any, problem: Problem) -> Any:
    """The estimator's probabilities, checked: a column for each class or label of the problem."""
    return Batch.read(OWNER, predict_eta(estimator, X, problem)).check(OWNER).values


def predict_eta(estimator: Any, X: Any, problem: Problem) -> Any:
    """The same, not yet checked."""
    raw = estimator.predict_proba(X)
    if problem.kind == MULTILABEL:
        eta = _of_labels(raw, estimator, problem.m)
    else:
        eta = _of_classes(_as_array(raw), estimator, problem)
    values = eta.data if sparse.issparse(eta) else eta
    if not values.size:
        return eta
    low, high = values.min(), values.max()
    # A rounding beyond 0 or 1 is taken off; anything further out is left to be refused.
    if (low < 0 or high > 1) and low >= -ROUNDING and high <= 1 + ROUNDING:
        return eta.minimum(1).maximum(0) if sparse.issparse(eta) else np.clip(eta, 0, 1)
    return eta


def _as_array(raw: Any) -> Any:
    values = open_table(OWNER, "predict_proba", raw).values
    return values.tocsr() if sparse.issparse(values) else np.asarray(values)


def _of_labels(raw: Any, estimator: Any, m: int) -> Any:
    """(n, m) as it is; of (n, m, 2), or of m arrays (n, 2), the part that says yes."""
    if isinstance(raw, list | tuple):
        known = getattr(estimator, "classes_", None)
        if not isinstance(known, list | tuple) or len(known) != len(raw):
            known = [None] * len(raw)
        columns = []
        for part, classes in zip(map(_as_array, raw), known, strict=True):
            if part.ndim == 1 or classes is None:
                columns.append(part if part.ndim == 1 else part[:, -1])
            else:  # training rows may have had the label always, or never
                place = np.flatnonzero(np.asarray(classes) == 1)
                columns.append(part[:, place[0]] if len(place) else np.zeros(len(part)))
        eta = np.stack(columns, axis=1)
    else:
        eta = _as_array(raw)
        eta = eta[..., 1] if eta.ndim == 3 and eta.shape[2] == 2 else eta
    if eta.ndim != 2 or eta.shape[1] != m:
        raise ValueError(
            f"predict_proba of {type(estimator).__name__} in {OWNER} must give {m} labels, got "
            f"shape {eta.shape}"
        )
    return eta


def _of_classes(eta: Any, estimator: Any, problem: Problem) -> Any:
    """A column for each class; a class that the estimator has not seen has probability zero."""
    if eta.ndim == 1 or (eta.shape[1] == 1 and len(problem.classes) == 2):
        positive = (eta.toarray() if sparse.issparse(eta) else eta).reshape(-1)
        eta = np.column_stack((1 - positive, positive))
    own = np.asarray(getattr(estimator, "classes_", problem.classes))
    if eta.shape[1] != len(own) or not np.isin(own, problem.classes).all():
        raise ValueError(
            f"predict_proba of {type(estimator).__name__} in {OWNER} must give the classes "
            f"{problem.classes.tolist()}, got {eta.shape[1]} columns for {own.tolist()}"
        )
    if not np.array_equal(own, problem.classes):  # a training fold may lack a class
        places = np.searchsorted(problem.classes, own)
        entries = (np.ones(len(own)), (np.arange(len(own)), places))
        eta = eta @ sparse.csr_array(entries, shape=(len(own), len(problem.classes)))
    if problem.kind != BINARY:
        return eta
    column = eta[:, [problem.positive]]
    return (column.toarray() if sparse.issparse(column) else np.asarray(column)).reshape(-1)


def out_of_fold(
    model: Any, X: Any, y: Any, problem: Problem, routed: Any, weights: NDArray[Any] | None
) -> tuple[Any, Batch, int]:
    """The trained estimator, out-of-fold probabilities with labels, and how many rows trained it.

    A clone is trained on each training part, and gives its probabilities of the other part.
    """
    cv = check_cv(model.cv, y=y, classifier=problem.kind != MULTILABEL)
    splits = list(cv.split(X, y, **routed.splitter.split))
    if not splits:
        raise ValueError(f"cv of {OWNER} must give at least one split, got none")
    if not model.refit and len(splits) != 1:
        raise ValueError(
            f"refit of {OWNER} must be True where cv has several splits, got False with "
            f"{len(splits)}: which of their estimators should be kept is not clear"
        )
    params, labels, n = routed.estimator.fit, problem.encode(y), _num_samples(X)
    folds = Parallel(n_jobs=model.n_jobs, verbose=model.verbose)(
        delayed(_fold)(clone(model.estimator), X, y, problem, train, test, params)
        for train, test in splits
    )
    estimators, etas = zip(*folds, strict=True)
    # A row may be in several test parts, or in none: it counts as often as it is predicted.
    rows = np.concatenate([np.arange(n)[test] for _, test in splits])  # by ids or by flags
    if any(map(sparse.issparse, etas)):
        eta = sparse.vstack([sparse.csr_array(part) for part in etas], format="csr")
    else:
        eta = np.concatenate(etas)
    batch = Batch.read(OWNER, eta, labels[rows], None if weights is None else weights[rows])
    sample = batch.check(OWNER).ready()
    if model.refit:
        return clone(model.estimator).fit(X, y, **params), sample, n
    return estimators[0], sample, len(np.arange(n)[splits[0][0]])


def _fold(
    model: Any, X: Any, y: Any, problem: Problem, train: Any, test: Any, fit_params: dict[str, Any]
) -> tuple[Any, Any]:
    """One split: the trained model, and its probabilities of the other part."""
    params = _check_method_params(X, fit_params, indices=train)
    model.fit(_safe_indexing(X, train), _safe_indexing(y, train), **params)
    return model, predict_eta(model, _safe_indexing(X, test), problem)
