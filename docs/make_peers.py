"""Writes the table of docs/peers.md from what `python -m benchmarks.peers` recorded.

python docs/make_peers.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).parent
PAGE, RECORDS = DOCS / "peers.md", DOCS / "records" / "peers.jsonl"
METHODS = ("plain", "omma", "TunedThresholdClassifierCV", "optimal-classification-cutoffs")
START, END = "<!-- measured -->\n\n", "\n\n<!-- end of measured -->"


def read() -> list[dict[str, Any]]:
    """All runs."""
    return [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()]


def table(records: list[dict[str, Any]]) -> str:
    """Mean and standard deviation of the metric over seeds, and the median of seconds."""
    found: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for one in records:
        found.setdefault((one["set"], one["metric"]), {}).setdefault(one["method"], []).append(one)
    lines = ["| set | metric | " + " | ".join(METHODS) + " |", "| --- | --- |" + " ---: |" * 4]
    before = None
    for (name, metric), methods in found.items():
        cells = [_cell(methods.get(method, [])) for method in METHODS]
        lines.append(f"| {'' if name == before else name} | {metric} | " + " | ".join(cells) + " |")
        before = name
    return "\n".join(lines)


def _cell(runs: list[dict[str, Any]]) -> str:
    if not runs:
        return "–"
    values = [one["value"] for one in runs]
    seconds = float(np.median([one["seconds"] for one in runs]))
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f} ({seconds:.2g} s)"


def refreshed(page: str, records: list[dict[str, Any]]) -> str:
    """The page with a table of these runs."""
    before, rest = page.split(START)
    _, after = rest.split(END)
    return before + START + table(records) + END + after


if __name__ == "__main__":
    made = refreshed(PAGE.read_text(encoding="utf-8"), read())
    PAGE.write_text(made, encoding="utf-8")
