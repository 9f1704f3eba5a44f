"""The records of the study, and what its page asks of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omma_study.policies import has_prior
from omma_study.records import read
from omma_study.sections import policy_of, sections

LABELS, CLASSES, ONLINE = "multilabel_fixed", "multiclass_fixed", "online_cpe"
ADAM = "multiclass_adam"
MADE = ("paper_synthetic", "paper_synthetic_classes")
SUITES = (LABELS, CLASSES, ONLINE, ADAM)
RARE = 10  # occurrences in the sequence


@dataclass(frozen=True)
class Study:
    """All sections by suite and dataset, and the share of rare labels of each dataset."""

    by_suite: dict
    rare: dict

    def of(self, suite):
        """The sections of a suite, those with the fewest rare labels first."""
        found = self.by_suite.get(suite, {}).values()
        return sorted(found, key=lambda one: (self.rare[suite, one.dataset], one.dataset))


def finished(records):
    """Records of policies that were run on each metric with each λ; others are under way."""
    done = [one for one in records if one["kind"] == "study" and one["result"]]
    whole = {
        (section.suite, section.dataset, policy)
        for section in sections(done)
        for policy in section.comparison.policies
        if _whole(section.comparison, policy)
    }
    return [one for one in done if (one["suite"], one["spec"]["dataset"], policy_of(one)) in whole]


def _whole(comparison, policy):
    cells = [comparison.cells[policy, metric] for metric in comparison.metrics]
    wanted = len(comparison.priors) if has_prior(policy) else 1
    return all(len(cell.by_prior) == wanted for cell in cells if cell.supported)


def load(places):
    """The study, from its records; a set is there once OMMA was run on it."""
    records = finished(read(places))
    by_suite, rare = {}, {}
    for section in sections(records):
        if "omma" in section.comparison.policies:
            by_suite.setdefault(section.suite, {})[section.dataset] = section
    for record in records:
        if record["result"]["counts"] is None:  # of many labels, those of one sequence are kept
            continue
        occurrences = np.array(record["result"]["counts"]["positive"])
        rare[record["suite"], record["spec"]["dataset"]] = float((occurrences < RARE).mean())
    return Study(by_suite, rare)


def mean(section, policy, metric):
    """The mean with the best λ; None where the policy does not support the metric."""
    cell = section.comparison.cells.get((policy, metric))
    return cell.mean if cell is not None and cell.by_prior else None


def spread(section, policy, metric):
    """How far the best and the worst λ are apart."""
    means = [runs.mean for runs in section.comparison.cells[policy, metric].by_prior.values()]
    return max(means) - min(means)


def pairs(found, one, other, metrics=None):
    """Differences of two policies: (section, metric, difference)."""
    return [
        (section, metric, mean(section, one, metric) - mean(section, other, metric))
        for section in found
        for metric in metrics or section.comparison.metrics
        if mean(section, one, metric) is not None and mean(section, other, metric) is not None
    ]


def percent(value):
    """A fraction as tables show it."""
    return "–" if value is None else f"{100 * value:.2f}"


def table(head, rows):
    """Markdown."""
    lines = [head, [":--", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
