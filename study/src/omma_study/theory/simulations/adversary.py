"""Rows in the order that hurts most (appendix C).

The paper's two sequences show that nobody can be safe from it. The utility is min{tp, tn}. In the
first half of both, every row is positive with probability 2/3; in the second half with 2/3 again
(sequence 1) or with 1/3 (sequence 2). Whoever prepares for one is caught by the other.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import omma
from omma_study.records import Record
from omma_study.theory import utilities
from omma_study.theory.cases import ESTIMATES, GREEDY, OMMA, policy
from omma_study.theory.figures import BOUND, COLORS, DASHED, LARGE, pictured
from omma_study.theory.regret import standard_error
from omma_study.theory.simulation import Simulation, Spec, last, table

SAFEST = 5 / 6  # the share for which the worse of both regrets is least
HEDGES = (1 / 3, 1 / 2, 2 / 3, 3 / 4, SAFEST, 11 / 12, 1.0)  # they know the construction
# Who plays, by name: policies, and shares of the first half that a hedge predicts.
WHO: dict[str, str | float] = {who: who for who in (OMMA, ESTIMATES, GREEDY)}
WHO |= {f"hedge {share:.3f}": share for share in HEDGES}
Vector = NDArray[np.float64]


def worst_regret(share: Any) -> Any:
    """The least regret on the worse of the two sequences, given S₁, for ever more rows.

    ``share`` is the share of rows in the first half that are predicted positive.

    >>> [round(float(36 * worst_regret(share)), 6) for share in (1 / 3, 5 / 6)]
    [4.0, 1.0]
    """
    first = np.maximum(0.0, np.asarray(share) / 6.0 - 1.0 / 9.0)
    return np.maximum(first, (1.0 - np.asarray(share)) / 6.0)


def lower_bound(n: int) -> float:
    """What every policy loses on one of the two sequences of n rows, at least.

    >>> round(lower_bound(10**8), 4)
    0.0277
    """
    return float(1.0 / 36.0 - 0.5 / np.sqrt(n))


def sequence(number: int, n: int) -> Vector:
    """Probabilities of one of the two sequences."""
    eta = np.full(n, 2.0 / 3.0)
    if number == 2:
        eta[n // 2 :] = 1.0 / 3.0
    return eta


def evenly(share: float, n: int) -> NDArray[np.int8]:
    """Decisions of which a share is positive, spread evenly.

    >>> evenly(0.25, 8).tolist()
    [0, 0, 0, 1, 0, 0, 0, 1]
    """
    steps = np.floor(share * np.arange(n + 1) + 1e-9)
    return np.diff(steps).astype(np.int8)


def prepared(share: float, number: int, n: int) -> NDArray[np.int8]:
    """Predict a share of the first half, then what is best from there."""
    later = max(0.0, 2.0 / 3.0 - share) if number == 1 else 1.0 - share
    return np.concatenate((evenly(share, n // 2), evenly(later, n - n // 2)))


def best_decisions(number: int, n: int) -> NDArray[np.int8]:
    """What the paper compares with: positive first, for a third or for half of the rows."""
    return (np.arange(n) < (n // 3 if number == 1 else n // 2)).astype(np.int8)


def least(y: NDArray[np.int8], decided: NDArray[np.int8]) -> float:
    """min{tp, tn} of decisions, as a share of all rows."""
    return float(min(np.mean(y & decided), np.mean((1 - y) & (1 - decided))))


def play(who: str | float, number: int, n: int, seed: tuple[int, ...]) -> tuple[float, float]:
    """Regret on fresh labels of one sequence, and the share predicted in its first half."""
    eta = sequence(number, n)
    y = (np.random.default_rng(seed).random(n) < eta).astype(np.int8)
    if isinstance(who, str):
        trace = omma.replay(policy(who, utilities.least().metric), eta, y, checkpoints=0)
        decided = trace.predictions.ravel()
    else:
        decided = prepared(who, number, n)
    regret = least(y, best_decisions(number, n)) - least(y, decided)
    return regret, float(decided[: n // 2].mean())


def simulate(spec: Spec) -> dict[str, Any]:
    """Regret on both sequences, for every number of rows."""
    who = WHO[spec["policy"]]
    curves: dict[str, list[Any]] = {"share": [], "regret": [], "error": [], "lower_bound": []}
    for n in spec["rows"]:
        played = np.array(
            [
                [play(who, number, n, (spec["seed"], number, i)) for number in (1, 2)]
                for i in range(spec["sequences"])
            ]
        )
        curves["share"].append(float(played[:, :, 1].mean()))
        curves["regret"].append(played[:, :, 0].mean(axis=0).tolist())
        curves["error"].append(standard_error(played[:, :, 0]).tolist())
        curves["lower_bound"].append(lower_bound(n))
    return {**curves, "rows": list(spec["rows"])}


def _row(record: Record) -> dict[str, str]:
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


def _draw(ax: Any, records: list[Record]) -> None:
    """The worse regret against the share predicted in the first half."""
    shares = np.linspace(1 / 3, 1.0, 200)
    ax.plot(shares, worst_regret(shares), color=BOUND, linewidth=1.4, label="least possible")
    ax.axhline(1 / 36, color=BOUND, linewidth=1, linestyle=DASHED)
    ax.text(0.34, 1 / 36 + 0.002, "1/36: nobody is below", size=9, color=BOUND)
    hedges = [r["result"] for r in records if r["label"] not in COLORS]
    ax.plot(
        [r["share"][-1] for r in hedges], [max(r["regret"][-1]) for r in hedges], "o",
        color=BOUND, markersize=5, label="hedges, measured",
    )  # fmt: skip
    # Policies fall on one another: each ring leaves the one below it to be seen.
    policies = [record for record in records if record["label"] in COLORS]
    for size, record in zip((15, 10, 5), policies, strict=False):
        result, color = record["result"], COLORS[record["label"]]
        ax.plot(
            result["share"][-1], max(result["regret"][-1]), "o", color=color, markersize=size,
            markerfacecolor="none", markeredgewidth=2, label=f"{record['label']}, measured",
        )  # fmt: skip
    ax.set_ylim(0.0, 0.13)


SUITE = Simulation(
    "theory-adversary",
    "The order of rows that hurts most",
    [{"dataset": "two-sequences", "policy": name} for name in WHO],
    simulate,
    rows=((600, 6_000, 60_000), (600, 6_000)),
    sequences=(100, 20),
    seed=3,
    tables=table("Regret on the two sequences; 1/36 = 0.0278, 1/9 = 0.1111", _row, words=1),
    figures=pictured(
        "adversary",
        "Regret on the worse of two sequences",
        _draw,
        names=("S₁: share predicted positive in the first half", "regret"),
        place="upper center",
        size=LARGE,
        logs=False,
    ),
)
