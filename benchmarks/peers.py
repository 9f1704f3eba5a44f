"""Thresholds and rules of other libraries beside omma's, on data sets that all of them take.

    pip install optimal-classification-cutoffs mapie xcolumns

Half of the rows are trained on, the others judge. Every method sees the same logistic regression
and five folds of the training half. optimal-classification-cutoffs has F1 and no G-mean of classes,
and is given one label at a time where there are many; TunedThresholdClassifierCV takes two classes
alone. MAPIE keeps a rate and maximizes nothing, so it is asked to keep, 90 % sure, what omma has
on the folds: its precision for F1, its rate of false alarms for the G-mean, with the best recall;
it is left out where no threshold is sure enough. docs/limits.md sets it beside limits. Seconds are
those of the processor, with one thread in each library, and nothing is compiled while they run.
Without a folder of data, mammography and yeast are left out.
"""

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
from benchmarks.measure import Row, add_line, tabulated
from omma.datasets import read_folder
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
        rows = read_folder(folder / "mammography")
        yield "mammography", "binary", (rows.X, rows.y), two
    three = make_classification(
        6000, 20, n_informative=6, n_classes=3, weights=[0.9, 0.07, 0.03], flip_y=0.02,
        class_sep=0.7, random_state=seed,
    )  # fmt: skip
    yield "3 classes, imbalanced", "classes", three, classes
    yield "digits", "classes", load_digits(return_X_y=True), classes
    if folder is not None:
        rows = read_folder(folder / "yeast")
        yield "yeast", "labels", (rows.X, rows.y.toarray()), (*labels, "macro_f1@3")
    many = make_multilabel_classification(3000, 20, n_classes=8, n_labels=2, random_state=seed)
    yield "make_multilabel", "labels", many, (*labels, "macro_f1@3")


def model_of(task: str) -> Any:
    inner = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return OneVsRestClassifier(inner) if task == "labels" else inner


class Problem(NamedTuple):
    """What all methods are given; ``reached`` are the counts of omma on the folds."""

    task: str
    metric: str
    X: Any
    y: Any
    new: Any
    reached: list[omma.Counts]


def plain(problem: Problem) -> Any:
    """The model's own decisions, or its k likeliest labels."""
    model, (_, k) = model_of(problem.task).fit(problem.X, problem.y), parse_target(problem.metric)
    if k is None:
        return model.predict(problem.new)
    eta = model.predict_proba(problem.new)
    return omma.Rule(np.ones(eta.shape[1]), np.zeros(eta.shape[1]), k).predict(eta)


def ours(problem: Problem) -> Any:
    name, k = parse_target(problem.metric)
    model = MetricClassifier(model_of(problem.task), metric=name, k=k).fit(problem.X, problem.y)
    problem.reached.append(model.counts_)
    return model.predict(problem.new)


def tuned(problem: Problem) -> Any:
    """scikit-learn's own, for two classes."""
    if problem.task != "binary":
        return None
    model = TunedThresholdClassifierCV(
        model_of("binary"), scoring=make_scorer(problem.metric), cv=5
    )
    return model.fit(problem.X, problem.y).predict(problem.new)


def of_folds(problem: Problem) -> tuple[Any, Any]:
    """Probabilities of the training half by folds, and of the others by all of it."""
    model = model_of(problem.task)
    eta = cross_val_predict(model, problem.X, problem.y, cv=5, method="predict_proba")
    return eta, model.fit(problem.X, problem.y).predict_proba(problem.new)


def cutoffs(problem: Problem) -> Any:
    """optimal-classification-cutoffs on probabilities of five folds."""
    if problem.metric not in ("f1", "macro_f1"):
        return None
    from optimal_cutoffs import get_optimal_threshold

    (eta, later), y = of_folds(problem), problem.y
    if problem.task == "binary":
        return get_optimal_threshold(y, eta[:, 1], metric="f1").predict(later[:, 1])
    if problem.task == "classes":
        return get_optimal_threshold(y, eta, metric="f1").predict(later)
    columns = [
        get_optimal_threshold(y[:, j], eta[:, j], metric="f1").predict(later[:, j])
        for j in range(y.shape[1])
    ]
    return np.stack(columns, axis=1)


def mapie(problem: Problem) -> Any:
    """MAPIE's control of the rate that omma has on the folds; None where nothing is sure."""
    if problem.task != "binary":
        return None
    from mapie.risk_control import BinaryClassificationController

    (counts,) = problem.reached
    missed = counts.predicted[0] - counts.tp[0]
    if problem.metric == "f1":
        risk, level = "precision", counts.tp[0] / counts.predicted[0]
    else:
        risk, level = "fpr", missed / (counts.n - counts.positive[0])
    eta, later = of_folds(problem)
    controller = BinaryClassificationController(
        lambda rows: np.asarray(rows, dtype=float), risk, float(level),
        confidence_level=0.9, best_predict_param_choice="recall",
    )  # fmt: skip
    threshold = controller.calibrate(eta, problem.y).best_predict_param
    return None if threshold is None else (later[:, 1] >= threshold).astype(int)


def xcolumns(problem: Problem) -> Any:
    """xCOLUMNs' Frank-Wolfe on probabilities of five folds, from the top k."""
    from xcolumns import metrics
    from xcolumns.frank_wolfe import find_classifier_using_fw

    f1, gmean = metrics.macro_f1_score_on_conf_matrix, metrics.macro_gmean_on_conf_matrix
    names = {"f1": f1, "macro_f1": f1, "gmean": gmean}
    metric, k = parse_target(problem.metric)
    if metric not in names:
        return None
    eta, later = of_folds(problem)
    y = np.asarray(problem.y)
    if problem.task == "classes":
        y, k = np.eye(eta.shape[1], dtype=int)[y], 1
    elif problem.task == "binary":
        y, eta, later = y[:, np.newaxis], eta[:, 1:], later[:, 1:]
    # Its wrappers for single metrics fail in 0.0.2; the function below them takes the metric.
    classifier = find_classifier_using_fw(
        y, eta, names[metric], k or 0, init_classifier="top", seed=0
    )
    decisions = np.asarray(classifier.predict(later, seed=0)).astype(int)
    return decisions.argmax(axis=1) if problem.task == "classes" else np.squeeze(decisions)


METHODS: dict[str, Callable[[Problem], Any]] = {
    "plain": plain,
    "omma": ours,
    "TunedThresholdClassifierCV": tuned,
    "optimal-classification-cutoffs": cutoffs,
    "MAPIE": mapie,
    "xCOLUMNs": xcolumns,
}


def runs(folder: Path | None, seed: int, warm: set[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """One record for each set, metric and method of a seed; ``warm`` are metrics met before."""
    for name, task, (X, y), metrics in sets(folder, seed):
        classes = None if task == "labels" else y
        X1, X2, y1, y2 = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=classes)
        for metric in metrics:
            problem = Problem(task, metric, X1, y1, X2, [])
            if (task, metric) not in warm:
                ours(problem._replace(reached=[]))  # what is not compiled yet
                warm.add((task, metric))
            for method, decide in METHODS.items():
                start = time.process_time()
                decisions = decide(problem)
                seconds = time.process_time() - start
                if decisions is not None:
                    score = omma.metric(parse_target(metric)[0]).score(y2, decisions)
                    yield {
                        "set": name, "task": task, "metric": metric, "method": method,
                        "seed": seed, "value": round(100 * score, 3), "seconds": round(seconds, 3),
                    }  # fmt: skip


@tabulated(
    "Other libraries",
    "value in %, and seconds of the processor, of each seed",
)
def peers(
    data: str | None = None, record: str | None = None, seeds: int = 3, first: int = 0
) -> Iterator[Row]:
    """A folder with mammography and yeast; a file to which lines are added; seeds from a first."""
    warnings.simplefilter("ignore")  # of libraries about each other
    threadpool_limits(1)
    warm: set[tuple[str, str]] = set()
    for seed in range(first, first + seeds):
        for run in runs(None if data is None else Path(data), seed, warm):
            add_line(record, run)
            yield run
