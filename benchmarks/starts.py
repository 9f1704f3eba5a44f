"""Where offline Frank-Wolfe starts, and on which probabilities it is fitted.

Logistic regressions are fitted to the training part of a set in the folder ``--data``, then
Frank-Wolfe from each start to their probabilities of the same rows, and to out-of-fold ones; values
are those on the test part.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

import omma
from benchmarks.measure import Table
from omma.policies import ConvergenceWarning
from omma_study.datasets import load
from omma_study.estimates import as_labels
from omma_study.estimators import LogisticRegression

TASKS = (("macro_gmean", None), ("macro_hmean", None), ("macro_f1", None), ("macro_f1", 3))
STARTS = ("top", "random", "best")


def out_of_fold(model: LogisticRegression, X: Any, y: Any, folds: int) -> Any:
    """Probabilities of each row by a model that has not seen it."""
    fold_of = np.random.default_rng(0).permutation(X.shape[0]) % folds
    eta = np.empty((X.shape[0], y.shape[1]))
    for fold in range(folds):
        unseen, seen = np.flatnonzero(fold_of == fold), np.flatnonzero(fold_of != fold)
        eta[unseen] = dense(model.fit(X[seen], y[seen]).predict_proba(X[unseen]))
    return eta


def dense(matrix: Any) -> Any:
    """An array, whatever it was."""
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def starts(
    data: str = ".",
    dataset: str = "rcv1_subsets",
    folds: int = 3,
    regularization: float = 30.0,
    step: int = 1,
) -> Iterator[Table]:
    """One set of a folder of data; of its labels each ``step``-th."""
    sample = load(dataset, data)
    if sample.task == "multiclass":  # each class as a label, as the study has it
        sample = as_labels(sample)
    train, test, labels = slice(sample.split), slice(sample.split, None), slice(None, None, step)
    X, y = sample.X[train], dense(sample.y[train])[:, labels]
    model = LogisticRegression(C=regularization)
    whole = model.fit(X, y)
    estimates = {
        "the training rows": dense(whole.predict_proba(X)),
        f"out of {folds} folds": out_of_fold(model, X, y, folds),
    }
    eta, true = dense(whole.predict_proba(sample.X[test])), dense(sample.y[test])[:, labels]
    table = Table(f"Where Frank-Wolfe starts: {dataset}, {y.shape[1]} labels", "on the test part")
    for (metric, k), (rows, fitted_to), start in product(TASKS, estimates.items(), STARTS):
        with warnings.catch_warnings():  # how it ended is in the table
            warnings.simplefilter("ignore", ConvergenceWarning)
            mixture = omma.FrankWolfe(metric, k, start=start).fit(fitted_to, y)
        table.rows.append(
            {
                "fitted to": rows,
                "metric": metric,
                "k": str(k),
                "start": start,
                "better start": mixture.start,
                "is the start": str(mixture.is_start),
                "value, %": round(100 * float(omma.replay(mixture, eta, true).value), 2),
            }
        )
    yield table
