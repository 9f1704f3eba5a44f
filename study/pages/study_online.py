"""What the page says of estimators that learn along the sequence."""

from __future__ import annotations

from statistics import median

from omma.comparison.entrants import TITLES
from omma_study.sections import find, points
from study_cells import LABELS, ONLINE, mean, pairs, percent, table
from study_claims import CLOSE, heads, verdict

BOTH = ("micro_f1", "macro_f1", "macro_f1@3", "macro_precision@3", "macro_gmean")
OURS = ("omma", "omma_eta")
BEYOND = ("auto",)  # not of the paper


def online(study):
    """Two claims of the paper, and what each kind of feedback is worth."""
    if not study.of(ONLINE):
        return "Not measured."
    parts = [_lower(study), on_par(study), _chosen(study), _feedback(study)]
    return "\n\n".join(part for part in parts if part)


def _lower(study):
    """Online against fixed, the same policy."""
    both = [(one, study.by_suite.get(LABELS, {}).get(one.dataset)) for one in study.of(ONLINE)]
    both = [(one, other) for one, other in both if other is not None]
    rows, gaps = [], []
    for section, other in both:
        cells = [(mean(section, "omma_eta", one), mean(other, "omma_eta", one)) for one in BOTH]
        rows.append([section.dataset, *(f"{percent(a)} / {percent(b)}" for a, b in cells)])
        gaps += [
            mean(section, policy, one) - mean(other, policy, one) for policy in OURS for one in BOTH
        ]
    if not gaps:
        return ""
    lower = sum(gap < 0 for gap in gaps)
    return (
        f"*The average over the sequence is lower than with a fixed estimator*: "
        f"{verdict(lower, len(gaps))} OMMA and OMMA(η̂) on five metrics; the median difference is "
        f"{points(median(gaps))} points, from {points(min(gaps))} to {points(max(gaps))}. OMMA(η̂) "
        f"with the online / the fixed estimator:\n\n{table(['dataset', *heads(BOTH)], rows)}"
    )


def on_par(study):
    """OMMA against the paper's other algorithms."""
    cells = [_rivals(section, one) for section in study.of(ONLINE) for one in _metrics(section)]
    if not cells:
        return "Not measured."
    good = sum(ours >= rival - CLOSE for ours, rival in cells)
    return (
        f"*OMMA is in most cases on par with the other algorithms, or better*: "
        f"{verdict(good, len(cells))} The better of OMMA and OMMA(η̂) against the best of the "
        f"paper's other algorithms, each with its best λ: no more than {100 * CLOSE:g} points "
        f"below it.{_precision(study)}{_without(study)}"
    )


def _precision(study):
    """OMMA against the Online-FW of either start, where the paper has them farthest apart."""
    told = []
    for policy, start in (("online_fw", "the top"), ("online_fw_random", "random starts")):
        gaps = [gap for *_, gap in pairs(study.of(ONLINE), "omma", policy, ["macro_precision@3"])]
        if gaps:
            better = sum(gap > 0 for gap in gaps)
            told.append(
                f"from {start} on {better} of {len(gaps)} sets, by {points(median(gaps))} points "
                "in the median"
            )
    words = ", and than that ".join(told)
    return f" On macro precision@3 OMMA is better than Online-FW {words}." if told else ""


def _without(study):
    """Where the slowest of the others is not among them."""
    names = [one.dataset for one in study.of(ONLINE) if "online_fw" not in one.comparison.policies]
    return f" Online-FW was not run on {', '.join(f'`{name}`' for name in names)}." if names else ""


def _figure(section, policy, metric):
    """The paper's, of the same set or of the one that the set stands in for."""
    known = section.paper or section.stands_for
    return find(section.protocol, known, policy, *section.targets[metric]) if known else None


def _metrics(section):
    return section.comparison.metrics


def _rivals(section, metric):
    """The better of both OMMAs, and the best of the others that the paper has."""
    values = {name: mean(section, name, metric) for name in section.comparison.policies}
    others = [
        value for name, value in values.items()
        if name not in (*OURS, *BEYOND) and value is not None
    ]  # fmt: skip
    return max(values[name] for name in OURS), max(others)


def _chosen(study):
    """What the estimators chose, and which sets it was."""
    raw = [one.dataset for one in study.of(ONLINE) if not one.estimator.get("standardise")]
    every = [one.dataset for one in study.of(ONLINE)]
    regular = [one.dataset for one in study.of(ONLINE) if one.estimator["l2"] > 0]
    return (
        f"Of the first sequences, {len(raw)} of {len(every)} chose raw features, {len(regular)} "
        "an l2 above 0 (see the first table). An earlier version of this page had running "
        "standardization everywhere and no l2, and most of what it said of online estimators was "
        "due to that."
    )


def _feedback(study):
    """Every cell: which feedback is better while the estimator learns."""
    names = ("baseline", "greedy_plug_in", "online_fw", *OURS, *BEYOND)
    rows = []
    for section in study.of(ONLINE):
        for metric in _metrics(section):
            values = [mean(section, name, metric) for name in names]
            figures = [_figure(section, name, metric) for name in OURS]
            theirs = "" if None in figures else ", ".join(percent(one.value) for one in figures)
            rows.append([section.dataset, *heads([metric]), *map(percent, values), theirs])
    gaps = [
        mean(one, "omma_eta", metric) - mean(one, "omma", metric)
        for one in study.of(ONLINE)
        for metric in _metrics(one)
    ]
    head = ["dataset", "metric", *(TITLES[name] for name in names), "the paper's OMMA, OMMA(η̂)"]
    return (
        f"While the estimator learns, OMMA(η̂) is better than OMMA in {sum(g > 0 for g in gaps)} of "
        f"{len(gaps)} cells, by {points(median(gaps))} points in the median. The last column has "
        f"the paper's figures where the set is the same or stands in for the paper's:\n\n"
        f"{table(head, rows)}"
    )
