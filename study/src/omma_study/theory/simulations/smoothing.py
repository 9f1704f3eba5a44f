"""A metric with a kink, followed as it is and smoothed.

The metric is min{tp, tn}: concave and 1-Lipschitz, but not smooth, so that the main theorem says
nothing. On a smoothed one OMMA is bounded by O(√(ln n / n)).
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy import optimize

from omma import OMMA, Metric, Mixture
from omma.metrics import smoothed
from omma.plots import LEARNING
from omma_study.records import Record
from omma_study.theory import utilities
from omma_study.theory.bounds import Task, smoothed_bound
from omma_study.theory.cases import beta
from omma_study.theory.distributions import Independent, threshold
from omma_study.theory.figures import LARGE, bound, curve, pictured
from omma_study.theory.optimum import Optimum
from omma_study.theory.regret import Measured, Problem, averaged, fitted_rate, measure, until
from omma_study.theory.simulation import Simulation, Spec, last, power_and_interval, table

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
    alone = Mixture((rule,), np.ones(1), metric)
    return Optimum(metric.value(counts), 0.0, counts, alone, rule, rule.offset, gain)


@cache
def problem() -> Problem:
    """The metric with its kink, on rows of one label."""
    metric, distribution = utilities.least().metric, beta()
    return Problem(distribution, metric, best_at_kink(metric, distribution))


def simulate(spec: Spec) -> dict[str, Any]:
    """How far OMMA stays from ψ(C*), kink and all; where n must be known, a policy for each n."""
    kinked, rows, way = problem(), until(spec["rows"]), spec["way"]
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
    curves = Measured(np.array(rows), policy, best)
    return {
        "rows": rows,
        **averaged("regret", curves.regret),
        **averaged("shortfall", curves.policy),
        "bound": smoothed_bound(rows, 1.0, Task.multilabel(1)).tolist(),
        "rate": fitted_rate(curves.rows, curves.policy),
    }


def _row(record: Record) -> dict[str, str]:
    return {
        "metric followed": record["label"],
        "rows": last(record, "rows", ","),
        "shortfall": last(record, "shortfall", ".1e"),
        "± 2 s.e.": last(record, "shortfall_error", ".0e", times=2),
        "bound": "none" if "kink" in record["label"] else last(record, "bound", ".1e"),
        **power_and_interval(record),
        "regret": last(record, "regret", ".1e"),
    }


def _draw(ax: Any, records: list[Record]) -> None:
    for color, record in zip(LEARNING, records, strict=False):
        curve(ax, record, "shortfall", color=color)
    result = records[0]["result"]
    bound(ax, result["rows"], result["bound"], "bound, smoothed for n rows", width=1.4)


SUITE = Simulation(
    "theory-smoothing",
    "A metric with a kink, smoothed and not",
    [{"dataset": "min-tp-tn", "policy": "OMMA", "way": way} for way in WAYS],
    simulate,
    rows=(100_000, 5_000),
    sequences=(24, 6),
    seed=6,
    tables=table(
        "min{tp, tn}: shortfall from ψ(C*) and regret at the end of a sequence", _row, words=1
    ),
    figures=pictured(
        "smoothing",
        "Shortfall from the best min{{tp, tn}}",
        _draw,
        names=("rows n", "ψ(C*) − ψ"),
        size=LARGE,
    ),
    label="OMMA, {way}",
)
