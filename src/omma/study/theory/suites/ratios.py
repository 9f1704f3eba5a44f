"""What the paper leaves open: the rate of regret where the metric is a ratio of linear forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from omma.metrics import metric as find_metric
from omma.study.records import Record
from omma.study.theory.cases import ESTIMATES, OMMA, Case, beta
from omma.study.theory.distributions import Independent, LogisticNormal
from omma.study.theory.suite import Spec, Suite, label, table, titled
from omma.study.theory.suites.drawing import bound, curve, pictured
from omma.study.theory.suites.regret import NUMBERS, simulated

BOTH = (OMMA, ESTIMATES)
LONG = 10_000_000


def two_labels() -> Independent:
    """Two labels, one rarer than the other."""
    return Independent(LogisticNormal(-1.0, 1.5), LogisticNormal(-2.0, 1.5))


CASES = {
    case.name: case
    for case in (
        Case("f1", "F1 of one label", beta, lambda: find_metric("f1"), entrants=BOTH, rows=LONG),
        Case(
            "micro-f1", "micro-F1 of two labels", two_labels, lambda: find_metric("micro_f1"),
            entrants=BOTH, rows=LONG,
        ),
        Case(
            "jaccard", "Jaccard of one label", beta, lambda: find_metric("jaccard"),
            entrants=BOTH, rows=LONG,
        ),
    )
}  # fmt: skip


def simulate(spec: Spec) -> dict[str, Any]:
    """One policy on one problem."""
    return simulated(CASES[spec["dataset"]], spec)


def constant(record: Record) -> str:
    """Regret times n after 10,000 rows and at the end: level where regret falls as 1 / n."""
    result = record["result"]
    places = [result["rows"].index(n) for n in (10_000, result["rows"][-1])]
    first, final = (result["regret"][i] * result["rows"][i] for i in places)
    return f"{first:.2f}, {final:.2f}"


tables = table(
    "Ratios of linear forms: regret at the end of a sequence, and the power of n it falls with",
    {"problem": titled(CASES), "policy": label},
    {**NUMBERS, "n · regret, early and late": constant},
)


def _draw(ax: Any, records: list[Record]) -> None:
    for record in records:
        curve(ax, record)
        if record["label"] == OMMA:
            regret, rows = record["result"]["regret"], np.array(record["result"]["rows"], float)
            for shape, words in ((1 / rows, "1 / n"), (np.log(rows) / rows, "ln n / n")):
                scale = 2.0 * regret[3] / shape[3]
                bound(ax, rows, scale * shape, f"shape of {words}", 0.7 + 0.6 * ("ln" in words))


figures = pictured("ratios", "{case.title}", _draw, CASES, columns=3)
SUITE = Suite(
    "theory-ratios",
    "Regret of F1, micro-F1 and Jaccard against n",
    [
        {"dataset": case.name, "policy": entrant, "rows": case.rows}
        for case in CASES.values()
        for entrant in case.entrants
    ],
    simulate,
    rows=(LONG, 10_000),
    sequences=(12, 6),
    seed=0,
    tables=tables,
    figures=figures,
)
