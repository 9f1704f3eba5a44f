"""LIBLINEAR on many labels at a time."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma.estimators._sklearn import one_thread

Floats = NDArray[np.float64]


def fit_labels(
    X: Any,  # noqa: N803
    Y: Any,  # noqa: N803
    C: float,  # noqa: N803
    truncate: float,
    intercept_scaling: float,
    tol: float,
    n_jobs: int,
) -> tuple[Any, Floats]:
    """Weights (d, m), stored sparse if truncated, and intercepts (m,) of one model a label.

    Labels run in threads, which share X. LIBLINEAR's primal solver draws nothing at random and
    BLAS is held to one thread, so every number of jobs gives the same bits.
    """
    from joblib import Parallel, delayed
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    solver = LogisticRegression(
        C=C, solver="liblinear", intercept_scaling=intercept_scaling, tol=tol, max_iter=1000
    )
    columns = Y.tocsc()
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a solver at its limit is good enough
        run = Parallel(n_jobs=n_jobs, prefer="threads")
        found = run(
            delayed(_fit_label)(solver, X, _rows_of(columns, j), truncate)
            for j in range(columns.shape[1])
        )
    intercept = np.array([each[1] for each in found])
    kept = [each[0] for each in found]
    if truncate:
        return sparse.hstack(kept, format="csr"), intercept
    return np.ascontiguousarray(np.array(kept).T), intercept


def _rows_of(columns: Any, label: int) -> NDArray[Any]:
    start, end = columns.indptr[label : label + 2]
    rows: NDArray[Any] = columns.indices[start:end]
    return rows


def _fit_label(solver: Any, X: Any, positive: NDArray[Any], truncate: float) -> tuple[Any, float]:  # noqa: N803
    """One label: its weights, and its intercept, which is infinite where nothing can be learned."""
    from sklearn import clone, config_context

    n, d = X.shape
    if len(positive) in (0, n):
        weights, intercept = np.zeros(d), np.inf if len(positive) else -np.inf
    else:
        y = np.zeros(n, dtype=np.int64)
        y[positive] = 1
        with config_context(assume_finite=True, skip_parameter_validation=True):
            model = clone(solver).fit(X, y)
        weights, intercept = model.coef_[0], float(model.intercept_[0])
    if not truncate:
        return np.asarray(weights, dtype=np.float64), intercept
    kept = np.flatnonzero(np.abs(weights) >= truncate)
    column = (np.asarray(weights[kept], dtype=np.float64), kept, np.array([0, len(kept)]))
    return sparse.csc_array(column, shape=(d, 1)), intercept
