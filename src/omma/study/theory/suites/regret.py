"""Item 1: regret against the number of rows, of every policy, on problems of every kind."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omma.study.jobs import Job
from omma.study.records import Record
from omma.study.theory.cases import CASES, OMMA, ONLINE, Case, policy
from omma.study.theory.rates import fitted_rate
from omma.study.theory.shortfall import Measured, measure
from omma.study.theory.suite import Suite, job
from omma.study.theory.suites.drawing import BOUND, COLORS, band, legend, named, panels
from omma.study.theory.tabulated import tabulated

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

NAME = "theory-regret"
SEQUENCES, FEW = 24, 6
ONLINE_ROWS = 100_000  # Online-FW looks at the past again and again
QUICK_ROWS = 10_000


def until(last: int) -> list[int]:
    """Numbers of rows from 100 on, three to each power of ten.

    >>> until(10_000)
    [100, 215, 464, 1000, 2154, 4642, 10000]
    """
    powers = np.arange(6, 3 * np.log10(last) + 0.5) / 3
    return [round(10**power) for power in powers.tolist()]


def summary(found: Measured) -> dict[str, Any]:
    """What a record keeps of measured sequences."""
    regret = found.regret
    rate = fitted_rate(found.rows, regret)
    return {
        "rows": found.rows.tolist(),
        "regret": regret.mean(axis=0).tolist(),
        "regret_error": standard_error(regret).tolist(),
        "shortfall": found.policy.mean(axis=0).tolist(),
        "shortfall_error": standard_error(found.policy).tolist(),
        "sequences": len(regret),
        "rate": None if rate is None else [rate.exponent, rate.low, rate.high],
    }


def standard_error(curves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the mean over sequences."""
    return curves.std(axis=0, ddof=1) / np.sqrt(len(curves))  # type: ignore[no-any-return]


def simulate(case: Case, entrant: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """One policy on one problem."""
    problem = case.problem()
    chosen = policy(entrant, problem.metric, case.k)
    found = measure(problem, chosen, until(spec["rows"]), spec["sequences"], seed=spec["seed"])
    return {**summary(found), "best": problem.best.value, "gap": problem.best.gap}


def jobs(quick: bool) -> list[Job]:
    """Every entrant of every case."""
    every = []
    for case in CASES.values():
        for entrant in case.entrants:
            rows = min(case.rows, ONLINE_ROWS) if entrant == ONLINE else case.rows
            spec = {
                "dataset": case.name,
                "policy": entrant,
                "rows": min(rows, QUICK_ROWS) if quick else rows,
                "sequences": FEW if quick else SEQUENCES,
                "seed": 0,
            }
            every.append(job(NAME, spec, entrant, partial(simulate, case, entrant, spec)))
    return every


def tables(records: list[Record]) -> list[Table]:
    """Regret at the end and the fitted power of n."""
    table = tabulated(
        "Regret at the end of a sequence, and the power of n it falls with",
        ["problem", "policy"],
        ["ψ(C*)", "rows", "regret", "± 2 s.e.", "power", "95% interval"],
    )
    for record in records:
        result = record["result"]
        rate = result["rate"]
        table.add_row(
            CASES[record["spec"]["dataset"]].title,
            record["label"],
            f"{result['best']:.4f}",
            f"{result['rows'][-1]:,}",
            f"{result['regret'][-1]:.2e}",
            f"{2 * result['regret_error'][-1]:.1e}",
            "–" if rate is None else f"{rate[0]:.2f}",
            "–" if rate is None else f"{rate[1]:.2f} to {rate[2]:.2f}",
        )
    return [table]


def figures(records: list[Record]) -> dict[str, Figure]:
    """A panel for each problem, on logarithmic axes."""
    present = [name for name in CASES if any(r["spec"]["dataset"] == name for r in records)]
    figure, places = panels([CASES[name].title for name in present])
    for ax, name in zip(places, present, strict=True):
        ax.set_xscale("log")
        ax.set_yscale("log")
        mine = {r["label"]: r["result"] for r in records if r["spec"]["dataset"] == name}
        for entrant in CASES[name].entrants:
            if entrant in mine:
                result = mine[entrant]
                curve = (result["rows"], result["regret"], result["regret_error"])
                band(ax, *curve, color=COLORS[entrant], label=_labelled(entrant, result))
        if OMMA in mine:
            _guide(ax, mine[OMMA])
        named(ax, "rows n", "regret")
        legend(ax, loc="lower left")
    return {"regret": figure}


def _labelled(entrant: str, result: Mapping[str, Any]) -> str:
    if result["regret"][-1] < 0:
        return f"{entrant}: negative at the end"
    return entrant if result["rate"] is None else f"{entrant}: n^{result['rate'][0]:.2f}"


def _guide(ax: Any, result: Mapping[str, Any]) -> None:
    """The shape of ln n / n, above the curves."""
    rows = np.array(result["rows"], dtype=float)
    shape = np.log(rows) / rows
    highest = max(abs(value) for value in result["regret"][:2])
    ax.plot(
        rows, 3.0 * highest * shape / shape[0], color=BOUND, linestyle=(0, (4, 3)), linewidth=1,
        label="shape of ln n / n",
    )  # fmt: skip


SUITE = Suite(NAME, "Regret against n on distributions that are known", jobs, tables, figures)
