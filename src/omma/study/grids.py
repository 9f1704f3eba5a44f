"""Sections as tables in the paper's layout, with the paper's own figures beside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from omma.metrics.target import Target
from omma.study.paper import Figure, find
from omma.study.sections import Section
from omma.tables import Entry, Grid

NAMES = {
    "f1": "F1", "recall": "recall", "precision": "precision", "gmean": "G-mean",
    "hmean": "H-mean", "qmean": "Q-mean", "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy", "jaccard": "Jaccard", "mcc": "MCC",
    "kappa": "kappa", "specificity": "specificity",
}  # fmt: skip
AVERAGES = {"micro": "Micro", "macro": "Macro", "multiclass": "Multi-class"}


def heading(metric: str, k: int | None) -> str:
    """A column's head as in the paper.

    >>> heading("macro_f1", 3), heading("multiclass_gmean", 1)
    ('Macro F1@3', 'Multi-class G-mean')
    """
    average, _, name = metric.partition("_")
    if average not in AVERAGES or name not in NAMES:
        return str(Target(metric, k))
    return f"{AVERAGES[average]} {Target(NAMES[name], None if average == 'multiclass' else k)}"


def grid_of(section: Section, *, std: bool = False, paper: bool = True) -> Grid:
    """The table of a section; where the paper used the same data, its figures stand beside."""
    grid = section.comparison.grid(std)
    columns = tuple(heading(*section.targets[name]) for name in grid.columns)
    known = paper and section.paper is not None
    rows = [
        tuple(
            replace(entry, beside=_beside(entry, find_figure(section, policy, column)))
            if known
            else entry
            for entry, column in zip(row, grid.columns, strict=True)
        )
        for policy, row in zip(section.comparison.policies, grid.entries, strict=True)
    ]
    notes = (*grid.notes, *_notes(section, known))
    return replace(grid, columns=columns, entries=tuple(rows), notes=notes)


def find_figure(section: Section, policy: str, column: str) -> Figure | None:
    """What the paper reports for a cell, where it used the same data."""
    if section.paper is None:
        return None
    return find(section.protocol, section.paper, policy, *section.targets[column])


def _beside(entry: Entry, figure: Figure | None) -> str:
    """The paper's figure, and how far ours is from it."""
    if figure is None or not entry.shown:
        return ""
    return f"{100 * figure.value:.2f} {points(entry.mean - figure.value)}"


def points(difference: float) -> str:
    """A difference in points.

    >>> points(0.0123), points(-0.5)
    ('+1.23', '−50.00')
    """
    return f"{100 * difference:+.2f}".replace("-", "−")


def _notes(section: Section, known: bool) -> Iterator[str]:
    """How η was estimated, and what the brackets are."""
    said = section.estimator
    told = {key: said[key] for key in ("C", "learning_rate", "train_rows") if key in said}
    options = ", ".join(f"{key} = {_number(value)}" for key, value in told.items())
    how = {"known": "as the data were drawn with"}.get(said["name"], f"by {said['name']}")
    when = "learned along the sequence" if section.protocol == "online" else "fitted beforehand"
    known_options = f" ({options})" if options else ""
    yield f"Probabilities {how}{known_options}{'' if said['name'] == 'known' else f', {when}'}."
    if known:
        yield "In brackets the paper's figure and the difference to it in points."
    if section.failed:
        yield f"{section.failed} runs failed."


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)
