"""Item 2: what is measured stays under the bounds, for utilities that they hold for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from omma.metrics import Metric, macro
from omma.study.jobs import Job
from omma.study.records import Record
from omma.study.theory import utilities
from omma.study.theory.best import optimum
from omma.study.theory.bounds import Task, estimates_bound, frequency_bound, omma_bound
from omma.study.theory.cases import ESTIMATES, OMMA, beta, five_kinds, five_labels, policy
from omma.study.theory.curvature import Constants, constants, worst_constants
from omma.study.theory.distributions import Distribution
from omma.study.theory.shortfall import Problem, measure
from omma.study.theory.suite import Suite, job
from omma.study.theory.suites.drawing import COLORS, band, legend, named, panels
from omma.study.theory.suites.regret import standard_error, until
from omma.study.theory.tabulated import tabulated

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

NAME = "theory-bounds"
ROWS, SEQUENCES = 100_000, 16
QUICK_ROWS, FEW = 3_000, 5
SHOWN = ("recall", "balanced_accuracy", "f1", "jaccard", "precision", "gmean", "hmean", "qmean")


@dataclass(frozen=True)
class Bounded:
    """A utility that is concave everywhere, on a distribution."""

    title: str
    utility: Callable[[], utilities.Utility]
    distribution: Callable[[], Distribution]
    k: int | None = None

    def problem(self) -> tuple[Problem, Constants, Task]:
        """The problem, and what its bound is made of."""
        distribution, utility = self.distribution(), self.utility()
        one = distribution.m == 1
        metric: Metric = utility.metric if one else macro(utility.metric)
        found = utility.constants if one else utility.constants.averaged(distribution.m)
        best = optimum(metric, distribution, self.k)
        return (
            Problem(distribution, metric, best, self.k),
            found,
            Task.multilabel(distribution.m),
        )


EVERY = {
    "accuracy": Bounded("accuracy", utilities.accuracy, beta),
    "geometric": Bounded("√((tp + δ)(tn + δ))", utilities.geometric, beta),
    "harmonic": Bounded("harmonic mean, five kinds of rows", utilities.harmonic, five_kinds),
    "soft-least": Bounded("smooth min{tp, tn}", lambda: utilities.soft_least(0.05), beta),
    "macro-at-2": Bounded(
        "macro √((tp + δ)(tn + δ)) at 2 of 5", utilities.geometric, five_labels, k=2
    ),
}


@cache
def prepared(name: str) -> tuple[Problem, Constants, Task]:
    """A problem, made once for both policies."""
    return EVERY[name].problem()


def simulate(name: str, entrant: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """ψ(C*) minus the metric, which the theorems bound, and the bound."""
    problem, found, task = prepared(name)
    rows = until(spec["rows"])
    chosen = policy(entrant, problem.metric, problem.k)
    measured = measure(problem, chosen, rows, spec["sequences"], seed=spec["seed"])
    bound = estimates_bound if entrant == ESTIMATES else omma_bound
    return {
        "rows": rows,
        "shortfall": measured.policy.mean(axis=0).tolist(),
        "error": standard_error(measured.policy).tolist(),
        "bound": bound(rows, found, task).tolist(),
        "lipschitz": found.lipschitz,
        "smoothness": found.smoothness,
    }


def jobs(quick: bool) -> list[Job]:
    """OMMA and OMMA(η̂) on every utility."""
    every = []
    for name in EVERY:
        for entrant in (OMMA, ESTIMATES):
            spec = {
                "dataset": name,
                "policy": entrant,
                "rows": QUICK_ROWS if quick else ROWS,
                "sequences": FEW if quick else SEQUENCES,
                "seed": 1,
            }
            every.append(job(NAME, spec, entrant, partial(simulate, name, entrant, spec)))
    return every


def tables(records: list[Record]) -> list[Table]:
    """Measured against bound, and the constants of metrics."""
    table = tabulated(
        "Shortfall from ψ(C*) at the end of a sequence, and its bound",
        ["utility", "policy"],
        ["L", "M", "rows", "measured", "± 2 s.e.", "bound"],
    )
    for record in records:
        result = record["result"]
        table.add_row(
            EVERY[record["spec"]["dataset"]].title,
            record["label"],
            f"{result['lipschitz']:.3g}",
            f"{result['smoothness']:.3g}",
            f"{result['rows'][-1]:,}",
            f"{result['shortfall'][-1]:.1e}",
            f"{2 * result['error'][-1]:.0e}",
            f"{result['bound'][-1]:.1e}",
        )
    return [table, constants_table()]


def constants_table(frequency: float = 0.1) -> Table:
    """L and M of metrics at one frequency, and when the bound made of them says anything."""
    table = tabulated(
        f"Constants where a label occurs in {frequency:.0%} of the rows",
        ["metric"],
        ["L", "M", "p-dependent bound is below 1 from n ="],
    )
    for name in SHOWN:
        found = constants(name, frequency)
        start = first_useful(name, frequency)
        said = "never" if start is None else f"{start:.0e}"
        table.add_row(name, _number(found.lipschitz), _number(found.smoothness), said)
    return table


def first_useful(metric: str, frequency: float) -> int | None:
    """The first power of ten from which the p-dependent bound is below 1; None if it never is.

    >>> from omma.study.theory.suites.bounds import first_useful
    >>> first_useful("recall", 0.1), first_useful("gmean", 0.1)
    (10000000, None)
    """
    low = frequency / 4.0
    worst = worst_constants(metric, 1, low, 1.0 - low)
    if not math.isfinite(worst.lipschitz) or not math.isfinite(worst.smoothness):
        return None
    rows = 10.0 ** np.arange(1, 30)
    found = frequency_bound(rows, worst, Task.multilabel(1), 1, frequency)
    return int(rows[np.flatnonzero(found >= 1.0)[-1] + 1])


def figures(records: list[Record]) -> dict[str, Figure]:
    """Measured curves under their bounds; that of accuracy is zero, and so are its curves."""
    shown = [
        name
        for name in EVERY
        if name != "accuracy" and any(r["spec"]["dataset"] == name for r in records)
    ]
    figure, places = panels([EVERY[name].title for name in shown])
    for ax, name in zip(places, shown, strict=True):
        ax.set_xscale("log")
        ax.set_yscale("log")
        for record in records:
            if record["spec"]["dataset"] != name:
                continue
            result, color = record["result"], COLORS[record["label"]]
            curve = (result["rows"], result["shortfall"], result["error"])
            band(ax, *curve, color=color, label=f"{record['label']}, measured")
            dashes = (0, (4, 3)) if record["label"] == OMMA else (0, (1, 2))
            ax.plot(
                result["rows"], result["bound"], color=color, linestyle=dashes, linewidth=1.6,
                label=f"{record['label']}, bound",
            )  # fmt: skip
        named(ax, "rows n", "ψ(C*) − ψ")
        legend(ax, loc="lower left")
    return {"bounds": figure}


def _number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.3g}"


SUITE = Suite(NAME, "Measured shortfall under the paper's bounds", jobs, tables, figures)
