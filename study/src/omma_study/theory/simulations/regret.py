"""Regret against the number of rows, of every policy, on problems of every kind.

``RATIOS`` measures what the paper leaves open: the rate of ratios of linear forms.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from omma_study.records import Record
from omma_study.theory.cases import (
    CASES,
    ESTIMATES,
    OMMA,
    ONE_LABEL,
    ONLINE,
    TWO_LABELS,
    Case,
    measured,
)
from omma_study.theory.regret import averaged, fitted_rate
from omma_study.theory.simulation import (
    Simulation,
    Spec,
    bound,
    curve,
    last,
    pictured,
    power_and_interval,
    table,
)

ONLINE_ROWS = 100_000  # Online-FW goes over past rows again and again
LONG = 10_000_000


def simulate(cases: Mapping[str, Case], spec: Spec) -> dict[str, Any]:
    """Regret and shortfall of a policy on a problem, against the number of rows."""
    problem = cases[spec["dataset"]].problem
    curves = measured(problem, spec)
    return {
        "rows": curves.rows.tolist(),
        **averaged("regret", curves.regret),
        **averaged("shortfall", curves.policy),
        "sequences": len(curves.regret),
        "rate": fitted_rate(curves.rows, curves.regret),
        "best": problem.best.value,
        "gap": problem.best.gap,
    }


def _row(cases: Mapping[str, Case], record: Record) -> dict[str, str]:
    return {
        "problem": cases[record["spec"]["dataset"]].title,
        "policy": record["label"],
        "ψ(C*)": f"{record['result']['best']:.4f}",
        "rows": last(record, "rows", ","),
        "regret": last(record, "regret", ".2e"),
        "± 2 s.e.": last(record, "regret_error", ".1e", times=2),
        **power_and_interval(record),
    }


def _draw(ax: Any, records: list[Record]) -> None:
    for record in records:
        # A logarithmic axis shows nothing of it.
        negative = record["result"]["regret"][-1] < 0
        label = {"label": f"{record['label']}: negative at the end"} if negative else {}
        curve(ax, record, **label)
    for result in (record["result"] for record in records if record["label"] == OMMA):
        rows = np.array(result["rows"], dtype=float)
        shape = np.log(rows) / rows  # drawn above the curves
        highest = max(abs(value) for value in result["regret"][:2])
        bound(ax, rows, 3.0 * highest * shape / shape[0], "shape of ln n / n")


REGRET = Simulation(
    "theory-regret",
    "Regret against n on distributions that are known",
    [
        {
            "dataset": case.name,
            "policy": entrant,
            "rows": min(case.rows, ONLINE_ROWS) if entrant == ONLINE else case.rows,
        }
        for case in CASES.values()
        for entrant in case.entrants
    ],
    partial(simulate, CASES),
    rows=(1_000_000, 10_000),
    sequences=(24, 6),
    seed=0,
    tables=table(
        "Regret at the end of a sequence, and the power of n it falls with", partial(_row, CASES)
    ),
    figures=pictured("regret", "{case.title}", _draw, CASES),
)


ALIKE: dict[str, Any] = {"entrants": (OMMA, ESTIMATES), "rows": LONG}
RATIO_CASES = {
    case.name: case
    for case in (
        Case("f1", "F1 of one label", ONE_LABEL, "f1", **ALIKE),
        Case("micro-f1", "micro-F1 of two labels", TWO_LABELS, "micro_f1", **ALIKE),
        Case("jaccard", "Jaccard of one label", ONE_LABEL, "jaccard", **ALIKE),
    )
}


def _ratio_row(record: Record) -> dict[str, str]:
    """With regret times n after 10,000 rows and at the end: level where regret falls as 1 / n."""
    rows, regret = record["result"]["rows"], record["result"]["regret"]
    early = rows.index(10_000)
    scaled = f"{regret[early] * rows[early]:.2f}, {regret[-1] * rows[-1]:.2f}"
    return {**_row(RATIO_CASES, record), "n · regret, early and late": scaled}


def _draw_ratios(ax: Any, records: list[Record]) -> None:
    for record in records:
        curve(ax, record)
        if record["label"] == OMMA:
            regret, rows = record["result"]["regret"], np.array(record["result"]["rows"], float)
            for shape, words in ((1 / rows, "1 / n"), (np.log(rows) / rows, "ln n / n")):
                scale = 2.0 * regret[3] / shape[3]
                bound(ax, rows, scale * shape, f"shape of {words}", 0.7 + 0.6 * ("ln" in words))


RATIOS = Simulation(
    "theory-ratios",
    "Regret of F1, micro-F1 and Jaccard against n",
    [
        {"dataset": case.name, "policy": entrant, "rows": case.rows}
        for case in RATIO_CASES.values()
        for entrant in case.entrants
    ],
    partial(simulate, RATIO_CASES),
    rows=(LONG, 10_000),
    sequences=(12, 6),
    seed=0,
    tables=table(
        "Ratios of linear forms: regret at the end of a sequence, and the power of n it falls with",
        _ratio_row,
    ),
    figures=pictured("ratios", "{case.title}", _draw_ratios, RATIO_CASES, columns=3),
)
