"""Probabilities in every shape that classifiers give them, and by models of other rows."""

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


def probabilities(estimator: Any, X: Any, target: Target) -> Batch:
    """The estimator's probabilities, a column for each class or label of the target."""
    found = estimator.predict_proba(X)
    if target.kind == LABELS:
        eta = _of_labels(found, estimator, target.m)
    else:
        eta = _of_classes(_plain(found), estimator, target)
    return Batch.read(OWNER, _within(eta)).check(OWNER)


def _plain(found: Any) -> Any:
    found = values_of(OWNER, "predict_proba", found)
    return found.tocsr() if sparse.issparse(found) else np.asarray(found)


def _of_labels(found: Any, estimator: Any, m: int) -> Any:
    """(n, m) as it is; of (n, m, 2), or of m arrays (n, 2), the part that says yes."""
    if isinstance(found, list | tuple):
        own = getattr(estimator, "classes_", None)
        if not isinstance(own, list | tuple) or len(own) != len(found):
            own = [None] * len(found)
        columns = [_yes(_plain(one), classes) for one, classes in zip(found, own, strict=True)]
        eta = np.stack(columns, axis=1)
    else:
        eta = _plain(found)
        eta = eta[..., 1] if eta.ndim == 3 and eta.shape[2] == 2 else eta
    if eta.ndim != 2 or eta.shape[1] != m:
        raise ValueError(
            f"predict_proba of {type(estimator).__name__} in {OWNER} must give {m} labels, got "
            f"shape {eta.shape}"
        )
    return eta


def _yes(found: NDArray[Any], classes: Any) -> NDArray[Any]:
    """The probability that a label is there; it may have been always there, or never."""
    if found.ndim == 1:
        return found
    if classes is None:
        return found[:, -1]
    at = np.flatnonzero(np.asarray(classes) == 1)
    return found[:, at[0]] if len(at) else np.zeros(len(found))


def _of_classes(found: Any, estimator: Any, target: Target) -> Any:
    """A column for each class; one that the estimator has not seen has probability zero."""
    if found.ndim == 1 or (found.shape[1] == 1 and len(target.classes) == 2):
        positive = found.toarray() if sparse.issparse(found) else found
        positive = positive.reshape(-1)
        found = np.column_stack((1 - positive, positive))
    own = np.asarray(getattr(estimator, "classes_", target.classes))
    if found.shape[1] != len(own) or not np.isin(own, target.classes).all():
        raise ValueError(
            f"predict_proba of {type(estimator).__name__} in {OWNER} must give the classes "
            f"{target.classes.tolist()}, got {found.shape[1]} columns for {own.tolist()}"
        )
    if not np.array_equal(own, target.classes):
        places = np.searchsorted(target.classes, own)
        rows = np.arange(len(own))
        shape = (len(own), len(target.classes))
        move = sparse.csr_array((np.ones(len(own)), (rows, places)), shape=shape)
        found = found @ move
    if target.kind != YES:
        return found
    column = found[:, [target.positive]]
    return (column.toarray() if sparse.issparse(column) else np.asarray(column)).reshape(-1)


def _within(eta: Any) -> Any:
    """Without what rounding added; anything further out is left to be refused."""
    values = eta.data if sparse.issparse(eta) else eta
    if not values.size or not (values.min() < 0 or values.max() > 1):
        return eta
    if values.min() < -ROUNDING or values.max() > 1 + ROUNDING:
        return eta
    if not sparse.issparse(eta):
        return np.clip(eta, 0, 1)
    eta = eta.copy()
    eta.data = np.clip(eta.data, 0, 1)
    return eta


def trained(
    model: Any,
    X: Any,
    y: Any,
    target: Target,
    routed: Any,
    weights: NDArray[Any] | None,
) -> tuple[Any, Batch, int]:
    """The estimator, probabilities by models that did not see the rows, and how many it saw."""
    cv = check_cv(model.cv, y=y, classifier=target.kind != LABELS)
    splits = list(cv.split(X, y, **routed.splitter.split))
    if not model.refit and len(splits) != 1:
        raise ValueError(
            f"refit of {OWNER} must be True where cv has several splits, got False with "
            f"{len(splits)}: which of their estimators should be kept is not clear"
        )
    params, labels = routed.estimator.fit, target.encode(y)
    # A clone is trained on each training part, and gives its probabilities of the other part.
    done = Parallel(n_jobs=model.n_jobs, verbose=model.verbose)(
        delayed(_fold)(clone(model.estimator), X, y, target, train, test, params)
        for train, test in splits
    )
    if not done:
        raise ValueError(f"cv of {OWNER} must give at least one split, got none")
    models, parts, rows = zip(*done, strict=True)
    every = np.concatenate([np.flatnonzero(test) if test.dtype == bool else test for test in rows])
    taken = None if weights is None else weights[every]
    sample = Batch.read(OWNER, _stacked(list(parts)), labels[every], taken).ready()
    if model.refit:
        return clone(model.estimator).fit(X, y, **params), sample, _num_samples(X)
    part = np.arange(_num_samples(X))[splits[0][0]]  # by ids or by flags
    return models[0], sample, len(part)


def _fold(
    model: Any, X: Any, y: Any, target: Target, train: Any, test: Any, fit_params: dict[str, Any]
) -> tuple[Any, Any, NDArray[Any]]:
    """One split: the trained model, its probabilities of the other part, and that part's rows."""
    params = _check_method_params(X, fit_params, indices=train)
    model.fit(_safe_indexing(X, train), _safe_indexing(y, train), **params)
    eta = probabilities(model, _safe_indexing(X, test), target).values
    return model, eta, np.asarray(test)


def _stacked(parts: list[Any]) -> Any:
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack([sparse.csr_array(part) for part in parts], format="csr")
    return np.concatenate(parts)
