"""The rules of OMMA along a sequence: their value on the population, and beside those of Greedy.

``POPULATION`` is the other framework of the paper's discussion: learn a classifier. A sequence of n
rows gives three classifiers: the last rule; a mixture that draws one of all rules for each row; and
the rule with the average slopes and offsets. Each is judged by the metric of its average counts on
the distribution itself.

``AGREEMENT`` is how often Greedy and OMMA disagree after t rows, measured in two ways. On the same
counts, both are rules, and the share of labels that they decide differently is a property of the
distribution. On their own paths, each policy has its own counts, and differing decisions are
counted.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import omma
from omma import Counts, Metric, Rule
from omma.plots import LEARNING
from omma_study.records import Record
from omma_study.tables import Table
from omma_study.theory.cases import CASES, ESTIMATES, GREEDY, OMMA, policy
from omma_study.theory.distributions import Distribution, Independent, Stream, Vector
from omma_study.theory.regret import Problem, averaged, counts_at, decisions, fitted_rate, until
from omma_study.theory.simulation import (
    COLORS,
    Simulation,
    Spec,
    band,
    bound,
    curve,
    last,
    pictured,
    power_and_interval,
    table,
)

LAST, DRAWN, AVERAGE = "the last rule", "a rule drawn from all", "the average rule"
WAYS = (LAST, DRAWN, AVERAGE)
PER_TENFOLD = 30  # rules that are evaluated for each power of ten of n


def moments(rows: int) -> NDArray[np.int64]:
    """Numbers of rows at which the rule is evaluated, those of ``until`` included."""
    # The rule moves by 1/n a row, so evaluating every rule would show no more.
    even = np.geomspace(1, rows, 1 + round(PER_TENFOLD * np.log10(rows)))
    return np.unique(np.concatenate([even.round().astype(np.int64), until(rows)]))


def rules_of(problem: Problem, chosen: omma.OMMA, stream: Stream, times: Any) -> list[Rule]:
    """The rule of OMMA after each number of rows, from what it had counted by then."""
    decided = decisions(problem.metric, chosen, stream)
    counted = stream.eta if chosen.feedback == "estimates" else stream.y
    return [
        Rule(*problem.metric.gradient(counts, chosen.prior), problem.k)
        for counts in counts_at(counted, decided, times)
    ]


def mean_of(parts: Sequence[Any], name: str, shares: Vector) -> Vector:
    """The mean of an attribute of the first rules, or of their counts, weighed by shares."""
    return shares @ np.array([getattr(part, name) for part in parts[: len(shares)]])


def simulate_population(spec: Spec) -> dict[str, Any]:
    """ψ(C*) minus the metric on the population, of each classifier after each number of rows."""
    problem = CASES[spec["dataset"]].problem
    distribution, metric = problem.distribution, problem.metric
    chosen = policy(spec["policy"], metric, problem.k)
    assert isinstance(chosen, omma.OMMA)
    rows, times = until(spec["rows"]), moments(spec["rows"])
    curves: dict[str, list[Any]] = {way: [] for way in WAYS}
    for sequence in range(spec["sequences"]):
        rng = np.random.default_rng((spec["seed"], sequence))
        rules = rules_of(problem, chosen, distribution.draw(spec["rows"], rng), times)
        cells = [distribution.counts(rule) for rule in rules]
        counts: dict[str, list[Counts]] = {way: [] for way in WAYS}
        for n in rows:
            at = int(np.flatnonzero(times == n)[0])
            shares = np.diff(times[: at + 1]) / (n - times[0])  # a rule decides until the next
            counts[LAST].append(cells[at])
            # A rule that is drawn for each row has the average of all counts.
            tp, predicted = (mean_of(cells, name, shares) for name in ("tp", "predicted"))
            counts[DRAWN].append(Counts(tp, predicted, distribution.frequencies, 1.0))
            # The average rule is another rule, which has counts of its own.
            slope, offset = (mean_of(rules, name, shares) for name in ("slope", "offset"))
            counts[AVERAGE].append(distribution.counts(Rule(slope, offset, problem.k)))
        for way in WAYS:
            values = [metric.value(each) for each in counts[way]]
            curves[way].append(problem.best.value - np.array(values))
    result: dict[str, Any] = {"rows": rows, "best": problem.best.value}
    for way in WAYS:
        shortfalls = np.array(curves[way])
        rate = fitted_rate(np.array(rows), shortfalls)
        result[way] = {**averaged("shortfall", shortfalls), "rate": rate}
    return result


def _by_way(records: list[Record]) -> list[Record]:
    """A record for each classifier."""
    return [
        {**record, "way": way, "result": {**record["result"], **record["result"][way]}}
        for record in records
        for way in WAYS
    ]


def _population_row(record: Record) -> dict[str, str]:
    return {
        "problem": CASES[record["spec"]["dataset"]].title,
        "policy": record["label"],
        "classifier": record["way"],
        "rows": last(record, "rows", ","),
        "shortfall": last(record, "shortfall", ".2e"),
        "± 2 s.e.": last(record, "shortfall_error", ".1e", times=2),
        **power_and_interval(record),
    }


def population_tables(records: list[Record]) -> list[Table]:
    """A row for each problem, policy and classifier."""
    title = "Shortfall on the population of the classifier after n rows, and its power of n"
    return table(title, _population_row, words=3)(_by_way(records))


def _draw_population(ax: Any, records: list[Record]) -> None:
    """A curve for each classifier."""
    for record, color in zip(_by_way(records), LEARNING, strict=False):
        curve(ax, record, "shortfall", record["way"], color=color)
    rows = np.array(records[0]["result"]["rows"], dtype=float)
    scale = 2.0 * records[0]["result"][DRAWN]["shortfall"][0] * rows[0]
    bound(ax, rows, scale / rows, "shape of 1 / n")


POPULATION = Simulation(
    "theory-population",
    "The classifier that OMMA has learned, judged on the population",
    [
        {"dataset": name, "policy": entrant}
        for name in ("binary", "f1", "macro-f1")
        for entrant in (OMMA, ESTIMATES)
    ],
    simulate_population,
    rows=(100_000, 10_000),
    sequences=(24, 6),
    seed=0,
    tables=population_tables,
    figures=pictured(
        "population",
        "{case.title}, {label}",
        _draw_population,
        CASES,
        names=("rows n", "ψ(C*) − ψ on the population"),
        high=2.8,
    ),
)

PRIOR = 1e-6  # the λ of both policies


def disagreement(first: Rule, second: Rule, distribution: Distribution) -> float:
    """How often two rules decide a label of a row differently.

    >>> import omma
    >>> from omma_study.theory import Beta, Independent
    >>> rules = [omma.Rule([1.0], [-cut]) for cut in (0.5, 0.6)]
    >>> round(disagreement(*rules, Independent(Beta(1, 1))), 6)
    0.1
    """
    # Two thresholds on one label differ between them, which is known exactly.
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
    # λ is added to each of the four cells of a label.
    tp, n = counts.tp + prior, float(counts.n) + 1.0 + 4 * prior
    predicted, positive = (part + 2 * prior for part in (counts.predicted, counts.positive))

    def value(hit: Any, chosen: Any, true: Any) -> float:
        return metric.value(Counts(tp + hit, predicted + chosen, positive + true, n))

    slope, offset = np.empty((2, counts.m))
    for j, unit in enumerate(np.eye(counts.m)):
        offset[j] = value(0, unit, 0) - value(0, 0, 0)
        slope[j] = value(unit, unit, unit) - value(0, 0, unit) - offset[j]
    return Rule(slope, offset, k)


def simulate_agreement(spec: Spec) -> dict[str, Any]:
    """Both rates, on fresh sequences."""
    problem, rows = CASES[spec["dataset"]].problem, np.array(until(spec["rows"]))
    metric, k = problem.metric, problem.k
    same, own = [], []
    for number in range(spec["sequences"]):
        rng = np.random.default_rng((spec["seed"], number))
        stream = problem.distribution.draw(int(rows[-1]), rng)
        by_omma, by_greedy = (
            decisions(metric, policy(name, metric, k), stream) for name in (OMMA, GREEDY)
        )
        same.append(
            [
                disagreement(
                    Rule(*metric.gradient(counts, PRIOR), k),
                    greedy_rule(metric, counts, k),
                    problem.distribution,
                )
                for counts in counts_at(stream.y, by_omma, rows)
            ]
        )
        differs = np.cumsum((by_omma != by_greedy).mean(axis=1))[rows - 1]
        own.append(np.diff(differs) / np.diff(rows))
    return {
        "rows": rows.tolist(),
        **averaged("same", np.array(same)),
        "middles": np.sqrt(rows[1:] * rows[:-1]).tolist(),
        **averaged("own", np.array(own)),
        "rate": fitted_rate(rows, np.array(same), start=100),
    }


def _agreement_row(record: Record) -> dict[str, str]:
    rate = power_and_interval(record)
    same = dict(zip(record["result"]["rows"], record["result"]["same"], strict=True))
    # A quick run has no 10,000 rows.
    early, late = (f"{100 * same[n]:.4f}" if n in same else "–" for n in (100, 10_000))
    return {
        "problem": CASES[record["spec"]["dataset"]].title,
        "after 100 rows": early,
        "after 10,000": late,
        "at the end": last(record, "same", ".4f", times=100),
        "power of t": rate["power"],
        "95% interval": rate["95% interval"],
    }


def _draw_agreement(ax: Any, records: list[Record]) -> None:
    """Both rates against t."""
    for record in records:
        result = record["result"]
        curve(ax, record, "same", "on the same counts", "t", color=COLORS[OMMA])
        own = (result["middles"], result["own"], result["own_error"])
        band(ax, *own, color=COLORS[GREEDY], label="each on its own path")
        rows = np.array(result["rows"], dtype=float)
        bound(ax, rows, 3 * result["same"][0] * rows[0] / rows, "shape of 1/t")


AGREEMENT = Simulation(
    "theory-agreement",
    "How often Greedy and OMMA disagree",
    [
        {"dataset": name, "policy": f"{OMMA} and {GREEDY}"}
        for name in ("binary", "f1", "macro-f1", "multilabel-at-2")
    ],
    simulate_agreement,
    rows=(100_000, 5_000),
    sequences=(24, 6),
    seed=5,
    tables=table(
        f"How often {OMMA} and {GREEDY} decide a label differently, in %", _agreement_row, words=1
    ),
    figures=pictured(
        "agreement",
        "{case.title}",
        _draw_agreement,
        CASES,
        names=("rows t", "share decided differently"),
    ),
)
