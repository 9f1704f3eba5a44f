"""Item 4: a metric with a kink, followed as it is and smoothed.

The metric is min{tp, tn}: concave and 1-Lipschitz, but not smooth, so that the main theorem says
nothing. On a smoothed one OMMA is bounded by O(√(ln n / n)).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize

from omma.metrics import Metric, smoothed
from omma.policies import OMMA
from omma.policies.mixture import Mixture
from omma.study.jobs import Job
from omma.study.records import Record
from omma.study.theory import utilities
from omma.study.theory.best import Optimum
from omma.study.theory.bounds import Task, smoothed_bound
from omma.study.theory.cases import beta
from omma.study.theory.distributions import Independent, threshold
from omma.study.theory.rates import fitted_rate
from omma.study.theory.shortfall import Measured, Problem, measure
from omma.study.theory.suite import Suite, job
from omma.study.theory.suites.drawing import BOUND, MORE, band, legend, named, panels
from omma.study.theory.suites.regret import standard_error, until
from omma.study.theory.tabulated import tabulated

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

NAME = "theory-smoothing"
ROWS, SEQUENCES = 100_000, 24
QUICK_ROWS, FEW = 5_000, 6

WAYS: dict[str, Callable[[Metric, int], Metric]] = {
    "smoothed for n rows": lambda metric, n: smoothed(metric, rows=n),
    "smoothed as rows come": lambda metric, n: smoothed(metric),
    "with its kink": lambda metric, n: metric,
}


def best_at_kink(metric: Metric, distribution: Independent) -> Optimum:
    """The best classifier for min{tp, tn}: the threshold at which the two are equal.

    There the metric is followed along w·tp + (1 − w)·tn, for which that threshold, 1 − w, is best.
    """

    def lead(cut: float) -> float:
        counts = distribution.counts(threshold(cut))
        return float(counts.tp[0] - counts.tn[0])

    cut = float(optimize.brentq(lead, 1e-9, 1.0 - 1e-9, xtol=1e-15))
    rule = threshold(cut)
    counts = distribution.counts(rule)
    gain = float(counts.tp[0] - cut * counts.predicted[0])
    slope, offset = np.ones(1), np.full(1, -cut)
    alone = Mixture((rule,), np.ones(1), metric)
    return Optimum(metric.value(counts), 0.0, counts, alone, slope, offset, offset, rule, gain)


@cache
def problem() -> Problem:
    """The metric with its kink, on rows of one label."""
    metric, distribution = utilities.least().metric, beta()
    return Problem(distribution, metric, best_at_kink(metric, distribution))


def simulate(way: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """How far OMMA stays from ψ(C*), kink and all; where n must be known, a policy for each n."""
    kinked, rows = problem(), until(spec["rows"])
    plans = [[n] for n in rows] if way == "smoothed for n rows" else [rows]
    parts = [
        measure(
            kinked, OMMA(WAYS[way](kinked.metric, plan[-1])), plan, spec["sequences"],
            seed=spec["seed"],
        )
        for plan in plans
    ]  # fmt: skip
    policy, best = (
        np.hstack([getattr(part, name) for part in parts]) for name in ("policy", "best")
    )
    found = Measured(np.array(rows), policy, best)
    rate = fitted_rate(found.rows, found.policy)
    return {
        "rows": rows,
        "regret": found.regret.mean(axis=0).tolist(),
        "regret_error": standard_error(found.regret).tolist(),
        "shortfall": found.policy.mean(axis=0).tolist(),
        "shortfall_error": standard_error(found.policy).tolist(),
        "bound": smoothed_bound(rows, 1.0, Task.multilabel(1)).tolist(),
        "rate": None if rate is None else [rate.exponent, rate.low, rate.high],
    }


def jobs(quick: bool) -> list[Job]:
    """OMMA on the smoothed metric, and on the metric itself."""
    every = []
    for way in WAYS:
        spec = {
            "dataset": "min-tp-tn",
            "policy": "OMMA",
            "way": way,
            "rows": QUICK_ROWS if quick else ROWS,
            "sequences": FEW if quick else SEQUENCES,
            "seed": 6,
        }
        every.append(job(NAME, spec, f"OMMA, {way}", partial(simulate, way, spec)))
    return every


def tables(records: list[Record]) -> list[Table]:
    """Shortfall and regret at the end, the rate and the bound of the former."""
    table = tabulated(
        "min{tp, tn}: shortfall from ψ(C*) and regret at the end of a sequence",
        ["metric followed"],
        ["rows", "shortfall", "± 2 s.e.", "bound", "power", "95% interval", "regret"],
    )
    for record in records:
        result, rate = record["result"], record["result"]["rate"]
        table.add_row(
            record["label"],
            f"{result['rows'][-1]:,}",
            f"{result['shortfall'][-1]:.1e}",
            f"{2 * result['shortfall_error'][-1]:.0e}",
            "none" if "kink" in record["label"] else f"{result['bound'][-1]:.1e}",
            "–" if rate is None else f"{rate[0]:.2f}",
            "–" if rate is None else f"{rate[1]:.2f} to {rate[2]:.2f}",
            f"{result['regret'][-1]:.1e}",
        )
    return [table]


def figures(records: list[Record]) -> dict[str, Figure]:
    """Shortfall under the bound."""
    figure, (ax,) = panels(["Shortfall from the best min{tp, tn}"])
    figure.set_size_inches(6.4, 3.8)
    ax.set_xscale("log")
    ax.set_yscale("log")
    for color, record in zip(MORE, records, strict=False):
        result, rate = record["result"], record["result"]["rate"]
        said = record["label"] + ("" if rate is None else f": n^{rate[0]:.2f}")
        band(
            ax,
            result["rows"],
            result["shortfall"],
            result["shortfall_error"],
            color=color,
            label=said,
        )
    if records:
        ax.plot(
            result["rows"], result["bound"], color=BOUND, linestyle=(0, (4, 3)), linewidth=1.4,
            label="bound, smoothed for n rows",
        )  # fmt: skip
    named(ax, "rows n", "ψ(C*) − ψ")
    legend(ax, loc="lower left")
    return {"smoothing": figure}


SUITE = Suite(NAME, "A metric with a kink, smoothed and not", jobs, tables, figures)
