"""What the page of the study says of each claim: a verdict, a sentence with numbers, a table."""

import json
import re
from statistics import median

import pandas as pd

from common import (
    ADAM,
    CLASSES,
    LABELS,
    ONLINE,
    RARE,
    RECORDS,
    family,
    finished,
    gaps,
    heads,
    percent,
    rare_share,
    table,
    titles,
)
from omma_study.config import suite as suite_of
from omma_study.records import read
from omma_study.tables import (
    decides_as_paper,
    duration,
    find,
    heading,
    markdown,
    points,
    sections,
    table_of,
)

CLOSE = 0.005  # half a point
NEARLY_ALL, MOST = 0.9, 0.5  # shares of cells
MANY_RARE = 0.05  # of a dataset's labels
MEANS = ("multiclass_gmean@1", "multiclass_hmean@1", "multiclass_qmean@1")
MACRO = ("macro_f1", "macro_f1@3", "macro_recall@3", "macro_precision@3")
PRECISION = "macro_precision@3"
FIXED = (LABELS, CLASSES)
TASKS = {LABELS: "multilabel", CLASSES: "multiclass"}
OURS = ["omma", "omma_eta"]
# What ``verdict`` writes, to be read again for the table of claims.
VERDICT = re.compile(r"\*\*([^*]+) here\*\* \((\d+ of \d+)\)")


def verdict(n_good, cells):
    """In bold, whether a claim holds in nearly all cells, in most, or in fewer."""
    share = n_good / cells if cells else 0.0
    most = "Holds in most cells" if share > MOST else "Does not hold"
    word = "Holds" if share >= NEARLY_ALL else most
    return f"**{word} here** ({n_good} of {cells})."


def claims(by_claim):
    """All claims in one table; ``by_claim`` has the text of each, whose first verdict counts."""
    rows = []
    for claim, text in by_claim.items():
        match = VERDICT.search(text)
        rows.append([claim, *((match[1].lower(), match[2]) if match else ("not measured", ""))])
    return table(["claim", "here it", "cells"], rows)


def thresholds():
    """What the words of the page mean, before any number."""
    return (
        f'a claim "holds" where it does in at least {NEARLY_ALL:.0%} of the cells, "holds in most '
        f'cells" where in more than {MOST:.0%}, and else "does not hold"; two values are close if '
        f"they are within {100 * CLOSE:g} points; a label is rare if it occurs under {RARE} times "
        f"in the sequence, and a dataset has rare labels if more than {MANY_RARE:.0%} of them are"
    ).replace("%", " %")


def name_of(place, kinds=TASKS):
    """A dataset with its task or its suite."""
    suite, dataset, _ = place
    return f"{dataset} ({kinds[suite] if kinds else suite})"


def cell_rows(rows, policies, name=lambda place: place[1]):
    """A line for each dataset and metric: its name, the metric, means of policies."""
    return [
        [name(place), heading(place[2]), *map(percent, line)]
        for place, line in zip(rows.index, rows[list(policies)].to_numpy(), strict=True)
    ]


def at(place):
    """Where a difference was found."""
    return f"({place[1]}, {heading(place[2])})"


def data_table(study):
    """What was run."""
    rows = []
    for section in (
        section for suite in (LABELS, CLASSES, ADAM, ONLINE) for section in study.of(suite)
    ):
        estimator = section.estimator
        fitted = (
            f"{estimator['train_rows']:,} rows" if "train_rows" in estimator else "as they come"
        )
        share = f"{100 * rare_share(section):.0f} %"
        rows.append([
            section.dataset, section.suite, f"{section.n:,}", f"{section.m:,}", share,
            "η is known" if estimator["name"] == "known" else fitted, chosen(estimator),
            _sequences(section),
        ])  # fmt: skip
    head = ["dataset", "suite", "rows", "labels", f"labels under {RARE} times", "fitted to",
            "chosen", "sequences"]  # fmt: skip
    return table(head, rows)


def _sequences(section):
    """Over how many, which policies have fewer, and which of the suite were not run."""
    # Variants of a policy by feedback and start count as one.
    fewest = section.by_prior["sequences"].groupby(lambda place: family(place[0])).min()
    fewer = [f"{name} {count}" for name, count in fewest.items() if count < section.seeds]
    lacking = set(suite_of(section.suite).all_policies) - set(section.policies)
    without = [f"without {', '.join(sorted(set(map(family, lacking))))}"] if lacking else []
    return ", ".join([str(section.seeds), *fewer, *without])


def chosen(estimator):
    """What the estimator chose for itself."""
    words = [f"C = {estimator['C']:g}"] if "C" in estimator else []
    if "learning_rate" in estimator:
        words.append(f"rate {estimator['learning_rate']:g}")
    if estimator["name"] == "online":
        words.append(f"l2 {estimator['l2']:g}")
        words.append("standardised" if estimator.get("standardise") else "raw")
    return ", ".join(words) or "–"


def news20(study):
    """The tables beside the paper's."""
    parts = []
    # The same set under three estimators.
    suites = {
        CLASSES: "multinomial", ADAM: "softmax by Adam", LABELS: "one logistic regression a class",
    }  # fmt: skip
    for suite, name in suites.items():
        section = study.sections.get((suite, "news20"))
        if section is None:
            continue
        # Where several of ours stand for one of the paper's, the one that decides as its code.
        distances = [
            abs(section.cells.at[place, "mean"] - figure)
            for place in section.cells.index
            if decides_as_paper(place[0], section.policies)
            and (figure := section.figure(*place)) is not None
        ]
        parts.append(
            f"**{suite}** ({name}, {chosen(section.estimator)}):\n\n"
            f"{markdown(table_of(section))}\n\n"
            f"Of the policies that decide as the paper's code, the {len(distances)} cells that the "
            f"paper has are {100 * median(distances):.2f} points from it in the median, and "
            f"{100 * max(distances):.2f} at most.\n"
        )
    return "\n".join(parts)


def cause(study):
    """Why the paper's Online-FW is so far below ours: where it starts."""
    section = study.sections[CLASSES, "news20"]
    values = [
        f"on {heading(target)} it has {percent(section.mean('online_fw', target))} from the top k, "
        f"{percent(section.mean('online_fw_random', target))} from random starts, and "
        f"{percent(section.figure('online_fw_random', target))} in the paper"
        for target in (PRECISION, "macro_f1@3")
    ]
    return (
        "Online-FW with a budget is far better here than in the paper. **The cause is where it "
        "starts.** The code behind the paper's tables starts every run of Frank-Wolfe from a "
        "classifier drawn at random, ours from the top k: " + "; ".join(values) + ". Each run by "
        "itself is good, but the labels that take up surplus predictions change with every run "
        "([more on it](differences.md#frank-wolfe-where-it-starts))."
    )


def starts(study):
    """Both Frank-Wolfes, from each start."""
    names = ("online_fw", "online_fw_random", "offline_fw_top", "offline_fw_random", "offline_fw")
    examples = study.rows(*FIXED, targets=(PRECISION, "macro_gmean", "multiclass_gmean@1"))
    online = gaps(study.rows(*FIXED, targets=[PRECISION]), "online_fw", "online_fw_random")
    rows = study.rows(*FIXED)
    # A difference of 0 to the baseline: the run ended where it began.
    top, random, best = (gaps(rows, name, "baseline") for name in names[2:])
    words = (
        f"Online, the top is the better start on macro precision@3 in "
        f"{(online > 0).sum()} of {len(online)} cells, by {100 * online.median():.1f} points in "
        f"the median. Offline, Frank-Wolfe from the top ends where it began in "
        f"{(top.abs() < 1e-9).sum()} of {len(top)} cells, for the probabilities "
        "that it is fitted to are too good: the estimator has seen their labels. The better of "
        f"both starts *by the sample* is kept, and is the start itself in "
        f"{(best.abs() < 1e-9).sum()}; in "
        f"{(best < pd.concat([top, random], axis=1).max(axis=1) - CLOSE).sum()} it is "
        f"worse on the test part than the other start by more than {100 * CLOSE:g} points. So two "
        "starts help, and do not cure: "
        "[what does](differences.md#frank-wolfe-where-it-starts) are probabilities out of fold."
    )
    head = ["dataset", "metric", "online, top", "online, random", "offline, top", "offline, random",
            "offline, better by the sample"]  # fmt: skip
    return f"{words}\n\n{table(head, cell_rows(examples, names, name_of))}"


def both_greedys(study):
    """The expected metric against the metric at expected counts."""
    lead = gaps(study.rows(*FIXED), "greedy_plug_in", "greedy")
    # Stable, so that equal differences stay in the order of the page.
    ends = lead.sort_values(key=lambda gap: -gap.abs(), kind="stable")[:3]
    largest = "; ".join(f"{points(gap)} {at(place)}" for place, gap in ends.items())
    return (
        f"The paper's appendix defines Greedy by the expected metric; its code takes the metric at "
        f"the expected counts (*plug-in*). With the best λ for each they are close in "
        f"{(lead.abs() <= CLOSE).sum()} of {len(lead)} cells; the largest differences, plug-in "
        f"minus exact, are {largest}."
    )


def auto(study):
    """Auto, which has no λ, against OMMA with the best of five."""
    rows = study.rows(*FIXED, ONLINE)
    rows = rows.assign(gap=rows["auto"] - rows[OURS].max(axis=1)).dropna(subset="gap")
    # Both ends of the range.
    order = rows.sort_values("gap", kind="stable")
    ends = pd.concat([order[:5], rows.sort_values("gap", ascending=False, kind="stable")[:5]])
    lines = cell_rows(ends, [*OURS, "auto"], lambda place: name_of(place, None))
    lines = [[*line, points(gap)] for line, gap in zip(lines, ends["gap"], strict=True)]
    gap = rows["gap"]
    words = (
        f"{verdict((gap >= -CLOSE).sum(), len(gap))} `Auto` chooses nothing with hindsight, OMMA "
        f"and OMMA(η̂) have the best of five λ, and the better of the two is taken: Auto is no more "
        f"than {100 * CLOSE:g} points below it in so many cells, and better by more than that in "
        f"{(gap > CLOSE).sum()}; the median difference is {points(gap.median())} points. The "
        "five worst and the five best cells:"
    )
    head = ["dataset", "metric", *titles([*OURS, "auto"]), "points"]
    return f"{words}\n\n{table(head, lines)}"


def adam(study):
    """Both estimators of classes."""
    names = ["baseline", "online_fw", "omma", "omma_eta", "auto"]
    adam = study.rows(ADAM)
    # Sets that have both estimators.
    adam = adam[[(CLASSES, dataset) in study.sections for _, dataset, _ in adam.index]]
    multinomial = study.means.loc[[(CLASSES, *place[1:]) for place in adam.index], names]
    rows = [
        [place[1], heading(place[2]),
         *(f"{percent(a)} / {percent(b)}" for a, b in zip(ours, theirs, strict=True))]
        for place, ours, theirs in zip(
            adam.index, adam[names].to_numpy(), multinomial.to_numpy(), strict=True
        )
    ]  # fmt: skip
    head = ["dataset", "metric", "Top-k", *titles(names[1:])]
    return (
        f"By Adam, as the paper states / by multinomial logistic regression:\n\n{table(head, rows)}"
    )


def means_above_top(study):
    """Multi-class means against Top-1."""
    names = ("baseline", "omma", "omma_eta", "online_fw", "offline_fw")
    rows = study.rows(CLASSES, targets=MEANS)
    # Where a mean is 0, some class is not in the test part at all.
    above = {name: gaps(rows[rows[name] > 0], name, "baseline") for name in OURS}
    both = pd.concat(above.values())
    words = (
        f"{verdict((both > 0).sum(), len(both))} OMMA and OMMA(η̂), each against "
        f"Top-1 (OMMA alone: {(above['omma'] > 0).sum()} of {len(above['omma'])}); from "
        f"{points(both.min())} to {points(both.max())} points. Cells where all are 0 are not "
        "counted:"
    )
    head = ["dataset", "metric", "Top-1", *titles(names[1:])]
    return f"{words}\n\n{table(head, cell_rows(rows, names))}"


def absent(study):
    """Why some means are 0 whatever is predicted."""
    rows = study.rows(CLASSES, targets=MEANS[:1])
    names = [place[1] for place in rows.index[(rows.fillna(0) == 0).all(axis=1)]]
    if not names:
        return ""
    return (
        f"The test part of {' and '.join(f'`{name}`' for name in names)} has no row of one or more "
        "of its rarest classes, so that their recall is 0 and with it G- and H-mean, whatever is "
        "predicted."
    )


def greedy(study):
    """OMMA against Greedy."""
    lead = gaps(study.rows(*FIXED), "omma", "greedy")
    ends = lead.sort_values(key=lambda gap: -gap.abs(), kind="stable")[:6]
    rows = cell_rows(study.means.loc[ends.index], ("omma", "greedy"), name_of)
    rows = [[*row, points(gap)] for row, gap in zip(rows, ends, strict=True)]
    words = (
        f"{verdict((lead.abs() <= CLOSE).sum(), len(lead))} Cells in which the two are within "
        f"half a point; the median distance is {100 * lead.abs().median():.2f} points. The "
        "largest ones:"
    )
    return f"{words}\n\n{table(['dataset', 'metric', 'OMMA', 'Greedy', 'difference'], rows)}"


def precision(study):
    """OMMA against Online-FW on precision@3."""
    names = ("baseline", "online_fw_random", "online_fw", "online_fw_eta", "omma", "omma_eta",
             "auto", "offline_fw")  # fmt: skip
    means = study.rows(*FIXED, targets=[PRECISION])
    rows = [[name, *values] for name, _, *values in cell_rows(means, names, name_of)]
    top, random = (gaps(means, "omma", name) for name in ("online_fw", "online_fw_random"))
    words = (
        f"{verdict((top >= 0).sum(), len(top))} OMMA against Online-FW from the top, "
        f"the better start, on macro precision@3; it is better by {100 * top.median():.1f} points "
        f"in the median, and by {100 * random.median():.1f} than Online-FW from random starts, as "
        "the paper has it."
    )
    return f"{words}\n\n{table(['dataset', 'Top-3', *titles(names[1:])], rows)}"


def elsewhere(study):
    """OMMA against Online-FW on all but precision@3."""
    lead = gaps(study.rows(*FIXED), "omma", "online_fw")
    lead = lead.drop(PRECISION, level="target")
    extremes = " and ".join(
        f"{points(lead[place])} points {at(place)}" for place in (lead.idxmin(), lead.idxmax())
    )
    return (
        f"On the other metrics, of {len(lead)} cells, OMMA is better by more than half a point "
        f"in {(lead > CLOSE).sum()}, Online-FW in {(lead < -CLOSE).sum()}; the rest are closer. "
        f"The extremes are {extremes}."
    )


def rare(study):
    """OMMA with estimates against OMMA with labels."""
    sections = study.of(LABELS)
    by_set = gaps(study.rows(LABELS, targets=MACRO), "omma_eta", "omma").unstack("target")
    by_set = by_set.droplevel("suite")
    rows = [
        [section.dataset, f"{section.m:,}", f"{100 * rare_share(section):.0f} %",
         *map(points, by_set.loc[section.dataset, list(MACRO)])]
        for section in sections
    ]  # fmt: skip
    by_group = []
    for name, has_many in (("with rare labels", True), ("without", False)):
        group = [
            section.dataset for section in sections if (rare_share(section) > MANY_RARE) is has_many
        ]
        lead = by_set.loc[group, list(MACRO[:3])].to_numpy()
        by_group.append(f"on sets {name} in {(lead > 0).sum()} of {lead.size} cells")
    words = (
        "OMMA(η̂) is better than OMMA by macro F1, F1@3 or recall@3 " + ", ".join(by_group) + ". "
        "Differences in points, each with its best λ:"
    )
    head = ["dataset", "labels", f"under {RARE} times", *heads(MACRO)]
    return f"{words}\n\n{table(head, rows)}"


def sensitivity(study):
    """How much depends on λ."""
    rows, is_less = [], []
    for section in study.of(LABELS):
        by_cell = section.by_prior["mean"].groupby(["policy", "target"])
        spread = by_cell.max() - by_cell.min()
        spreads = [(spread["omma", target], spread["omma_eta", target]) for target in MACRO]
        is_less += [estimates <= labels for labels, estimates in spreads]
        rows.append([section.dataset, *(f"{100 * a:.2f} / {100 * b:.2f}" for a, b in spreads)])
    words = (
        f"{verdict(sum(is_less), len(is_less))} Points between the best and the "
        "worst of the five λ, OMMA / OMMA(η̂):"
    )
    return f"{words}\n\n{table(['dataset', *heads(MACRO)], rows)}"


# Estimators that learn along the sequence.


def online(study):
    """Two claims of the paper, and how each kind of feedback does."""
    return "\n\n".join(part(study) for part in (_lower, on_par, _chosen_online, _feedback))


def _lower(study):
    """Online against fixed, the same policy."""
    targets = ("micro_f1", "macro_f1", "macro_f1@3", PRECISION, "macro_gmean")
    online = study.rows(ONLINE, targets=targets)
    online = online[[(LABELS, dataset) in study.sections for _, dataset, _ in online.index]]
    fixed = study.means.loc[[(LABELS, *place[1:]) for place in online.index]]
    differences = (online[OURS].to_numpy() - fixed[OURS].to_numpy()).ravel()
    # A line for each set, a column for each metric: the rows come in that order.
    cells = [
        f"{percent(a)} / {percent(b)}"
        for a, b in zip(online["omma_eta"], fixed["omma_eta"], strict=True)
    ]
    names = list(dict.fromkeys(place[1] for place in online.index))
    rows = [[name, *cells[i * len(targets) :][: len(targets)]] for i, name in enumerate(names)]
    return (
        f"*The average over the sequence is lower than with a fixed estimator*: "
        f"{verdict((differences < 0).sum(), differences.size)} OMMA and OMMA(η̂) on five metrics; "
        f"the median difference is {points(median(differences))} points, from "
        f"{points(differences.min())} to {points(differences.max())}. OMMA(η̂) with the "
        f"online / the fixed estimator:\n\n"
        f"{table(['dataset', *heads(targets)], rows)}"
    )


def on_par(study):
    """OMMA against the paper's other algorithms."""
    rows = study.rows(ONLINE)
    # Policies that are not run for a metric are NaN, which max skips.
    rivals = rows.drop(columns=[*OURS, "auto"]).max(axis=1)
    n_good = (rows[OURS].max(axis=1) >= rivals - CLOSE).sum()
    ahead_of_starts = []
    for policy, start in (("online_fw", "the top"), ("online_fw_random", "random starts")):
        ahead = gaps(study.rows(ONLINE, targets=[PRECISION]), "omma", policy)
        ahead_of_starts.append(
            f"from {start} on {(ahead > 0).sum()} of {len(ahead)} sets, by "
            f"{points(ahead.median())} points in the median"
        )
    lacking = [
        f"`{section.dataset}`"
        for section in study.of(ONLINE)
        if "online_fw" not in section.policies
    ]
    without = f" Online-FW was not run on {', '.join(lacking)}." if lacking else ""
    return (
        f"*OMMA is in most cases on par with the other algorithms, or better*: "
        f"{verdict(n_good, len(rows))} The better of OMMA and OMMA(η̂) against the best of the "
        f"paper's other algorithms, each with its best λ: no more than {100 * CLOSE:g} points "
        f"below it. On macro precision@3 OMMA is better than Online-FW "
        f"{', and than that '.join(ahead_of_starts)}.{without}"
    )


def _chosen_online(study):
    """What the estimators chose."""
    reports = [section.estimator for section in study.of(ONLINE)]
    return (
        "Of the first sequences, "
        f"{sum(not report.get('standardise') for report in reports)} of {len(reports)} "
        f"chose raw features, {sum(report['l2'] > 0 for report in reports)} "
        "an l2 above 0 (see the first table). An earlier version of this page had running "
        "standardization everywhere and no l2, and most of what it said of online estimators was "
        "due to that."
    )


def _feedback(study):
    """Every cell: which feedback is better while the estimator learns."""
    names = ("baseline", "greedy_plug_in", "online_fw", *OURS, "auto")
    cells = study.rows(ONLINE)
    rows = []
    for place, row in zip(cells.index, cell_rows(cells, names), strict=True):
        section = study.sections[place[:2]]
        target = section.targets[place[2]]
        # The paper's figures of the same set, or of the one that it stands in for.
        paper = section.paper or section.stands_for
        figures = [find(section.protocol, paper, name, *target) for name in OURS]
        rows.append([*row, "" if None in figures else ", ".join(map(percent, figures))])
    ahead = gaps(cells, "omma_eta", "omma")
    head = ["dataset", "metric", *titles(names), "the paper's OMMA, OMMA(η̂)"]
    return (
        f"While the estimator learns, OMMA(η̂) is better than OMMA in {(ahead > 0).sum()} of "
        f"{len(ahead)} cells, by {points(ahead.median())} points in the median. The last column "
        f"has the paper's figures where the set is the same or stands in for the paper's:\n\n"
        f"{table(head, rows)}"
    )


# Times. Records of the study come from machines that had other work to do, so times are measured
# apart, by `omma-study run SUITE --quick` on an idle machine, and kept in a file of their own.

TIMED = ("baseline", "ofo", "greedy", "online_fw", "omma", "auto")
TIMES = RECORDS / "times.jsonl"


def pack_times(folder):
    """Keep the median seconds over metrics, a line for each policy on a set."""
    lines = []
    for section in sections(finished(read(folder))):
        seconds = section.cells["seconds"].groupby("policy").median()
        lines += [
            json.dumps({"suite": section.suite, "dataset": section.dataset, "policy": name,
                        "seconds": float(f"{seconds[name]:.3g}")})
            for name in TIMED if name in seconds
        ]  # fmt: skip
    TIMES.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def times(study):
    """Seconds of a replay, and two ratios."""
    clock = pd.read_json(TIMES, lines=True)
    clock = clock.pivot(index=["suite", "dataset"], columns="policy", values="seconds")
    timed = [section for suite in FIXED for section in study.of(suite)]
    # Sets in the order of the page; those that were not timed get dashes.
    clock = clock.reindex(
        [(section.suite, section.dataset) for section in timed], columns=list(TIMED)
    )
    ratios = pd.DataFrame({name: clock[name] / clock["omma"] for name in ("online_fw", "auto")})
    rows = [
        [section.dataset + (" (classes)" if section.suite == CLASSES else ""),
         f"{section.n:,} × {section.m:,}",
         *("–" if pd.isna(value) else duration(value) for value in seconds),
         *("–" if pd.isna(value) else f"{value:,.1f}" for value in ratio)]
        for section, seconds, ratio in zip(timed, clock.to_numpy(), ratios.to_numpy(), strict=True)
    ]  # fmt: skip
    slower, auto = ratios.median()
    head = ["dataset", "rows × labels", *titles(TIMED), "Online-FW / OMMA", "Auto / OMMA"]
    return (
        f"In the median Online-FW takes {slower:,.0f} times as long as OMMA, and Auto, which also "
        f"calibrates, {auto:.1f} times.\n\n{table(head, rows)}"
    )
