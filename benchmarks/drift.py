"""What forgetting saves where the world changes, how fast, and what it costs where it does not.

    python -m benchmarks drift [--seeds 5] [--only window]

prints the tables of docs/drift.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

import omma

Array = NDArray[Any]
BEFORE, AFTER, LABELS = 20_000, 100_000, 6
SOON = 20_000  # rows after the change that are shown by themselves
COMMON, RARE = 0.4, 0.012  # how often each label occurs, before and after
SPREAD = 29.0  # of probabilities: the best that can be had is then a macro-F1 of 0.13 after it
HALF_LIVES = (1_000, 3_000, 10_000, 30_000, 100_000)
WINDOWS = (3_000, 10_000, 30_000)
BLOCK = 2_000  # rows by which recovery is watched
METRIC = omma.metric("macro_f1")
PLAIN = {"OMMA": omma.OMMA("macro_f1"), "Auto": omma.Auto("macro_f1")}


def drawn(rates: Array, seed: int, spread: float = SPREAD) -> tuple[Array, Array]:
    """Calibrated probabilities around given rates, and labels."""
    rng = np.random.default_rng(seed)
    eta = rng.beta(rates * spread, (1.0 - rates) * spread)
    return eta, (rng.random(eta.shape) < eta).astype(np.int8)


def shift(seed: int) -> tuple[Array, Array]:
    """Six labels whose rates fall at once."""
    rates = np.where(np.arange(BEFORE + AFTER) < BEFORE, COMMON, RARE)
    return drawn(np.tile(rates[:, np.newaxis], LABELS), seed)


def slow(seed: int) -> tuple[Array, Array]:
    """The same fall, by as much in each row, over all of the stream."""
    rates = np.geomspace(COMMON, RARE, 2 * BEFORE)
    return drawn(np.tile(rates[:, np.newaxis], LABELS), seed)


def steady(seed: int, rows: int = 100_000, m: int = 50) -> tuple[Array, Array]:
    """Fifty labels that occur in 30 % to 0.4 % of rows, and stay so."""
    return drawn(np.tile(np.geomspace(0.3, 0.004, m), (rows, 1)), seed, spread=4.0)


def policies(only: str) -> dict[str, omma.Policy]:
    """The plain ones, and those that forget, by name; only those with a word in it."""
    found: dict[str, omma.Policy] = {}
    for name, one in PLAIN.items():
        found |= {f"{name}, half-life {life:,}": omma.Forgetting(one, life) for life in HALF_LIVES}
        found |= {f"{name}, window {rows:,}": omma.Window(one, rows) for rows in WINDOWS}
    return {**PLAIN, **{name: one for name, one in found.items() if only in name}}


def decided(policy: omma.Policy, eta: Array, y: Array) -> Array:
    """Decisions over a stream."""
    made: Array = omma.replay(policy, eta, y, checkpoints=0).predictions
    return made


def blocks_of(y: Array, made: Array) -> Array:
    """Macro-F1 of each block of rows."""
    both = [one.reshape(-1, BLOCK, LABELS).sum(axis=1) for one in (y & made, y, made)]
    tp, positive, predicted = (one.astype(np.float64) for one in both)
    found: Array = (2.0 * tp / np.maximum(positive + predicted, 1.0)).mean(axis=1)
    return found


def recovery(blocks: Array, fresh: float) -> str:
    """After how many rows a block reaches 90 % of what fresh counts reach, to the next block."""
    reached = np.flatnonzero(blocks >= 0.9 * fresh)
    return f"{(reached[0] + 1) * BLOCK:,}" if len(reached) else f"not in {AFTER:,}"


def shifted(seeds: int, only: str) -> list[list[str]]:
    """After a sudden fall: macro-F1 of the rest, and how long it takes."""
    values: dict[str, list[float]] = {}
    courses: dict[str, list[Array]] = {}
    rest = slice(BEFORE, None)
    for seed in range(seeds):
        eta, y = shift(seed)
        made = {name: decided(one, eta, y)[rest] for name, one in policies(only).items()}
        made["OMMA, fresh counts"] = decided(PLAIN["OMMA"], eta[rest], y[rest])
        for name, one in made.items():
            values.setdefault(name, []).append(METRIC.score(y[rest][:SOON], one[:SOON]))
            courses.setdefault(name, []).append(blocks_of(y[rest], one))
    course = {name: np.mean(found, axis=0) for name, found in courses.items()}
    fresh = float(course["OMMA, fresh counts"][AFTER // BLOCK // 2 :].mean())
    return [
        [name, f"{np.mean(found):.3f}", recovery(course[name], fresh)]
        for name, found in values.items()
    ]


def compared(
    stream: Callable[[int], tuple[Array, Array]], seeds: int, only: str
) -> list[list[str]]:
    """Macro-F1 of whole streams, and what forgetting changes of it, with its standard error."""
    values: dict[str, list[float]] = {}
    for seed in range(seeds):
        eta, y = stream(seed)
        for name, one in policies(only).items():
            trace = omma.replay(one, eta, y, predictions=False, checkpoints=0)
            values.setdefault(name, []).append(trace.value)
    rows = []
    for name, found in values.items():
        change = 100.0 * (np.array(found) / values[name.split(",")[0]] - 1.0)
        error = change.std(ddof=1) / np.sqrt(len(change)) if len(change) > 1 else 0.0
        said = "" if name in PLAIN else f"{change.mean():+.2f} ± {error:.2f} %"
        rows.append([name, f"{np.mean(found):.4f}", said])
    return rows


def table(title: str, columns: list[str], rows: list[list[str]]) -> str:
    """A table as Markdown has it."""
    lines = [f"### {title}", "", f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows), ""])


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="those that forget with this in their name")
    options = parser.parse_args()
    seeds, only = options.seeds, options.only
    show = Console(soft_wrap=True, highlight=False, markup=False).print
    columns = ["policy", f"macro-F1 of the next {SOON:,} rows", "rows to 90 % of fresh counts"]
    show(table("A sudden fall", columns, shifted(seeds, only)))
    columns = ["policy", "macro-F1", "against the same that never forgets"]
    show(table("A slow fall", columns, compared(slow, seeds, only)))
    show(table("No change", columns, compared(steady, seeds, only)))
