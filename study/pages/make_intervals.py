"""Writes docs/intervals.md from records, and packs them.

    python -m omma_study.coverage --data DATA --out RECORDS
    python study/pages/make_intervals.py RECORDS

Without RECORDS the page is written again from study/records/coverage.jsonl.xz.
"""

import sys

from common import RECORDS, write_page
from omma_study import coverage
from omma_study.records import pack, read
from omma_study.tables import markdown

PACKED = RECORDS / "coverage.jsonl.xz"
WEAK = "macro_precision@3"  # known to be weak, and said so by a note of every such choice

TEXT = """# Intervals of choose: do they hold?

`omma.choose` recommends a rule and says what it is worth on new rows, with a 95 % interval. This
page counts how often the true value of the recommended rule lies in it.

{headline}

This page is written by `study/pages/make_intervals.py` from `study/records/coverage.jsonl.xz`, of
`python -m omma_study.coverage`. Rules of `Auto` in these records are those of a version with
λ = 1e-6; they were not run again.

## How it was measured

A logistic model is fitted to at most 5,000 rows of a real set, and its probabilities of up to
20,000 other rows are taken for the truth. Samples of these rows get labels by them. `choose` sees
a sample with the probabilities of the same model, which are then calibrated, or with those of a
forest fitted to the same rows, which are not. The rule that it returns is judged by its expected
counts over all rows, so its value is known exactly.

Sets: {sets}. In all {draws} samples. *Coverage* is the share of intervals that hold the true
value, in %. *Optimism* is the mean of the claimed value less the true one, in points. The goals
are a coverage of 93 %, and an optimism within 1 point at 200 rows and 0.5 points from 500 rows
on. What misses its goal is bold. Of a metric with 240 samples, coverage has a standard error of
1.4 points; at 10,000 rows there are 48 to 144 samples, and it is 2 to 3 points.

## By kind of problem

Coverage / optimism, without macro precision at 3:

{groups}

## By metric

{metrics}

## What is weak, and why

- **Macro precision with a budget**: rules of different folds spend spare slots on different
  labels, so out-of-fold counts describe no single rule. `choose` adds a note wherever this
  applies: judge the rule on held-out rows. Macro F1 with a budget has a little of it at 10,000
  rows.
- **Few positives**: 200 rows of `mammography` have five positives, and 500 rows of `covtype` have
  two or three of the rarest class. The rules that are judged were made without a fifth of them,
  and the rule to deploy has them all: values are claimed too low there. Under a limit on recall
  they are claimed too high, because a rule whose recall was high by chance is among those that
  hold it.
- Before correction, the value of the recommended rule is {raw200} points too high at 200 rows and
  {raw500} points at 500 rows (without macro precision and means over classes that are 0 where a
  class is never hit).

## Leads, and limits

The interval of the lead over the 0.5 threshold, or over the k most probable labels, holds in
{leads} % of the samples in which another rule was recommended. The interval of the value of a
limit holds in {limits} % ({limited} samples of 200 and 500 rows, {limited_sets}). It counts how
far the rules of different folds differ, besides chance in the rows: without that it held in 84 %
for `labels_per_row`.
"""


def kinds(frame):
    """Cells without the weak metric, told apart by problem and limits."""
    usual = frame[frame["metric"] != WEAK]
    limits = usual["limit"].isna().map({True: "none", False: "one"})
    return coverage.summary(usual.assign(limits=limits), ["task", "limits"])


def headline(frame):
    """The tables in two sentences."""
    usual, weak = frame[frame["metric"] != WEAK], frame[frame["metric"] == WEAK]
    by_size = {
        rows: f"{100 * coverage.mean(cells, 'covered'):.1f} % at {rows:,} rows"
        for rows, cells in usual.groupby("rows")
    }
    return (
        f"**They hold in {', '.join(by_size.values())}, over binary problems, classes and labels, "
        "with and without limits.** Macro precision with a budget is the exception: "
        f"{100 * coverage.mean(weak, 'covered'):.0f} %."
    )


def page(records):
    """The whole page."""
    frame = coverage.cells(records)
    usual = frame[(frame["metric"] != WEAK) & (frame["metric"] != "multiclass_gmean")]
    limits = frame["limit"].map("`{}`".format, na_action="ignore").fillna("–")
    shown = frame.assign(limit=limits)
    limited = frame[frame["limit_covered"].notna() & (frame["rows"] <= 500)]
    raw = {
        rows: f"{100 * coverage.mean(cells, 'out_of_fold'):.1f}"
        for rows, cells in usual.groupby("rows")
    }
    return TEXT.format(
        headline=headline(frame),
        sets=", ".join(f"`{name}`" for name in dict.fromkeys(frame["set"])),
        draws=f"{frame['draws'].sum():,}",
        groups=markdown(kinds(frame), words=2),
        metrics=markdown(coverage.summary(shown, ["task", "metric", "limit"]), words=3),
        raw200=raw[200],
        raw500=raw[500],
        leads=f"{100 * coverage.mean(frame, 'lead_covered'):.1f}",
        limits=f"{100 * coverage.mean(limited, 'limit_covered'):.1f}",
        limited=f"{limited['draws'].sum():,}",
        limited_sets=", ".join(f"`{name}`" for name in dict.fromkeys(limited["set"])),
    )


if __name__ == "__main__":
    for place in sys.argv[1:]:
        pack([record for record in read(place) if record["kind"] == coverage.SUITE], RECORDS)
    write_page("intervals.md", page(read(PACKED)))
