"""Item 1: regret against the number of rows, of every policy, on problems of every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from omma.study.records import Record
from omma.study.theory.cases import CASES, OMMA, ONLINE, Case, policy
from omma.study.theory.curves import averaged, fitted_rate, until
from omma.study.theory.shortfall import measure
from omma.study.theory.suite import Spec, Suite, interval, label, last, power, table, with_power
from omma.study.theory.suites.drawing import COLORS, band, bound, legend, named, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ONLINE_ROWS = 100_000  # Online-FW looks at the past again and again


def simulate(spec: Spec) -> dict[str, Any]:
    """One policy on one problem."""
    return simulated(CASES[spec["dataset"]], spec)


def simulated(case: Case, spec: Spec) -> dict[str, Any]:
    """Regret and shortfall of a policy on a problem, against the number of rows."""
    problem = case.problem()
    chosen = policy(spec["policy"], problem.metric, problem.k)
    found = measure(problem, chosen, until(spec["rows"]), spec["sequences"], seed=spec["seed"])
    rate = fitted_rate(found.rows, found.regret)
    return {
        "rows": found.rows.tolist(),
        **averaged("regret", found.regret),
        **averaged("shortfall", found.policy),
        "sequences": len(found.regret),
        "rate": rate and list(rate),
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
    {"problem": lambda record: CASES[record["spec"]["dataset"]].title, "policy": label},
    NUMBERS,
)


def figures(records: list[Record]) -> dict[str, Figure]:
    """A panel for each problem, on logarithmic axes."""
    present = [name for name in CASES if any(r["spec"]["dataset"] == name for r in records)]
    figure, places = panels([CASES[name].title for name in present], logs=True)
    for ax, name in zip(places, present, strict=True):
        mine = {r["label"]: r for r in records if r["spec"]["dataset"] == name}
        for entrant in CASES[name].entrants:
            if entrant in mine:
                result = mine[entrant]["result"]
                negative = result["regret"][-1] < 0
                said = f"{entrant}: negative at the end" if negative else with_power(
                    entrant, mine[entrant]
                )  # fmt: skip
                curve = (result["rows"], result["regret"], result["regret_error"])
                band(ax, *curve, color=COLORS[entrant], label=said)
        if OMMA in mine:
            rows = np.array(mine[OMMA]["result"]["rows"], dtype=float)
            shape = np.log(rows) / rows  # drawn above the curves
            highest = max(abs(value) for value in mine[OMMA]["result"]["regret"][:2])
            bound(ax, rows, 3.0 * highest * shape / shape[0], "shape of ln n / n")
        named(ax, "rows n", "regret")
        legend(ax, loc="lower left")
    return {"regret": figure}


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
