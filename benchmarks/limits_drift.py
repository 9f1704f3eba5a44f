"""What a shift in the frequency of labels does to a limit, with and without forgetting.

    python -m benchmarks limits_drift [--seeds 5]

Six labels become four times as frequent, or four times as rare, after 20,000 rows. Shown are the
metric and by how much the limit is missed, over the rows right after the shift and over the last
ones, each by itself: what a limit missed before is not made up for in these numbers.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

import omma
from benchmarks.drift import drawn
from benchmarks.measure import Table

Array = NDArray[Any]
LABELS, BEFORE, AFTER, SOON = 6, 20_000, 40_000, 5_000
FREQUENT, RARE, SPREAD = 0.2, 0.05, 4.0
SHIFTS = {"four times as frequent": (RARE, FREQUENT), "four times as rare": (FREQUENT, RARE)}
CASES = (
    ("macro_recall", "micro_precision >= 0.6"),
    ("macro_f1", "micro_recall >= 0.6"),
    ("macro_f1", "labels_per_row <= 0.3"),
)
PARTS = {
    "before": slice(BEFORE - SOON, BEFORE),
    "soon": slice(BEFORE, BEFORE + SOON),
    "late": slice(BEFORE + AFTER - SOON, None),
}


def stream(rates: tuple[float, float], seed: int) -> tuple[Array, Array]:
    """Calibrated probabilities around rates that change at once, and labels."""
    each = np.where(np.arange(BEFORE + AFTER) < BEFORE, *rates)
    return drawn(np.tile(each[:, np.newaxis], LABELS), seed, SPREAD)


def policies(metric: str, limit: str) -> dict[str, omma.Policy]:
    """With and without forgetting."""
    plain = omma.Auto(metric, subject_to=limit)
    return {
        "Auto": plain,
        "half-life 10,000": omma.Forgetting(plain, 10_000),
        "half-life 2,000": omma.Forgetting(plain, 2_000),
        "window 5,000": omma.Window(plain, 5_000),
    }


def compared(seeds: int) -> Table:
    """All shifts, limits and policies."""
    lines = []
    for shift, rates in SHIFTS.items():
        for metric, limit in CASES:
            judged_by = omma.metric(metric)
            held = omma.Auto(metric, subject_to=limit).limits[0].named(None, LABELS, "benchmarks")
            found: dict[str, list[list[tuple[float, float]]]] = {}
            for seed in range(seeds):
                eta, y = stream(rates, seed)
                for name, policy in policies(metric, limit).items():
                    made = omma.replay(policy, eta, y, checkpoints=0).predictions
                    counts = [omma.Counts.from_labels(y[one], made[one]) for one in PARTS.values()]
                    pairs = [
                        (judged_by.value(one), held.sign * (held.bound - held.value(one)))
                        for one in counts
                    ]
                    found.setdefault(name, []).append(pairs)
            for name, every in found.items():
                means = np.mean(every, axis=0)
                line: dict[str, Any] = {"shift": shift, "maximize": metric, "limit": limit}
                line["policy"] = name
                for part, (value, excess) in zip(PARTS, means, strict=True):
                    line[part] = f"{100 * value:.1f} ({excess:+.3f})"
                lines.append(line)
    note = f"metric in % (excess), {SOON:,} rows each, mean of {seeds} draws"
    return Table("Limits where labels become rare or frequent", note, lines)


def main() -> None:
    """Run, and show it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=5)
    compared(parser.parse_args().seeds).show(Console(width=160))
