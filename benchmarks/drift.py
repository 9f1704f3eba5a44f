"""Gains of forgetting if label frequencies change, and its cost if they do not.

This makes the tables of docs/drift.md.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import omma
from benchmarks.measure import Row, Table

Array = NDArray[Any]
Stream = tuple[Array, Array]
BEFORE, AFTER, LABELS = 20_000, 100_000, 6
SOON = 20_000  # rows after the change that are shown by themselves
COMMON, RARE = 0.4, 0.012  # how often each label occurs, before and after
SPREAD = 29.0  # of probabilities: the best that can be had is then a macro-F1 of 0.13 after it
HALF_LIVES = (1_000, 3_000, 10_000, 30_000, 100_000)
WINDOWS = (3_000, 10_000, 30_000)
BLOCK = 2_000  # rows by which recovery is watched
METRIC = omma.metric("macro_f1")
PLAIN = {"OMMA": omma.OMMA("macro_f1"), "Auto": omma.Auto("macro_f1")}
FRESH = "OMMA, fresh counts"


def drawn(rates: Array, seed: int, spread: float = SPREAD, m: int = LABELS) -> Stream:
    """Calibrated probabilities around the rate of each row, and labels."""
    rng = np.random.default_rng(seed)
    rates = np.tile(rates[:, np.newaxis], m) if rates.ndim == 1 else rates
    eta = rng.beta(rates * spread, (1.0 - rates) * spread)
    return eta, (rng.random(eta.shape) < eta).astype(np.int8)


def sudden(rates: tuple[float, float], after: int) -> Array:
    """Rates of rows that change at once."""
    return np.repeat(rates, (BEFORE, after))


def slow(seed: int) -> Stream:
    """Rates that fall by the same factor in each row."""
    return drawn(np.geomspace(COMMON, RARE, 2 * BEFORE), seed)


def steady(seed: int) -> Stream:
    """Fifty labels that occur in 30 % to 0.4 % of rows, and stay so."""
    return drawn(np.tile(np.geomspace(0.3, 0.004, 50), (100_000, 1)), seed, spread=4.0)


def forgetful(only: str) -> dict[str, omma.Policy]:
    """The plain policies, and forgetting ones whose name contains a text."""
    policies: dict[str, omma.Policy] = {}
    for name, plain in PLAIN.items():
        for life in HALF_LIVES:
            policies[f"{name}, half-life {life:,}"] = omma.Forgetting(plain, life)
        for rows in WINDOWS:
            policies[f"{name}, window {rows:,}"] = omma.Window(plain, rows)
    return {**PLAIN, **{name: policy for name, policy in policies.items() if only in name}}


def decided(policy: omma.Policy, eta: Array, y: Array) -> Array:
    """Decisions over a stream."""
    return np.asarray(omma.replay(policy, eta, y, checkpoints=0).predictions)


def shifted(seeds: int, only: str) -> Iterator[Row]:
    """After a sudden fall: macro-F1 of the rows that follow, and how long recovery takes."""
    values: list[dict[str, float]] = []
    courses: list[dict[str, Array]] = []
    later = slice(BEFORE, None)
    for seed in range(seeds):
        eta, y = drawn(sudden((COMMON, RARE), AFTER), seed)
        decisions = {n: decided(policy, eta, y)[later] for n, policy in forgetful(only).items()}
        decisions[FRESH] = decided(PLAIN["OMMA"], eta[later], y[later])
        true = y[later]
        values.append({n: METRIC.score(true[:SOON], each[:SOON]) for n, each in decisions.items()})
        courses.append({n: f1_of_blocks(true, each) for n, each in decisions.items()})
    means = pd.DataFrame(values).mean()
    course = {name: np.mean([of_seed[name] for of_seed in courses], axis=0) for name in means.index}
    fresh = float(course[FRESH][AFTER // BLOCK // 2 :].mean())
    for name, value in means.items():
        reached = np.flatnonzero(course[name] >= 0.9 * fresh)
        yield {
            "policy": name,
            f"macro-F1 of the next {SOON:,} rows": f"{value:.3f}",
            "rows to 90 % of fresh counts": (
                f"{(reached[0] + 1) * BLOCK:,}" if len(reached) else f"not in {AFTER:,}"
            ),
        }


def f1_of_blocks(y: Array, predicted: Array) -> Array:
    """Macro-F1 of each block of rows; a label that does not occur there counts as 0."""
    cells = (y & predicted, y, predicted)
    tp, positive, decided = (cell.reshape(-1, BLOCK, LABELS).sum(axis=1) for cell in cells)
    return np.asarray((2.0 * tp / np.maximum(positive + decided, 1.0)).mean(axis=1))


def compared(stream: Callable[[int], Stream], seeds: int, only: str) -> Iterator[Row]:
    """Macro-F1 of whole streams, and by how much forgetting changes it, with a standard error."""
    rows = []
    for seed in range(seeds):
        batch = omma.Batch.of(*stream(seed))
        traces = {
            name: omma.replay(policy, batch, predictions=False, checkpoints=0)
            for name, policy in forgetful(only).items()
        }
        rows.append({name: trace.value for name, trace in traces.items()})
    values = pd.DataFrame(rows)
    for name in values:
        change = 100.0 * (values[name] / values[name.split(",")[0]] - 1.0)
        error = change.sem() if seeds > 1 else 0.0
        yield {
            "policy": name,
            "macro-F1": f"{values[name].mean():.4f}",
            "against the same that never forgets": (
                "" if name in PLAIN else f"{change.mean():+.2f} ± {error:.2f} %"
            ),
        }


def drift(seeds: int = 5, only: str = "") -> Iterator[Table]:
    """The tables of docs/drift.md; ``only`` those that forget with this in their name."""
    note = f"{seeds} seeds; ± is a standard error"
    yield Table("A sudden fall", note, list(shifted(seeds, only)))
    yield Table("A slow fall", note, list(compared(slow, seeds, only)))
    yield Table("No change", note, list(compared(steady, seeds, only)))
