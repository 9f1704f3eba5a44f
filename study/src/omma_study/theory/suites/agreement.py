"""Item 6: how often Greedy and OMMA disagree, the more rows they have seen.

Two rates are taken. On the same counts, both are rules, and how often two rules differ is a
property of the distribution. On its own path, each has counts of its own, and rows are counted that
the two decide differently.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from omma.counts import Counts, state_of
from omma.rule import Rule
from omma_study.records import Record
from omma_study.theory.cases import CASES, GREEDY, OMMA, policy
from omma_study.theory.distributions import Discrete, Distribution, Independent
from omma_study.theory.shortfall import Problem, averaged, counts_at, decisions, fitted_rate, until
from omma_study.theory.suite import Spec, Suite, interval, last, power, table, titled
from omma_study.theory.suites.drawing import COLORS, band, bound, curve, pictured

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
    support = distribution if isinstance(distribution, Discrete) else distribution.support  # type: ignore[attr-defined]
    differs = first.predict(support.points) != second.predict(support.points)
    return float(support.weights @ differs.mean(axis=1))


def on_same_counts(problem: Problem, counts: Counts) -> float:
    """How often both would differ on the next row, were these the counts of both."""
    first, second = (
        policy(name, problem.metric, problem.k).rule(state_of(counts)) for name in (OMMA, GREEDY)
    )
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
        same.append([on_same_counts(problem, one) for one in counts_at(stream.y, omma, rows)])
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


tables = table(
    f"How often {OMMA} and {GREEDY} decide a label differently, in %",
    {"problem": titled(CASES)},
    {
        "after 100 rows": lambda record: _at(record["result"], 100),
        "after 10,000": lambda record: _at(record["result"], 10_000),
        "at the end": last("same", ".4f", times=100),
        "power of t": power,
        "95% interval": interval,
    },
)


def _draw(ax: Any, records: list[Record]) -> None:
    """Both rates against t."""
    for record in records:
        result = record["result"]
        curve(ax, record, "same", "on the same counts", power="t", color=COLORS[OMMA])
        own = (result["middles"], result["own"], result["own_error"])
        band(ax, *own, color=COLORS[GREEDY], label="each on its own path")
        rows = np.array(result["rows"], dtype=float)
        bound(ax, rows, 3 * result["same"][0] * rows[0] / rows, "shape of 1/t")


NAMES = ("rows t", "share decided differently")
figures = pictured("agreement", "{case.title}", _draw, CASES, names=NAMES)
SUITE = Suite(
    "theory-agreement",
    "How often Greedy and OMMA disagree",
    [{"dataset": name, "policy": f"{OMMA} and {GREEDY}"} for name in PROBLEMS],
    simulate,
    rows=(100_000, 5_000),
    sequences=(24, 6),
    seed=5,
    tables=tables,
    figures=figures,
)
