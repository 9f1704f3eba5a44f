"""The results of all policies for all metrics, as records, tables and figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from omma import plots, tables
from omma._html import html_table
from omma._validate import nearest, require
from omma.comparison.results import Cell, Runs, with_prior
from omma.plots import Band
from omma.plots.palette import Look, looks
from omma.tables import MISSING, PARTIAL, UNSUPPORTED, Entry, Grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

Draw = Callable[[Cell, Look], Band]


def running(cell: Cell, look: Look) -> Band:
    """The metric so far."""
    return Band(cell.rows, cell.running_mean, cell.running_std, **look)


def by_prior(cell: Cell, look: Look) -> Band:
    """The final value with each prior."""
    runs = cell.by_prior.values()
    priors = np.array([math.nan if each.prior is None else each.prior for each in runs])
    means, stds = np.array([each.mean for each in runs]), np.array([each.std for each in runs])
    return Band(priors, means, stds, **look)


@dataclass(frozen=True, repr=False)
class Comparison:
    """Policies against metrics; what ``omma.compare`` returns.

    Attributes
    ----------
    policies, metrics : tuple of str
        Their names: rows and columns of the table.
    cells : dict of (policy, metric) to Cell
    seeds : tuple
        Of the sequences.
    priors : tuple of float
        The values of λ that were tried.
    complete : bool
        False where the comparison was stopped (Ctrl-C) before all runs had finished.
    titles : dict of str to str
        What tables and figures call each policy.
    """

    policies: tuple[str, ...]
    metrics: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]
    seeds: tuple[int | None, ...]
    priors: tuple[float, ...]
    complete: bool
    titles: dict[str, str]

    def cell(self, policy: str, metric: str) -> Cell:
        """The results of one policy for one metric."""
        _check_name("policy", policy, self.policies)
        _check_name("metric", metric, self.metrics)
        return self.cells[policy, metric]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One record for each cell and prior; ``chosen`` marks the best prior of its cell."""
        return [
            {**head, **_summary(runs), "note": cell.reason} for cell, head, runs in self._results()
        ]

    @property
    def runs(self) -> list[dict[str, Any]]:
        """One record for each run; a cell without runs has one that says why."""
        return [
            {**head, "seed": seed, "value": value, "seconds": seconds, "note": cell.reason}
            for cell, head, runs in self._results()
            for seed, value, seconds in _each(runs)
        ]

    def _results(self) -> Iterator[tuple[Cell, dict[str, Any], Runs]]:
        for cell in self.cells.values():
            head = {"policy": cell.policy, "metric": cell.metric, "k": cell.k}
            for runs in cell.by_prior.values() or [cell.best]:
                chosen = runs is cell.best and bool(cell.by_prior)
                yield cell, {**head, "prior": runs.prior, "chosen": chosen}, runs

    def to_terminal(
        self, *, std: bool = True, seconds: bool = False, priors: bool = False
    ) -> Table:
        """A table for ``rich.print``: best bold, second italic, × where not supported, in %.

        ``std`` shows standard deviations, ``seconds`` the time of a replay, ``priors`` a row for
        every λ in place of the best one.
        """
        return tables.to_terminal(self.grid(std, priors), std=std, seconds=seconds)

    def to_markdown(self, *, std: bool = True, seconds: bool = False, priors: bool = False) -> str:
        """The table in Markdown; options are those of ``to_terminal``."""
        return tables.to_markdown(self.grid(std, priors), std=std, seconds=seconds)

    def to_latex(self, *, std: bool = True, seconds: bool = False, priors: bool = False) -> str:
        """The table in LaTeX (booktabs); options are those of ``to_terminal``."""
        return tables.to_latex(self.grid(std, priors), std=std, seconds=seconds)

    def to_csv(self) -> str:
        """All runs with all priors, a line each, values as fractions and in full."""
        return tables.to_csv(self.runs)

    def to_dataframe(self) -> Any:
        """All runs with all priors as a pandas DataFrame, a row each."""
        pandas = require("pandas", "to_dataframe of Comparison needs", "pandas")
        return pandas.DataFrame(self.runs)

    def plot(
        self, metric: str | None = None, *, title: str = "", everything: bool = False
    ) -> Figure:
        """Draw the metric so far, mean and standard deviation, a panel for each metric or for one.

        The figure has a ``savefig``; ``title`` comes before the line above its panels. Rules that
        never change and are far off are left out of the range, unless ``everything`` is true.
        """
        line = f"{title}{self._caption()}."
        panels = self.panels(running, metric=metric)
        return plots.plot_bands(panels, title=line, everything=everything)

    def plot_priors(self, metric: str | None = None, *, title: str = "") -> Figure:
        """Draw what each λ is worth, mean and standard deviation of the final value."""
        line = f"{title}{self._caption()}. A ring marks the best λ of each policy."
        return plots.plot_priors(self.panels(by_prior, metric=metric), self.priors, title=line)

    def panels(
        self, draw: Draw, policies: Collection[str] | None = None, metric: str | None = None
    ) -> dict[str, dict[str, Band]]:
        """Curves of some policies, by metric, for those who draw them in their own way."""
        if metric is not None:
            _check_name("metric", metric, self.metrics)
        metrics = self.metrics if metric is None else (metric,)
        fixed = {cell.policy for cell in self.cells.values() if cell.fixed and cell.by_prior}
        look = looks(self.policies, fixed)
        panels = {
            name: {
                self.titles[policy]: draw(self.cells[policy, name], look[policy])
                for policy in self.policies
                if self.cells[policy, name].by_prior and (policies is None or policy in policies)
            }
            for name in metrics
        }
        return {name: bands for name, bands in panels.items() if bands or name == metric}

    def _caption(self, std: bool = True) -> str:
        spread = " ± standard deviation" if std and len(self.seeds) > 1 else ""
        what = f"Mean{spread}" if len(self.seeds) > 1 else "Value"
        at_most = "" if self.complete else "at most "
        return f"{what} over {at_most}{_sequences(self.seeds)}"

    def grid(self, std: bool = False, priors: bool = False) -> Grid:
        """The table before it is drawn, for those who draw it in their own way."""
        lines = [line for policy in self.policies for line in self._lines(policy, priors)]
        names, entries = tuple(name for name, _ in lines), tuple(entries for _, entries in lines)
        return Grid(self.metrics, names, entries, self._notes(entries, std, priors))

    def _lines(self, policy: str, priors: bool) -> Iterator[tuple[str, tuple[Entry, ...]]]:
        cells = [self.cells[policy, metric] for metric in self.metrics]
        tried = {prior: None for cell in cells for prior in cell.by_prior}
        if not priors or not tried:
            yield self.titles[policy], tuple(_entry(cell, cell.best) for cell in cells)
            return
        for prior in tried:
            name = f"{self.titles[policy]}{with_prior(prior)}"
            yield name, tuple(_entry(cell, cell.by_prior.get(prior, Runs())) for cell in cells)

    def _notes(
        self, entries: Sequence[Sequence[Entry]], std: bool, priors: bool
    ) -> tuple[str, ...]:
        """What readers have to know: how λ was picked above all."""
        cells = [entry for row in entries for entry in row]
        notes = [f"{self._caption(std)}, in %."]
        if not priors and any(len(cell.by_prior) > 1 for cell in self.cells.values()):
            tried = ", ".join(map(tables.plain, self.priors))
            notes.append(f"λ is the best of {tried} for each entry, chosen with hindsight.")
        if any(entry.instead == UNSUPPORTED for entry in cells):
            notes.append(f"{UNSUPPORTED} not supported.")
        if not self.complete:
            notes.append(
                f"Stopped before all had run: {PARTIAL} some runs are missing, {MISSING} all are."
            )
        return tuple(notes)

    def __rich__(self) -> Table:
        return self.to_terminal()

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def _repr_html_(self) -> str:
        grid = self.grid(std=True)
        names = zip(grid.names, grid.entries, strict=True)
        rows = (
            (name, *(tables.content(entry, std=True, seconds=False) for entry in entries))
            for name, entries in names
        )
        head, notes = (grid.head, *grid.columns), " ".join(grid.notes)
        many = len(grid.names)
        return html_table(repr(self).strip("<>"), head, rows, many, notes, most=many)

    def __str__(self) -> str:
        return tables.to_text(self.grid())

    def __repr__(self) -> str:
        stopped = "" if self.complete else ", stopped early"
        return (
            f"<comparison of {len(self.policies)} policies by {len(self.metrics)} metrics over "
            f"{_sequences(self.seeds)}{stopped}>"
        )


def _sequences(seeds: tuple[int | None, ...]) -> str:
    if seeds == (None,):
        return "one sequence in the order given"
    return f"{len(seeds)} shuffled sequence{'s' * (len(seeds) != 1)}"


def _summary(runs: Runs) -> dict[str, Any]:
    numbers = {
        name: getattr(runs, name) if runs.seeds else None
        for name in ("mean", "std", "seconds", "seconds_std")
    }
    return {**numbers, "runs": len(runs.seeds)}


def _each(runs: Runs) -> Iterable[tuple[int | None, float | None, float | None]]:
    if not runs.seeds:
        return [(None, None, None)]
    return zip(runs.seeds, runs.values.tolist(), runs.times.tolist(), strict=True)


def _entry(cell: Cell, runs: Runs) -> Entry:
    if not runs.seeds:
        return Entry(instead=MISSING if cell.supported else UNSUPPORTED)
    return Entry(runs.mean, runs.std, runs.seconds, partial=not cell.complete)


def _check_name(parameter: str, name: Any, known: tuple[str, ...]) -> None:
    if name not in known:
        hint = nearest(str(name), known) or f"; it has {', '.join(known)}"
        raise ValueError(f"{parameter} of Comparison must be one of its own, got {name!r}{hint}")
