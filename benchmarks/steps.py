"""What one step from Python costs, in every form that a row may come in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import omma
from benchmarks.clock import race
from benchmarks.shapes import Shape, classes
from benchmarks.table import Table, at_most

Step = Callable[[], None]


def steps(quick: bool) -> Table:
    """One predict and update from Python."""
    table = Table(
        "one predict + update from Python",
        "Best of several loops over rows, thread time. m = 46; the CSR rows store 50 of 5,000.",
    )
    rows = 200 if quick else 2_000
    every: dict[str, tuple[Step, float]] = {}
    eta, y = Shape("dense", rows, 46).data()
    for metric in ("macro_f1", "macro_gmean", "micro_f1"):
        for k in (None, 3):
            every[f"ndarray, {metric}, k = {k}"] = plain(metric, k, list(eta), list(y)), 6
    every["list"] = plain("macro_f1", None, eta.tolist(), y.tolist()), 12
    every["late label, prediction="] = late(list(eta), list(y)), 12
    every['feedback="estimates"'] = estimates(list(eta), list(y)), 12
    class_eta, class_ids = classes(rows, 46)
    every["class id"] = plain("multiclass_gmean", None, list(class_eta), class_ids.tolist()), 12
    stored, true = Shape("csr", rows, 5_000, 50).data()
    parts = [stored[i : i + 1] for i in range(rows)], [true[i : i + 1] for i in range(rows)]
    every["CSR row"] = plain("macro_f1", None, *parts, m=5_000), 40
    for what, (walk, limit) in every.items():
        (seconds,) = race(walk, at_least=0.2 if quick else 1, rounds=3)
        table.rows.append({"what": what, "µs a row": at_most(1e6 * seconds / rows, limit)})
    return table


def plain(metric: str, k: int | None, etas: list[Any], ys: list[Any], m: int = 46) -> Step:
    """Decide and learn every row."""
    learner = omma.OnlineClassifier(omma.OMMA(metric, k=k), n_labels=m)

    def walk() -> None:
        for eta, true in zip(etas, ys, strict=True):
            learner.predict(eta)
            learner.update(true)

    return walk


def late(etas: list[Any], ys: list[Any]) -> Step:
    """Decide all, then learn all: labels come late."""
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), n_labels=46)

    def walk() -> None:
        decided = [learner.predict(eta) for eta in etas]
        for true, prediction in zip(ys, decided, strict=True):
            learner.update(true, prediction=prediction)

    return walk


def estimates(etas: list[Any], ys: list[Any]) -> Step:
    """Probabilities are counted in place of labels."""
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1", feedback="estimates"), n_labels=46)

    def walk() -> None:
        for eta, true in zip(etas, ys, strict=True):
            learner.predict(eta)
            learner.update(true)

    return walk


def matrix(quick: bool) -> Table:
    """Many rows decided at once, against what the same decisions take once compiled."""
    table = Table(
        "a matrix of 1,000 rows decided at once, m = 46",
        "Best of several calls of predict on the present counts, against a replay of the same rule "
        "on the same rows: its kernel decides them, and counts them besides.",
    )
    eta, y = Shape("dense", 1_000, 46).data()
    for k in (None, 3):
        learner = omma.OnlineClassifier(omma.OMMA("macro_f1", k=k), n_labels=46)
        for row, true in zip(eta[:100], y[:100], strict=True):
            learner.predict(row)
            learner.update(true)
        fixed = omma.FixedRule(learner.rule)
        kernel: list[float] = []

        def replayed(fixed: Any = fixed, kernel: list[float] = kernel) -> None:
            kernel.append(omma.replay(fixed, eta, y, metric="macro_f1").seconds)

        whole, _ = race(lambda learner=learner: learner.predict(eta), replayed, rounds=20)
        compiled = float(np.min(kernel))
        table.rows.append(
            {
                "k": str(k),
                "predict µs": 1e6 * whole,
                "compiled µs": 1e6 * compiled,
                "ratio": at_most(whole / compiled, 1.5),
            }
        )
    return table
