"""What `omma.river.MetricClassifier` adds to a model, in microseconds a row.

A model that only hands on probabilities is wrapped, with two classes and with seven. The best of
many short runs is shown, as the machine may be busy; what the steps of the policy take by
themselves is measured in the same runs, and so is a row of `MetricClassifier` without a hedge.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from river import base

from benchmarks.measure import Table, at_most, race
from omma.river import MetricClassifier

ROWS = 1000
LIMIT = 15.0  # microseconds a row


class Recorded(base.Classifier):
    """A model whose probabilities are in the row."""

    _multiclass = True

    def predict_proba_one(self, x: dict[str, Any], **kwargs: Any) -> Any:
        return x["eta"]

    def learn_one(self, x: dict[str, Any], y: Any) -> None:
        pass


def rows_of(classes: int) -> list[tuple[dict[str, Any], Any]]:
    """Rows of a few features, with probabilities that are right."""
    rng, rows = random.Random(0), []
    for _ in range(ROWS):
        given = [rng.random() ** 3 for _ in range(classes)]
        y = rng.choices(range(classes), given)[0]
        eta = {label: one / sum(given) for label, one in enumerate(given)}
        rows.append(({"a": rng.random(), "b": rng.random(), "eta": eta}, y))
    return rows


def passing(model: Any, rows: list[Any]) -> Callable[[], None]:
    """Predict and learn all rows."""

    def run() -> None:
        for x, y in rows:
            model.predict_one(x)
            model.learn_one(x, y)

    return run


def stepping(model: Any, classes: int) -> Callable[[], None]:
    """The policy's own steps, as many as there are rows."""
    policy, m = model._growing.policy, 1 if model._binary else classes
    engine = policy.engine(policy.init(m))
    eta, y = np.full(m, 0.3), np.zeros(m)

    def run() -> None:
        for _ in range(ROWS):
            engine.learn(eta, y, engine.decide(eta), 1.0)

    return run


def river_cost(quick: bool) -> Table:
    """What the wrapper costs."""
    table = Table("What the wrapper costs", "Microseconds a row: decided, and its label learned.")
    for metric, classes in (("f1", 2), ("macro_f1", 7)):
        rows = rows_of(classes)
        models = {
            "the default": MetricClassifier(Recorded(), metric, pos_val=1),
            "without a hedge": MetricClassifier(Recorded(), metric, pos_val=1, hedge=False),
            "OMMA": MetricClassifier(Recorded(), metric, pos_val=1, feedback="labels"),
        }
        calls = [passing(model, rows) for model in models.values()]
        calls.append(stepping(models["without a hedge"], classes))
        seconds = race(*calls, rounds=3 if quick else 40)
        limits = (LIMIT, None, None, None)
        figures = [
            at_most(1e6 * each / ROWS, limit) for each, limit in zip(seconds, limits, strict=True)
        ]
        names = (*models, "steps of Auto alone")
        table.rows.append(
            {"metric": metric, "classes": classes, **dict(zip(names, figures, strict=True))}
        )
    return table
