"""Writes docs/likeness.md and its picture: differences between methods, the paper's and ours.

    omma-study run paper_synthetic --out RECORDS
    omma-study run paper_synthetic_classes --out RECORDS
    python study/pages/make_likeness.py RECORDS    packs what that left into study/records first
    python study/pages/make_likeness.py            from study/records, which the repository has

Every number on the page comes from the records.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
from matplotlib.figure import Figure
from scipy.stats import pearsonr, spearmanr

from likeness_match import BASELINE, NEAR, first_rows, match, match_words, streams
from likeness_runs import left_out, sequences
from omma.comparison.entrants import TITLES
from omma.plots.palette import color_of
from omma_study.datasets.paper_like import SHAPES
from omma_study.records import pack, read
from omma_study.sections import find, policy_of
from study_cells import MADE, load, mean, percent, table

STUDY = Path(__file__).resolve().parents[1]
RECORDS, DOCS = STUDY / "records", STUDY.parent / "docs"
PICTURE = DOCS / "images" / "study" / "likeness.png"
# Ours that decide as the code behind the paper's tables; the others have no figure of their own.
POLICIES = (
    "ofo", "greedy_plug_in", "greedy_plug_in_eta", "online_fw_random", "online_fw_random_eta",
    "omma", "omma_eta", "offline_fw_random",
)  # fmt: skip

PAGE = """# Do differences follow the paper's?

This page is written by `study/pages/make_likeness.py` from the records of `omma-study run
paper_synthetic` and `omma-study run paper_synthetic_classes`; they are in the repository
(`study/records`), and every number comes from them.

Of the paper's nine sets eight cannot be had here in the form that it uses. Streams of
`omma_study.datasets.like` have their number of rows and labels, their label
frequencies and their labels a row, and are as hard: deciding at 0.5 or by the top k is near the
first row of the paper's Tables 2 and 3, on all seven metrics. That much was fitted. What was
**not** fitted is how much better than that first row each *method* is. So this is asked of them:
take a cell of the paper's tables, subtract its first row, and do the same on our stream.

## The first row, which was fitted

{match_words}

{match}

{match_classes}

## Differences, which were not

{picture}

{summary}

{by_policy}

By metric:

{by_metric}

By set:

{by_set}

## What this can show, and what it cannot

- **It can** show that a difference is explained by the shape of a set alone (how many labels, how
  rare, how hard), with nothing of its features: where the dots lie near the line, a user with a set
  of such a shape may expect such a difference.
- **It cannot** show what wrong probabilities do. On these streams η is known exactly, so that
  methods that count probabilities ("without labels") are at their best; in the paper they run on
  the output of a trained model. Dots of these lie above the line for that reason where they do.
- The two sets with thousands of labels agree least. Most of their labels have a handful of rows: of
  these a trained model knows little, and exact probabilities all that there is to know, so that
  methods that look for rare labels find far more here (macro-recall@3, G- and H-mean).
- Given η, labels are independent here. In real sets they are not, which Top-k and micro-F1 feel.
- A part of the agreement is that large differences are large for everybody: G- and H-mean of rare
  labels rise by tens of points whatever the method. The table by metric takes that out; there the
  correlations are of methods and sets alone.
- {seeds}
- {left_out}
- Greedy, Online-FW and Offline-FW are those that decide as the code behind the paper's tables
  (expected counts; random starts; the latest 5,000 rows).

## All cells

The paper's difference to its first row, and ours, in points.

{cells}
"""


class Pair(NamedTuple):
    """A difference to the first row: the paper's, and ours on the stream of the same shape."""

    dataset: str
    policy: str
    metric: str
    paper: float
    ours: float


def packed():
    """The files of records that the page is made of."""
    return sorted(path for suite in MADE for path in RECORDS.glob(f"{suite}-like_*.jsonl.xz"))


def slim(record):
    """The final value alone: the page says nothing of the way, nor of single labels."""
    given = record["result"]
    end = {"rows": [given["rows"]], "values": [given["value"]]}
    labels = len(given["counts"]["tp"])
    result = {"value": given["value"], "rows": given["rows"], "history": end, "counts": None,
              "labels": labels, "names": None}  # fmt: skip
    return {**record, "label": TITLES[policy_of(record)], "result": result}


def pairs(study):
    """All cells that both have; a first row that is 0 leaves no difference to speak of."""
    found = []
    for section in streams(study):
        name = section.stands_for
        for title, target in section.targets.items():
            first = find("fixed", name, BASELINE, *target)
            ours = mean(section, BASELINE, title)
            if None in (first, ours) or first.value == 0:
                continue
            for policy in POLICIES:
                figure, value = find("fixed", name, policy, *target), mean(section, policy, title)
                if None not in (figure, value):
                    pair = (figure.value - first.value, value - ours)
                    found.append(Pair(name, policy, title, *pair))
    return found


def agreement(found):
    """Correlations, how many cells are alike within 2 points, how many have the same sign."""
    paper, ours = (np.array([getattr(one, side) for one in found]) for side in ("paper", "ours"))
    clear = np.abs(paper) > NEAR
    return {
        "cells": len(found),
        "pearson": pearsonr(paper, ours).statistic,
        "spearman": spearmanr(paper, ours).statistic,
        "near": float((np.abs(paper - ours) <= NEAR).mean()),
        "clear": int(clear.sum()),
        "sign": float((np.sign(paper) == np.sign(ours))[clear].mean()) if clear.any() else np.nan,
        "off": float(np.median(np.abs(paper - ours))),
        "above": float(np.mean(ours - paper)),
    }


def line(name, found):
    """One row of a table of agreement."""
    said = agreement(found)
    same = f"{round(said['sign'] * said['clear'])} of {said['clear']}" if said["clear"] else "–"
    return (
        name, said["cells"], f"{said['pearson']:.2f}", f"{said['spearman']:.2f}",
        f"{percent(said['off'])}", f"{100 * said['above']:+.2f}",
        same,
    )  # fmt: skip


HEAD = (
    "", "cells", "Pearson", "Spearman", "median distance, points", "ours − paper's, mean",
    "same sign where the paper's is above 2 points",
)  # fmt: skip


def summary(found):
    """The agreement of all cells, in words."""
    said = agreement(found)
    return (
        f"Over all {said['cells']} cells the correlation is **{said['pearson']:.2f}** (Pearson; "
        f"of ranks {said['spearman']:.2f}). Half of them are within {100 * said['off']:.1f} points "
        f"of each other, {100 * said['near']:.0f} % within 2. Of the {said['clear']} where the "
        f"paper's difference is more than 2 points either way, {100 * said['sign']:.0f} % have the "
        f"same sign here."
    )


def grouped(found, field, names):
    """A line for each value of a field."""
    groups = [(name, [one for one in found if getattr(one, field) == name]) for name in names]
    return table(HEAD, [line(title(name), some) for name, some in groups if len(some) > 2])


def title(name):
    """A policy as tables call it; a metric is called what it is."""
    return TITLES.get(name, name if name in SHAPES else f"`{name}`")


def cells(found):
    """Every cell, a row for each set and metric."""
    places = sorted({(one.dataset, one.metric) for one in found})
    by = {(one.dataset, one.metric, one.policy): one for one in found}

    def cell(place, policy):
        one = by.get((*place, policy))
        return "×" if one is None else f"{100 * one.paper:+.1f} / {100 * one.ours:+.1f}"

    head = ("", "metric", *map(title, POLICIES))
    rows = [(*place, *(cell(place, policy) for policy in POLICIES)) for place in places]
    return table(head, rows)


def draw(found):
    """Ours against the paper's; the line is where both are the same."""
    figure = Figure(figsize=(7.4, 5.6), layout="constrained")
    ax = figure.add_subplot()
    reach = [100 * value for one in found for value in (one.paper, one.ours)]
    ends = (min(reach) - 3, max(reach) + 3)
    ax.plot(ends, ends, color="#999999", linewidth=0.8, zorder=1)
    ax.axhline(0, color="#d9d9d9", linewidth=0.8, zorder=0)
    ax.axvline(0, color="#d9d9d9", linewidth=0.8, zorder=0)
    for policy in POLICIES:
        some = [one for one in found if one.policy == policy]
        soft = policy.endswith("_eta")
        ax.plot(
            [100 * one.paper for one in some],
            [100 * one.ours for one in some],
            "o",
            color=color_of(policy),
            markerfacecolor="white" if soft else color_of(policy),
            markersize=6.5,
            alpha=0.8,
            label=TITLES[policy],
        )
    ax.set_xlim(*ends)
    ax.set_ylim(*ends)
    ax.set_xlabel("the paper: better than its first row by, points")
    ax.set_ylabel("on the stream of the same shape, points")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.legend(frameon=False, fontsize=8.5, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def page(study):
    """The text of the page."""
    found = pairs(study)
    metrics = list(dict.fromkeys(one.metric for one in found))
    labels, classes = (first_rows(study, suite) for suite in MADE)
    said = agreement(found)
    alt = (
        f"Differences to the first row of the paper's tables against ours, {said['cells']} dots "
        f"about a diagonal, correlation {said['pearson']:.2f}"
    )
    return PAGE.format(
        match_words=match_words([*labels, *classes]),
        match=match(labels),
        match_classes=match(classes) if classes else "",
        picture=f"![{alt}](images/study/likeness.png)",
        summary=summary(found),
        by_policy=grouped(found, "policy", POLICIES),
        by_metric=grouped(found, "metric", metrics),
        by_set=grouped(found, "dataset", dict.fromkeys(one.dataset for one in found)),
        seeds=sequences(study),
        left_out=left_out(study, POLICIES),
        cells=cells(found),
    )


def write(study):
    """The page and its picture."""
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    draw(pairs(study)).savefig(PICTURE, dpi=100, facecolor="white")
    (DOCS / "likeness.md").write_text(page(study), encoding="utf-8")
    click.echo(f"Wrote {DOCS / 'likeness.md'} and its picture")


if __name__ == "__main__":
    for place in sys.argv[1:]:
        wanted = {BASELINE, "auto", *POLICIES}
        made = [
            one for one in read(place)
            if one["suite"] in MADE and one["result"] and policy_of(one) in wanted
        ]  # fmt: skip
        pack(map(slim, made), RECORDS)
    write(load(packed()))
