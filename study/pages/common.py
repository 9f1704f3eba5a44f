"""What the pages of the study share: the records as sections, and their means in one table."""

import re
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from omma_study.policies import POLICIES, supports
from omma_study.records import read
from omma_study.tables import Section, heading, policy_of, sections

STUDY = Path(__file__).resolve().parents[1]
RECORDS, DOCS = STUDY / "records", STUDY.parent / "docs"
LABELS, CLASSES, ONLINE = "multilabel_fixed", "multiclass_fixed", "online_cpe"
ADAM = "multiclass_adam"
MADE = ("paper_synthetic", "paper_synthetic_classes")
RARE = 10  # occurrences in the sequence


class Study(NamedTuple):
    """Sections by (suite, dataset), and means with the best λ.

    ``means`` has a row for each (suite, dataset, target) and a column for each policy.
    """

    sections: dict[tuple[str, str], Section]
    means: pd.DataFrame

    def of(self, suite):
        """The sections of a suite, those with the fewest rare labels first."""
        of_suite = [section for (name, _), section in self.sections.items() if name == suite]
        return sorted(of_suite, key=lambda section: (rare_share(section), section.dataset))

    def rows(self, *suites, targets=None):
        """The rows of ``means`` of some suites and metrics."""
        # Targets in the order of the sections, which is the paper's.
        keys = [
            (suite, section.dataset, target)
            for suite in suites
            for section in self.of(suite)
            for target in targets or section.targets
            if target in section.targets
        ]
        return self.means.loc[keys]


def rare_share(section):
    """The share of labels that occur fewer than ``RARE`` times."""
    return float((section.positive < RARE).mean())


def finished(records):
    """Records of policies that were run on each metric with each λ; others are under way."""
    done = [record for record in records if record["kind"] == "study" and record["result"]]
    whole = {
        (section.suite, section.dataset, policy)
        for section in sections(done)
        for policy in section.policies
        if _is_whole(section, policy)
    }
    return [
        record
        for record in done
        if (record["suite"], record["spec"]["dataset"], policy_of(record)) in whole
    ]


def _is_whole(section, policy):
    # How many λ were run for each metric.
    tried = section.by_prior.loc[policy].groupby("target").size()
    n_priors = len(section.priors) if POLICIES[policy].prior else 1
    return all(
        tried.get(target, 0) == n_priors
        for target, (metric, k) in section.targets.items()
        if target in tried or supports(policy, metric, k)
    )


def load(files):
    """The study, from its records; a set is there once OMMA was run on it."""
    by_place = {
        (section.suite, section.dataset): section
        for section in sections(finished(read(files)))
        if "omma" in section.policies
    }
    return Study(by_place, means_of(by_place))


def means_of(by_place):
    """Means with the best λ: rows (suite, dataset, target), columns policies."""
    tables = {key: section.cells["mean"].unstack("policy") for key, section in by_place.items()}
    return pd.concat(tables, names=["suite", "dataset"])


def packed(*suites):
    """The files of records of some suites."""
    return sorted(path for suite in suites for path in RECORDS.glob(f"{suite}-*.jsonl.xz"))


def gaps(rows, policy, reference):
    """Differences of two policies, where both were run."""
    return (rows[policy] - rows[reference]).dropna()


def percent(value):
    """A fraction as tables show it."""
    return "–" if value is None or pd.isna(value) else f"{100 * value:.2f}"


def table(head, rows):
    """Markdown."""
    lines = [head, [":--", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def family(policy):
    """Its title, whatever its feedback and its start."""
    return re.split(r"[,(]", POLICIES[policy].title)[0]


def titles(policies):
    """What tables call policies."""
    return [POLICIES[policy].title for policy in policies]


def heads(targets):
    """Columns as the paper calls them."""
    return [heading(target) for target in targets]
