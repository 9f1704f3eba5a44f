"""What the page says of each claim: a verdict, a sentence with its numbers, and a table."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from study_cells import CLASSES, LABELS, ONLINE, RARE, mean, pairs, percent, spread, table

from omma import tables
from omma.study.grids import find_figure, grid_of, heading, points

CLOSE = 0.005  # half a point
MEANS = ("multiclass_gmean@1", "multiclass_hmean@1", "multiclass_qmean@1")
MACRO = ("macro_f1", "macro_f1@3", "macro_recall@3", "macro_precision@3")
BOTH = ("micro_f1", "macro_f1", "macro_f1@3", "macro_precision@3", "macro_gmean")


def verdict(good, every):
    """In bold, whether a claim holds in nearly all cells, in most, or in fewer."""
    share = good / every if every else 0.0
    word = "Holds" if share >= 0.9 else "Holds in most cells" if share > 0.5 else "Does not hold"
    return f"**{word} here** ({good} of {every})."


def heads(metrics):
    """Columns as the paper calls them."""
    split = (metric.partition("@") for metric in metrics)
    return [heading(name, int(k) if k else None) for name, _, k in split]


def fixed(study):
    """Sections with an estimator that was fitted beforehand."""
    return study.of(LABELS) + study.of(CLASSES)


def data_table(study):
    """What was run."""
    rows = [_data_row(study, suite, one) for suite in (LABELS, CLASSES, ONLINE)
            for one in study.of(suite)]  # fmt: skip
    rarely = f"labels under {RARE} times"
    head = ["dataset", "suite", "rows", "labels", rarely, "fitted to", "chosen", "sequences"]
    return table(head, rows)


def _data_row(study, suite, section):
    said = section.estimator
    chosen = f"C = {said['C']:g}" if "C" in said else f"rate {said['learning_rate']:g}"
    share = f"{100 * study.rare[suite, section.dataset]:.0f} %"
    size = f"{section.n:,}", f"{section.m:,}"
    fitted = f"{said['train_rows']:,} rows" if "train_rows" in said else "as they come"
    return [section.dataset, suite, *size, share, fitted, chosen, len(section.comparison.seeds)]


def news20(study):
    """The tables beside the paper's."""
    parts = []
    for suite, name in ((CLASSES, "multinomial"), (LABELS, "one logistic regression a class")):
        section = study.by_suite.get(suite, {}).get("news20")
        if section is not None:
            grid = replace(grid_of(section), notes=())
            parts.append(f"**{suite}** ({name}, C = {section.estimator['C']:g}):\n")
            parts.append(f"{tables.to_markdown(grid, std=False)}\n\n{_distances(section)}\n")
    return "\n".join(parts)


def _distances(section):
    gaps = [
        abs(mean(section, policy, metric) - figure.value)
        for policy in section.comparison.policies
        for metric in section.comparison.metrics
        if not policy.startswith("online_fw")
        and mean(section, policy, metric) is not None
        and (figure := find_figure(section, policy, metric)) is not None
    ]
    return (
        f"Online-FW apart, the {len(gaps)} cells that the paper has are {100 * median(gaps):.2f} "
        f"points from it in the median, and {100 * max(gaps):.2f} at most."
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
    names = ("baseline", "online_fw", "online_fw_eta", "omma", "omma_eta", "offline_fw")
    rows = [
        [f"{section.dataset} ({section.task})",
         *(percent(mean(section, name, "macro_precision@3")) for name in names)]
        for section in fixed(study)
    ]  # fmt: skip
    gaps = [gap for *_, gap in pairs(fixed(study), "omma", "online_fw", ["macro_precision@3"])]
    words = (
        f"{verdict(sum(gap >= 0 for gap in gaps), len(gaps))} OMMA against Online-FW on macro "
        f"precision@3; it is better by {100 * median(gaps):.1f} points in the median."
    )
    head = ["dataset", "Top-3", "Online-FW", "Online-FW(η̂)", "OMMA", "OMMA(η̂)", "Offline-FW"]
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
    many = [one for one in study.of(LABELS) if study.rare[LABELS, one.dataset] > 0.05]
    few = [one for one in study.of(LABELS) if one not in many]
    told = []
    for name, group in (("with rare labels (over 5 % of them)", many), ("without", few)):
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


def online(study):
    """Estimators that learn along the sequence."""
    both = [(one, study.by_suite.get(LABELS, {}).get(one.dataset)) for one in study.of(ONLINE)]
    both = [(one, other) for one, other in both if other is not None]
    if not both:
        return "Not measured."
    rows, lower = [], []
    for section, other in both:
        cells = [(mean(section, "omma", one), mean(other, "omma", one)) for one in BOTH]
        lower += [learning < fitted for learning, fitted in cells]
        rows.append([section.dataset, *(f"{percent(a)} / {percent(b)}" for a, b in cells)])
    top = [_on_top(section, one) for section, _ in both for one in section.comparison.metrics]
    words = (
        f"{verdict(sum(lower), len(lower))} OMMA with the online / the fixed estimator: lower "
        f"online. OMMA or OMMA(η̂) is the best policy or within half a point of it: "
        f"{verdict(sum(top), len(top))}"
    )
    return f"{words}\n\n{table(['dataset', *heads(BOTH)], rows)}"


def _on_top(section, metric):
    values = {name: mean(section, name, metric) for name in section.comparison.policies}
    best = max(value for value in values.values() if value is not None)
    return max(values["omma"], values["omma_eta"]) >= best - CLOSE


def speed(study):
    """Seconds of a replay."""
    rows = []
    for section in fixed(study):
        seconds = [_seconds(section, name) for name in ("baseline", "greedy", "online_fw", "omma")]
        shape = f"{section.n:,} × {section.m:,}"
        ratio = f"{seconds[2] / seconds[3]:,.0f}"
        rows.append([section.dataset, shape, *map(tables.duration, seconds), ratio])
    head = ["dataset", "rows × labels", "Top-k", "Greedy", "Online-FW", "OMMA", "Online-FW / OMMA"]
    return table(head, rows)


def _seconds(section, policy):
    cells = [section.comparison.cells[policy, one] for one in section.comparison.metrics]
    return median(cell.seconds for cell in cells if cell.by_prior)
