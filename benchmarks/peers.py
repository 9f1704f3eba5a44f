"""Thresholds and rules of other libraries beside omma's, on data sets that all of them take.

    pip install optimal-classification-cutoffs mapie
    python -m benchmarks peers [--data FOLDER] [--record docs/records/peers.jsonl] [--seeds 3]

Half of the rows are trained on, the others judge. Every method sees the same logistic regression
and five folds of the training half. optimal-classification-cutoffs has F1 and no G-mean of classes,
and is given one label at a time where there are many; TunedThresholdClassifierCV takes two classes
alone. MAPIE keeps a rate and maximizes nothing, so it is asked to keep, 90 % sure, what omma has
on the folds: its precision for F1, its rate of false alarms for the G-mean, with the best recall;
it is left out where no threshold is sure enough. `benchmarks.risk` has it with limits. Seconds are
those of the processor, with one thread in each library, and nothing is compiled while they run.
Without a folder of data, mammography and yeast are left out.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

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
from threadpoolctl import threadpool_limits

import omma
from benchmarks.measure import add_line, stored
from omma.metrics.target import parse_target
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
        found = [stored(folder / "mammography" / f"{name}.npz") for name in "XY"]
        yield "mammography", "binary", (found[0], found[1]), two
    three = make_classification(
        6000, 20, n_informative=6, n_classes=3, weights=[0.9, 0.07, 0.03], flip_y=0.02,
        class_sep=0.7, random_state=seed,
    )  # fmt: skip
    yield "3 classes, imbalanced", "classes", three, classes
    yield "digits", "classes", load_digits(return_X_y=True), classes
    if folder is not None:
        X, Y = (stored(folder / "yeast" / f"{name}.npz") for name in "XY")
        yield "yeast", "labels", (X, Y.toarray()), (*labels, "macro_f1@3")
    many = make_multilabel_classification(3000, 20, n_classes=8, n_labels=2, random_state=seed)
    yield "make_multilabel", "labels", many, (*labels, "macro_f1@3")


def model_of(task: str) -> Any:
    inner = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return OneVsRestClassifier(inner) if task == "labels" else inner


class Asked(NamedTuple):
    """What all methods are given; ``reached`` are the counts of omma on the folds."""

    task: str
    metric: str
    X: Any
    y: Any
    new: Any
    reached: list[omma.Counts]


def plain(asked: Asked) -> Any:
    """The model's own decisions, or its k likeliest labels."""
    model, (_, k) = model_of(asked.task).fit(asked.X, asked.y), parse_target(asked.metric)
    return model.predict(asked.new) if k is None else top(model, asked.new, k)


def top(model: Any, new: Any, k: int) -> Any:
    eta = model.predict_proba(new)
    made = np.zeros(eta.shape, dtype=np.int8)
    np.put_along_axis(made, np.argsort(-eta, axis=1, kind="stable")[:, :k], 1, axis=1)
    return made


def ours(asked: Asked) -> Any:
    name, k = parse_target(asked.metric)
    model = MetricClassifier(model_of(asked.task), metric=name, k=k).fit(asked.X, asked.y)
    asked.reached.append(model.counts_)
    return model.predict(asked.new)


def tuned(asked: Asked) -> Any:
    """scikit-learn's own, for two classes."""
    if asked.task != "binary":
        return None
    model = TunedThresholdClassifierCV(model_of("binary"), scoring=make_scorer(asked.metric), cv=5)
    return model.fit(asked.X, asked.y).predict(asked.new)


def of_folds(asked: Asked) -> tuple[Any, Any]:
    """Probabilities of the training half by folds, and of the others by all of it."""
    model = model_of(asked.task)
    eta = cross_val_predict(model, asked.X, asked.y, cv=5, method="predict_proba")
    return eta, model.fit(asked.X, asked.y).predict_proba(asked.new)


def cutoffs(asked: Asked) -> Any:
    """optimal-classification-cutoffs on probabilities of five folds."""
    if asked.metric not in ("f1", "macro_f1"):
        return None
    from optimal_cutoffs import get_optimal_threshold

    (eta, later), y = of_folds(asked), asked.y
    if asked.task == "binary":
        return get_optimal_threshold(y, eta[:, 1], metric="f1").predict(later[:, 1])
    if asked.task == "classes":
        return get_optimal_threshold(y, eta, metric="f1").predict(later)
    columns = [
        get_optimal_threshold(y[:, j], eta[:, j], metric="f1").predict(later[:, j])
        for j in range(y.shape[1])
    ]
    return np.stack(columns, axis=1)


def mapie(asked: Asked) -> Any:
    """MAPIE's control of the rate that omma has on the folds; None where nothing is sure."""
    if asked.task != "binary":
        return None
    from mapie.risk_control import BinaryClassificationController

    (counts,) = asked.reached
    missed = counts.predicted[0] - counts.tp[0]
    if asked.metric == "f1":
        risk, level = "precision", counts.tp[0] / counts.predicted[0]
    else:
        risk, level = "fpr", missed / (counts.n - counts.positive[0])
    eta, later = of_folds(asked)
    controller = BinaryClassificationController(
        lambda rows: np.asarray(rows, dtype=float), risk, float(level),
        confidence_level=0.9, best_predict_param_choice="recall",
    )  # fmt: skip
    threshold = controller.calibrate(eta, asked.y).best_predict_param
    return None if threshold is None else (later[:, 1] >= threshold).astype(int)


METHODS: dict[str, Callable[[Asked], Any]] = {
    "plain": plain,
    "omma": ours,
    "TunedThresholdClassifierCV": tuned,
    "optimal-classification-cutoffs": cutoffs,
    "MAPIE": mapie,
}


def run(folder: Path | None, seed: int, warm: set[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """One record for each set, metric and method of a seed; ``warm`` are metrics met before."""
    for name, task, (X, y), metrics in sets(folder, seed):
        kept = None if task == "labels" else y
        X1, X2, y1, y2 = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=kept)
        for metric in metrics:
            asked = Asked(task, metric, X1, y1, X2, [])
            if (task, metric) not in warm:
                ours(asked._replace(reached=[]))  # what is not compiled yet
                warm.add((task, metric))
            for method, decide in METHODS.items():
                start = time.process_time()
                made = decide(asked)
                seconds = time.process_time() - start
                if made is not None:
                    score = omma.metric(parse_target(metric)[0]).score(y2, made)
                    yield {
                        "set": name, "task": task, "metric": metric, "method": method,
                        "seed": seed, "value": round(100 * score, 3), "seconds": round(seconds, 3),
                    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with mammography and yeast")
    parser.add_argument("--record", type=Path, help="a file to which lines are added")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # of libraries about each other
    threadpool_limits(1)
    warm: set[tuple[str, str]] = set()
    for seed in range(asked.first, asked.first + asked.seeds):
        for one in run(asked.data, seed, warm):
            shown = f"{one['set']}, {one['metric']}, {one['method']}"
            print(f"{shown}: {one['value']:.1f} ({one['seconds']:.2f} s)", flush=True)
            add_line(asked.record, one)
