"""Writes the tables of docs/peers.md from what `python -m benchmarks peers` recorded.

python docs/make_peers.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).parent
PAGE, RECORDS = DOCS / "peers.md", DOCS / "records" / "peers.jsonl"
METHODS = (
    "plain", "omma", "TunedThresholdClassifierCV", "optimal-classification-cutoffs", "MAPIE"
)  # fmt: skip
SHORT = ("plain", "omma", "scikit-learn", "cutoffs", "MAPIE")  # columns narrow enough for a page
START, END = "<!-- measured -->\n\n", "\n\n<!-- end of measured -->"


def read() -> list[dict[str, Any]]:
    """All runs."""
    return [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()]


def tables(records: list[dict[str, Any]]) -> str:
    """Mean and standard deviation of the metric over seeds with gaps, and the median of seconds."""
    found: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for one in records:
        found.setdefault((one["set"], one["metric"]), {}).setdefault(one["method"], []).append(one)
    values = [
        [_value(methods.get(one, []), len(methods["omma"])) for one in METHODS] + [_ahead(methods)]
        for methods in found.values()
    ]
    seconds = [[_seconds(methods.get(one, [])) for one in METHODS] for methods in found.values()]
    return "\n\n".join(
        (
            _table([*SHORT, "omma to the best"], list(found), values),
            "The same in seconds:",
            _table([*SHORT], list(found), seconds),
        )
    )


def _table(head: list[str], keys: list[tuple[str, str]], cells: list[list[str]]) -> str:
    lines = [f"| set | metric | {' | '.join(head)} |", "| --- | --- |" + " ---: |" * len(head)]
    before = None
    for (name, metric), row in zip(keys, cells, strict=True):
        lines.append(f"| {'' if name == before else name} | {metric} | {' | '.join(row)} |")
        before = name
    return "\n".join(lines)


def _value(runs: list[dict[str, Any]], seeds: int) -> str:
    if not runs:
        return "–"
    values = [one["value"] for one in runs]
    spread = f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
    some = f" ({len(runs)} of {seeds})" if len(runs) < seeds else ""
    return f"{np.mean(values):.1f}{spread}{some}"


def _seconds(runs: list[dict[str, Any]]) -> str:
    return f"{float(np.median([one['seconds'] for one in runs])):.2g}" if runs else "–"


def _ahead(methods: dict[str, list[dict[str, Any]]]) -> str:
    """How far omma is ahead of the best of the others, seed by seed, with its standard error."""
    values = {
        name: {one["seed"]: one["value"] for one in runs}
        for name, runs in methods.items()
        if name != "MAPIE"  # it keeps a rate, and is not there in every seed
    }
    ours = values.pop("omma")
    best = max(values.values(), key=lambda found: float(np.mean(list(found.values()))))
    gaps = [ours[seed] - best[seed] for seed in ours]
    error = np.std(gaps, ddof=1) / np.sqrt(len(gaps))
    return f"{np.mean(gaps):+.2f} ± {error:.2f}".replace("-", "−")


def refreshed(page: str, records: list[dict[str, Any]]) -> str:
    """The page with tables of these runs."""
    before, rest = page.split(START)
    _, after = rest.split(END)
    return before + START + tables(records) + END + after


if __name__ == "__main__":
    made = refreshed(PAGE.read_text(encoding="utf-8"), read())
    PAGE.write_text(made, encoding="utf-8")
