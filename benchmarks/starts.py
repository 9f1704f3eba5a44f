"""Where offline Frank-Wolfe starts, and on which probabilities it is fitted.

``python -m benchmarks starts DATA [--dataset NAME] [--folds 3] [--regularization 30] [--every 1]``
fits logistic regressions to the training part, then Frank-Wolfe from each start to their
probabilities of the same rows, and to out-of-fold ones; values are those on the test part.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from scipy import sparse

import omma
from omma.policies import ConvergenceWarning
from omma_study.datasets import load
from omma_study.estimates import as_labels
from omma_study.estimators import LogisticRegression

TASKS = (("macro_gmean", None), ("macro_hmean", None), ("macro_f1", None), ("macro_f1", 3))
STARTS = ("top", "random", "best")


def out_of_fold(model: LogisticRegression, X: Any, y: Any, folds: int) -> Any:
    """Probabilities of each row by a model that has not seen it."""
    which = np.random.default_rng(0).permutation(X.shape[0]) % folds
    found = np.empty((X.shape[0], y.shape[1]))
    for fold in range(folds):
        held = np.flatnonzero(which == fold)
        seen = np.flatnonzero(which != fold)
        found[held] = dense(model.fit(X[seen], y[seen]).predict_proba(X[held]))
    return found


def dense(matrix: Any) -> Any:
    """An array, whatever it was."""
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def fitted(name: str, k: int | None, start: str, eta: Any, y: Any) -> omma.Mixture:
    """A mixture; how it ended is in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return omma.FrankWolfe(name, k, start=start).fit(eta, y)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="the folder of data")
    parser.add_argument("--dataset", default="rcv1_subsets")
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--regularization", type=float, default=30.0)
    parser.add_argument("--every", type=int, default=1, help="of the labels, each so-manieth")
    given = parser.parse_args()
    console = Console()
    data = load(given.dataset, given.data)
    if data.task == "multiclass":  # each class as a label, as the study has it
        data = as_labels(data)
    train, test = slice(0, data.split), slice(data.split, None)
    labels = slice(None, None, given.every)
    X, y = data.X[train], dense(data.y[train])[:, labels]
    model = LogisticRegression(C=given.regularization)
    started = time.perf_counter()
    whole = model.fit(X, y)
    samples = {
        "the training rows": dense(whole.predict_proba(X)),
        f"out of {given.folds} folds": out_of_fold(model, X, y, given.folds),
    }
    eta, true = dense(whole.predict_proba(data.X[test])), dense(data.y[test])[:, labels]
    console.print(
        f"{given.dataset}, {y.shape[1]} labels: estimates in {time.perf_counter() - started:.0f} s"
    )
    table = Table("fitted to", "metric", "k", "start", "kept", "is it?", "value", box=SIMPLE_HEAD)
    for (name, k), (sample, seen), start in (
        (task, one, start) for task in TASKS for one in samples.items() for start in STARTS
    ):
        mixture = fitted(name, k, start, seen, y)
        value = omma.replay(mixture, eta, true).value
        table.add_row(
            sample, name, str(k), start, mixture.start, str(mixture.is_start), f"{100 * value:.2f}"
        )
    console.print(table)
