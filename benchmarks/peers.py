"""Thresholds and rules of other libraries beside omma's, on data sets that all of them take.

    pip install optimal-classification-cutoffs
    python -m benchmarks.peers [--data FOLDER] [--record docs/records/peers.jsonl] [--seeds 3]

Half of the rows are trained on, the others judge. Every method sees the same logistic regression
and five folds of the training half. optimal-classification-cutoffs has F1 and no G-mean of classes,
and is given one label at a time where there are many; TunedThresholdClassifierCV takes two classes
alone. MAPIE keeps a rate and maximizes nothing: `benchmarks.risk` has it. Seconds are those of the
processor. Without a folder of data, mammography and yeast are left out.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    make_classification,
    make_multilabel_classification,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TunedThresholdClassifierCV, cross_val_predict, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import omma
from omma.sklearn import MetricClassifier, make_scorer

Data = tuple[Any, Any]


def sets(folder: Path | None, seed: int) -> Iterator[tuple[str, str, Data, tuple[str, ...]]]:
    """Name, task, rows and the metrics that are asked for."""
    two, classes, labels = ("f1", "gmean"), ("macro_f1", "multiclass_gmean"), ("macro_f1",)
    yield "breast_cancer", "binary", load_breast_cancer(return_X_y=True), two
    rare = make_classification(
        10_000, 20, n_informative=5, weights=[0.99], flip_y=0.002, class_sep=1.5, random_state=seed
    )
    yield "1:100 synthetic", "binary", rare, two
    if folder is not None:
        X = np.load(folder / "mammography" / "X.npz")["X"]
        yield "mammography", "binary", (X, np.load(folder / "mammography" / "Y.npz")["y"]), two
    three = make_classification(
        6000, 20, n_informative=6, n_classes=3, weights=[0.9, 0.07, 0.03], flip_y=0.02,
        class_sep=0.7, random_state=seed,
    )  # fmt: skip
    yield "3 classes, imbalanced", "classes", three, classes
    yield "digits", "classes", load_digits(return_X_y=True), classes
    if folder is not None:
        from scipy import sparse

        X = np.load(folder / "yeast" / "X.npz")["X"]
        Y = sparse.load_npz(folder / "yeast" / "Y.npz").toarray()
        yield "yeast", "labels", (X, Y), (*labels, "macro_f1@3")
    many = make_multilabel_classification(3000, 20, n_classes=8, n_labels=2, random_state=seed)
    yield "make_multilabel", "labels", many, (*labels, "macro_f1@3")


def model_of(task: str) -> Any:
    inner = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return OneVsRestClassifier(inner) if task == "labels" else inner


def parts(metric: str) -> tuple[str, int | None]:
    name, _, k = metric.partition("@")
    return name, int(k) if k else None


def plain(task: str, metric: str, X: Any, y: Any, new: Any) -> Any:
    """The model's own decisions, or its k likeliest labels."""
    model, (_, k) = model_of(task).fit(X, y), parts(metric)
    return model.predict(new) if k is None else top(model, new, k)


def top(model: Any, new: Any, k: int) -> Any:
    eta = model.predict_proba(new)
    made = np.zeros(eta.shape, dtype=np.int8)
    np.put_along_axis(made, np.argsort(-eta, axis=1, kind="stable")[:, :k], 1, axis=1)
    return made


def ours(task: str, metric: str, X: Any, y: Any, new: Any) -> Any:
    name, k = parts(metric)
    return MetricClassifier(model_of(task), metric=name, k=k).fit(X, y).predict(new)


def tuned(task: str, metric: str, X: Any, y: Any, new: Any) -> Any:
    """scikit-learn's own, for two classes."""
    if task != "binary":
        return None
    scoring = make_scorer(metric)
    return TunedThresholdClassifierCV(model_of(task), scoring=scoring, cv=5).fit(X, y).predict(new)


def cutoffs(task: str, metric: str, X: Any, y: Any, new: Any) -> Any:
    """optimal-classification-cutoffs on probabilities of five folds."""
    if metric not in ("f1", "macro_f1"):
        return None
    from optimal_cutoffs import get_optimal_threshold

    model = model_of(task)
    eta = cross_val_predict(model, X, y, cv=5, method="predict_proba")
    later = model.fit(X, y).predict_proba(new)
    if task == "binary":
        return get_optimal_threshold(y, eta[:, 1], metric="f1").predict(later[:, 1])
    if task == "classes":
        return get_optimal_threshold(y, eta, metric="f1").predict(later)
    columns = [
        get_optimal_threshold(y[:, j], eta[:, j], metric="f1").predict(later[:, j])
        for j in range(y.shape[1])
    ]
    return np.stack(columns, axis=1)


METHODS: dict[str, Callable[..., Any]] = {
    "plain": plain,
    "omma": ours,
    "TunedThresholdClassifierCV": tuned,
    "optimal-classification-cutoffs": cutoffs,
}


def run(folder: Path | None, seed: int) -> Iterator[dict[str, Any]]:
    """One record for each set, metric and method of a seed."""
    for name, task, (X, y), metrics in sets(folder, seed):
        kept = None if task == "labels" else y
        X1, X2, y1, y2 = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=kept)
        for metric in metrics:
            for method, decide in METHODS.items():
                start = time.process_time()
                made = decide(task, metric, X1, y1, X2)
                seconds = time.process_time() - start
                if made is not None:
                    score = omma.metric(parts(metric)[0]).score(y2, made)
                    yield {
                        "set": name, "task": task, "metric": metric, "method": method,
                        "seed": seed, "value": 100 * score, "seconds": seconds,
                    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with mammography and yeast")
    parser.add_argument("--record", type=Path, help="a file to which lines are added")
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # of libraries about each other
    for seed in range(asked.seeds):
        for one in run(asked.data, seed):
            shown = f"{one['set']}, {one['metric']}, {one['method']}"
            print(f"{shown}: {one['value']:.1f} ({one['seconds']:.2f} s)", flush=True)
            if asked.record:
                with asked.record.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(one) + "\n")


if __name__ == "__main__":
    main()
