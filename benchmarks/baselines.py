"""Time the baselines against plain NumPy versions of them: ``python -m benchmarks.baselines``.

Each plain version is what a careful person writes: vectorized over labels, a Python loop over rows,
nothing shared with omma. Both sides get the same rows in the same run and take turns; the part of
the decisions that are the same is shown beside the ratio. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import omma

ROWS, LABELS = 7_926, 46
EPSILON, PRIOR = 1e-9, 1e-6
GRID = np.linspace(0.0, 1.0, 101)  # where the plain line search looks


# The plain versions


def f1(tp: Any, predicted: Any, positive: Any) -> Any:
    return 2.0 * tp / (predicted + positive + EPSILON)


def plain_greedy(eta: Any, y: Any, k: int) -> Any:
    """The expected macro-F1 with and without each label, the present row counted in."""
    n, m = eta.shape
    tp, predicted, positive = np.full(m, PRIOR), np.full(m, 2 * PRIOR), np.full(m, 2 * PRIOR)
    out = np.zeros((n, m), dtype=np.int8)
    for t in range(n):
        rows = t + 4 * PRIOR + 1.0
        p, q, r = tp / rows, predicted / rows, positive / rows
        one = 1.0 / rows
        with_it = eta[t] * f1(p + one, q + one, r + one) + (1 - eta[t]) * f1(p, q + one, r)
        without = eta[t] * f1(p, q, r + one) + (1 - eta[t]) * f1(p, q, r)
        out[t, np.argsort(without - with_it, kind="stable")[:k]] = 1
        tp += out[t] * y[t]
        predicted += out[t]
        positive += y[t]
    return out


def plain_ofo(eta: Any, y: Any) -> Any:
    """Predict where η·b ≥ a."""
    n, m = eta.shape
    a, b = np.full(m, PRIOR), np.full(m, PRIOR)
    out = np.zeros((n, m), dtype=np.int8)
    for t in range(n):
        out[t] = eta[t] * b >= a
        a += out[t] * y[t]
        b += out[t] + y[t]
    return out


def counts_of(eta: Any, y: Any, slope: Any, offset: Any) -> Any:
    """What a rule does on some rows: tp and predicted of each label."""
    chosen = slope * eta + offset >= 0
    return np.stack(((chosen & y).sum(axis=0), chosen.sum(axis=0))).astype(float)


def macro_f1(mixed: Any, positive: Any, n: float) -> Any:
    """Macro-F1 with the prior, of one mixture's counts or of several."""
    total = n + 4 * PRIOR
    tp, predicted = mixed[..., 0, :] + PRIOR, mixed[..., 1, :] + 2 * PRIOR
    return f1(tp / total, predicted / total, (positive + 2 * PRIOR) / total).mean(axis=-1)


def plain_frank_wolfe(
    eta: Any, y: Any, max_iter: int = 20, tolerance: float = 1e-4
) -> tuple[list[Any], Any]:
    """Rules and shares of a mixture for macro-F1, by a line search over a grid."""
    n, m = eta.shape
    positive = y.sum(axis=0).astype(float)
    rules, shares = [(np.ones(m), np.full(m, -0.5))], np.ones(1)
    mixed = counts_of(eta, y, *rules[0])
    total = n + 4 * PRIOR
    for _ in range(max_iter):
        tp, predicted = (mixed[0] + PRIOR) / total, (mixed[1] + 2 * PRIOR) / total
        whole = predicted + (positive + 2 * PRIOR) / total + EPSILON
        slope, offset = 2.0 / whole / m, -2.0 * tp / whole**2 / m
        corner = counts_of(eta, y, slope, offset)
        away = corner - mixed
        if (slope @ away[0] + offset @ away[1]) / n <= tolerance:
            break
        values = macro_f1(mixed + GRID[:, None, None] * away, positive, n)
        share = GRID[values.argmax()]
        if share == 0.0:
            break
        mixed = mixed + share * away
        rules.append((slope, offset))
        shares = np.append((1 - share) * shares, share)
    return rules, shares


def plain_online_frank_wolfe(eta: Any, y: Any) -> Any:
    """The offline algorithm again after 10·1.1^i more rows; a rule is drawn for each row."""
    n, m = eta.shape
    y = y.astype(bool)
    rng = np.random.Generator(np.random.PCG64(0))
    rules, shares = [(np.ones(m), np.full(m, -0.5))], np.ones(1)
    out = np.zeros((n, m), dtype=np.int8)
    due, runs = 10.0, 0
    for t in range(n):
        if t >= int(due):
            rules, shares = plain_frank_wolfe(eta[:t], y[:t])
            runs += 1
            due += 10.0 * 1.1**runs
        pick = min(np.searchsorted(np.cumsum(shares), rng.random(), side="right"), len(rules) - 1)
        slope, offset = rules[pick]
        out[t] = slope * eta[t] + offset >= 0
    return out


# The race


@dataclass(frozen=True)
class Contest:
    """A policy, its plain version, how fast it should be, and what the authors' code took."""

    name: str
    policy: Any
    plain: Callable[[Any, Any], Any]
    target: float
    authors: float


CONTESTS = (
    Contest(
        "Greedy macro-F1@3",
        omma.Greedy("macro_f1", k=3),
        lambda eta, y: plain_greedy(eta, y, 3),
        100,
        0.93,
    ),
    Contest("OFO macro", omma.OFO(), plain_ofo, 100, 0.40),
    Contest(
        "Online-FW macro-F1",
        omma.OnlineFrankWolfe("macro_f1"),
        plain_online_frank_wolfe,
        10,
        4.3,
    ),
)


def seconds_of(call: Callable[[], Any]) -> tuple[float, Any]:
    """How long a call takes, and what it returns."""
    started = time.perf_counter()
    found = call()
    return time.perf_counter() - started, found


def race(
    slow: Callable[[], Any], fast: Callable[[], Any], rounds: int, repeats: int = 10
) -> list[tuple[float, Any]]:
    """The best seconds of two calls and what they returned.

    They take turns, so that both meet the same noise; in its turn the fast one is called several
    times, since a few milliseconds are easily disturbed.
    """
    best = [(np.inf, None), (np.inf, None)]
    for _ in range(rounds):
        turns = [(0, slow), *[(1, fast)] * repeats]
        for side, call in turns:
            best[side] = min(best[side], seconds_of(call), key=lambda measured: measured[0])
    return best


def marked(ratio: float, target: float) -> str:
    """A ratio in the colour of its target."""
    met = ratio >= target
    return f"[{'green' if met else 'red'}]{ratio:,.0f}× ≥{target:g} {'✓' if met else '✗'}[/]"


def compare(contest: Contest, eta: Any, y: Any, rounds: int) -> tuple[list[str], list[bool]]:
    """One row of the table, and whether the target was met against each of the two others."""
    omma.replay(contest.policy, eta, y)  # compile, or load from disk
    (slow, theirs), (fast, trace) = race(
        lambda: contest.plain(eta, y), lambda: omma.replay(contest.policy, eta, y), rounds
    )
    ratios = [slow / fast]
    if len(eta) == ROWS:  # the only size that the authors' times are known for
        ratios.append(contest.authors / fast)
    row = [
        contest.name,
        f"{len(eta):,}×{eta.shape[1]}",
        f"{1000 * slow:.0f} ms",
        f"{1000 * fast:.2f} ms",
        f"{1000 * trace.seconds:.2f} ms",
        marked(ratios[0], contest.target),
        f"{100 * (trace.predictions == theirs).mean():.2f} %",
        f"{contest.authors:.2f} s",
        marked(ratios[1], contest.target) if len(ratios) > 1 else "–",
    ]
    return row, [ratio >= contest.target for ratio in ratios]


COLUMNS = (
    "policy",
    "shape",
    "plain",
    "omma",
    "kernel",
    "plain / omma",
    "same",
    "authors",
    "/ omma",
)
NOTE = (
    "Best of several runs on the same rows, all of them on both sides. omma: the whole call; "
    "kernel: its trace.seconds. same: decisions alike; the plain Online-FW searches its steps on a "
    "grid of 101, so a draw may fall on another rule. authors: the time given for their code at "
    f"{ROWS:,}×{LABELS} on this class of machine: a reference, not measured here."
)


def main(arguments: list[str] | None = None) -> None:
    """Run every contest and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.baselines", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows, for a smoke test")
    options = parser.parse_args(arguments)
    n = 1_000 if options.quick else ROWS
    eta, y = omma.datasets.long_tail(n=n, m=LABELS, seed=0)
    table = Table(box=SIMPLE_HEAD)
    for column in COLUMNS:
        table.add_column(column, justify="left" if column == "policy" else "right")
    met = []
    for contest in CONTESTS:
        row, reached = compare(contest, eta, y, rounds=2 if options.quick else 5)
        table.add_row(*row)
        met.append(reached)
    console = Console()
    console.width = max(console.width, 130)
    console.rule("[bold]Baselines against plain NumPy", align="left")
    console.print(table)
    console.print(f"  {NOTE}\n", style="dim", highlight=False)
    for against, reached in zip(
        ("plain NumPy", "the authors' times"), zip(*met, strict=True), strict=False
    ):
        console.print(f"against {against}: {sum(reached)} of {len(reached)} targets met")


if __name__ == "__main__":
    main()
