"""The first row of the paper's tables, which the streams were fitted to, beside ours."""

from __future__ import annotations

from omma_study.sections import find
from study_cells import MADE, mean, percent, table

BASELINE = "baseline"
NEAR = 0.02  # a difference within 2 points is called the same


def streams(study):
    """All sections, labels before classes, those of fewer labels first."""
    return [
        one
        for suite in MADE
        for one in sorted(study.by_suite.get(suite, {}).values(), key=lambda one: (one.m, one.n))
    ]


def first_rows(study, suite):
    """What deciding at 0.5 or by the top k is worth: set, metric, the paper's, ours."""
    return [
        (section.stands_for, title, figure.value, mean(section, BASELINE, title))
        for section in streams(study)
        if section.suite == suite
        for title, target in section.targets.items()
        if (figure := find("fixed", section.stands_for, BASELINE, *target)) is not None
    ]


def match(rows):
    """The first row of the paper, ours, and how far it is, a line for each set."""
    metrics = list(dict.fromkeys(metric for _, metric, *_ in rows))
    cells = {(name, metric): (theirs, ours) for name, metric, theirs, ours in rows}
    lines = [
        (name, *(_beside(*cells[name, metric]) for metric in metrics))
        for name in dict.fromkeys(name for name, *_ in rows)
    ]
    return table(("ours (the paper's, difference)", *metrics), lines)


def _beside(theirs, ours):
    return f"{percent(ours)} ({percent(theirs)}, {100 * (ours - theirs):+.2f})"


def match_words(rows):
    """How many cells of the first row are within 2 points, and which are not."""
    off = [(name, metric) for name, metric, theirs, ours in rows if abs(ours - theirs) > NEAR]
    words = f"{len(rows) - len(off)} of {len(rows)} cells are within 2 points"
    named = ", ".join(f"{name} {metric}" for name, metric in off)
    more = (
        f"; the others are {named}. On Ledgar the paper's G- and H-mean are 0: some class is never "
        "the likeliest of its rows, which a stream of independent observations does not give"
    )
    return f"{words}{more if off else ''}."
