"""Probabilities of rows by models that have not seen them."""

from __future__ import annotations

from collections.abc import Iterable
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
from omma.sklearn._probabilities import probabilities
from omma.sklearn._target import LABELS, OWNER, Target


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
    params = routed.estimator.fit
    work: dict[str, Any] = {"n_jobs": model.n_jobs, "verbose": model.verbose}
    sample, models = out_of_fold(model.estimator, X, y, target, splits, params, weights, **work)
    if model.refit:
        return clone(model.estimator).fit(X, y, **params), sample, _num_samples(X)
    part = np.arange(_num_samples(X))[splits[0][0]]  # by ids or by flags
    return models[0], sample, len(part)


def out_of_fold(
    estimator: Any,
    X: Any,
    y: Any,
    target: Target,
    splits: Iterable[tuple[Any, Any]],
    fit_params: dict[str, Any],
    weights: NDArray[Any] | None,
    *,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> tuple[Batch, list[Any]]:
    """Train a clone on each training part, and take its probabilities of the other part."""
    labels = target.encode(y)
    work = Parallel(n_jobs=n_jobs, verbose=verbose)
    done = work(
        delayed(_fold)(clone(estimator), X, y, target, train, test, fit_params)
        for train, test in splits
    )
    if not done:
        raise ValueError(f"cv of {OWNER} must give at least one split, got none")
    models, parts, rows = zip(*done, strict=True)
    every = np.concatenate([np.flatnonzero(test) if test.dtype == bool else test for test in rows])
    taken = None if weights is None else weights[every]
    sample = Batch.read(OWNER, _stacked(list(parts)), labels[every], taken)
    return sample.ready(), list(models)


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
