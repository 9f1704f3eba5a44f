"""Writes the tables of docs/recipes/river.md from what `python -m benchmarks river` recorded.

    python docs/make_river.py

reads docs/records/river.jsonl, in which each line is a stream and a model.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
PAGE, RECORDS = DOCS / "recipes" / "river.md", DOCS / "records" / "river.jsonl"
NAMES = ("F1", "MCC", "G-mean", "balanced accuracy")


def read() -> list[dict[str, Any]]:
    """All runs."""
    return [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()]


def table(records: list[dict[str, Any]]) -> str:
    """Of each metric, what the model itself gives, and what the wrapper adds."""
    lines = [
        "| stream | model | " + " | | ".join(NAMES) + " | |",
        "| --- | --- |" + " ---: |" * (2 * len(NAMES)),
    ]
    before = None
    for one in records:
        cells = (_cells(*pair) for pair in one["values"].values())
        name = "" if one["stream"] == before else one["stream"]
        before = one["stream"]
        lines.append(f"| {name} | {one['model']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cells(plain: float, wrapped: float) -> str:
    more = round(wrapped - plain, 1)
    return f"{plain:.1f} | " + (f"{more:+.1f}".replace("-", "−") if more else "0.0")


def refreshed(page: str, records: list[dict[str, Any]]) -> str:
    """The page with tables of these runs: streams that the hedge was made on, and others."""
    for name, new in (("streams", False), ("others", True)):
        start, end = f"<!-- {name} -->\n\n", f"\n\n<!-- end of {name} -->"
        before, rest = page.split(start)
        _, after = rest.split(end)
        made = table([one for one in records if one["new"] == new])
        page = before + start + made + end + after
    return page


if __name__ == "__main__":
    made = refreshed(PAGE.read_text(encoding="utf-8"), read())
    PAGE.write_text(made, encoding="utf-8")
