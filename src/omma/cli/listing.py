"""What there is to choose from, as rows of tables."""

from __future__ import annotations

from typing import Any

from omma.datasets import CATALOGUE
from omma.metrics import NAMES, metric as find_metric

Rows = list[dict[str, Any]]
# What tables leave out, for lack of room; JSON has it.
UNSHOWN = ("d", "split", "paper", "licence", "source")


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
    from omma.cli.learners import POLICIES as STREAMED
    from omma.policies.roster import ROSTER

    return [
        {
            "policy": name,
            "labels": ROSTER[name].labels,
            "stream": name in STREAMED,
            "decides by": ROSTER[name].about,
        }
        for name in ALL
    ]


def datasets() -> Rows:
    """Every dataset of the catalogue."""
    wanted = ("name", "task", "n", "d", "m", "split", "paper", "licence", "source", "title")
    return [{one: getattr(entry, one) for one in wanted} for entry in CATALOGUE.values()]


def suites() -> Rows:
    """Every suite of runs: of the study, of the theory, and of Auto."""
    from omma import study, theory

    every = [(one.name, len(one.runs), one.title) for one in study.suites()]
    every += [(one.name, len(one.runs), one.title) for one in theory.suites()]
    title = "Auto against OMMA with every feedback and λ, probabilities as they are and distorted"
    every += [(study.auto.SUITE, study.auto.size(), title)]
    return [{"suite": name, "runs": runs, "title": title} for name, runs, title in every]
