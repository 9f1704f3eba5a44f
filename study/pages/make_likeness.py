"""Writes docs/likeness.md and its picture: differences between methods, the paper's and ours.

    omma-study run paper_synthetic --out RECORDS
    omma-study run paper_synthetic_classes --out RECORDS
    python study/pages/make_likeness.py RECORDS    packs what that left into study/records first
    python study/pages/make_likeness.py            from study/records, which the repository has

Every number on the page comes from the records.
"""

import sys

import click
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from common import DOCS, MADE, RECORDS, load, packed, percent, table, titles
from omma.plots import color_of
from omma_study.config import PRIORS, SEEDS, suite as suite_of
from omma_study.datasets.paper_like import SHAPES
from omma_study.policies import ETA, POLICIES as KNOWN
from omma_study.records import pack, read
from omma_study.tables import find, policy_of

PICTURE = DOCS / "images" / "study" / "likeness.png"
BASELINE = "baseline"
NEAR = 0.02  # a difference within 2 points is called the same
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


def streams(study):
    """All sections, labels before classes, those of fewer labels first."""
    return sorted(
        study.sections.values(), key=lambda stream: (MADE.index(stream.suite), stream.m, stream.n)
    )


def first_rows(study):
    """The value of deciding at 0.5 or by the top k, the paper's and ours."""
    rows = [
        (section.suite, section.stands_for, target, figure, section.mean(BASELINE, target))
        for section in streams(study)
        for target, (metric, k) in section.targets.items()
        if (figure := find("fixed", section.stands_for, BASELINE, metric, k)) is not None
    ]
    return pd.DataFrame(rows, columns=["suite", "dataset", "target", "paper", "ours"])


def match(rows):
    """The first row of the paper, ours, and how far it is, a line for each set."""
    targets = list(dict.fromkeys(rows["target"]))
    texts = [
        f"{percent(row.ours)} ({percent(row.paper)}, {100 * (row.ours - row.paper):+.2f})"
        for row in rows.itertuples()
    ]
    wide = rows.assign(text=texts).pivot(index="dataset", columns="target", values="text")
    lines = [[name, *wide.loc[name, targets]] for name in dict.fromkeys(rows["dataset"])]
    return table(("ours (the paper's, difference)", *targets), lines)


def match_words(rows):
    """How many cells of the first row are within 2 points, and which are not."""
    off = rows[(rows["ours"] - rows["paper"]).abs() > NEAR]
    words = f"{len(rows) - len(off)} of {len(rows)} cells are within 2 points"
    names = ", ".join(off["dataset"] + " " + off["target"])
    others = (
        f"; the others are {names}. On Ledgar the paper's G- and H-mean are 0: some class is never "
        "the likeliest of its rows, which a stream of independent observations does not give"
    )
    return f"{words}{others if names else ''}."


def pairs(study):
    """Differences to the first row, the paper's and ours; one that is 0 leaves none."""
    rows = []
    for section in streams(study):
        name = section.stands_for
        for target, (metric, k) in section.targets.items():
            first, ours = find("fixed", name, BASELINE, metric, k), section.mean(BASELINE, target)
            # A first row of 0 says only that some class was never predicted.
            if not first or ours is None:
                continue
            for policy in POLICIES:
                figure = find("fixed", name, policy, metric, k)
                value = section.mean(policy, target)
                if None not in (figure, value):
                    rows.append((name, policy, target, figure - first, value - ours))
    return pd.DataFrame(rows, columns=["dataset", "policy", "metric", "paper", "ours"])


def agreement(pairs):
    """Correlations, how many cells are alike within 2 points, how many have the same sign."""
    paper, ours = pairs["paper"], pairs["ours"]
    # The sign of a small difference is chance.
    clear = paper.abs() > NEAR
    return {
        "cells": len(pairs),
        "pearson": paper.corr(ours),
        "spearman": paper.corr(ours, method="spearman"),
        "near": ((paper - ours).abs() <= NEAR).mean(),
        "clear": clear.sum(),
        "same": (np.sign(paper) == np.sign(ours))[clear].sum(),
        "off": (paper - ours).abs().median(),
        "above": (ours - paper).mean(),
    }


HEAD = (
    "", "cells", "Pearson", "Spearman", "median distance, points", "ours − paper's, mean",
    "same sign where the paper's is above 2 points",
)  # fmt: skip


def grouped(pairs, field, names):
    """A line for each value of a field."""
    lines = []
    for name in names:
        stats = agreement(pairs[pairs[field] == name])
        # Two dots always lie on a line.
        if stats["cells"] > 2:
            same = f"{stats['same']} of {stats['clear']}" if stats["clear"] else "–"
            lines.append([
                title(name), stats["cells"], f"{stats['pearson']:.2f}", f"{stats['spearman']:.2f}",
                percent(stats["off"]), f"{100 * stats['above']:+.2f}", same,
            ])  # fmt: skip
    return table(HEAD, lines)


def summary(pairs):
    """The agreement of all cells, in words."""
    stats = agreement(pairs)
    return (
        f"Over all {stats['cells']} cells the correlation is **{stats['pearson']:.2f}** (Pearson; "
        f"of ranks {stats['spearman']:.2f}). Half of them are within {100 * stats['off']:.1f} "
        f"points of each other, {100 * stats['near']:.0f} % within 2. Of the {stats['clear']} "
        f"where the paper's difference is more than 2 points either way, "
        f"{100 * stats['same'] / stats['clear']:.0f} % have the same sign here."
    )


def title(name):
    """A policy as tables call it; a metric is called what it is."""
    return KNOWN[name].title if name in KNOWN else name if name in SHAPES else f"`{name}`"


def cells(pairs):
    """Every cell, a row for each set and metric."""
    texts = [f"{100 * row.paper:+.1f} / {100 * row.ours:+.1f}" for row in pairs.itertuples()]
    index = ["dataset", "metric"]
    wide = pairs.assign(text=texts).pivot(index=index, columns="policy", values="text")
    wide = wide.fillna("×").sort_index()[list(POLICIES)]
    return table(("", "metric", *titles(POLICIES)), wide.reset_index().to_numpy().tolist())


def sequences(study):
    """Over how many sequences and λ, in words; those with fewer by name."""
    groups = {}
    for section in streams(study):
        for policy in section.policies:
            tried = section.by_prior.loc[policy]
            n_sequences = tried["sequences"].min()
            priors = tried.groupby("target").size().min()
            if n_sequences < SEEDS or priors < (len(PRIORS) if KNOWN[policy].prior else 1):
                # Policies of a set that have the same amounts; then sets with the same policies.
                groups.setdefault((section.stands_for, n_sequences, priors), []).append(
                    title(policy)
                )
    sets = {}
    for (name, *amounts), policies in groups.items():
        sets.setdefault((*amounts, " / ".join(policies)), []).append(name)
    fewer = [
        f"{policies}: {n_sequences} sequence{'s' if n_sequences > 1 else ''}, {priors} λ on "
        f"{', '.join(names)}"
        for (n_sequences, priors, policies), names in sets.items()
    ]
    words = f"Values are means over {SEEDS} sequences with the best of {len(PRIORS)} λ, as in the "
    return f"{words}paper, but for these. {'; '.join(fewer)}." if fewer else f"{words}paper."


def left_out(study):
    """What was not run, in words."""
    present = {section.stands_for for section in streams(study)}
    absent = [name for name in SHAPES if name not in present]
    absent += [
        f"{title(policy)} on {section.stands_for}"
        for section in streams(study)
        for policy in POLICIES
        if policy in suite_of(section.suite).all_policies and policy not in section.policies
    ]
    return (
        f"Not run: {', '.join(absent)}." if absent else "All nine sets, all methods of the paper."
    )


def draw(pairs):
    """Ours against the paper's; the line is where both are the same."""
    figure = Figure(figsize=(7.4, 5.6), layout="constrained")
    ax = figure.add_subplot()
    values = 100 * pairs[["paper", "ours"]]
    limits = (values.min().min() - 3, values.max().max() + 3)
    ax.plot(limits, limits, color="#999999", linewidth=0.8, zorder=1)
    ax.axhline(0, color="#d9d9d9", linewidth=0.8, zorder=0)
    ax.axvline(0, color="#d9d9d9", linewidth=0.8, zorder=0)
    for policy in POLICIES:
        dots, color = values[pairs["policy"] == policy], color_of(policy)
        # Open dots for policies that count estimates.
        fill = "white" if policy.endswith(ETA) else color
        look = {"color": color, "markerfacecolor": fill, "markersize": 6.5, "alpha": 0.8}
        ax.plot(dots["paper"], dots["ours"], "o", label=title(policy), **look)
    ax.set_xlim(*limits)
    ax.set_ylim(*limits)
    ax.set_xlabel("the paper: better than its first row by, points")
    ax.set_ylabel("on the stream of the same shape, points")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8.5, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def page(study):
    """The text of the page."""
    differences, rows = pairs(study), first_rows(study)
    stats = agreement(differences)
    alt = (
        f"Differences to the first row of the paper's tables against ours, {stats['cells']} dots "
        f"about a diagonal, correlation {stats['pearson']:.2f}"
    )
    return PAGE.format(
        match_words=match_words(rows),
        match=match(rows[rows["suite"] == MADE[0]]),
        match_classes=match(rows[rows["suite"] == MADE[1]]),
        picture=f"![{alt}](images/study/likeness.png)",
        summary=summary(differences),
        by_policy=grouped(differences, "policy", POLICIES),
        by_metric=grouped(differences, "metric", dict.fromkeys(differences["metric"])),
        by_set=grouped(differences, "dataset", dict.fromkeys(differences["dataset"])),
        seeds=sequences(study),
        left_out=left_out(study),
        cells=cells(differences),
    )


def slim(record):
    """The final value alone: the page says nothing of the way, nor of single labels."""
    result = record["result"]
    return {**record, "label": title(policy_of(record)), "result": {
        "value": result["value"], "rows": result["rows"],
        "history": {"rows": [result["rows"]], "values": [result["value"]]},
        "counts": None, "labels": len(result["counts"]["tp"]), "names": None,
    }}  # fmt: skip


if __name__ == "__main__":
    for place in sys.argv[1:]:
        policies = {BASELINE, "auto", *POLICIES}
        fresh = [
            slim(record)
            for record in read(place)
            if record["suite"] in MADE and record["result"] and policy_of(record) in policies
        ]
        pack(fresh, RECORDS)
    study = load(packed(*MADE))
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    draw(pairs(study)).savefig(PICTURE, dpi=100, facecolor="white")
    (DOCS / "likeness.md").write_text(page(study), encoding="utf-8")
    click.echo(f"Wrote {DOCS / 'likeness.md'} and its picture")
