"""Adverse orders of rows: the paper's adversary (appendix C), and a shift in mid-stream.

The paper's two sequences show that no policy is safe against every order of rows. The utility is
min{tp, tn}. In the first half of both sequences, every row is positive with probability 2/3; in the
second half with 2/3 again (sequence 1) or with 1/3 (sequence 2). A policy that does well on one has
regret on the other. In a shift, probabilities stay exact; only the base rate of the label changes,
after half of the rows.
"""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import optimize

import omma
from omma import Counts, FixedRule
from omma.plots import LEARNING
from omma_study.records import Record
from omma_study.theory import utilities
from omma_study.theory.cases import ESTIMATES, GREEDY, OMMA, policy
from omma_study.theory.distributions import Independent, LogisticNormal, Stream, threshold
from omma_study.theory.regret import averaged, counts_at, decisions, standard_error
from omma_study.theory.simulation import (
    BOUND,
    COLORS,
    DASHED,
    LARGE,
    Simulation,
    Spec,
    last,
    pictured,
    table,
)

SAFEST = 5 / 6  # the share for which the worse of both regrets is least
HEDGES = (1 / 3, 1 / 2, 2 / 3, 3 / 4, SAFEST, 11 / 12, 1.0)  # for players that know all this
# Who plays, by name: policies, and shares of the first half that a hedge predicts.
PLAYERS: dict[str, str | float] = {name: name for name in (OMMA, ESTIMATES, GREEDY)}
PLAYERS |= {f"hedge {share:.3f}": share for share in HEDGES}


def worst_regret(share: Any) -> Any:
    """The least regret on the worse of the two sequences, given S₁, as n goes to infinity.

    ``share`` is the share of rows in the first half that are predicted positive.

    >>> [round(float(36 * worst_regret(share)), 6) for share in (1 / 3, 5 / 6)]
    [4.0, 1.0]
    """
    # Of sequence 1, where a share of up to 2/3 can be made up for; the other is of sequence 2.
    first = np.maximum(0.0, np.asarray(share) / 6.0 - 1.0 / 9.0)
    return np.maximum(first, (1.0 - np.asarray(share)) / 6.0)


def evenly(share: float, n: int) -> NDArray[np.int8]:
    """Decisions of which a share is positive, spread evenly.

    >>> evenly(0.25, 8).tolist()
    [0, 0, 0, 1, 0, 0, 0, 1]
    """
    # Rounding must not lose a step that is due.
    steps = np.floor(share * np.arange(n + 1) + 1e-9)
    return np.diff(steps).astype(np.int8)


def play(player: str | float, number: int, n: int, seed: tuple[int, ...]) -> tuple[float, float]:
    """Regret on fresh labels of one sequence, and the share predicted in its first half."""
    first, second = n // 2, n - n // 2
    eta = np.repeat((2 / 3, 2 / 3 if number == 1 else 1 / 3), (first, second))
    y = (np.random.default_rng(seed).random(n) < eta).astype(np.int8)
    if isinstance(player, str):
        trace = omma.replay(policy(player, utilities.least().metric), eta, y, checkpoints=0)
        decided = trace.predictions.ravel()
    else:  # a share of the first half, then what is best from there
        # tp and tn are equal if 1/3 of all rows (sequence 1) or 1/2 (2) is predicted positive.
        later = max(0.0, 2.0 / 3.0 - player) if number == 1 else 1.0 - player
        decided = np.concatenate((evenly(player, first), evenly(later, second)))
    # What the paper compares with: positive first, for a third or for half of the rows.
    best = (np.arange(n) < (n // 3 if number == 1 else first)).astype(np.int8)
    reached, possible = (
        min(np.mean(y & choice), np.mean((1 - y) & (1 - choice))) for choice in (decided, best)
    )
    return float(possible - reached), float(decided[:first].mean())


def simulate_adversary(spec: Spec) -> dict[str, Any]:
    """Regret on both sequences, for every number of rows."""
    player = PLAYERS[spec["policy"]]
    results = []
    for n in spec["rows"]:
        played = np.array(
            [
                [play(player, number, n, (spec["seed"], number, i)) for number in (1, 2)]
                for i in range(spec["sequences"])
            ]
        )
        results.append(
            {
                "share": float(played[:, :, 1].mean()),
                "regret": played[:, :, 0].mean(axis=0).tolist(),
                "error": standard_error(played[:, :, 0]).tolist(),
                # What every policy loses on one of the two sequences, at least.
                "lower_bound": float(1.0 / 36.0 - 0.5 / np.sqrt(n)),
                "rows": n,
            }
        )
    return pd.DataFrame(results).to_dict("list")


def _adversary_row(record: Record) -> dict[str, str]:
    first, second = record["result"]["regret"][-1]
    return {
        "who": record["label"],
        "rows": last(record, "rows", ","),
        "S₁": last(record, "share", ".3f"),
        "sequence 1": f"{first:.4f}",
        "sequence 2": f"{second:.4f}",
        "worse": f"{max(first, second):.4f}",
        "limit for S₁": f"{float(worst_regret(record['result']['share'][-1])):.4f}",
        "no less than": last(record, "lower_bound", ".4f"),
    }


def _draw_adversary(ax: Any, records: list[Record]) -> None:
    """The worse regret against the share predicted in the first half."""
    shares = np.linspace(1 / 3, 1.0, 200)
    ax.plot(shares, worst_regret(shares), color=BOUND, linewidth=1.4, label="least possible")
    ax.axhline(1 / 36, color=BOUND, linewidth=1, linestyle=DASHED)
    ax.text(0.34, 1 / 36 + 0.002, "1/36: lower bound", size=9, color=BOUND)
    hedges = [r["result"] for r in records if r["label"] not in COLORS]
    ax.plot(
        [r["share"][-1] for r in hedges], [max(r["regret"][-1]) for r in hedges], "o",
        color=BOUND, markersize=5, label="hedges, measured",
    )  # fmt: skip
    # Policies have nearly the same values: smaller rings leave the larger ones visible.
    policies = [record for record in records if record["label"] in COLORS]
    for size, record in zip((15, 10, 5), policies, strict=False):
        result, color = record["result"], COLORS[record["label"]]
        ax.plot(
            result["share"][-1], max(result["regret"][-1]), "o", color=color, markersize=size,
            markerfacecolor="none", markeredgewidth=2, label=f"{record['label']}, measured",
        )  # fmt: skip
    ax.set_ylim(0.0, 0.13)


ADVERSARY = Simulation(
    "theory-adversary",
    "The order of rows that hurts most",
    [{"dataset": "two-sequences", "policy": name} for name in PLAYERS],
    simulate_adversary,
    rows=((600, 6_000, 60_000), (600, 6_000)),
    sequences=(100, 20),
    seed=3,
    tables=table(
        "Regret on the two sequences; 1/36 = 0.0278, 1/9 = 0.1111", _adversary_row, words=1
    ),
    figures=pictured(
        "adversary",
        "Regret on the worse of two sequences",
        _draw_adversary,
        names=("S₁: share predicted positive in the first half", "regret"),
        place="upper center",
        size=LARGE,
        logs=False,
    ),
)

WINDOWS = 40
# Log-odds are normal with this deviation, and one of these means: 41 % or 7 % of rows have it.
SPREAD, COMMON, RARE = 1.5, -0.5, -3.5
SHIFTS = {"rarer": (COMMON, RARE), "more common": (RARE, COMMON)}
HALVES = {mean: Independent(LogisticNormal(mean, SPREAD)) for mean in (COMMON, RARE)}
F1 = "f1"
ALONE, ANEW, FOR_ALL, FOR_EACH = (
    "OMMA", "OMMA, begun anew", "best for all rows", "best for each half",
)  # fmt: skip
# Color and dashes of each way to decide.
LOOKS: dict[str, tuple[str, Any]] = {
    ALONE: (LEARNING[0], "-"),
    ANEW: (LEARNING[1], "-"),
    FOR_ALL: (BOUND, (0, (1, 2))),
    FOR_EACH: (BOUND, DASHED),
}


@cache
def best_threshold(means: tuple[float, ...]) -> float:
    """The best threshold for halves with these means, taken together: half of the best F1."""

    def half_of_value(cut: Any) -> float:
        counts = [HALVES[mean].counts(threshold(float(cut))) for mean in means]
        return omma.metric(F1).value(sum(counts, Counts.zeros(1))) / 2.0

    return float(optimize.fixed_point(half_of_value, 0.25, xtol=1e-12))


def decide(way: str, shift: str, halves: list[Stream]) -> NDArray[np.int8]:
    """Decisions about both halves, in one of the ways of ``LOOKS``."""
    whole = Stream(
        *(np.concatenate(parts) for parts in zip(*(half[:2] for half in halves), strict=True))
    )
    if way == ALONE:
        return decisions(F1, omma.OMMA(F1), whole)
    if way == FOR_ALL:
        return decisions(F1, FixedRule(threshold(best_threshold(SHIFTS[shift])), F1), whole)
    parts = [
        decisions(
            F1,
            omma.OMMA(F1) if way == ANEW else FixedRule(threshold(best_threshold((mean,))), F1),
            half,
        )
        for mean, half in zip(SHIFTS[shift], halves, strict=True)
    ]
    return np.concatenate(parts)


def simulate_shift(spec: Spec) -> dict[str, Any]:
    """F1 of windows, of halves and of all."""
    n, metric = spec["rows"], omma.metric(F1)
    edges = np.linspace(0, n, WINDOWS + 1).astype(np.int64)[1:]
    windows, spans = [], []
    for number in range(spec["sequences"]):
        rng = np.random.default_rng((spec["seed"], number))
        halves = [HALVES[mean].draw(n // 2, rng) for mean in SHIFTS[spec["shift"]]]
        decided = decide(spec["policy"], spec["shift"], halves)
        # Counts of a window are the difference of counts at its ends.
        y = np.concatenate([half.y for half in halves])
        seen = [Counts.zeros(1), *counts_at(y, decided, edges)]
        windows.append([metric.value(seen[i + 1] - seen[i]) for i in range(WINDOWS)])
        middle = seen[WINDOWS // 2]
        spans.append([metric.value(part) for part in (seen[-1], middle, seen[-1] - middle)])
    values = np.array(spans)
    return {
        "rows": edges.tolist(),
        **averaged("window", np.array(windows)),
        "all": float(values[:, 0].mean()),
        "halves": values[:, 1:].mean(axis=0).tolist(),
        "error": standard_error(values).tolist(),
    }


def _shift_row(record: Record) -> dict[str, str]:
    result = record["result"]
    return {
        "the label becomes": record["spec"]["shift"],
        "decided by": record["label"],
        "all rows": f"{100 * result['all']:.2f}",
        "before": f"{100 * result['halves'][0]:.2f}",
        "after": f"{100 * result['halves'][1]:.2f}",
        "± 2 s.e.": f"{200 * max(result['error']):.2f}",
    }


def _draw_shift(ax: Any, records: list[Record]) -> None:
    """F1 of each window."""
    for way, result in ((record["label"], record["result"]) for record in records):
        color, dashes = LOOKS[way]
        look = {"color": color, "linewidth": 1.6, "linestyle": dashes}
        ax.plot(result["rows"], 100 * np.array(result["window"]), label=way, **look)
    ax.set_xlim(0, None)
    ax.locator_params(axis="x", nbins=4)  # numbers of rows are wide
    ax.xaxis.set_major_formatter("{x:,.0f}")


SHIFT = Simulation(
    "theory-shift",
    "A shift of label frequencies in mid-stream",
    [
        {"dataset": f"shift-{shift}", "shift": shift, "policy": way}
        for shift in SHIFTS
        for way in LOOKS
    ],
    simulate_shift,
    rows=(40_000, 4_000),
    sequences=(32, 6),
    seed=4,
    tables=table("F1 when the label's frequency shifts after half of the rows, in %", _shift_row),
    figures=pictured(
        "shift",
        "the label becomes {shift}",
        _draw_shift,
        names=("rows", "F1 of a window, %"),
        place="best",
        logs=False,
    ),
)
