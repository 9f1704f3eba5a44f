"""What the pages of the study share: sections of records, means of their cells, tables."""

import re
from pathlib import Path
from typing import NamedTuple

import click
import pandas as pd

from omma_study.paper import heading
from omma_study.policies import POLICIES, supports
from omma_study.records import key_of, read
from omma_study.sections import Section, policy_of, sections, source_of
from omma_study.tables import escaped, markdown, with_deviation

STUDY = Path(__file__).resolve().parents[1]
RECORDS, DOCS = STUDY / "records", STUDY.parent / "docs"
LABELS, CLASSES, ADAM = "multilabel_fixed", "multiclass_fixed", "multiclass_adam"
ONLINE, ONLINE_PAPER = "online_cpe", "online_paper"
MADE = ("paper_synthetic", "paper_synthetic_classes")
RARE = 10  # occurrences in the sequence


class Study(NamedTuple):
    """Sections by (suite, dataset), and what each policy has in each cell with its best λ.

    ``means`` and ``deviations`` over sequences have a row for each (suite, dataset, target), and a
    column for each policy.
    """

    sections: dict[tuple[str, str], Section]
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
    complete = {
        (section.suite, section.dataset, policy)
        for section in sections(done)
        for policy in section.policies
        if _is_complete(section, policy)
    }
    return [
        record
        for record in done
        if (record["suite"], record["spec"]["dataset"], policy_of(record)) in complete
    ]


def _is_complete(section, policy):
    n_priors = len(section.priors) if POLICIES[policy].priors else 1
    # How many λ were run for each metric.
    tried = section.by_prior.loc[policy].groupby("target").size()
    expected = [
        target
        for target, (metric, k) in section.targets.items()
        if target in tried or supports(policy, metric, k)
    ]
    return bool((tried.reindex(expected) == n_priors).all())


def load(files):
    """The study, from its records; a set is there once OMMA was run on it."""
    return study_of(
        section for section in sections(finished(read(files))) if "omma" in section.policies
    )


def study_of(some_sections):
    """Sections with the means of all policies."""
    by_place = {(section.suite, section.dataset): section for section in some_sections}
    cells = {place: section.cells[["mean", "std"]] for place, section in by_place.items()}
    table = pd.concat(cells, names=["suite", "dataset"]).unstack("policy")
    return Study(by_place, table["mean"], table["std"])


def packed(*suites):
    """The files of records of some suites."""
    return sorted(path for suite in suites for path in RECORDS.glob(f"{suite}-*.jsonl.xz"))


def with_packed(fresh, *suites):
    """Fresh records, and packed ones of the same sources, unless they were run anew."""
    sources = set(map(source_of, fresh))
    old = [record for record in read(packed(*suites)) if source_of(record) in sources]
    return list({key_of(record): record for record in [*old, *fresh]}.values())


def gaps(rows, policy, reference):
    """Differences of two policies, where both were run."""
    return (rows[policy] - rows[reference]).dropna()


def table(head, rows):
    """Markdown."""
    return markdown(pd.DataFrame(rows, columns=head, dtype=object))


def captioned(table):
    """A table of the study in Markdown, under its title."""
    frame = table.frame.map(escaped).rename(columns=escaped)
    return f"*{escaped(table.title)}*\n\n{markdown(frame, table.words)}\n"


def write_page(name, text):
    """Write a page of the documentation, and say so."""
    (DOCS / name).write_text(text.rstrip() + "\n", encoding="utf-8")
    click.echo(f"Wrote {DOCS / name}")


def family(policy):
    """Its title, whatever its feedback and its start."""
    return re.split(r"[,(]", POLICIES[policy].title)[0]


def titles(policies):
    """What tables call policies."""
    return [POLICIES[policy].title for policy in policies]


def heads(targets):
    """Columns as the paper calls them."""
    return [heading(target) for target in targets]
