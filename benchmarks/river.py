"""Streams of river, decided by the model itself and by `omma.river.MetricClassifier`.

A row is decided, then learned. The model learns the same either way, so it runs once: `Recorded`
passes its probabilities to one wrapper for each metric. ``river`` shows each metric of the model's
own decisions in percent, and the gain of the wrapper, on the streams that its hedge was designed
on, or with ``--others`` on streams that were tried afterwards: generators that change in the middle
or all along, and, with ``--data FOLDER``, data sets in the order of their files.
`docs/make_river.py` makes the page's tables of what ``--record`` wrote.

``river_cost`` shows the time of the wrapper around a model that only passes on probabilities, and
the time of the policy's steps alone in the same runs.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from river import base, datasets, forest, linear_model, multiclass, naive_bayes, preprocessing, tree
from river.datasets import synth
from scipy import sparse

from benchmarks.measure import Row, add_line, at_most, race, tabulated
from omma.datasets import read_folder
from omma.river import Metric, MetricClassifier

Rows = Iterator[tuple[dict[str, Any], Any]]
Streams = dict[str, tuple[bool, Callable[[], Rows]]]
METRICS = {
    True: ("f1", "mcc", "gmean", "balanced_accuracy"),
    False: ("macro_f1", "multiclass_mcc", "multiclass_gmean", "multiclass_balanced_accuracy"),
}
COST_ROWS = 1000
COST_LIMIT = 15.0  # microseconds a row


def changing(kind: Any, before: int, after: int, n: int, seed: int = 1, **options: Any) -> Rows:
    """A stream whose concept, which has a number, becomes another one in the middle."""
    concept = "variant" if kind is synth.SEA else "classification_function"
    first = kind(**{concept: before}, seed=seed, **options)
    second = kind(**{concept: after}, seed=seed + 1, **options)
    return synth.ConceptDriftStream(first, second, seed=1, position=n // 2, width=50).take(n)


def unchanging(kind: Any, n: int, **options: Any) -> Rows:
    """Rows of a generator that is used as it is; some of them change by themselves."""
    return kind(**options).take(n)


CLOUDS = {"seed_model": 1, "seed_sample": 1, "n_centroids": 20, "change_speed": 0.01,
          "n_drift_centroids": 10}  # fmt: skip
STILL = {"seed_model": 4, "seed_sample": 4, "n_classes": 2, "n_features": 6, "n_centroids": 30}
PLANE = {"seed": 1, "n_drift_features": 5, "mag_change": 0.001, "noise_percentage": 0.05}
LED = {"seed": 1, "noise_percentage": 0.2, "n_drift_features": 4}
AGRAWAL, SEA, SINE, STAGGER = synth.Agrawal, synth.SEA, synth.Sine, synth.STAGGER
MOVING, TREE = synth.RandomRBFDrift, synth.RandomTree
# Name: whether one class of two is looked for, and the rows.
STREAMS: Streams = {
    "Phishing": (True, lambda: iter(datasets.Phishing())),
    "Bananas": (True, lambda: iter(datasets.Bananas())),
    "SEA with drift": (True, partial(changing, SEA, 0, 3, 10_000)),
    "Shuttle, 20,000 rows": (True, lambda: datasets.Shuttle().take(20_000)),
    "ImageSegments": (False, lambda: iter(datasets.ImageSegments())),
}
OTHERS: Streams = {
    "SEA, noisy": (True, partial(changing, SEA, 0, 3, 5000, noise=0.2)),
    "Agrawal": (True, partial(changing, AGRAWAL, 0, 4, 5000)),
    "Hyperplane": (True, partial(unchanging, synth.Hyperplane, 5000, **PLANE)),
    "moving clouds": (True, partial(unchanging, MOVING, 5000, n_classes=2, **CLOUDS)),
    "Sine": (True, partial(changing, SINE, 0, 2, 5000)),
    "Mixed": (True, partial(changing, synth.Mixed, 0, 1, 5000)),
    "LED": (False, partial(unchanging, synth.LEDDrift, 4000, **LED)),
    "five moving clouds": (False, partial(unchanging, MOVING, 5000, n_classes=5, **CLOUDS)),
    "Agrawal 1, 6": (True, partial(changing, AGRAWAL, 1, 6, 4000, seed=3)),
    "Agrawal 2, 8, noisy": (True, partial(changing, AGRAWAL, 2, 8, 4000, 3, perturbation=0.2)),
    "Agrawal 4, 0": (True, partial(changing, AGRAWAL, 4, 0, 4000, seed=7)),
    "Agrawal 7": (True, partial(unchanging, AGRAWAL, 4000, classification_function=7, seed=5)),
    "STAGGER 0, 2": (True, partial(changing, STAGGER, 0, 2, 4000)),
    "STAGGER 1, 0": (True, partial(changing, STAGGER, 1, 0, 4000)),
    "random tree": (True, partial(unchanging, TREE, 4000, seed_tree=1, seed_sample=1, n_classes=2)),
    "random tree, 4 classes": (
        False,
        partial(unchanging, TREE, 4000, seed_tree=3, seed_sample=1, n_classes=4),
    ),
    "Waveform": (False, partial(unchanging, synth.Waveform, 3000, seed=1)),
    "still clouds": (True, partial(unchanging, synth.RandomRBF, 4000, **STILL)),
    "anomalies of a sine": (
        True,
        lambda: iter(synth.AnomalySine(seed=1, n_samples=4000, n_anomalies=400)),
    ),
    "Sine, balanced": (True, partial(changing, SINE, 1, 3, 4000, 3, balance_classes=True)),
    "SEA 1, 2, noisy": (True, partial(changing, SEA, 1, 2, 4000, 3, noise=0.1)),
}
# Sets of a folder: where to start, how many rows, and the classes looked for, None for all.
SETS: dict[str, tuple[int, int, set[int] | None]] = {
    "mammography": (0, 11_183, {1}),
    "covtype": (100_000, 5000, {5, 6}),
    "kddcup99": (0, 5000, {0, 1, 2}),
}


def rows_of_set(folder: Path, start: int, n: int, positive: set[int] | None) -> Rows:
    """The rows of a set as river has them."""
    data = read_folder(folder).take(slice(start, start + n))
    features = data.X.toarray() if sparse.issparse(data.X) else data.X
    names = [f"x{j}" for j in range(features.shape[1])]
    for row, label in zip(features.tolist(), data.y.tolist(), strict=True):
        yield (
            dict(zip(names, row, strict=True)),
            label if positive is None else label in positive,
        )


def logistic(is_binary: bool) -> Any:
    model = linear_model.LogisticRegression()
    return preprocessing.StandardScaler() | (
        model if is_binary else multiclass.OneVsRestClassifier(model)
    )


MODELS: dict[str, Callable[[bool], Any]] = {
    "logistic regression": logistic,
    "naive Bayes": lambda _: naive_bayes.GaussianNB(),
    "Hoeffding tree": lambda _: tree.HoeffdingTreeClassifier(),
    "adaptive random forest": lambda _: forest.ARFClassifier(seed=1),
}


class Recorded(base.Classifier):
    """A model whose probabilities are in the row."""

    _multiclass = True

    def predict_proba_one(self, x: dict[str, Any], **kwargs: Any) -> Any:
        return x["eta"]

    def learn_one(self, x: dict[str, Any], y: Any) -> None:
        pass


def measure(is_binary: bool, stream: Iterable[Any], model: Any) -> dict[str, tuple[float, float]]:
    """Each metric of the model's own decisions and of the wrapper's, in percent."""
    names = METRICS[is_binary]
    judges = [(MetricClassifier(Recorded(), name), Metric(name), Metric(name)) for name in names]
    for number, (x, label) in enumerate(stream):
        y = bool(label) if is_binary else label
        eta, own = model.predict_proba_one(x), model.predict_one(x)
        row = {"eta": dict(eta), "row": number}  # as a row without this is like another one
        for wrapper, plain, wrapped in judges:
            decision = wrapper.predict_one(row)
            wrapper.learn_one(row, y)
            if eta:  # a model that has seen nothing decides nothing
                plain.update(y, own)
                wrapped.update(y, decision)
        model.learn_one(x, y)
    values = [(100 * plain.get(), 100 * wrapped.get()) for _, plain, wrapped in judges]
    return dict(zip(names, values, strict=True))


@tabulated("The model itself, and what the wrapper adds", "in %, after the last row")
def river(
    only: str | None = None,
    models: str = ",".join(MODELS),
    others: bool = False,
    data: str | None = None,
    record: str | None = None,
) -> Iterator[Row]:
    """``only`` one stream; models with commas between them; a file that records are added to."""
    streams = {**OTHERS} if others else {**STREAMS}
    if others and data is not None:
        for name, (start, n, positive) in SETS.items():
            rows = partial(rows_of_set, Path(data) / name, start, n, positive)
            if (Path(data) / name / "X.npz").exists():
                streams[name] = (positive is not None, rows)
    for name, (is_binary, stream) in streams.items():
        for title in models.split(",") if only in (None, name) else ():
            values = measure(is_binary, stream(), MODELS[title](is_binary))
            run = {"stream": name, "model": title, "values": values, "new": others}
            add_line(record, run)
            cells = (f"{metric} {a:.1f} {b - a:+.1f}" for metric, (a, b) in values.items())
            yield {"stream": name, "model": title, "metrics": ", ".join(cells)}


def rows_of(classes: int) -> list[tuple[dict[str, Any], Any]]:
    """Rows of a few features, with probabilities that are right."""
    rng, rows = random.Random(0), []
    for _ in range(COST_ROWS):
        weights = [rng.random() ** 3 for _ in range(classes)]
        y = rng.choices(range(classes), weights)[0]
        eta = {label: weight / sum(weights) for label, weight in enumerate(weights)}
        rows.append(({"a": rng.random(), "b": rng.random(), "eta": eta}, y))
    return rows


def pass_over(model: Any, rows: list[Any]) -> None:
    """Predict and learn all rows."""
    for x, y in rows:
        model.predict_one(x)
        model.learn_one(x, y)


def step_alone(model: Any, classes: int) -> None:
    """The policy's own steps, as many as there are rows."""
    policy, m = model._growing.policy, 1 if model._binary else classes
    engine = policy.engine(policy.init(m))
    eta, y = np.full(m, 0.3), np.zeros(m)
    for _ in range(COST_ROWS):
        engine.learn(eta, y, engine.decide(eta), 1.0)


@tabulated("What the wrapper costs", "Microseconds a row: decided, and its label learned.")
def river_cost(quick: bool = False) -> Iterator[Row]:
    """What the wrapper costs."""
    for metric, classes in (("f1", 2), ("macro_f1", 7)):
        rows = rows_of(classes)
        models = {
            "the default": MetricClassifier(Recorded(), metric, pos_val=1),
            "without a hedge": MetricClassifier(Recorded(), metric, pos_val=1, hedge=False),
            "OMMA": MetricClassifier(Recorded(), metric, pos_val=1, feedback="labels"),
        }
        calls = {name: partial(pass_over, model, rows) for name, model in models.items()}
        calls["steps of Auto alone"] = partial(step_alone, models["without a hedge"], classes)
        seconds = race(*calls.values(), rounds=3 if quick else 40)
        figures = [1e6 * each / COST_ROWS for each in seconds]
        row = {"metric": metric, "classes": classes, **dict(zip(calls, figures, strict=True))}
        row["the default"] = at_most(figures[0], COST_LIMIT)
        yield row
