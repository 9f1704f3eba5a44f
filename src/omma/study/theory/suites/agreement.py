"""Item 6: how often Greedy and OMMA disagree, the more rows they have seen.

Two rates are taken. On the same counts, both are rules, and how often two rules differ is a
property of the distribution. On its own path, each has counts of its own, and rows are counted that
the two decide differently.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omma.counts import Counts
from omma.metrics import Metric
from omma.metrics.base import state_of
from omma.policies.base import LinearPolicy
from omma.rule import Rule
from omma.study.jobs import Job
from omma.study.records import Record
from omma.study.theory.cases import CASES, GREEDY, OMMA, Case, policy
from omma.study.theory.distributions import Discrete, Distribution, Independent
from omma.study.theory.rates import fitted_rate
from omma.study.theory.shortfall import Problem, counts_at, decisions
from omma.study.theory.suite import Suite, job
from omma.study.theory.suites.drawing import BOUND, COLORS, band, legend, named, panels
from omma.study.theory.suites.regret import standard_error, until
from omma.study.theory.tabulated import tabulated

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

Vector = NDArray[np.float64]
NAME = "theory-agreement"
BOTH = f"{OMMA} and {GREEDY}"
PROBLEMS = ("binary", "f1", "macro-f1", "multilabel-at-2")
ROWS, SEQUENCES = 100_000, 24
QUICK_ROWS, FEW = 5_000, 6


def disagreement(first: Rule, second: Rule, distribution: Distribution) -> float:
    """How often two rules decide a label of a row differently.

    >>> import omma
    >>> from omma.theory import Beta, Independent
    >>> from omma.study.theory.suites.agreement import disagreement
    >>> rules = [omma.Rule([1.0], [-cut]) for cut in (0.5, 0.6)]
    >>> round(disagreement(*rules, Independent(Beta(1, 1))), 6)
    0.1
    """
    if isinstance(distribution, Independent) and first.k is None:
        often = [distribution.counts(rule).predicted for rule in (first, second)]
        return float(np.abs(often[0] - often[1]).mean())
    support = distribution if isinstance(distribution, Discrete) else distribution.support  # type: ignore[attr-defined]
    differs = first.predict(support.points) != second.predict(support.points)
    return float(support.weights @ differs.mean(axis=1))


def on_same_counts(problem: Problem, counts: Counts) -> float:
    """How often both would differ on the next row, were these the counts of both."""
    first, second = (_rule(name, problem.metric, problem.k, counts) for name in (OMMA, GREEDY))
    return disagreement(first, second, problem.distribution)


def _rule(name: str, metric: Metric, k: int | None, counts: Counts) -> Rule:
    chosen = policy(name, metric, k)
    assert isinstance(chosen, LinearPolicy)
    return chosen.rule(state_of(counts))


def simulate(case: Case, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Both rates, on fresh sequences."""
    problem, rows = case.problem(), np.array(until(spec["rows"]))
    same, own = [], []
    for number in range(spec["sequences"]):
        rng = np.random.default_rng((spec["seed"], number))
        stream = problem.distribution.draw(int(rows[-1]), rng)
        omma, greedy = (
            decisions(problem, policy(name, problem.metric, case.k), stream)
            for name in (OMMA, GREEDY)
        )
        same.append([on_same_counts(problem, one) for one in counts_at(stream.y, omma, rows)])
        differs = np.cumsum((omma != greedy).mean(axis=1))[rows - 1]
        own.append(np.diff(differs) / np.diff(rows))
    shared, apart = np.array(same), np.array(own)
    rate = fitted_rate(rows, shared, start=100)
    return {
        "rows": rows.tolist(),
        "same": shared.mean(axis=0).tolist(),
        "same_error": standard_error(shared).tolist(),
        "middles": np.sqrt(rows[1:] * rows[:-1]).tolist(),
        "own": apart.mean(axis=0).tolist(),
        "own_error": standard_error(apart).tolist(),
        "rate": None if rate is None else [rate.exponent, rate.low, rate.high],
    }


def jobs(quick: bool) -> list[Job]:
    """Problems on which both can decide."""
    every = []
    for name in PROBLEMS:
        spec = {
            "dataset": name,
            "policy": BOTH,
            "rows": QUICK_ROWS if quick else ROWS,
            "sequences": FEW if quick else SEQUENCES,
            "seed": 5,
        }
        case = CASES[name]
        every.append(job(NAME, spec, BOTH, partial(simulate, case, spec)))
    return every


def tables(records: list[Record]) -> list[Table]:
    """Disagreement early and late, and the power of t it falls with."""
    table = tabulated(
        f"How often {OMMA} and {GREEDY} decide a label differently, in %",
        ["problem"],
        ["after 100 rows", "after 10,000", "at the end", "power of t", "95% interval"],
    )
    for record in records:
        result = record["result"]
        values = [_at(result, 100), _at(result, 10_000), result["same"][-1]]
        rate = result["rate"]
        table.add_row(
            CASES[record["spec"]["dataset"]].title,
            *("–" if value is None else f"{100 * value:.4f}" for value in values),
            "–" if rate is None else f"{rate[0]:.2f}",
            "–" if rate is None else f"{rate[1]:.2f} to {rate[2]:.2f}",
        )
    return [table]


def _at(result: Mapping[str, Any], rows: int) -> float | None:
    return result["same"][result["rows"].index(rows)] if rows in result["rows"] else None


def figures(records: list[Record]) -> dict[str, Figure]:
    """Both rates against t."""
    figure, places = panels([CASES[r["spec"]["dataset"]].title for r in records])
    for ax, record in zip(places, records, strict=True):
        ax.set_xscale("log")
        ax.set_yscale("log")
        result = record["result"]
        rate = result["rate"]
        said = "on the same counts" + ("" if rate is None else f": t^{rate[0]:.2f}")
        band(
            ax, result["rows"], result["same"], result["same_error"], color=COLORS[OMMA], label=said
        )
        curve = (result["middles"], result["own"], result["own_error"])
        band(ax, *curve, color=COLORS[GREEDY], label="each on its own path")
        start = result["same"][0] * 3
        shape = start * result["rows"][0] / np.array(result["rows"], dtype=float)
        ax.plot(
            result["rows"], shape, color=BOUND, linestyle=(0, (4, 3)), linewidth=1,
            label="shape of 1/t",
        )  # fmt: skip
        named(ax, "rows t", "share decided differently")
        legend(ax, loc="lower left")
    return {"agreement": figure}


SUITE = Suite(NAME, "How often Greedy and OMMA disagree", jobs, tables, figures)
