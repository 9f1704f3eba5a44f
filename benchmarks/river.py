"""Streams of river, decided by the model itself and by `omma.river.MetricClassifier`.

    python -m benchmarks.river                # the table of docs/recipes/river.md, some minutes
    python -m benchmarks.river --only Phishing

A row is decided, then learned. The model learns the same either way, so it runs once: its
probabilities go to the wrapper by way of `Recorded`. F1 of the positive class, macro-F1 for the
seven classes of ImageSegments; the last column is what the wrapper itself costs.
"""

import argparse
import time

from river import base, datasets, forest, linear_model, multiclass, naive_bayes, preprocessing, tree
from river.datasets import synth

from omma.river import Metric, MetricClassifier


def sea():
    """Ten thousand rows of SEA, whose concept changes in the middle."""
    before, after = synth.SEA(variant=0, seed=1), synth.SEA(variant=3, seed=2)
    mixed = synth.ConceptDriftStream(before, after, seed=1, position=5000, width=50)
    return mixed.take(10_000)


STREAMS = {
    "Phishing": ("f1", datasets.Phishing),
    "Bananas": ("f1", datasets.Bananas),
    "SEA with drift": ("f1", sea),
    "Shuttle, 20,000 rows": ("f1", lambda: datasets.Shuttle().take(20_000)),
    "ImageSegments": ("macro_f1", datasets.ImageSegments),
}


def logistic(metric):
    model = linear_model.LogisticRegression()
    many = multiclass.OneVsRestClassifier(model) if metric == "macro_f1" else model
    return preprocessing.StandardScaler() | many


MODELS = {
    "logistic regression": logistic,
    "naive Bayes": lambda metric: naive_bayes.GaussianNB(),
    "Hoeffding tree": lambda metric: tree.HoeffdingTreeClassifier(),
    "adaptive random forest": lambda metric: forest.ARFClassifier(seed=1),
}


class Recorded(base.Classifier):
    """A model whose probabilities are in the row."""

    _multiclass = True

    def predict_proba_one(self, x):
        return x["eta"]

    def learn_one(self, x, y):
        pass


def measure(metric, stream, model):
    """The metric of both in percent, and microseconds a row."""
    plain, judge, wrapped = Metric(metric), Metric(metric), MetricClassifier(Recorded(), metric)
    seconds = rows = 0
    for x, y in stream:
        eta, own = model.predict_proba_one(x), model.predict_one(x)
        y = bool(y) if metric == "f1" else y
        row = {**x, "eta": eta}
        start = time.process_time()
        given = wrapped.predict_one(row)
        wrapped.learn_one(row, y)
        seconds += time.process_time() - start
        rows += 1
        model.learn_one(x, y)
        if eta:  # a model that has seen nothing decides nothing
            plain.update(y, own)
            judge.update(y, given)
    return 100 * plain.get(), 100 * judge.get(), 1e6 * seconds / rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="a stream")
    only = parser.parse_args().only
    print("| stream | model | plain | wrapped | | µs a row |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for name, (metric, stream) in STREAMS.items():
        for title, make in MODELS.items():
            if only in (None, name):
                plain, wrapped, cost = measure(metric, stream(), make(metric))
                print(
                    f"| {name} | {title} | {plain:.1f} | {wrapped:.1f} | {wrapped - plain:+.1f} "
                    f"| {cost:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
