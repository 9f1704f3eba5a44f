"""What there is to choose from, as rows of tables."""

from __future__ import annotations

from typing import Any

from omma.datasets import CATALOGUE
from omma.metrics import NAMES, metric as find_metric

Rows = list[dict[str, Any]]
# What tables leave out, for lack of room; JSON has it.
UNSHOWN = ("d", "split", "paper", "licence", "source")
# How each policy decides, in a few words.
POLICIES = {
    "baseline": "the threshold 0.5; with a budget, the top k",
    "auto": "the default: as omma, calibrating as labels come, with nothing to choose",
    "omma": "what gains most on the metric at the counts so far",
    "greedy": "what raises the expected metric most, this row included",
    "ofo": "for F1: the threshold is half of the F1 so far",
    "online_fw": "Frank-Wolfe on all rows so far, which it keeps",
    "offline_fw": "Frank-Wolfe on a sample beforehand",
    "tuned": "the best thresholds of a sample beforehand",
}


def metrics() -> Rows:
    """Every metric by name."""
    rows = []
    for name in NAMES:
        found = find_metric(name)
        task = "binary" if found.binary else "multiclass" if found.multiclass else "multilabel"
        rows.append({"metric": name, "for": task, "formula": _formula(name, found.formula)})
    return rows


def _formula(name: str, formula: str) -> str:
    """The formula; where it is that of one label averaged, the name of that is enough."""
    average, _, of = name.partition("_")
    averages = {"macro": f"mean over labels of {of}", "micro": f"{of} of counts over all labels"}
    return averages.get(average, formula)


def policies() -> Rows:
    """Every policy that commands know by name: whether it needs labels, whether it streams."""
    from omma.cli.evaluation import ALL
    from omma.cli.stream import POLICIES as STREAMED

    return [
        {
            "policy": name,
            "labels": not (name.endswith("_eta") or name in ("auto", "baseline")),
            "stream": name in STREAMED,
            "decides by": _decides(name),
        }
        for name in ALL
    ]


def _decides(name: str) -> str:
    family = name.removesuffix("_eta")
    same = f"the same as {family}, η in place of labels"
    return same if family != name else POLICIES[name]


def datasets() -> Rows:
    """Every dataset of the catalogue."""
    wanted = ("name", "task", "n", "d", "m", "split", "paper", "licence", "source", "title")
    return [{one: getattr(entry, one) for one in wanted} for entry in CATALOGUE.values()]


def suites() -> Rows:
    """Every suite of runs: of the study, and of the theory."""
    from omma import benchmark, theory

    every = [(one.name, len(one.runs), one.title) for one in benchmark.suites()]
    every += [(one.name, len(one.runs), one.title) for one in theory.suites()]
    return [{"suite": name, "runs": runs, "title": title} for name, runs, title in every]
