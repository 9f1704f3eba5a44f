"""What the pages of the study share: sections of records, values by sequence, tables."""

import re
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from omma_study.policies import POLICIES, supports
from omma_study.records import read
from omma_study.tables import (
    Section,
    Table,
    heading,
    markdown,
    policy_of,
    sections,
    with_deviation,
)

STUDY = Path(__file__).resolve().parents[1]
RECORDS, DOCS = STUDY / "records", STUDY.parent / "docs"
LABELS, CLASSES, ADAM = "multilabel_fixed", "multiclass_fixed", "multiclass_adam"
ONLINE, ONLINE_PAPER = "online_cpe", "online_paper"
MADE = ("paper_synthetic", "paper_synthetic_classes")
RARE = 10  # occurrences in the sequence
PLACE = ["suite", "dataset", "target"]


class Study(NamedTuple):
    """Sections by (suite, dataset), and values of each policy with its best λ in each cell.

    ``values`` has a row for each (suite, dataset, target, seed), ``means`` and ``deviations`` one
    for each (suite, dataset, target); columns are policies.
    """

    sections: dict[tuple[str, str], Section]
    values: pd.DataFrame
    means: pd.DataFrame
    deviations: pd.DataFrame

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

    def cell(self, place, policy):
        """Mean ± deviation of a policy; a dash where it was not run."""
        mean = self.means.at[place, policy]
        return "–" if pd.isna(mean) else with_deviation(mean, self.deviations.at[place, policy])

    def cell_rows(self, places, policies, name=lambda place: place[1]):
        """A line for each dataset and metric: its name, the metric, means ± deviations."""
        return [
            [name(place), heading(place[2]), *(self.cell(place, policy) for policy in policies)]
            for place in places
        ]


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
    return study_of(
        section for section in sections(finished(read(files))) if "omma" in section.policies
    )


def study_of(some_sections):
    """Sections with the values of all policies, each with the λ of its best mean."""
    by_place = {(section.suite, section.dataset): section for section in some_sections}
    values = pd.concat(
        {
            key: section.best_runs.pivot(index=["target", "seed"], columns="policy", values="value")
            for key, section in by_place.items()
        },
        names=["suite", "dataset"],
    )
    cells = values.groupby(level=PLACE)
    return Study(by_place, values, cells.mean(), cells.std())


def packed(*suites):
    """The files of records of some suites."""
    return sorted(path for suite in suites for path in RECORDS.glob(f"{suite}-*.jsonl.xz"))


def gaps(rows, policy, reference):
    """Differences of two policies, where both were run."""
    return (rows[policy] - rows[reference]).dropna()


def table(head, rows):
    """Markdown."""
    return markdown(Table("", pd.DataFrame(rows, columns=head, dtype=object)))


def family(policy):
    """Its title, whatever its feedback and its start."""
    return re.split(r"[,(]", POLICIES[policy].title)[0]


def titles(policies):
    """What tables call policies."""
    return [POLICIES[policy].title for policy in policies]


def heads(targets):
    """Columns as the paper calls them."""
    return [heading(target) for target in targets]
