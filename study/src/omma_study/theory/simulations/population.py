"""The other framework of the paper's discussion: learn a classifier, judged on the population.

Of a sequence of n rows three classifiers are taken: the last rule; any of the rules so far, drawn
anew for each row; and the rule whose slopes and offsets are the averages of theirs. Each is judged
by the metric of its average counts on the distribution itself.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import omma
from omma import Counts, Rule
from omma.plots import LEARNING
from omma_study.records import Record
from omma_study.tables import Table
from omma_study.theory.cases import CASES, ESTIMATES, OMMA, policy
from omma_study.theory.distributions import Stream
from omma_study.theory.figures import bound, curve, pictured
from omma_study.theory.regret import Problem, averaged, counts_at, decisions, fitted_rate, until
from omma_study.theory.simulation import Simulation, Spec, last, power_and_interval, table

PROBLEMS = ("binary", "f1", "macro-f1")
LAST, DRAWN, AVERAGE = "the last rule", "a rule drawn from all", "the average rule"
WAYS = (LAST, DRAWN, AVERAGE)
PER_TENFOLD = 30  # rules looked at as n grows tenfold
Curve = NDArray[np.float64]


def moments(rows: int) -> NDArray[np.int64]:
    """Numbers of rows at which the rule is looked at; those of ``until`` are among them."""
    # The rule moves by 1/n a row: looking at each of them would show no more.
    even = np.geomspace(1, rows, 1 + round(PER_TENFOLD * np.log10(rows)))
    return np.unique(np.concatenate([even.round().astype(np.int64), until(rows)]))


def rules_of(problem: Problem, chosen: omma.OMMA, stream: Stream, times: Any) -> list[Rule]:
    """The rule of OMMA after each number of rows, from what it had counted by then."""
    decided = decisions(problem, chosen, stream)
    told = stream.eta if chosen.feedback == "estimates" else stream.y
    return [
        Rule(*problem.metric.gradient(counts, chosen.prior), problem.k)
        for counts in counts_at(told, decided, times)
    ]


def shortfalls(
    problem: Problem, rules: list[Rule], times: NDArray[np.int64], rows: list[int]
) -> dict[str, Curve]:
    """ψ(C*) minus the metric on the population, of each classifier after each number of rows."""
    distribution, metric = problem.distribution, problem.metric
    cells = [distribution.counts(rule) for rule in rules]
    values: dict[str, list[float]] = {way: [] for way in WAYS}
    for n in rows:
        at = int(np.flatnonzero(times == n)[0])
        shares = np.diff(times[: at + 1]) / (n - times[0])  # a rule decides until the next
        tp, predicted = (
            shares @ np.array([getattr(counts, part) for counts in cells[:at]])
            for part in ("tp", "predicted")
        )
        values[LAST].append(metric.value(cells[at]))
        values[DRAWN].append(metric.value(Counts(tp, predicted, distribution.frequencies, 1.0)))
        slope, offset = (
            shares @ np.array([getattr(rule, part) for rule in rules[:at]])
            for part in ("slope", "offset")
        )
        average = distribution.counts(Rule(slope, offset, problem.k))
        values[AVERAGE].append(metric.value(average))
    return {way: problem.best.value - np.array(values) for way, values in values.items()}


def simulate(spec: Spec) -> dict[str, Any]:
    """One policy on one problem."""
    problem = CASES[spec["dataset"]].problem()
    chosen = policy(spec["policy"], problem.metric, problem.k)
    assert isinstance(chosen, omma.OMMA)
    rows, times = until(spec["rows"]), moments(spec["rows"])
    curves: dict[str, list[Curve]] = {way: [] for way in WAYS}
    for sequence in range(spec["sequences"]):
        rng = np.random.default_rng((spec["seed"], sequence))
        stream = problem.distribution.draw(spec["rows"], rng)
        rules = rules_of(problem, chosen, stream, times)
        for way, shortfall in shortfalls(problem, rules, times, rows).items():
            curves[way].append(shortfall)
    result: dict[str, Any] = {"rows": rows, "best": problem.best.value}
    for way in WAYS:
        shortfall_curves = np.array(curves[way])
        rate = fitted_rate(np.array(rows), shortfall_curves)
        result[way] = {**averaged("shortfall", shortfall_curves), "rate": rate}
    return result


def _by_way(records: list[Record]) -> list[Record]:
    """A record for each classifier."""
    return [
        {**record, "way": way, "result": {**record["result"], **record["result"][way]}}
        for record in records
        for way in WAYS
    ]


def _row(record: Record) -> dict[str, str]:
    return {
        "problem": CASES[record["spec"]["dataset"]].title,
        "policy": record["label"],
        "classifier": record["way"],
        "rows": last(record, "rows", ","),
        "shortfall": last(record, "shortfall", ".2e"),
        "± 2 s.e.": last(record, "shortfall_error", ".1e", times=2),
        **power_and_interval(record),
    }


def tables(records: list[Record]) -> list[Table]:
    """A row for each problem, policy and classifier."""
    title = "Shortfall on the population of the classifier after n rows, and its power of n"
    return table(title, _row, words=3)(_by_way(records))


def _draw(ax: Any, records: list[Record]) -> None:
    """A curve for each classifier."""
    for record, color in zip(_by_way(records), LEARNING, strict=False):
        curve(ax, record, "shortfall", record["way"], color=color)
    rows = np.array(records[0]["result"]["rows"], dtype=float)
    scale = 2.0 * records[0]["result"][DRAWN]["shortfall"][0] * rows[0]
    bound(ax, rows, scale / rows, "shape of 1 / n")


SUITE = Simulation(
    "theory-population",
    "The classifier that OMMA has learned, judged on the population",
    [{"dataset": name, "policy": entrant} for name in PROBLEMS for entrant in (OMMA, ESTIMATES)],
    simulate,
    rows=(100_000, 10_000),
    sequences=(24, 6),
    seed=0,
    tables=tables,
    figures=pictured(
        "population",
        "{case.title}, {label}",
        _draw,
        CASES,
        names=("rows n", "ψ(C*) − ψ on the population"),
        high=2.8,
    ),
)
