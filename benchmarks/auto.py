"""What calibration and two kinds of counts cost: ``Auto`` against OMMA, on the same rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import omma
from benchmarks.clock import race
from benchmarks.replays import CLASSES, MIDDLE, SMALL, SPARSE
from benchmarks.table import Row, Table, at_most

METRICS = ("macro_f1", "macro_precision", "macro_gmean", "micro_f1")
TIMES = 3.0  # as much time as OMMA with labels, at most


def auto(quick: bool) -> Table:
    """Every shape, budget and metric."""
    table = Table(
        "Auto against OMMA",
        "Best of several runs that take turns, thread time, whole calls. OMMA: of labels, which is "
        "the cheapest way. A row of probabilities takes a logarithm and an exponential an entry: "
        "without a budget, on dense rows, these alone take as long as all that OMMA does there.",
    )
    for shape in [SMALL, CLASSES] if quick else [SMALL, MIDDLE, CLASSES, SPARSE]:
        eta, y = shape.data()
        classes = shape.kind == "classes"
        for k in (1,) if classes else (None, 3):
            for metric in ("multiclass_gmean",) if classes else METRICS:
                head = {"shape": str(shape), "layout": shape.kind, "k": str(k), "metric": metric}
                table.rows.append({**head, **compare(eta, y, metric, k, quick)})
    return table


def compare(eta: Any, y: Any, metric: str, k: int | None, quick: bool) -> Row:
    """One row of the table."""
    batch = omma.Batch.of(eta, y)
    policies = omma.OMMA(metric, k=k), omma.Auto(metric, k=k)
    calls = [partial(omma.replay, policy, batch) for policy in policies]
    for call in calls:
        call()  # compiles
    plain, auto = race(*calls, rounds=2 if quick else 5)
    return {
        "OMMA ms": 1e3 * plain,
        "Auto ms": 1e3 * auto,
        "Auto/OMMA": at_most(auto / plain, TIMES),
    }
