"""Writes docs/likeness.md and its picture: differences between methods, the paper's and ours.

    omma-study run paper_synthetic --out RECORDS
    omma-study run paper_synthetic_classes --out RECORDS
    python study/pages/make_likeness.py RECORDS    packs what that left into study/records first
    python study/pages/make_likeness.py            from study/records, which the repository has

Every number on the page comes from the records.
"""

import sys
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from common import DOCS, MADE, RECORDS, load, packed, table, titles, with_packed, write_page
from omma.plots import color_of
from omma_study.datasets.paper_like import SHAPES
from omma_study.paper import is_label_fed
from omma_study.policies import ETA, POLICIES as KNOWN
from omma_study.records import pack, read
from omma_study.sections import policy_of
from omma_study.tables import markdown

PICTURE = DOCS / "images" / "study" / "likeness.png"
BASELINE = "baseline"
NEAR = 0.02  # a difference within 2 points is called the same
APART = 0.01  # two methods of the paper whose order counts are more than a point apart
BEST = 0.005  # how far from the best a method may be to count as best
PRECISION = "macro_precision@3"
# Ours that decide as the code behind the paper's tables; the others have no figure of their own.
POLICIES = (
    "ofo", "greedy_plug_in", "greedy_plug_in_eta", "online_fw_random", "online_fw_random_eta",
    "omma", "omma_eta", "offline_fw_random",
)  # fmt: skip
# Where it was run, Online-FW by the authors' schedule on all rows stands in its place.
NEARER = {
    "online_fw_random": "online_fw_paper",
    "online_fw_random_eta": "online_fw_paper_eta",
}

PAGE = """# Synthetic data against the paper

Do differences between methods on our synthetic streams follow those of the paper?

{answer}

A test rebuilds this page from `study/records`; `omma-study run paper_synthetic` and `omma-study run
paper_synthetic_classes` make the records.

## What is compared

Eight of the paper's nine data sets are not available in the form that it uses. Streams of
`omma_study.datasets.like` take their place. They have the same number of rows and labels, the same
base rates and the same number of labels per row. They are also as hard: the 0.5 threshold or the
top k scores about as much as in the first row of the paper's Tables 2 and 3. All of this was
fitted. How much better than that first row each *method* is was **not** fitted. This page compares
that difference, the paper's and ours, cell by cell.

## Within one data set and metric

Differences vary more between metrics than between methods: G- and H-mean of rare labels gain tens
of points with every method. A correlation over all cells mostly shows that. This table compares
methods within one data set and one metric:

{within}

{picture}

By method, over sets and metrics (Pearson and Spearman over all cells of the row):

{by_policy}

By metric:

{by_metric}

By set:

{by_set}

## The first row (fitted)

{match_words}

{match}

{match_classes}

## What this can and cannot show

- **It can** show that a difference depends only on the shape of a data set: how many labels, how
  rare, how hard.
- **It cannot** show the effect of wrong probabilities. On these streams, η is exact. That favours
  methods that count probabilities, such as OMMA(η̂).
- The two data sets with thousands of labels agree least. Most of their labels have only a few rows,
  so a trained model knows little about them. Exact probabilities know everything, and methods find
  far more rare labels here (macro recall@3, G- and H-mean).
- Given η, labels are independent here. In real data they are not.
- Greedy and Offline-FW decide as the code behind the paper's tables (expected counts; random
  starts). {history}
- Left out: the paper's Greedy(η̂) on recall@3 and precision@3, whose figures are those of Greedy
  with labels ([why](differences.md#greedy-two-meanings-of-expected)).

## Number of runs

Sequences × λ. The paper has five sequences and five λ. A dash means that a method was not run.

{amounts}

## All cells

The paper's difference to its first row, and ours ± its deviation over sequences, in points.

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
        for target in section.targets
        if (figure := section.paper_value(BASELINE, target)) is not None
    ]
    return pd.DataFrame(rows, columns=["suite", "dataset", "target", "paper", "ours"])


def match(rows):
    """The first row of the paper, ours, and how far it is, a line for each set."""
    targets = list(dict.fromkeys(rows["target"]))
    texts = [
        f"{100 * row.ours:.2f} ({100 * row.paper:.2f}, {100 * (row.ours - row.paper):+.2f})"
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
        f"; the others are {names}. On Ledgar, the paper's G- and H-mean are 0, because some class "
        "is never the most probable one. A stream of independent rows does not reproduce that"
    )
    return f"{words}{others if names else ''}."


def pairs(study):
    """Differences to the first row, the paper's and ours; one that is 0 leaves none."""
    rows = []
    for section in streams(study):
        for target, policy in product(section.targets, POLICIES):
            first, ours = section.paper_value(BASELINE, target), section.mean(BASELINE, target)
            figure = section.paper_value(policy, target)
            run = NEARER.get(policy, policy)
            run = run if (run, target) in section.cells.index else policy
            # A first row of 0 says only that some class was never predicted.
            is_usable = first and ours is not None and figure is not None
            if (
                is_usable
                and not is_label_fed(policy, target)
                and (run, target) in section.cells.index
            ):
                mean, std = section.cells.loc[(run, target), ["mean", "std"]]
                difference = figure - first, mean - ours
                rows.append((section.stands_for, policy, target, *difference, std, run))
    columns = ["dataset", "policy", "metric", "paper", "ours", "std", "run"]
    return pd.DataFrame(rows, columns=columns)


def centred(pairs):
    """Differences to the mean of their set and metric, so that methods alone are compared."""
    values = pairs[["paper", "ours"]]
    return values - values.groupby([pairs["dataset"], pairs["metric"]]).transform("mean")


def order(pairs):
    """Of pairs of methods more than a point apart in the paper: how many keep their order."""
    both = pairs.merge(pairs, on=["dataset", "metric"], suffixes=("", "_other"))
    both = both[both["paper"] - both["paper_other"] > APART]
    return (both["ours"] > both["ours_other"]).sum(), len(both)


def null(pairs):
    """Predict each difference by the paper's own mean of that metric on the other sets."""
    of_metric = pairs.groupby("metric")["paper"]
    of_set = pairs.groupby(["dataset", "metric"])["paper"]
    sums, sizes = (of_metric.transform(how) - of_set.transform(how) for how in ("sum", "size"))
    return sums / sizes


def agreement(pairs):
    """All statistics of the page, of some or all pairs."""
    paper, ours = pairs["paper"], pairs["ours"]
    groups = pairs.groupby(["dataset", "metric"])
    within = centred(pairs)
    # The order of methods that are nearly equal is chance.
    wide = [group for _, group in groups if np.ptp(group["paper"]) > APART and len(group) > 2]
    ranks = [group["paper"].corr(group["ours"], method="spearman") for group in wide]
    best = [
        group.loc[group["paper"].idxmax(), "ours"] >= group["ours"].max() - BEST
        for _, group in groups
    ]
    clear = paper.abs() > NEAR
    return {
        "cells": len(pairs),
        "pearson": paper.corr(ours),
        "spearman": paper.corr(ours, method="spearman"),
        "within": within["paper"].corr(within["ours"]),
        "ranks": np.median(ranks) if ranks else np.nan,
        "groups": len(wide),
        "order": order(pairs),
        "best": (sum(best), len(best)),
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
                f"{100 * stats['off']:.2f}", f"{100 * stats['above']:+.2f}", same,
            ])  # fmt: skip
    return table(HEAD, lines)


def within(pairs):
    """How methods compare within a set and a metric, with and without precision@3."""
    parts = {"all metrics": pairs, "without precision@3": pairs[pairs["metric"] != PRECISION]}
    lines = {name: _statistics(part) for name, part in parts.items()}
    return markdown(pd.DataFrame(lines).rename_axis("").reset_index())


def _statistics(pairs):
    stats = agreement(pairs)
    return {
        "cells": str(stats["cells"]),
        "correlation of differences to the mean of their set and metric": f"{stats['within']:.2f}",
        "median rank correlation of methods, over sets and metrics where those of the paper "
        "are more than a point apart": f"{stats['ranks']:.2f} ({stats['groups']} groups)",
        "pairs of methods more than a point apart in the paper that keep their order": (
            "{} of {}".format(*stats["order"])
        ),
        "the paper's best method is within 0.5 points of the best here": (
            "{} of {}".format(*stats["best"])
        ),
        "correlation over all cells, which pools metrics": f"{stats['pearson']:.2f}",
        "the same of a null: each difference predicted by the paper's own mean of the metric "
        "on its other sets": f"{pairs['paper'].corr(null(pairs)):.2f}",
    }


def answer(pairs):
    """The point of the page in a few sentences."""
    stats, without = agreement(pairs), agreement(pairs[pairs["metric"] != PRECISION])
    ordered, n_pairs = stats["order"]
    best, groups = stats["best"]
    return (
        "**Partly.** Within one set and one metric, differences between methods correlate with the "
        f"paper's by {stats['within']:.2f} ({without['within']:.2f} without macro precision@3, "
        f"where differences are largest). Of {n_pairs} pairs of methods that are more than a point "
        f"apart in the paper, {ordered} keep their order here. The paper's best method is within "
        f"half a point of the best here in {best} of {groups} cases. Half of all {stats['cells']} "
        f"differences are within {100 * stats['off']:.1f} points of the paper's."
    )


def title(name):
    """A policy as tables call it; a metric is called what it is."""
    return KNOWN[name].title if name in KNOWN else name if name in SHAPES else f"`{name}`"


def cells(pairs):
    """Every cell, a row for each set and metric."""
    texts = [
        f"{100 * row.paper:+.1f} / {100 * row.ours:+.1f}"
        + ("" if np.isnan(row.std) else f" ± {100 * row.std:.1f}")
        for row in pairs.itertuples()
    ]
    index = ["dataset", "metric"]
    wide = pairs.assign(text=texts).pivot(index=index, columns="policy", values="text")
    wide = wide.fillna("×").sort_index()[list(POLICIES)]
    return table(("", "metric", *titles(POLICIES)), wide.reset_index().to_numpy().tolist())


def history(pairs):
    """Where Online-FW looks at all rows, as the paper's does."""
    online = pairs[pairs["policy"].isin(NEARER)]
    all_rows = online[online["run"] != online["policy"]]["dataset"].unique()
    latest = [name for name in online["dataset"].unique() if name not in all_rows]
    return (
        f"Online-FW runs as the authors' code on {', '.join(all_rows)}: all rows so far, 25 "
        f"iterations, floored intervals. On {', '.join(latest)}, it uses the latest 5,000 rows, "
        "because all rows would take hours."
    )


def amounts(study):
    """How many sequences and λ each policy was run with, a row for each set."""
    rows = []
    for section in streams(study):
        tried = section.by_prior.groupby(["policy", "target"])["sequences"].agg(["min", "size"])
        least = tried.groupby("policy").min()
        texts = (least["min"].astype(str) + " × " + least["size"].astype(str)).to_dict()
        shown = [texts.get(policy, "–") for policy in (*POLICIES, *NEARER.values())]
        rows.append([section.stands_for, *shown])
    return table(["", *titles((*POLICIES, *NEARER.values()))], rows)


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
    ax.set(xlim=limits, ylim=limits)
    ax.set_xlabel("the paper: better than its first row by, points")
    ax.set_ylabel("on the stream of the same shape, points")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8.5, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def page(study):
    """The text of the page."""
    differences, rows = pairs(study), first_rows(study)
    alt = (
        f"Differences to the first row of the paper's tables against ours, {len(differences)} dots "
        "about a diagonal"
    )
    return PAGE.format(
        answer=answer(differences),
        within=within(differences),
        history=history(differences),
        match_words=match_words(rows),
        match=match(rows[rows["suite"] == MADE[0]]),
        match_classes=match(rows[rows["suite"] == MADE[1]]),
        picture=f"![{alt}](images/study/likeness.png)",
        by_policy=grouped(differences, "policy", POLICIES),
        by_metric=grouped(differences, "metric", dict.fromkeys(differences["metric"])),
        by_set=grouped(differences, "dataset", dict.fromkeys(differences["dataset"])),
        amounts=amounts(study),
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


def merged(folder):
    """Slim records of a folder, and those of the same sets that the repository has."""
    policies = {BASELINE, "auto", *POLICIES, *NEARER.values()}
    fresh = [
        slim(record)
        for record in read(folder)
        if record["suite"] in MADE and record["result"] and policy_of(record) in policies
    ]
    return with_packed(fresh, *MADE)


if __name__ == "__main__":
    for place in sys.argv[1:]:
        pack(merged(place), RECORDS)
    study = load(packed(*MADE))
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    draw(pairs(study)).savefig(PICTURE, dpi=100, facecolor="white")
    write_page("likeness.md", page(study))
