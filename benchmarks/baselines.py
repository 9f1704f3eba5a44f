"""The baselines against plain NumPy versions of them.

Each plain version is what a careful person writes: vectorized over labels, a Python loop over rows,
nothing shared with omma. Both sides get the same rows in the same run and take turns; the part of
the decisions that are the same is shown beside the ratio. Nothing is asserted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import omma
from benchmarks.measure import Table, at_least, race

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

# A policy, its plain version, how many times as fast it should be, and the seconds that the
# authors' code is said to take at this size: a reference, not measured here.
CONTESTS: dict[str, tuple[Any, Callable[[Any, Any], Any], float, float]] = {
    "Greedy macro-F1@3": (
        omma.Greedy("macro_f1", k=3),
        lambda eta, y: plain_greedy(eta, y, 3),
        100,
        0.93,
    ),
    "OFO macro": (omma.OFO(), plain_ofo, 100, 0.40),
    "Online-FW macro-F1": (
        omma.OnlineFrankWolfe("macro_f1"),
        plain_online_frank_wolfe,
        10,
        4.3,
    ),
}


def baselines(quick: bool) -> Table:
    """Every contest."""
    table = Table(
        "baselines against plain NumPy",
        "Best of several runs on the same rows, all of them on both sides. omma: the whole call; "
        "kernel: its trace.seconds. same: decisions alike; the plain Online-FW searches its steps "
        "on a grid of 101, so a draw may fall on another rule. authors: the time given for their "
        f"code at {ROWS:,}×{LABELS} on this class of machine: a reference, not measured here.",
    )
    n = 1_000 if quick else ROWS
    eta, y = omma.datasets.long_tail(n=n, m=LABELS, seed=0)
    for name, (policy, plain, target, authors) in CONTESTS.items():
        trace = omma.replay(policy, eta, y)  # compiles, or loads from disk
        decided: list[Any] = []
        fast = partial(omma.replay, policy, eta, y)
        # In its turn the fast one is called several times: a few milliseconds are easily disturbed.
        slow, *times = race(
            lambda plain=plain, decided=decided: decided.append(plain(eta, y)),
            *[fast] * 10,
            rounds=2 if quick else 5,
        )
        seconds = min(times)
        table.rows.append(
            {
                "policy": name,
                "shape": f"{n:,}×{LABELS}",
                "plain ms": 1e3 * slow,
                "omma ms": 1e3 * seconds,
                "kernel ms": 1e3 * trace.seconds,
                "plain/omma": at_least(slow / seconds, target),
                "same %": 100.0 * float((trace.predictions == decided[0]).mean()),
                "authors s": authors,
                "authors/omma": None if quick else at_least(authors / seconds, target),
            }
        )
    return table
