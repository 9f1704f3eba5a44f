"""Writes the tables of docs/recipes/river.md from what `python -m benchmarks river` recorded.

    python docs/make_river.py

reads docs/records/river.jsonl, in which each line is a stream and a model.
"""

from pathlib import Path

import pandas as pd
from page_parts import markdown, replaced, without_repeats

DOCS = Path(__file__).parent
PAGE, RECORDS = DOCS / "recipes" / "river.md", DOCS / "records" / "river.jsonl"
NAMES = ("F1", "MCC", "G-mean", "balanced accuracy")


def read():
    """All runs, a row each."""
    return pd.read_json(RECORDS, lines=True, precise_float=True)


def table(runs):
    """Of each metric, the value of the model itself, and what the wrapper adds."""
    rows = []
    for name, run in zip(without_repeats(runs["stream"]), runs.itertuples(), strict=True):
        row = [name, run.model]
        for plain, wrapped in run.values.values():
            row += [f"{plain:.1f}", _gain(plain, wrapped)]
        rows.append(row)
    heads = ["stream", "model", *(head for name in NAMES for head in (name, ""))]
    return markdown(heads, rows, words=2)


def _gain(plain, wrapped):
    gain = round(wrapped - plain, 1)
    return f"{gain:+.1f}".replace("-", "−") if gain else "0.0"


def refreshed(page, runs):
    """The page with tables of these runs: streams that the hedge was made on, and others."""
    page = replaced(page, "streams", table(runs[~runs["new"]]))
    return replaced(page, "others", table(runs[runs["new"]]))


if __name__ == "__main__":
    PAGE.write_text(refreshed(PAGE.read_text(encoding="utf-8"), read()), encoding="utf-8")
