"""Limits on real sets: the second half of the stream, online and by what the first half taught.

    OMMA_DATA=… python -m benchmarks limits_real [--seeds 5] [--cache folder]

fits the linear models of `omma-study run auto` to the training part of each set, shuffles its
test part,
and judges the second half of that: `omma.Auto` as it goes on deciding, its rule after the first
half, and thresholds tuned on the first half. A set that is not there is left out, with a sentence.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import omma
from benchmarks.measure import Table
from omma_study.auto import SOURCES
from omma_study.estimates import EstimateCache

CASES = (
    ("mammography", "f1", "predicted_rate <= 0.01"),
    ("mammography", "recall", "precision >= 0.7"),
    ("yeast", "macro_f1", "labels_per_row <= 4"),
    ("yeast", "macro_recall", "micro_precision >= 0.7"),
    ("rcv1_subsets", "macro_recall", "micro_precision >= 0.9"),
    ("rcv1_subsets", "macro_f1", "labels_per_row <= 2"),
)
ONLINE, RULE, TUNED = "online", "rule of Auto", "tuned"


def halves(batch: Any, metric: str, limit: str, seed: int) -> dict[str, tuple[float, float]]:
    """Value and excess of each way to decide the second half."""
    policy, middle = omma.Auto(metric, subject_to=limit), batch.n // 2
    order = np.random.default_rng(seed).permutation(batch.n)
    first, second = batch.take(order[:middle]), batch.take(order[middle:])
    trace = omma.replay(policy, batch.take(order), checkpoints=0, predictions=False)
    before = omma.replay(policy, first, checkpoints=0, predictions=False)
    tuned = omma.TunedThresholds(metric, limit).fit(first)
    counts = {ONLINE: trace.counts - before.counts}
    for name, rule in ((RULE, before.rule), (TUNED, tuned.decision)):
        found = omma.replay(omma.FixedRule(rule, metric), second, checkpoints=0, predictions=False)
        counts[name] = found.counts
    held = policy.limits[0].named(None, batch.m, "benchmarks")
    judged_by = omma.metric(metric)
    return {
        name: (judged_by.value(one), held.sign * (held.bound - held.value(one)))
        for name, one in counts.items()
    }


def lines(seeds: int, cache: EstimateCache, console: Console) -> Iterator[dict[str, Any]]:
    """A row of the table for each case."""
    linear = {one.dataset: one for one in SOURCES if one.estimator["name"] != "boosted"}
    for name, metric, limit in CASES:
        try:
            batch = cache.estimates(linear[name], 0).batch
        except FileNotFoundError as error:
            console.print(str(error))
            continue
        found = [halves(batch, metric, limit, seed) for seed in range(seeds)]
        row: dict[str, Any] = {"set": name, "rows": batch.n, "metric": metric, "limit": limit}
        for way in (ONLINE, RULE, TUNED):
            values, excess = zip(*(one[way] for one in found), strict=True)
            row[f"{way}, %"] = round(100 * float(np.mean(values)), 2)
            row[f"{way}: excess, most"] = f"{np.mean(excess):+.4f}, {max(excess):+.4f}"
        yield row


def main() -> None:
    """Run, and show it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "omma-limits")
    given = parser.parse_args()
    console = Console(width=200)
    cache = EstimateCache(None, given.cache, console.print)
    note = f"second half of {given.seeds} shuffled streams; excess: mean and largest, in the limit"
    Table("Limits on real sets", note, list(lines(given.seeds, cache, console))).show(console)
