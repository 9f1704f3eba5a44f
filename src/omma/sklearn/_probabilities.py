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
from omma.rows.frames import values_of
from omma.sklearn._target import LABELS, OWNER, YES, Target

ROUNDING = 1e-6  # how far beyond 0 and 1 a probability may lie and still be one


def probabilities(estimator: Any, X: Any, target: Target) -> Any:
    """The estimator's probabilities, checked: a column for each class or label of the target."""
    return Batch.read(OWNER, predict_eta(estimator, X, target)).check(OWNER).values


def predict_eta(estimator: Any, X: Any, target: Target) -> Any:
    """The same, not yet checked."""
    raw = estimator.predict_proba(X)
    if target.kind == LABELS:
        eta = _of_labels(raw, estimator, target.m)
    else:
        eta = _of_classes(_as_array(raw), estimator, target)
    values = eta.data if sparse.issparse(eta) else eta
    if not values.size:
        return eta
    low, high = values.min(), values.max()
    # A rounding beyond 0 or 1 is taken off; anything further out is left to be refused.
    if (low < 0 or high > 1) and low >= -ROUNDING and high <= 1 + ROUNDING:
        return eta.minimum(1).maximum(0) if sparse.issparse(eta) else np.clip(eta, 0, 1)
    return eta


def _as_array(raw: Any) -> Any:
    values = values_of(OWNER, "predict_proba", raw)
    return values.tocsr() if sparse.issparse(values) else np.asarray(values)


def _of_labels(raw: Any, estimator: Any, m: int) -> Any:
    """(n, m) as it is; of (n, m, 2), or of m arrays (n, 2), the part that says yes."""
    if isinstance(raw, list | tuple):
        own = getattr(estimator, "classes_", None)
        if not isinstance(own, list | tuple) or len(own) != len(raw):
            own = [None] * len(raw)
        pairs = zip(map(_as_array, raw), own, strict=True)
        eta = np.stack([_positive_column(column, classes) for column, classes in pairs], axis=1)
    else:
        eta = _as_array(raw)
        eta = eta[..., 1] if eta.ndim == 3 and eta.shape[2] == 2 else eta
    if eta.ndim != 2 or eta.shape[1] != m:
        raise ValueError(
            f"predict_proba of {type(estimator).__name__} in {OWNER} must give {m} labels, got "
            f"shape {eta.shape}"
        )
    return eta


def _positive_column(eta: NDArray[Any], classes: Any) -> NDArray[Any]:
    """The probability that a label is there; training rows may have had it always, or never."""
    if eta.ndim == 1:
        return eta
    if classes is None:
        return eta[:, -1]
    place = np.flatnonzero(np.asarray(classes) == 1)
    return eta[:, place[0]] if len(place) else np.zeros(len(eta))


def _of_classes(eta: Any, estimator: Any, target: Target) -> Any:
    """A column for each class; a class that the estimator has not seen has probability zero."""
    if eta.ndim == 1 or (eta.shape[1] == 1 and len(target.classes) == 2):
        positive = (eta.toarray() if sparse.issparse(eta) else eta).reshape(-1)
        eta = np.column_stack((1 - positive, positive))
    own = np.asarray(getattr(estimator, "classes_", target.classes))
    if eta.shape[1] != len(own) or not np.isin(own, target.classes).all():
        raise ValueError(
            f"predict_proba of {type(estimator).__name__} in {OWNER} must give the classes "
            f"{target.classes.tolist()}, got {eta.shape[1]} columns for {own.tolist()}"
        )
    if not np.array_equal(own, target.classes):
        places = np.searchsorted(target.classes, own)
        entries = (np.ones(len(own)), (np.arange(len(own)), places))
        eta = eta @ sparse.csr_array(entries, shape=(len(own), len(target.classes)))
    if target.kind != YES:
        return eta
    column = eta[:, [target.positive]]
    return (column.toarray() if sparse.issparse(column) else np.asarray(column)).reshape(-1)


def out_of_fold(
    model: Any, X: Any, y: Any, target: Target, routed: Any, weights: NDArray[Any] | None
) -> tuple[Any, Batch, int]:
    """The trained estimator, out-of-fold probabilities with labels, and how many rows trained it.

    A clone is trained on each training part, and gives its probabilities of the other part.
    """
    cv = check_cv(model.cv, y=y, classifier=target.kind != LABELS)
    splits = list(cv.split(X, y, **routed.splitter.split))
    if not splits:
        raise ValueError(f"cv of {OWNER} must give at least one split, got none")
    if not model.refit and len(splits) != 1:
        raise ValueError(
            f"refit of {OWNER} must be True where cv has several splits, got False with "
            f"{len(splits)}: which of their estimators should be kept is not clear"
        )
    params, labels, n = routed.estimator.fit, target.encode(y), _num_samples(X)
    folds = Parallel(n_jobs=model.n_jobs, verbose=model.verbose)(
        delayed(_fold)(clone(model.estimator), X, y, target, train, test, params)
        for train, test in splits
    )
    estimators, etas = zip(*folds, strict=True)
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
    model: Any, X: Any, y: Any, target: Target, train: Any, test: Any, fit_params: dict[str, Any]
) -> tuple[Any, Any]:
    """One split: the trained model, and its probabilities of the other part."""
    params = _check_method_params(X, fit_params, indices=train)
    model.fit(_safe_indexing(X, train), _safe_indexing(y, train), **params)
    return model, predict_eta(model, _safe_indexing(X, test), target)
