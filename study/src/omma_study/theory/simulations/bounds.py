"""Measured shortfalls stay under the bounds, for utilities that they hold for."""

import math
from typing import Any

import numpy as np
import pandas as pd

from omma_study.records import Record
from omma_study.tables import Table
from omma_study.theory import utilities
from omma_study.theory.bounds import (
    Task,
    constants,
    estimates_bound,
    frequency_bound,
    omma_bound,
    worst_constants,
)
from omma_study.theory.cases import ESTIMATES, OMMA, Case, beta, five_kinds, five_labels, measured
from omma_study.theory.figures import COLORS, DASHED, band, pictured
from omma_study.theory.regret import standard_error
from omma_study.theory.simulation import Simulation, Spec, last

SHOWN = ("recall", "balanced_accuracy", "f1", "jaccard", "precision", "gmean", "hmean", "qmean")
EVERY = {
    case.name: case
    for case in (
        Case("accuracy", "accuracy", beta, utilities.accuracy),
        Case("geometric", "√((tp + δ)(tn + δ))", beta, utilities.geometric),
        Case("harmonic", "harmonic mean, five kinds of rows", five_kinds, utilities.harmonic),
        Case("soft-least", "smooth min{tp, tn}", beta, lambda: utilities.soft_least(0.05)),
        Case(
            "macro-at-2", "macro √((tp + δ)(tn + δ)) at 2 of 5", five_labels, utilities.geometric, 2
        ),
    )
}


def simulate(spec: Spec) -> dict[str, Any]:
    """ψ(C*) minus the metric, which the theorems bound, and the bound."""
    case = EVERY[spec["dataset"]]
    assert not isinstance(case.about, str)
    problem = case.problem()
    m = problem.distribution.m
    known, task = case.about().constants.averaged(m), Task.multilabel(m)
    curves = measured(problem, spec)
    bound = estimates_bound if spec["policy"] == ESTIMATES else omma_bound
    return {
        "rows": curves.rows.tolist(),
        "shortfall": curves.policy.mean(axis=0).tolist(),
        "error": standard_error(curves.policy).tolist(),
        "bound": bound(curves.rows, known, task).tolist(),
        "lipschitz": known.lipschitz,
        "smoothness": known.smoothness,
    }


def tables(records: list[Record]) -> list[Table]:
    """Measured against bound, and the constants of metrics."""
    title = "Shortfall from ψ(C*) at the end of a sequence, and its bound"
    rows = [
        {
            "utility": EVERY[record["spec"]["dataset"]].title,
            "policy": record["label"],
            "L": f"{record['result']['lipschitz']:.3g}",
            "M": f"{record['result']['smoothness']:.3g}",
            "rows": last(record, "rows", ","),
            "measured": last(record, "shortfall", ".1e"),
            "± 2 s.e.": last(record, "error", ".0e", times=2),
            "bound": last(record, "bound", ".1e"),
        }
        for record in records
    ]
    return [Table(title, pd.DataFrame(rows), words=2), constants_table()]


def constants_table(frequency: float = 0.1) -> Table:
    """L and M of metrics at one frequency, and when the bound made of them says anything."""
    rows = []
    for name in SHOWN:
        known, start = constants(name, frequency), first_useful(name, frequency)
        useful = "never" if start is None else f"{start:.0e}"
        rows.append(
            {
                "metric": name,
                "L": _number(known.lipschitz),
                "M": _number(known.smoothness),
                "p-dependent bound is below 1 from n =": useful,
            }
        )
    title = f"Constants where a label occurs in {frequency:.0%} of the rows"
    return Table(title, pd.DataFrame(rows))


def first_useful(metric: str, frequency: float) -> int | None:
    """The first power of ten from which the p-dependent bound is below 1; None if it never is.

    >>> first_useful("recall", 0.1), first_useful("gmean", 0.1)
    (10000000, None)
    """
    low = frequency / 4.0
    worst = worst_constants(metric, 1, low, 1.0 - low)
    if not math.isfinite(worst.lipschitz) or not math.isfinite(worst.smoothness):
        return None
    rows = 10.0 ** np.arange(1, 30)
    bounds = frequency_bound(rows, worst, Task.multilabel(1), 1, frequency)
    return int(rows[np.flatnonzero(bounds >= 1.0)[-1] + 1])


def _draw(ax: Any, records: list[Record]) -> None:
    for result, who in ((record["result"], record["label"]) for record in records):
        curve = (result["rows"], result["shortfall"], result["error"])
        band(ax, *curve, color=COLORS[who], label=f"{who}, measured")
        dashes = DASHED if who == OMMA else (0, (1, 2))
        look = {"color": COLORS[who], "linestyle": dashes, "linewidth": 1.6}
        ax.plot(result["rows"], result["bound"], label=f"{who}, bound", **look)


def figures(records: list[Record]) -> dict[str, Any]:
    """Measured curves under their bounds; that of accuracy is zero, and so are its curves."""
    shown = [record for record in records if record["spec"]["dataset"] != "accuracy"]
    draw = pictured("bounds", "{case.title}", _draw, EVERY, names=("rows n", "ψ(C*) − ψ"))
    return draw(shown) if shown else {}


def _number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.3g}"


SUITE = Simulation(
    "theory-bounds",
    "Measured shortfall under the paper's bounds",
    [{"dataset": name, "policy": entrant} for name in EVERY for entrant in (OMMA, ESTIMATES)],
    simulate,
    rows=(100_000, 3_000),
    sequences=(16, 5),
    seed=1,
    tables=tables,
    figures=figures,
)
