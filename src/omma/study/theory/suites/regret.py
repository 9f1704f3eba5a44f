"""Item 1: regret against the number of rows, of every policy, on problems of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from omma.study.records import Record
from omma.study.theory.cases import CASES, OMMA, ONLINE, Case, measured
from omma.study.theory.curves import averaged, fitted_rate
from omma.study.theory.suite import (
    Spec,
    Suite,
    interval,
    label,
    last,
    power,
    table,
    titled,
    with_power,
)
from omma.study.theory.suites.drawing import bound, curve, pictured

ONLINE_ROWS = 100_000  # Online-FW looks at the past again and again


def simulate(spec: Spec) -> dict[str, Any]:
    """One policy on one problem."""
    return simulated(CASES[spec["dataset"]], spec)


def simulated(case: Case, spec: Spec) -> dict[str, Any]:
    """Regret and shortfall of a policy on a problem, against the number of rows."""
    problem = case.problem()
    found = measured(problem, spec)
    return {
        "rows": found.rows.tolist(),
        **averaged("regret", found.regret),
        **averaged("shortfall", found.policy),
        "sequences": len(found.regret),
        "rate": fitted_rate(found.rows, found.regret),
        "best": problem.best.value,
        "gap": problem.best.gap,
    }


NUMBERS = {
    "ψ(C*)": lambda record: f"{record['result']['best']:.4f}",
    "rows": last("rows", ","),
    "regret": last("regret", ".2e"),
    "± 2 s.e.": last("regret_error", ".1e", times=2),
    "power": power,
    "95% interval": interval,
}
tables = table(
    "Regret at the end of a sequence, and the power of n it falls with",
    {"problem": titled(CASES), "policy": label},
    NUMBERS,
)


def _draw(ax: Any, records: list[Record]) -> None:
    for record in records:
        negative = record["result"]["regret"][-1] < 0
        end = f"{record['label']}: negative at the end"
        curve(ax, record, label=end if negative else with_power(record["label"], record))
    for result in (record["result"] for record in records if record["label"] == OMMA):
        rows = np.array(result["rows"], dtype=float)
        shape = np.log(rows) / rows  # drawn above the curves
        highest = max(abs(value) for value in result["regret"][:2])
        bound(ax, rows, 3.0 * highest * shape / shape[0], "shape of ln n / n")


figures = pictured("regret", "{case.title}", _draw, CASES)
SUITE = Suite(
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
    simulate,
    rows=(1_000_000, 10_000),
    sequences=(24, 6),
    seed=0,
    tables=tables,
    figures=figures,
)
