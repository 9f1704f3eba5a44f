"""How often Greedy and OMMA disagree, the more rows they have seen.

Two rates are taken. On the same counts, both are rules, and how often two rules differ is a
property of the distribution. On its own path, each has counts of its own, and rows are counted that
the two decide differently.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from omma import Counts, Metric, Rule
from omma_study.records import Record
from omma_study.theory.cases import CASES, GREEDY, OMMA, policy
from omma_study.theory.distributions import Distribution, Independent
from omma_study.theory.figures import COLORS, band, bound, curve, pictured
from omma_study.theory.regret import Problem, averaged, counts_at, decisions, fitted_rate, until
from omma_study.theory.simulation import Simulation, Spec, last, power_and_interval, table

PRIOR = 1e-6  # the λ of both policies
PROBLEMS = ("binary", "f1", "macro-f1", "multilabel-at-2")


def disagreement(first: Rule, second: Rule, distribution: Distribution) -> float:
    """How often two rules decide a label of a row differently.

    >>> import omma
    >>> from omma_study.theory import Beta, Independent
    >>> rules = [omma.Rule([1.0], [-cut]) for cut in (0.5, 0.6)]
    >>> round(disagreement(*rules, Independent(Beta(1, 1))), 6)
    0.1
    """
    if isinstance(distribution, Independent) and first.k is None:
        often = [distribution.counts(rule).predicted for rule in (first, second)]
        return float(np.abs(often[0] - often[1]).mean())
    support = distribution.support
    differs = first.predict(support.points) != second.predict(support.points)
    return float(support.weights @ differs.mean(axis=1))


def greedy_rule(metric: Metric, counts: Counts, k: int | None, prior: float = PRIOR) -> Rule:
    """The rule of Greedy at some counts: a label's expected metric with and without predicting it.

    ψ(tp, predicted, positive) after one more row is taken at the four outcomes of a label; the
    difference between predicting it and not is linear in η.

    >>> import omma
    >>> rule = greedy_rule(omma.metric("f1"), omma.Counts([3.0], [5.0], [4.0], 10.0), None)
    >>> rule.thresholds.round(3)
    array([0.4])
    """
    tp, predicted, positive, n = counts.tp, counts.predicted, counts.positive, counts.n
    unit = np.eye(counts.m)

    def value(*added: Any) -> float:
        # λ is added to each of the four cells of a label.
        smoothed = (tp + prior, predicted + 2 * prior, positive + 2 * prior)
        cells = [cell + more for cell, more in zip(smoothed, added, strict=True)]
        return metric.value(Counts(cells[0], cells[1], cells[2], float(n) + 1.0 + 4 * prior))

    slope, offset = np.empty(counts.m), np.empty(counts.m)
    for j in range(counts.m):
        if_positive = value(unit[j], unit[j], unit[j]) - value(0, 0, unit[j])
        offset[j] = value(0, unit[j], 0) - value(0, 0, 0)
        slope[j] = if_positive - offset[j]
    return Rule(slope, offset, k)


def on_same_counts(problem: Problem, counts: Counts) -> float:
    """How often both would differ on the next row, were these the counts of both."""
    first = Rule(*problem.metric.gradient(counts, PRIOR), problem.k)
    second = greedy_rule(problem.metric, counts, problem.k)
    return disagreement(first, second, problem.distribution)


def simulate(spec: Spec) -> dict[str, Any]:
    """Both rates, on fresh sequences."""
    problem, rows = CASES[spec["dataset"]].problem(), np.array(until(spec["rows"]))
    same, own = [], []
    for number in range(spec["sequences"]):
        rng = np.random.default_rng((spec["seed"], number))
        stream = problem.distribution.draw(int(rows[-1]), rng)
        omma, greedy = (
            decisions(problem, policy(name, problem.metric, problem.k), stream)
            for name in (OMMA, GREEDY)
        )
        same.append([on_same_counts(problem, counts) for counts in counts_at(stream.y, omma, rows)])
        differs = np.cumsum((omma != greedy).mean(axis=1))[rows - 1]
        own.append(np.diff(differs) / np.diff(rows))
    shared = np.array(same)
    return {
        "rows": rows.tolist(),
        **averaged("same", shared),
        "middles": np.sqrt(rows[1:] * rows[:-1]).tolist(),
        **averaged("own", np.array(own)),
        "rate": fitted_rate(rows, shared, start=100),
    }


def _at(result: Mapping[str, Any], rows: int) -> str:
    place = result["rows"].index(rows) if rows in result["rows"] else None
    return "–" if place is None else f"{100 * result['same'][place]:.4f}"


def _row(record: Record) -> dict[str, str]:
    rate = power_and_interval(record)
    return {
        "problem": CASES[record["spec"]["dataset"]].title,
        "after 100 rows": _at(record["result"], 100),
        "after 10,000": _at(record["result"], 10_000),
        "at the end": last(record, "same", ".4f", times=100),
        "power of t": rate["power"],
        "95% interval": rate["95% interval"],
    }


def _draw(ax: Any, records: list[Record]) -> None:
    """Both rates against t."""
    for record in records:
        result = record["result"]
        curve(ax, record, "same", "on the same counts", "t", color=COLORS[OMMA])
        own = (result["middles"], result["own"], result["own_error"])
        band(ax, *own, color=COLORS[GREEDY], label="each on its own path")
        rows = np.array(result["rows"], dtype=float)
        bound(ax, rows, 3 * result["same"][0] * rows[0] / rows, "shape of 1/t")


SUITE = Simulation(
    "theory-agreement",
    "How often Greedy and OMMA disagree",
    [{"dataset": name, "policy": f"{OMMA} and {GREEDY}"} for name in PROBLEMS],
    simulate,
    rows=(100_000, 5_000),
    sequences=(24, 6),
    seed=5,
    tables=table(f"How often {OMMA} and {GREEDY} decide a label differently, in %", _row, words=1),
    figures=pictured(
        "agreement", "{case.title}", _draw, CASES, names=("rows t", "share decided differently")
    ),
)
