"""What records say, in every format; nothing is computed but means and differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omma import tables
from omma.tables import MISSING, Grid, content, emphasized, latex, ranks
from omma_study.printed.model import GROUPS
from omma_study.records import Record, safe
from omma_study.sections import Section, find_figure, grid_of, sections

if TYPE_CHECKING:
    from rich.console import Console

FIGURES = ("running", "priors")


def to_terminal(records: Iterable[Record], console: Console, *, extended: bool = False) -> None:
    """Print a table for each section, split into as many as fit the width."""
    for section in sections(records):
        grid = grid_of(section, std=extended)
        console.print(f"\n[bold]{section.title}[/bold]  {section.suite}", highlight=False)
        for part in tables.fitting(grid, console, std=extended, seconds=extended):
            console.print(part)
        console.print(" ".join(grid.notes), markup=False, highlight=False)


def to_markdown(records: Iterable[Record], *, extended: bool = False) -> str:
    """A table for each section under its heading."""
    texts = []
    for section in sections(records):
        table = tables.to_markdown(grid_of(section, std=extended), std=extended, seconds=extended)
        texts.append(f"### {section.suite}: {section.title}\n\n{table}\n")
    return "\n".join(texts)


def to_latex(records: Iterable[Record], *, extended: bool = False) -> str:
    """The paper's tables: one for each suite, a block of rows for each dataset.

    How λ was chosen and the rest is in the caption.
    """
    by_suite = groupby(sections(records), key=lambda section: section.suite)
    return "\n\n".join(_latex(suite, list(found), extended) for suite, found in by_suite) + "\n"


def _latex(suite: str, found: list[Section], extended: bool) -> str:
    grids = [grid_of(section, std=extended) for section in found]
    columns = list(dict.fromkeys(name for grid in grids for name in grid.columns))
    lines = [f"Method & {' & '.join(map(latex, columns))} \\\\"]
    for section, grid in zip(found, grids, strict=True):
        lines += _block(section, grid, columns, extended)
    # Each sentence once: most hold for all datasets.
    notes = " ".join(dict.fromkeys(note for grid in grids for note in grid.notes))
    table = tables.ruled(f"l|{'c' * len(columns)}", lines)
    return tables.floating("table*", f"{suite}. {notes}", table)


def _block(section: Section, grid: Grid, columns: list[str], extended: bool) -> Iterator[str]:
    yield r"\midrule"
    head = f"{latex(section.dataset)} ($m = {section.m}$, $n = {section.n}$)"
    yield f"& \\multicolumn{{{len(columns)}}}{{c}}{{{head}}} \\\\"
    before = None
    rows = zip(section.comparison.policies, grid.names, grid.entries, ranks(grid), strict=True)
    for policy, name, entries, ranked in rows:
        group = GROUPS.get(policy, 1)
        if group != before:
            yield r"\midrule"
        before = group
        texts = {
            column: emphasized(latex(content(entry, std=extended, seconds=extended)), rank)
            for column, entry, rank in zip(grid.columns, entries, ranked, strict=True)
        }
        cells = [texts.get(column, latex(MISSING)) for column in columns]
        yield f"{latex(name)} & {' & '.join(cells)} \\\\"


def to_csv(records: Iterable[Record]) -> str:
    """A line for each policy, metric and λ of each section; ``chosen`` marks the best λ."""
    return tables.to_csv([row for section in sections(records) for row in _rows(section)])


def _rows(section: Section) -> Iterator[dict[str, Any]]:
    head = {name: getattr(section, name) for name in ("suite", "dataset", "protocol")}
    head |= {"estimator": section.estimator["name"], "n": section.n, "m": section.m}
    for row in section.comparison.rows:
        metric, k = section.targets[row["metric"]]
        figure = find_figure(section, row["policy"], row["metric"]) if row["chosen"] else None
        beside = (None, None) if figure is None else (figure.value, row["mean"] - figure.value)
        yield {
            **head,
            **row,
            "metric": metric,
            "k": k,
            "paper": beside[0],
            "difference": beside[1],
        }


def to_png(
    records: Iterable[Record], folder: str | Path, *, figures: Iterable[str] = FIGURES
) -> list[Path]:
    """Draw the running values and what each λ is worth, a picture for each section and kind."""
    from omma.plots import save

    paths: list[Path] = []
    Path(folder).mkdir(parents=True, exist_ok=True)
    for section in sections(records):
        for kind in figures:
            if kind == "priors" and not section.comparison.priors:
                continue
            draw = section.comparison.plot if kind == "running" else section.comparison.plot_priors
            paths.append(_free(Path(folder) / f"{safe(section.name)}-{kind}.png", paths))
            save(draw(title=f"{section.suite}, {section.title}. "), paths[-1])
    return paths


def _free(path: Path, taken: list[Path]) -> Path:
    """The path, or one like it: two estimators of a dataset may share their name."""
    number, free = 1, path
    while free in taken:
        number += 1
        free = path.with_stem(f"{path.stem}-{number}")
    return free
