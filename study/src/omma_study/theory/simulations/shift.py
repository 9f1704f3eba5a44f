"""What a shift of label frequencies in mid-stream does to OMMA.

Probabilities stay exact throughout; only how common the label is changes, after half of the rows.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import omma
from omma import OMMA, Counts, FixedRule, Policy
from omma.plots import LEARNING
from omma_study.records import Record
from omma_study.theory.distributions import Independent, LogisticNormal, Stream, threshold
from omma_study.theory.figures import BOUND, DASHED, pictured
from omma_study.theory.optimum import optimum
from omma_study.theory.regret import averaged, counts_at, standard_error
from omma_study.theory.simulation import Simulation, Spec, table

WINDOWS = 40
COMMON, RARE, SPREAD = -0.5, -3.5, 1.5
SHIFTS = {"rarer": (COMMON, RARE), "more common": (RARE, COMMON)}
F1 = "f1"


def half(mean: float) -> Independent:
    """Rows of one half of the stream."""
    return Independent(LogisticNormal(mean, SPREAD))


def stream(shift: str, n: int, rng: np.random.Generator) -> Stream:
    """Two halves, one after the other."""
    parts = [half(mean).draw(n // 2, rng) for mean in SHIFTS[shift]]
    eta, y = (np.concatenate([getattr(part, name) for part in parts]) for name in ("eta", "y"))
    return Stream(eta, y)


@cache
def best_threshold(means: tuple[float, ...]) -> float:
    """The best threshold for halves with these means, taken together: half of the best F1."""
    metric = omma.metric(F1)
    if len(means) == 1:
        return float(optimum(metric, half(means[0])).rule.thresholds[0])
    cut, before = 0.25, -1.0
    while abs(cut - before) > 1e-12:  # Dinkelbach's iteration: it converges faster than any power
        rule = threshold(cut)
        first, second = (half(mean).counts(rule) for mean in means)
        before, cut = cut, metric.value(first + second) / 2.0
    return cut


Decide = Callable[[Stream, str], NDArray[np.int8]]


def _fixed(cut: float) -> Policy:
    return FixedRule(threshold(cut), F1)


def _decided(policy: Policy, rows: Stream) -> NDArray[np.int8]:
    return omma.replay(policy, rows.eta, rows.y, metric=F1, checkpoints=0).predictions


def _by_half(rows: Stream, policies: list[Policy]) -> NDArray[np.int8]:
    middle = len(rows.eta) // 2
    parts = [
        _decided(policy, Stream(rows.eta[place], rows.y[place]))
        for policy, place in zip(policies, (slice(None, middle), slice(middle, None)), strict=True)
    ]
    return np.concatenate(parts)


WAYS: dict[str, Decide] = {
    "OMMA": lambda rows, shift: _decided(OMMA(F1), rows),
    "OMMA, begun anew": lambda rows, shift: _by_half(rows, [OMMA(F1), OMMA(F1)]),
    "best for all rows": lambda rows, shift: _decided(_fixed(best_threshold(SHIFTS[shift])), rows),
    "best for each half": lambda rows, shift: _by_half(
        rows, [_fixed(best_threshold((mean,))) for mean in SHIFTS[shift]]
    ),
}


def simulate(spec: Spec) -> dict[str, Any]:
    """F1 of windows, of halves and of all."""
    sequences = [_one(spec, number) for number in range(spec["sequences"])]
    windows, spans = (np.array([sequence[part] for sequence in sequences]) for part in (0, 1))
    edges = np.linspace(0, spec["rows"], WINDOWS + 1)[1:]
    return {
        "rows": edges.astype(int).tolist(),
        **averaged("window", windows),
        "all": float(spans[:, 0].mean()),
        "halves": spans[:, 1:].mean(axis=0).tolist(),
        "error": standard_error(spans).tolist(),
    }


def _one(spec: Spec, number: int) -> tuple[list[float], list[float]]:
    n, metric = spec["rows"], omma.metric(F1)
    rows = stream(spec["shift"], n, np.random.default_rng((spec["seed"], number)))
    decided = WAYS[spec["policy"]](rows, spec["shift"])
    # Counts of a window are the difference of counts at its ends.
    edges = np.linspace(0, n, WINDOWS + 1).astype(np.int64)[1:]
    seen = [Counts.zeros(1), *counts_at(rows.y, decided, edges)]
    windows = [metric.value(seen[i + 1] - seen[i]) for i in range(WINDOWS)]
    middle = seen[WINDOWS // 2]
    return windows, [metric.value(part) for part in (seen[-1], middle, seen[-1] - middle)]


def _row(record: Record) -> dict[str, str]:
    result = record["result"]
    return {
        "the label becomes": record["spec"]["shift"],
        "decided by": record["label"],
        "all rows": f"{100 * result['all']:.2f}",
        "before": f"{100 * result['halves'][0]:.2f}",
        "after": f"{100 * result['halves'][1]:.2f}",
        "± 2 s.e.": f"{200 * max(result['error']):.2f}",
    }


COLORS = dict(zip(WAYS, (*LEARNING[:2], BOUND, BOUND), strict=True))
DASHES = {"best for each half": DASHED, "best for all rows": (0, (1, 2))}


def _draw(ax: Any, records: list[Record]) -> None:
    """F1 of each window."""
    for way, result in ((record["label"], record["result"]) for record in records):
        look = {"color": COLORS[way], "linewidth": 1.6, "linestyle": DASHES.get(way, "-")}
        ax.plot(result["rows"], 100 * np.array(result["window"]), label=way, **look)
    ax.set_xlim(0, None)
    ax.xaxis.set_major_formatter("{x:,.0f}")


SUITE = Simulation(
    "theory-shift",
    "A shift of label frequencies in mid-stream",
    [
        {"dataset": f"shift-{shift}", "shift": shift, "policy": way}
        for shift in SHIFTS
        for way in WAYS
    ],
    simulate,
    rows=(40_000, 4_000),
    sequences=(32, 6),
    seed=4,
    tables=table("F1 when the label's frequency shifts after half of the rows, in %", _row),
    figures=pictured(
        "shift",
        "the label becomes {shift}",
        _draw,
        names=("rows", "F1 of a window, %"),
        place="best",
        logs=False,
    ),
)
