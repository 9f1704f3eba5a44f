"""Writes the tables of docs/peers.md from what `python -m benchmarks peers` recorded.

python docs/make_peers.py
"""

from pathlib import Path

import numpy as np
import pandas as pd
from page_parts import markdown, replaced, without_repeats

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


def read():
    """All runs, a row each."""
    return pd.read_json(RECORDS, lines=True, precise_float=True)


def tables(runs):
    """Mean and standard deviation of the metric over seeds with gaps; the median of seconds."""
    values, seconds = [], []
    for place, group in runs.groupby(["set", "metric"], sort=False):
        # A method that does not support the task or the metric has no runs.
        by_method = dict(iter(group.groupby("method")))
        seeds = group["seed"].nunique()
        cells = [_value(by_method.get(method), seeds) for method in METHODS]
        values.append([*place, *cells, _ahead(by_method)])
        medians = group.groupby("method")["seconds"].median().reindex(list(METHODS))
        seconds.append([*place, *medians.map("{:.2g}".format, na_action="ignore").fillna("–")])
    heads = ["set", "metric", *METHODS.values()]
    return _table([*heads, "omma − best rival"], values), _table(heads, seconds)


def _table(heads, rows):
    frame = pd.DataFrame(rows, columns=heads)
    return markdown(heads, frame.assign(set=without_repeats(frame["set"])).to_numpy(), words=2)


def _value(runs, seeds):
    if runs is None:
        return "–"
    spread = f" ± {runs['value'].std():.1f}" if len(runs) > 1 else ""
    missing = f" ({len(runs)} of {seeds})" if len(runs) < seeds else ""
    return f"{runs['value'].mean():.1f}{spread}{missing}"


def _ahead(by_method):
    """How far omma is ahead of the best rival, seed by seed, with its standard error."""
    values = {name: runs.set_index("seed")["value"] for name, runs in by_method.items()}
    rivals = [values[name] for name in RIVALS if name in values]
    # A row that nobody else entered is no win.
    if not rivals:
        return "no rival"
    gaps = values["omma"] - max(rivals, key=lambda rival: rival.mean())
    error = gaps.std() / np.sqrt(len(gaps))
    return f"{gaps.mean():+.2f} ± {error:.2f}".replace("-", "−")


def refreshed(page, runs):
    """The page with tables of these runs."""
    values, seconds = tables(runs)
    return replaced(replaced(page, "measured", values), "measured seconds", seconds)


if __name__ == "__main__":
    PAGE.write_text(refreshed(PAGE.read_text(encoding="utf-8"), read()), encoding="utf-8")
