"""Measured shortfalls stay under the bounds, for utilities that they hold for.

``SMOOTHING`` is about a metric with a kink, followed as it is and smoothed. It is min{tp, tn}:
concave and 1-Lipschitz, but not smooth, so that the main theorem says nothing. On a smoothed one
OMMA is bounded by O(√(ln n / n)).
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy import optimize

import omma
from omma import Metric, Mixture
from omma.metrics import smoothed
from omma.plots import LEARNING
from omma_study.records import Record
from omma_study.tables import Table
from omma_study.theory import utilities
from omma_study.theory.bounds import (
    Task,
    constants,
    estimates_bound,
    frequency_bound,
    omma_bound,
    smoothed_bound,
    worst_constants,
)
from omma_study.theory.cases import (
    ESTIMATES,
    FIVE_KINDS,
    FIVE_LABELS,
    OMMA,
    ONE_LABEL,
    Case,
    measured,
)
from omma_study.theory.distributions import Independent, threshold
from omma_study.theory.optimum import Optimum
from omma_study.theory.regret import (
    Measured,
    Problem,
    averaged,
    fitted_rate,
    measure,
    standard_error,
    until,
)
from omma_study.theory.simulation import (
    COLORS,
    DASHED,
    LARGE,
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

SHOWN = ("recall", "balanced_accuracy", "f1", "jaccard", "precision", "gmean", "hmean", "qmean")
UTILITIES = {
    case.name: case
    for case in (
        Case("accuracy", "accuracy", ONE_LABEL, utilities.accuracy),
        Case("geometric", "√((tp + δ)(tn + δ))", ONE_LABEL, utilities.geometric),
        Case("harmonic", "harmonic mean, five kinds of rows", FIVE_KINDS, utilities.harmonic),
        Case("soft-least", "smooth min{tp, tn}", ONE_LABEL, lambda: utilities.soft_least(0.05)),
        Case(
            "macro-at-2", "macro √((tp + δ)(tn + δ)) at 2 of 5", FIVE_LABELS, utilities.geometric, 2
        ),
    )
}


def simulate_bounds(spec: Spec) -> dict[str, Any]:
    """ψ(C*) minus the metric, which the theorems bound, and the bound."""
    case = UTILITIES[spec["dataset"]]
    assert not isinstance(case.about, str)
    problem = case.problem
    m = problem.distribution.m
    utility_constants, task = case.about().constants.averaged(m), Task.multilabel(m)
    curves = measured(problem, spec)
    theorem = estimates_bound if spec["policy"] == ESTIMATES else omma_bound
    return {
        "rows": curves.rows.tolist(),
        "shortfall": curves.policy.mean(axis=0).tolist(),
        "error": standard_error(curves.policy).tolist(),
        "bound": theorem(curves.rows, utility_constants, task).tolist(),
        "lipschitz": utility_constants.lipschitz,
        "smoothness": utility_constants.smoothness,
    }


def bounds_tables(records: list[Record]) -> list[Table]:
    """Measured against bound, and the constants of metrics."""
    title = "Shortfall from ψ(C*) at the end of a sequence, and its bound"
    rows = [
        {
            "utility": UTILITIES[record["spec"]["dataset"]].title,
            "policy": record["label"],
            "L": f"{record['result']['lipschitz']:.3g}",
            "M": f"{record['result']['smoothness']:.3g}",
            "rows": last(record, "rows", ","),
            "measured": last(record, "shortfall", ".1e"),
            "± 2 s.e.": last(record, "error", ".0e", times=2),
            "bound": last(record, "bound", ".1e"),
        }
        for record in records
    ]
    return [Table(title, pd.DataFrame(rows), words=2), constants_table()]


def constants_table(frequency: float = 0.1) -> Table:
    """L and M of metrics at one frequency, and the n from which on their bound is below 1."""
    rows = []
    for name in SHOWN:
        at_frequency, start = constants(name, frequency), first_useful(name, frequency)
        useful = "never" if start is None else f"{start:.0e}"
        rows.append(
            {
                "metric": name,
                "L": f"{at_frequency.lipschitz:.3g}".replace("inf", "∞"),
                "M": f"{at_frequency.smoothness:.3g}".replace("inf", "∞"),
                "p-dependent bound is below 1 from n =": useful,
            }
        )
    title = f"Constants where a label occurs in {frequency:.0%} of the rows"
    return Table(title, pd.DataFrame(rows))


def first_useful(metric: str, frequency: float) -> int | None:
    """The first power of ten from which the p-dependent bound is below 1; None if it never is.

    >>> first_useful("recall", 0.1), first_useful("gmean", 0.1)
    (10000000, None)
    """
    # Theorem E.1 asks for constants at a quarter of the frequency.
    low = frequency / 4.0
    worst = worst_constants(metric, 1, low, 1.0 - low)
    if not math.isfinite(worst.lipschitz) or not math.isfinite(worst.smoothness):
        return None
    rows = 10.0 ** np.arange(1, 30)
    bounds = frequency_bound(rows, worst, Task.multilabel(1), 1, frequency)
    return int(rows[np.flatnonzero(bounds >= 1.0)[-1] + 1])


def _draw_bounds(ax: Any, records: list[Record]) -> None:
    for result, name in ((record["result"], record["label"]) for record in records):
        curve = (result["rows"], result["shortfall"], result["error"])
        band(ax, *curve, color=COLORS[name], label=f"{name}, measured")
        # Both bounds are nearly the same line.
        dashes = DASHED if name == OMMA else (0, (1, 2))
        look = {"color": COLORS[name], "linestyle": dashes, "linewidth": 1.6}
        ax.plot(result["rows"], result["bound"], label=f"{name}, bound", **look)


def bounds_figures(records: list[Record]) -> dict[str, Any]:
    """Measured curves under their bounds; that of accuracy is zero, and so are its curves."""
    curved = [record for record in records if record["spec"]["dataset"] != "accuracy"]
    draw = pictured(
        "bounds", "{case.title}", _draw_bounds, UTILITIES, names=("rows n", "ψ(C*) − ψ")
    )
    return draw(curved) if curved else {}


BOUNDS = Simulation(
    "theory-bounds",
    "Measured shortfall under the paper's bounds",
    [{"dataset": name, "policy": entrant} for name in UTILITIES for entrant in (OMMA, ESTIMATES)],
    simulate_bounds,
    rows=(100_000, 3_000),
    sequences=(16, 5),
    seed=1,
    tables=bounds_tables,
    figures=bounds_figures,
)

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

    # tp falls and tn rises with the threshold: they are equal once.
    cut = float(optimize.brentq(lead, 1e-9, 1.0 - 1e-9, xtol=1e-15))
    rule = threshold(cut)
    counts = distribution.counts(rule)
    gain = float(counts.tp[0] - cut * counts.predicted[0])
    alone = Mixture((rule,), np.ones(1), metric)
    return Optimum(metric.value(counts), 0.0, counts, alone, rule, rule.offset, gain)


@cache
def kinked_problem() -> Problem:
    """The metric with its kink, on rows of one label."""
    metric, distribution = utilities.least().metric, ONE_LABEL
    return Problem(distribution, metric, best_at_kink(metric, distribution))


def simulate_smoothing(spec: Spec) -> dict[str, Any]:
    """Shortfall from ψ(C*) of the metric with its kink; one policy for each n if n is known."""
    kinked, rows, way = kinked_problem(), until(spec["rows"]), spec["way"]
    # A metric that is smoothed for n rows differs for each n.
    plans = [[n] for n in rows] if way == "smoothed for n rows" else [rows]
    parts = [
        measure(
            kinked, omma.OMMA(WAYS[way](kinked.metric, plan[-1])), plan, spec["sequences"],
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


def _smoothing_row(record: Record) -> dict[str, str]:
    return {
        "metric followed": record["label"],
        "rows": last(record, "rows", ","),
        "shortfall": last(record, "shortfall", ".1e"),
        "± 2 s.e.": last(record, "shortfall_error", ".0e", times=2),
        "bound": "none" if "kink" in record["label"] else last(record, "bound", ".1e"),
        **power_and_interval(record),
        "regret": last(record, "regret", ".1e"),
    }


def _draw_smoothing(ax: Any, records: list[Record]) -> None:
    for color, record in zip(LEARNING, records, strict=False):
        curve(ax, record, "shortfall", color=color)
    result = records[0]["result"]
    bound(ax, result["rows"], result["bound"], "bound, smoothed for n rows", width=1.4)


SMOOTHING = Simulation(
    "theory-smoothing",
    "A metric with a kink, smoothed and not",
    [{"dataset": "min-tp-tn", "policy": "OMMA", "way": way} for way in WAYS],
    simulate_smoothing,
    rows=(100_000, 5_000),
    sequences=(24, 6),
    seed=6,
    tables=table(
        "min{tp, tn}: shortfall from ψ(C*) and regret at the end of a sequence",
        _smoothing_row,
        words=1,
    ),
    figures=pictured(
        "smoothing",
        "Shortfall from the best min{{tp, tn}}",
        _draw_smoothing,
        names=("rows n", "ψ(C*) − ψ"),
        size=LARGE,
    ),
    label="OMMA, {way}",
)
