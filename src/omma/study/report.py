"""What records say, in every format; nothing is computed but means and differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omma import tables
from omma.study.grids import find_figure, grid_of
from omma.study.records import Record, safe
from omma.study.sections import Section, sections
from omma.tables import Grid

if TYPE_CHECKING:
    from rich.console import Console

FIGURES = ("running", "priors")


def to_terminal(records: Iterable[Record], console: Console, *, extended: bool = False) -> None:
    """Print a table for each section, split into as many as fit the width."""
    for section in sections(records):
        grid = grid_of(section, std=extended)
        console.print(f"\n[bold]{section.title}[/bold]  {section.suite}", highlight=False)
        for part in fitting(grid, console, extended):
            console.print(tables.to_terminal(part, std=extended, seconds=extended))
        console.print(" ".join(grid.notes), markup=False, highlight=False)


def fitting(grid: Grid, console: Console, extended: bool) -> Iterator[Grid]:
    """The grid in parts that are no wider than the console, without its notes."""
    start, total = 0, len(grid.columns)
    while start < total:
        stop = total
        while stop > start + 1 and not _fits(_columns(grid, start, stop), console, extended):
            stop -= 1
        yield _columns(grid, start, stop)
        start = stop


def _columns(grid: Grid, start: int, stop: int) -> Grid:
    entries = tuple(row[start:stop] for row in grid.entries)
    return Grid(grid.columns[start:stop], grid.names, entries)


def _fits(grid: Grid, console: Console, extended: bool) -> bool:
    from rich.measure import Measurement

    table = tables.to_terminal(grid, std=extended, seconds=extended)
    unbounded = console.options.update(max_width=10_000)
    return Measurement.get(console, unbounded, table).maximum <= console.width


def to_markdown(records: Iterable[Record], *, extended: bool = False) -> str:
    """A table for each section under its heading."""
    texts = []
    for section in sections(records):
        table = tables.to_markdown(grid_of(section, std=extended), std=extended, seconds=extended)
        texts.append(f"### {section.suite}: {section.title}\n\n{table}\n")
    return "\n".join(texts)


def to_csv(records: Iterable[Record]) -> str:
    """A line for each policy, metric and λ of each section; ``chosen`` marks the best λ."""
    return tables.to_csv([row for section in sections(records) for row in _rows(section)])


def _rows(section: Section) -> Iterator[dict[str, Any]]:
    head = {
        "suite": section.suite,
        "dataset": section.dataset,
        "protocol": section.protocol,
        "estimator": section.estimator["name"],
        "n": section.n,
        "m": section.m,
    }
    for row in section.comparison.rows:
        metric, k = section.targets[row["metric"]]
        figure = find_figure(section, row["policy"], row["metric"])
        known = figure is not None and row["chosen"]
        yield {
            **head,
            **row,
            "metric": metric,
            "k": k,
            "paper": figure.value if figure is not None and known else None,
            "difference": row["mean"] - figure.value if figure is not None and known else None,
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
