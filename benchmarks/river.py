"""Streams of river, decided by the model itself and by `omma.river.MetricClassifier`.

    python -m benchmarks river                         # what docs/recipes/river.md shows
    python -m benchmarks river --others --data FOLDER  # streams that the hedge was not made on
    python -m benchmarks river --only Phishing --models "naive Bayes" --record runs.jsonl
    python -m benchmarks river --cost                  # what the wrapper costs a row

A row is decided, then learned. The model learns the same either way, so it runs once: its
probabilities go to one wrapper for each metric by way of `Recorded`. Shown is each metric of the
model's own decisions in percent, and what the wrapper adds; `docs/make_river.py` makes the page's
tables of what `--record` wrote.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from river import forest, linear_model, multiclass, naive_bayes, preprocessing, tree

from benchmarks.measure import add_line
from benchmarks.river_cost import Recorded
from benchmarks.streams import OTHERS, STREAMS, of_folder
from omma.river import Metric, MetricClassifier

METRICS = {
    True: ("f1", "mcc", "gmean", "balanced_accuracy"),
    False: ("macro_f1", "multiclass_mcc", "multiclass_gmean", "multiclass_balanced_accuracy"),
}


def logistic(yes_or_no: bool) -> Any:
    model = linear_model.LogisticRegression()
    many = model if yes_or_no else multiclass.OneVsRestClassifier(model)
    return preprocessing.StandardScaler() | many


MODELS: dict[str, Callable[[bool], Any]] = {
    "logistic regression": logistic,
    "naive Bayes": lambda _: naive_bayes.GaussianNB(),
    "Hoeffding tree": lambda _: tree.HoeffdingTreeClassifier(),
    "adaptive random forest": lambda _: forest.ARFClassifier(seed=1),
}


class Judged:
    """One metric of a model's own decisions and of the wrapper's."""

    def __init__(self, metric: str) -> None:
        self.plain, self.wrapped = Metric(metric), Metric(metric)
        self.model = MetricClassifier(Recorded(), metric)

    def see(self, row: dict[str, Any], y: Any, own: Any) -> None:
        given = self.model.predict_one(row)
        self.model.learn_one(row, y)
        if row["eta"]:  # a model that has seen nothing decides nothing
            self.plain.update(y, own)
            self.wrapped.update(y, given)


def measure(yes_or_no: bool, stream: Iterable[Any], model: Any) -> dict[str, tuple[float, float]]:
    """Of each metric, what both ways give in percent."""
    judges = {metric: Judged(metric) for metric in METRICS[yes_or_no]}
    for number, (x, label) in enumerate(stream):
        y = bool(label) if yes_or_no else label
        eta, own = model.predict_proba_one(x), model.predict_one(x)
        row = {"eta": dict(eta), "row": number}  # as a row without this is like another one
        for judge in judges.values():
            judge.see(row, y, own)
        model.learn_one(x, y)
    return {
        metric: (100 * judge.plain.get(), 100 * judge.wrapped.get())
        for metric, judge in judges.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", help="a stream")
    parser.add_argument("--models", help="models, with commas between them")
    parser.add_argument("--others", action="store_true", help="streams not looked at before")
    parser.add_argument("--data", type=Path, help="a folder of data sets, with --others")
    parser.add_argument("--record", type=Path, help="a file to which a line is added for each run")
    asked = parser.parse_args()
    streams = {**OTHERS, **(of_folder(asked.data) if asked.data else {})}
    streams = streams if asked.others else STREAMS
    models = asked.models.split(",") if asked.models else list(MODELS)
    for name, (yes_or_no, stream) in streams.items():
        for title in models:
            if asked.only not in (None, name):
                continue
            start = time.process_time()
            values = measure(yes_or_no, stream(), MODELS[title](yes_or_no))
            one = {"stream": name, "model": title, "values": values, "new": asked.others}
            shown = (f"{metric} {a:.1f} {b - a:+.1f}" for metric, (a, b) in values.items())
            seconds = time.process_time() - start
            print(f"{name}, {title}: {', '.join(shown)} ({seconds:.0f} s)", flush=True)
            add_line(asked.record, one)
