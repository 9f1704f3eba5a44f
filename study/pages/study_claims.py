"""What the page says of each claim: a verdict, a sentence with its numbers, and a table."""

from __future__ import annotations

import re
from dataclasses import replace
from statistics import median

from omma import tables
from omma.comparison.entrants import TITLES
from omma.metrics.target import parse_target
from omma_study import suite as suite_of
from omma_study.sections import decides_as, find_figure, grid_of, heading, points
from study_cells import (
    ADAM,
    CLASSES,
    LABELS,
    ONLINE,
    RARE,
    mean,
    pairs,
    percent,
    spread,
    table,
)

CLOSE = 0.005  # half a point
NEARLY_ALL, MOST = 0.9, 0.5  # shares of cells
MANY_RARE = 0.05  # of a dataset's labels
MEANS = ("multiclass_gmean@1", "multiclass_hmean@1", "multiclass_qmean@1")
MACRO = ("macro_f1", "macro_f1@3", "macro_recall@3", "macro_precision@3")


def verdict(good, every):
    """In bold, whether a claim holds in nearly all cells, in most, or in fewer."""
    share = good / every if every else 0.0
    most = "Holds in most cells" if share > MOST else "Does not hold"
    word = "Holds" if share >= NEARLY_ALL else most
    return f"**{word} here** ({good} of {every})."


def heads(metrics):
    """Columns as the paper calls them."""
    return [heading(*parse_target(metric)) for metric in metrics]


VERDICT = re.compile(r"\*\*([^*]+) here\*\* \((\d+ of \d+)\)")


def claims(said):
    """All claims in one table; ``said`` has the text of each, whose first verdict counts."""
    rows = []
    for claim, text in said.items():
        found = VERDICT.search(text)
        rows.append(
            [claim, found[1].lower() if found else "not measured", found[2] if found else ""]
        )
    return table(["claim", "here it", "cells"], rows)


def thresholds():
    """What the words of the page mean, before any number."""
    return (
        f'a claim "holds" where it does in at least {NEARLY_ALL:.0%} of the cells, "holds in most '
        f'cells" where in more than {MOST:.0%}, and else "does not hold"; two values are close if '
        f"they are within {100 * CLOSE:g} points; a label is rare if it occurs under {RARE} times "
        f"in the sequence, and a dataset has rare labels if more than {MANY_RARE:.0%} of them are"
    ).replace("%", " %")


def fixed(study):
    """Sections with an estimator that was fitted beforehand."""
    return study.of(LABELS) + study.of(CLASSES)


def data_table(study):
    """What was run."""
    rows = [_data_row(study, suite, one) for suite in (LABELS, CLASSES, ADAM, ONLINE)
            for one in study.of(suite)]  # fmt: skip
    rarely = f"labels under {RARE} times"
    head = ["dataset", "suite", "rows", "labels", rarely, "fitted to", "chosen", "sequences"]
    return table(head, rows)


def _data_row(study, suite, section):
    said = section.estimator
    share = f"{100 * study.rare[suite, section.dataset]:.0f} %"
    size = f"{section.n:,}", f"{section.m:,}"
    fitted = f"{said['train_rows']:,} rows" if "train_rows" in said else "as they come"
    if said["name"] == "known":
        fitted = "η is known"
    return [
        section.dataset, suite, *size, share, fitted, _chosen(said), _sequences(section)
    ]  # fmt: skip


def _sequences(section):
    """Over how many, which policies have fewer, and which of the suite were not run."""
    every = len(section.comparison.seeds)
    counts = {}
    for (policy, _), cell in section.comparison.cells.items():
        for runs in cell.by_prior.values():
            title = _family(policy)
            counts[title] = min(len(runs.values), counts.get(title, every))
    fewer = [f"{title} {count}" for title, count in sorted(counts.items()) if count < every]
    lacking = set(suite_of(section.suite).entrants) - set(section.comparison.policies)
    without = [f"without {', '.join(sorted(set(map(_family, lacking))))}"] if lacking else []
    return ", ".join([str(every), *fewer, *without])


def _family(policy):
    """Its title, whatever its feedback and its start."""
    return re.split(r"[,(]", TITLES[policy])[0]


def _chosen(said):
    """What the estimator chose for itself."""
    words = [f"C = {said['C']:g}"] if "C" in said else []
    if "learning_rate" in said:
        words.append(f"rate {said['learning_rate']:g}")
    if said["name"] == "online":
        words.append(f"l2 {said['l2']:g}")
        words.append("standardised" if said.get("standardise") else "raw")
    return ", ".join(words) or "–"


def news20(study):
    """The tables beside the paper's."""
    parts = []
    suites = {
        CLASSES: "multinomial", ADAM: "softmax by Adam", LABELS: "one logistic regression a class",
    }  # fmt: skip
    for suite, name in suites.items():
        section = study.by_suite.get(suite, {}).get("news20")
        if section is not None:
            grid = replace(grid_of(section), notes=())
            parts.append(f"**{suite}** ({name}, {_chosen(section.estimator)}):\n")
            parts.append(f"{tables.to_markdown(grid, std=False)}\n\n{_distances(section)}\n")
    return "\n".join(parts)


def _distances(section):
    gaps = [
        abs(mean(section, policy, metric) - figure.value)
        for policy in section.comparison.policies
        for metric in section.comparison.metrics
        if decides_as(policy, section.comparison.policies)
        and mean(section, policy, metric) is not None
        and (figure := find_figure(section, policy, metric)) is not None
    ]
    return (
        f"Of the policies that decide as the paper's code, the {len(gaps)} cells that the paper "
        f"has are {100 * median(gaps):.2f} points from it in the median, and "
        f"{100 * max(gaps):.2f} at most."
    )


def cause(study):
    """Why the paper's Online-FW is so far below ours: where it starts."""
    section = study.by_suite.get(CLASSES, {}).get("news20")
    if section is None:
        return "Not measured."
    told = []
    for metric in ("macro_precision@3", "macro_f1@3"):
        parts = {
            name: percent(mean(section, policy, metric))
            for name, policy in (("top", "online_fw"), ("random", "online_fw_random"))
        }
        figure = find_figure(section, "online_fw_random", metric)
        told.append(
            f"on {heads([metric])[0]} it has {parts['top']} from the top k, {parts['random']} from "
            f"random starts, and {percent(figure.value)} in the paper"
        )
    return (
        "Online-FW with a budget is far better here than in the paper. **The cause is where it "
        "starts.** The code behind the paper's tables starts every run of Frank-Wolfe from a "
        "classifier drawn at random, ours from the top k: " + "; ".join(told) + ". Each run by "
        "itself is good, but the labels that take up surplus predictions change with every run "
        "([more on it](differences.md#frank-wolfe-where-it-starts))."
    )


def starts(study):
    """Both Frank-Wolfes, from each start."""
    names = ("online_fw", "online_fw_random", "offline_fw_top", "offline_fw_random", "offline_fw")
    rows = [
        [f"{section.dataset} ({section.task})", *heads([metric]),
         *(percent(mean(section, name, metric)) for name in names)]
        for section in fixed(study)
        for metric in ("macro_precision@3", "macro_gmean", "multiclass_gmean@1")
        if metric in section.comparison.metrics
    ]  # fmt: skip
    gaps = [gap for *_, gap in pairs(fixed(study), "online_fw", "online_fw_random",
                                     ["macro_precision@3"])]  # fmt: skip
    best, tops, randoms = (
        pairs(fixed(study), name, "baseline") for name in ("offline_fw", *names[2:4])
    )
    stuck = sum(abs(gap) < 1e-9 for *_, gap in tops)
    left = sum(abs(gap) < 1e-9 for *_, gap in best)
    worse = sum(b[2] < max(t[2], r[2]) - CLOSE for b, t, r in zip(best, tops, randoms, strict=True))
    words = (
        f"Online, the top is the better start on macro precision@3 in "
        f"{sum(g > 0 for g in gaps)} of {len(gaps)} cells, by {100 * median(gaps):.1f} points in "
        f"the median. Offline, Frank-Wolfe from the top ends where it began in {stuck} of "
        f"{len(tops)} cells, for the probabilities "
        "that it is fitted to are too good: the estimator has seen their labels. The better of "
        f"both starts *by the sample* is kept, and is the start itself in {left}; in {worse} it is "
        f"worse on the test part than the other start by more than {100 * CLOSE:g} points. So two "
        "starts help, and do not cure: "
        "[what does](differences.md#frank-wolfe-where-it-starts) are probabilities out of fold."
    )
    head = ["dataset", "metric", "online, top", "online, random", "offline, top", "offline, random",
            "offline, better by the sample"]  # fmt: skip
    return f"{words}\n\n{table(head, rows)}"


def both_greedys(study):
    """The expected metric against the metric at expected counts."""
    found = pairs(fixed(study), "greedy_plug_in", "greedy")
    close = sum(abs(gap) <= CLOSE for *_, gap in found)
    ends = sorted(found, key=lambda one: -abs(one[2]))[:3]
    told = "; ".join(
        f"{points(gap)} ({section.dataset}, {heads([metric])[0]})" for section, metric, gap in ends
    )
    return (
        f"The paper's appendix defines Greedy by the expected metric; its code takes the metric at "
        f"the expected counts (*plug-in*). With the best λ for each they are close in {close} of "
        f"{len(found)} cells; the largest differences, plug-in minus exact, are {told}."
    )


def auto(study):
    """Auto, which has no λ, against OMMA with the best of five."""
    every = [*fixed(study), *study.of(ONLINE)]
    gaps = [
        (section, metric, mean(section, "auto", metric) - best)
        for section in every
        for metric in section.comparison.metrics
        if mean(section, "auto", metric) is not None
        and (best := max(mean(section, name, metric) for name in ("omma", "omma_eta"))) is not None
    ]
    good = sum(gap >= -CLOSE for *_, gap in gaps)
    rows = [
        [f"{section.dataset} ({section.suite})", *heads([metric]),
         *(percent(mean(section, n, metric)) for n in ("omma", "omma_eta", "auto")), points(gap)]
        for section, metric, gap in [*sorted(gaps, key=lambda one: one[2])[:5],
                                     *sorted(gaps, key=lambda one: -one[2])[:5]]
    ]  # fmt: skip
    better = sum(gap > CLOSE for *_, gap in gaps)
    words = (
        f"{verdict(good, len(gaps))} `Auto` chooses nothing with hindsight, OMMA and OMMA(η̂) have "
        f"the best of five λ, and the better of the two is taken: Auto is no more than "
        f"{100 * CLOSE:g} points below it in so many cells, and better by more than that in "
        f"{better}; the median difference is {points(median(gap for *_, gap in gaps))} points. The "
        "five worst and the five best cells:"
    )
    return f"{words}\n\n{table(['dataset', 'metric', 'OMMA', 'OMMA(η̂)', 'Auto', 'points'], rows)}"


def adam(study):
    """Both estimators of classes."""
    both = [(one, study.by_suite[CLASSES].get(one.dataset)) for one in study.of(ADAM)]
    both = [(one, other) for one, other in both if other is not None]
    if not both:
        return "Not measured."
    names = ("baseline", "online_fw", "omma", "omma_eta", "auto")
    rows = [
        [section.dataset, *heads([metric]),
         *(f"{percent(mean(section, n, metric))} / {percent(mean(other, n, metric))}"
           for n in names)]
        for section, other in both
        for metric in section.comparison.metrics
    ]  # fmt: skip
    head = ["dataset", "metric", "Top-k", "Online-FW", "OMMA", "OMMA(η̂)", "Auto"]
    return (
        f"By Adam, as the paper states / by multinomial logistic regression:\n\n{table(head, rows)}"
    )


def means_above_top(study):
    """Multi-class means against Top-1."""
    names = ("baseline", "omma", "omma_eta", "online_fw", "offline_fw")
    rows = [
        [section.dataset, *heads([metric]), *(percent(mean(section, n, metric)) for n in names)]
        for section in study.of(CLASSES)
        for metric in MEANS
    ]
    by_policy = {
        policy: [
            gap
            for section, metric, gap in pairs(study.of(CLASSES), policy, "baseline", MEANS)
            if mean(section, policy, metric) > 0  # else some class is not in the test part at all
        ]
        for policy in ("omma", "omma_eta")
    }
    found = [gap for gaps in by_policy.values() for gap in gaps]
    alone = sum(gap > 0 for gap in by_policy["omma"])
    words = (
        f"{verdict(sum(gap > 0 for gap in found), len(found))} OMMA and OMMA(η̂), each against "
        f"Top-1 (OMMA alone: {alone} of {len(by_policy['omma'])}); from {points(min(found))} to "
        f"{points(max(found))} points. Cells where all are 0 are not counted:"
    )
    head = ["dataset", "metric", "Top-1", "OMMA", "OMMA(η̂)", "Online-FW", "Offline-FW"]
    return f"{words}\n\n{table(head, rows)}"


def absent(study):
    """Why some means are 0 whatever is predicted."""
    names = [
        section.dataset
        for section in study.of(CLASSES)
        if all(not mean(section, name, MEANS[0]) for name in section.comparison.policies)
    ]
    if not names:
        return ""
    return (
        f"The test part of {' and '.join(f'`{name}`' for name in names)} has no row of one or more "
        "of its rarest classes, so that their recall is 0 and with it G- and H-mean, whatever is "
        "predicted."
    )


def greedy(study):
    """OMMA against Greedy."""
    found = pairs(fixed(study), "omma", "greedy")
    close = sum(abs(gap) <= CLOSE for *_, gap in found)
    rows = [
        [f"{section.dataset} ({section.task})", *heads([metric]),
         percent(mean(section, "omma", metric)), percent(mean(section, "greedy", metric)),
         points(gap)]
        for section, metric, gap in sorted(found, key=lambda one: -abs(one[2]))[:6]
    ]  # fmt: skip
    words = (
        f"{verdict(close, len(found))} Cells in which the two are within half a point; the median "
        f"distance is {100 * median(abs(gap) for *_, gap in found):.2f} points. The largest ones:"
    )
    return f"{words}\n\n{table(['dataset', 'metric', 'OMMA', 'Greedy', 'difference'], rows)}"


def precision(study):
    """OMMA against Online-FW on precision@3."""
    names = ("baseline", "online_fw_random", "online_fw", "online_fw_eta", "omma", "omma_eta",
             "auto", "offline_fw")  # fmt: skip
    rows = [
        [f"{section.dataset} ({section.task})",
         *(percent(mean(section, name, "macro_precision@3")) for name in names)]
        for section in fixed(study)
    ]  # fmt: skip
    gaps, theirs = (
        [gap for *_, gap in pairs(fixed(study), "omma", name, ["macro_precision@3"])]
        for name in ("online_fw", "online_fw_random")
    )
    words = (
        f"{verdict(sum(gap >= 0 for gap in gaps), len(gaps))} OMMA against Online-FW from the top, "
        f"the better start, on macro precision@3; it is better by {100 * median(gaps):.1f} points "
        f"in the median, and by {100 * median(theirs):.1f} than Online-FW from random starts, as "
        "the paper has it."
    )
    head = ["dataset", "Top-3", "Online-FW, random", "Online-FW", "Online-FW(η̂)", "OMMA", "OMMA(η̂)",
            "Auto", "Offline-FW"]  # fmt: skip
    return f"{words}\n\n{table(head, rows)}"


def elsewhere(study):
    """OMMA against Online-FW on all but precision@3."""
    every = pairs(fixed(study), "omma", "online_fw")
    found = [one for one in every if one[1] != "macro_precision@3"]
    better, worse = (sum(sign * gap > CLOSE for *_, gap in found) for sign in (1, -1))
    ends = (min(found, key=lambda one: one[2]), max(found, key=lambda one: one[2]))
    told = " and ".join(
        f"{points(gap)} points ({section.dataset}, {heads([metric])[0]})"
        for section, metric, gap in ends
    )
    return (
        f"On the other metrics, of {len(found)} cells, OMMA is better by more than half a point "
        f"in {better}, Online-FW in {worse}; the rest are closer. The extremes are {told}."
    )


def rare(study):
    """OMMA with estimates against OMMA with labels."""
    rows = []
    for section in study.of(LABELS):
        gaps = [pairs([section], "omma_eta", "omma", [metric])[0][2] for metric in MACRO]
        share = f"{100 * study.rare[LABELS, section.dataset]:.0f} %"
        rows.append([section.dataset, f"{section.m:,}", share, *map(points, gaps)])
    return f"{_rare_words(study)}\n\n{table(_rare_head(), rows)}"


def _rare_head():
    return ["dataset", "labels", f"under {RARE} times", *heads(MACRO)]


def _rare_words(study):
    many = [one for one in study.of(LABELS) if study.rare[LABELS, one.dataset] > MANY_RARE]
    few = [one for one in study.of(LABELS) if one not in many]
    told = []
    for name, group in (("with rare labels", many), ("without", few)):
        found = pairs(group, "omma_eta", "omma", MACRO[:3])
        good = sum(gap > 0 for *_, gap in found)
        told.append(f"on sets {name} in {good} of {len(found)} cells")
    return (
        "OMMA(η̂) is better than OMMA by macro F1, F1@3 or recall@3 " + ", ".join(told) + ". "
        "Differences in points, each with its best λ:"
    )


def sensitivity(study):
    """How much depends on λ."""
    rows, gaps = [], []
    for section in study.of(LABELS):
        both = [tuple(spread(section, name, metric) for name in ("omma", "omma_eta"))
                for metric in MACRO]  # fmt: skip
        gaps += [labels - estimates for labels, estimates in both]
        rows.append([section.dataset, *(f"{100 * a:.2f} / {100 * b:.2f}" for a, b in both)])
    words = (
        f"{verdict(sum(gap >= 0 for gap in gaps), len(gaps))} Points between the best and the "
        "worst of the five λ, OMMA / OMMA(η̂):"
    )
    return f"{words}\n\n{table(['dataset', *heads(MACRO)], rows)}"
