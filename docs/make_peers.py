"""Writes the tables of docs/peers.md from what `python -m benchmarks peers` recorded.

python docs/make_peers.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

DOCS = Path(__file__).parent
PAGE, RECORDS = DOCS / "peers.md", DOCS / "records" / "peers.jsonl"
# Columns narrow enough for a page, by the names of records.
METHODS = {
    "plain": "plain",
    "omma": "omma",
    "TunedThresholdClassifierCV": "scikit-learn",
    "optimal-classification-cutoffs": "cutoffs",
    "xCOLUMNs": "xCOLUMNs",
    "MAPIE": "MAPIE",
}
# MAPIE guarantees a rate, not in every seed; plain decisions are not tuned. Neither is a rival.
RIVALS = ("TunedThresholdClassifierCV", "optimal-classification-cutoffs", "xCOLUMNs")
START, END = "<!-- measured -->\n\n", "\n\n<!-- end of measured -->"


def read() -> list[dict[str, Any]]:
    """All runs."""
    return [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()]


def tables(records: list[dict[str, Any]]) -> str:
    """Mean and standard deviation of the metric over seeds with gaps, and the median of seconds."""
    runs = pd.DataFrame(records)
    values, seconds, before = [], [], None
    for (name, metric), group in runs.groupby(["set", "metric"], sort=False):
        head = ["" if name == before else name, metric]
        before = name
        by_method = dict(iter(group.groupby("method")))
        seeds = group["seed"].nunique()
        cells = [_value(by_method.get(method), seeds) for method in METHODS]
        values.append([*head, *cells, _ahead(by_method)])
        medians = [by_method[m]["seconds"].median() if m in by_method else None for m in METHODS]
        seconds.append([*head, *("–" if s is None else f"{s:.2g}" for s in medians)])
    columns = ["set", "metric", *METHODS.values()]
    return "\n\n".join(
        (
            _table([*columns, "omma − best rival"], values),
            "CPU seconds of fitting and deciding:",
            _table(columns, seconds),
        )
    )


def _table(head: list[str], rows: list[list[str]]) -> str:
    rule = ["---", "---", *["---:"] * (len(head) - 2)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, rule, *rows])


def _value(runs: pd.DataFrame | None, seeds: int) -> str:
    if runs is None:
        return "–"
    spread = f" ± {runs['value'].std():.1f}" if len(runs) > 1 else ""
    some = f" ({len(runs)} of {seeds})" if len(runs) < seeds else ""
    return f"{runs['value'].mean():.1f}{spread}{some}"


def _ahead(by_method: dict[str, pd.DataFrame]) -> str:
    """How far omma is ahead of the best rival, seed by seed, with its standard error."""
    values = {name: runs.set_index("seed")["value"] for name, runs in by_method.items()}
    rivals = [values[name] for name in RIVALS if name in values]
    # A row that nobody else entered is no win.
    if not rivals:
        return "no rival"
    gaps = values["omma"] - max(rivals, key=lambda rival: rival.mean())
    error = gaps.std() / np.sqrt(len(gaps))
    return f"{gaps.mean():+.2f} ± {error:.2f}".replace("-", "−")


def refreshed(page: str, records: list[dict[str, Any]]) -> str:
    """The page with tables of these runs."""
    before, rest = page.split(START)
    _, after = rest.split(END)
    return before + START + tables(records) + END + after


if __name__ == "__main__":
    made = refreshed(PAGE.read_text(encoding="utf-8"), read())
    PAGE.write_text(made, encoding="utf-8")
