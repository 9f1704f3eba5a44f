"""What `omma.river.MetricClassifier` adds to a model, in microseconds a row.

A model that only hands on probabilities is wrapped, with two classes and with seven. The best of
many short runs is shown, as the machine may be busy; what the steps of the policy take by
themselves is measured in the same runs, and so is a row of `MetricClassifier` without a hedge.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.recorded import Recorded
from benchmarks.table import Table, at_most
from omma.river import MetricClassifier

ROWS, RUNS = 1000, 40
LIMIT = 15.0  # microseconds a row


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
    stepper, state = policy.stepper(m), policy.init(m)
    eta, y = np.full(m, 0.3), np.zeros(m)

    def run() -> None:
        for _ in range(ROWS):
            stepper.count(state, eta, y, stepper.decide(state, eta), 1.0)

    return run


def best_of(runs: dict[str, Callable[[], None]]) -> dict[str, float]:
    """Microseconds a row of each, the shortest of runs that take turns."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(RUNS):
        for name, run in runs.items():
            start = time.process_time()
            run()
            best[name] = min(best[name], 1e6 * (time.process_time() - start) / ROWS)
    return best


def show() -> None:
    """Print the table."""
    table = Table("What the wrapper costs", "Microseconds a row: decided, and its label learned.")
    for metric, classes in (("f1", 2), ("macro_f1", 7)):
        rows = rows_of(classes)
        given = {
            "Auto, hedged": MetricClassifier(Recorded(), metric, pos_val=1),
            "Auto": MetricClassifier(Recorded(), metric, pos_val=1, hedge=False),
            "OMMA": MetricClassifier(Recorded(), metric, pos_val=1, feedback="labels"),
        }
        runs = {name: passing(model, rows) for name, model in given.items()}
        runs["steps of Auto alone"] = stepping(given["Auto"], classes)
        found = best_of(runs)
        row: dict[str, Any] = {"metric": metric, "classes": classes}
        row["the default"] = at_most(found["Auto, hedged"], LIMIT)
        row["without a hedge"] = found["Auto"]
        row["OMMA"] = found["OMMA"]
        row["steps of Auto alone"] = found["steps of Auto alone"]
        table.rows.append(row)
    table.show(Console())
