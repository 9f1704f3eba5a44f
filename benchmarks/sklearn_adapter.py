"""MetricClassifier against what scikit-learn has: ``python -m benchmarks sklearn_adapter``.

Binary problems are raced against TunedThresholdClassifierCV, both with 5 folds. The estimator is
trained as often by both; the time that is left when that is taken off is what finding a decision
costs. Other problems have no rival in scikit-learn: there the metric is compared with that of the
estimator's own decisions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold, TunedThresholdClassifierCV
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from threadpoolctl import threadpool_limits

import omma
from benchmarks.measure import race
from omma.metrics.target import Target
from omma.sklearn import MetricClassifier

SEEDS = range(5)
BINARY = {
    "logistic": LogisticRegression(),
    "logistic, balanced weights": LogisticRegression(class_weight="balanced"),
    "naive Bayes": GaussianNB(),
}


def halves(X: Any, y: Any) -> tuple[Any, ...]:
    middle = len(X) // 2
    return X[:middle], y[:middle], X[middle:], y[middle:]


def two_classes(seed: int) -> tuple[Any, ...]:
    return halves(*make_classification(10_000, weights=[0.95], flip_y=0.03, random_state=seed))


def many_classes(seed: int) -> tuple[Any, ...]:
    return halves(
        *make_classification(
            10_000,
            n_classes=4,
            n_informative=6,
            weights=[0.8, 0.12, 0.05, 0.03],
            class_sep=0.7,
            random_state=seed,
        )
    )


def many_labels(seed: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10_000, 10))
    logits = X @ rng.normal(size=(10, 20)) * 0.5 - rng.uniform(1.5, 4.0, 20)
    return halves(X, (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(int))


def folds_only(model: Any, X: Any, y: Any) -> None:
    """What both do anyway: 5 folds, each trained and asked, and all rows in the end."""
    for train, test in StratifiedKFold(5).split(X, y):
        clone(model).fit(X[train], y[train]).predict_proba(X[test])
    clone(model).fit(X, y)


def binary(name: str, model: Any) -> list[str]:
    ours, theirs, usual = [], [], []
    for seed in SEEDS:
        X, y, X_test, y_test = two_classes(seed)
        mine = MetricClassifier(model, metric="f1", random_state=0).fit(X, y)
        tuned = TunedThresholdClassifierCV(model, scoring="f1").fit(X, y)
        usual.append(f1_score(y_test, mine.estimator_.predict(X_test)))
        ours.append(f1_score(y_test, mine.predict(X_test)))
        theirs.append(f1_score(y_test, tuned.predict(X_test)))
    seconds, slow, floor = race(
        lambda: MetricClassifier(model, metric="f1", random_state=0).fit(X, y),
        lambda: TunedThresholdClassifierCV(model, scoring="f1").fit(X, y),
        lambda: folds_only(model, X, y),
        rounds=3,
    )
    decision = (slow - floor) / max(seconds - floor, 1e-4)
    figures = (f"{100 * np.mean(each):.2f}" for each in (usual, theirs, ours))
    return [
        name,
        *figures,
        f"{1e3 * seconds:.0f} ms",
        f"{slow / seconds:.1f} ×",
        f"{decision:.0f} ×",
    ]


def other(name: str, model: Any, data: Any, metric: str, k: int | None = None) -> list[str]:
    judge = omma.metric(metric)
    usual, ours = [], []
    for seed in SEEDS:
        X, y, X_test, y_test = data(seed)
        mine = MetricClassifier(model, metric=metric, k=k, random_state=0).fit(X, y)
        m = len(mine.classes_)
        if k is None:
            plain = mine.estimator_.predict(X_test)
        else:
            eta = np.stack([part[:, 1] for part in mine.estimator_.predict_proba(X_test)], axis=1)
            plain = omma.Rule(np.ones(m), np.zeros(m), k).predict(eta)
        usual.append(judge.score(y_test, plain, n_labels=m))
        ours.append(judge.score(y_test, mine.predict(X_test), n_labels=m))
    gain = np.mean(ours) / np.mean(usual)
    title = str(Target(metric, k))
    figures = (f"{100 * np.mean(each):.2f}" for each in (usual, ours))
    return [name, title, *figures, f"{gain:.2f} ×"]


def shown(title: str, columns: list[str], rows: list[list[str]]) -> None:
    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def main() -> None:
    with threadpool_limits(1):
        shown(
            f"F1 in %, 5,000 rows to train on and 5,000 to test, mean of {len(SEEDS)}",
            ["binary", "at 0.5", "tuned", "omma", "omma takes", "tuned takes", "deciding alone"],
            [binary(name, model) for name, model in BINARY.items()],
        )
        labels = MultiOutputClassifier(LogisticRegression())
        shown(
            "The metric in %",
            ["problem", "metric", "usual decisions", "omma", "ratio"],
            [
                other("4 classes", LogisticRegression(), many_classes, "macro_f1"),
                other("4 classes", LogisticRegression(), many_classes, "multiclass_gmean"),
                other("20 labels", labels, many_labels, "macro_f1"),
                other("20 labels", labels, many_labels, "macro_gmean"),
                other("20 labels", labels, many_labels, "macro_recall", 3),
            ],
        )
