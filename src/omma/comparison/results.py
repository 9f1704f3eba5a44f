"""What ``omma.compare`` returns: runs, cells of runs, and tables and figures of all cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omma import tables
from omma._validate import nearest, require
from omma.tables import MISSING, PARTIAL, UNSUPPORTED, Grid, GridEntry

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

    from omma.plots import Band

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs of a policy for a metric with one prior; means and deviations are over the seeds.

    Attributes
    ----------
    prior : float or None
        λ; None where the policy has none.
    seeds : tuple
        Of the sequences that were run.
    values : ndarray of shape (seeds,)
        The metric over the whole sequence.
    rows : ndarray of shape (checkpoints,)
        Numbers of rows.
    times : ndarray of shape (seeds,)
        Seconds of each replay, without compilation and evaluation.
    running : ndarray of shape (seeds, checkpoints)
        The metric over the first ``rows`` rows.
    """

    prior: float | None = None
    seeds: tuple[int | None, ...] = ()
    values: Vector = field(default_factory=lambda: np.empty(0), repr=False)
    rows: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64), repr=False)
    times: Vector = field(default_factory=lambda: np.empty(0), repr=False)
    running: Vector = field(default_factory=lambda: np.empty((0, 0)), repr=False)

    @property
    def mean(self) -> float:
        """Mean of the final values; NaN where nothing has run."""
        return float(_mean(self.values))

    @property
    def std(self) -> float:
        """Sample standard deviation of the final values; NaN for less than two sequences."""
        return float(_std(self.values))

    @property
    def running_mean(self) -> Vector:
        """Mean of the metric so far, at each of ``rows``."""
        return _mean(self.running)

    @property
    def running_std(self) -> Vector:
        """Sample standard deviation of the metric so far, at each of ``rows``."""
        return _std(self.running)

    @property
    def seconds(self) -> float:
        """Mean time of a replay."""
        return float(_mean(self.times))

    @property
    def seconds_std(self) -> float:
        """Sample standard deviation of that time."""
        return float(_std(self.times))


def _mean(values: Vector) -> Vector:
    return values.mean(axis=0) if len(values) else np.full(values.shape[1:], np.nan)


def _std(values: Vector) -> Vector:
    """Of a sample, over the first axis: a single value says nothing about the spread."""
    return values.std(axis=0, ddof=1) if len(values) > 1 else np.full(values.shape[1:], np.nan)


@dataclass(frozen=True, eq=False, repr=False)
class Cell(Runs):
    """The results of a policy for a metric: the runs with the best prior, and all others.

    All attributes of ``Runs`` are those of the best prior. It is known only afterwards: a choice
    made with hindsight.

    Attributes
    ----------
    policy, metric : str
        As they are called in the comparison.
    k : int or None
        The budget.
    by_prior : dict of float or None to Runs
        The results with every prior.
    reason : str
        Why the policy does not support the metric; empty where it does.
    complete : bool
        Whether every run has finished.
    fixed : bool
        Whether the policy's rule never changes.
    """

    policy: str = ""
    metric: str = ""
    k: int | None = None
    by_prior: dict[float | None, Runs] = field(default_factory=dict)
    reason: str = ""
    complete: bool = True
    fixed: bool = False

    @classmethod
    def of(cls, by_prior: dict[float | None, Runs], **about: Any) -> Cell:
        """Make a cell of runs by prior: the highest mean is the best, of equals the first.

        Where a comparison was stopped, priors that ran on more sequences go first.
        """
        best = max(
            by_prior.values(),
            # An unknown mean is the worst.
            key=lambda runs: (len(runs.seeds), np.nan_to_num(runs.mean, nan=-np.inf)),
            default=Runs(),
        )
        return cls(**vars(best), by_prior=by_prior, **about)

    @property
    def supported(self) -> bool:
        """Whether the policy can be run for the metric."""
        return not self.reason

    def entry(self, runs: Runs) -> GridEntry:
        """The entry of a table for some of the runs of the cell."""
        if not runs.seeds:
            return GridEntry(instead=MISSING if self.supported else UNSUPPORTED)
        return GridEntry(runs.mean, runs.std, runs.seconds, partial=not self.complete)

    def __repr__(self) -> str:
        if not self.by_prior:
            return f"<{self.policy} on {self.metric}: {self.reason or 'not run'}>"
        value = tables.content(GridEntry(self.mean, self.std))
        return f"<{self.policy} on {self.metric}: {value} %{_with_prior(self.prior)}>"


def _with_prior(prior: float | None) -> str:
    """The end of a name that says its prior; empty without one."""
    return "" if prior is None else f", λ = {tables.plain(prior)}"


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
        numbers = ("mean", "std", "seconds", "seconds_std")
        return [
            {
                **head,
                **{name: getattr(runs, name) if runs.seeds else None for name in numbers},
                "runs": len(runs.seeds),
                "note": note,
            }
            for head, runs, note in self._results()
        ]

    @property
    def runs(self) -> list[dict[str, Any]]:
        """One record for each run; a cell without runs has one that says why."""
        records = []
        for head, runs, note in self._results():
            lines = zip(runs.seeds, runs.values.tolist(), runs.times.tolist(), strict=True)
            for seed, value, seconds in [*lines] or [(None, None, None)]:
                records.append(
                    {**head, "seed": seed, "value": value, "seconds": seconds, "note": note}
                )
        return records

    def _results(self) -> Iterator[tuple[dict[str, Any], Runs, str]]:
        """For each cell and prior: the first fields of records, its runs, or why it has none."""
        for cell in self.cells.values():
            head = {"policy": cell.policy, "metric": cell.metric, "k": cell.k}
            for runs in cell.by_prior.values() or [Runs()]:
                # A cell that has not run has no best prior either.
                chosen = bool(runs.seeds) and runs.prior == cell.prior
                yield {**head, "prior": runs.prior, "chosen": chosen}, runs, cell.reason

    def to_terminal(
        self, *, std: bool = True, seconds: bool = False, priors: bool = False
    ) -> Table:
        """A table for ``rich.print``: best bold, second italic, × where not supported, in %.

        ``std`` shows standard deviations, ``seconds`` the time of a replay, ``priors`` a row for
        every λ in place of the best one.
        """
        return tables.to_terminal(self.grid(std, priors, seconds))

    def to_markdown(self, *, std: bool = True, seconds: bool = False, priors: bool = False) -> str:
        """The table in Markdown; options are those of ``to_terminal``."""
        return tables.to_markdown(self.grid(std, priors, seconds))

    def to_latex(self, *, std: bool = True, seconds: bool = False, priors: bool = False) -> str:
        """The table in LaTeX (booktabs); options are those of ``to_terminal``."""
        return tables.to_latex(self.grid(std, priors, seconds))

    def to_csv(self) -> str:
        """All runs with all priors, a line each, values as fractions and in full."""
        return tables.to_csv(self.runs)

    def to_dataframe(self) -> Any:
        """All runs with all priors as a pandas DataFrame, a row each."""
        pandas = require("pandas", "to_dataframe of Comparison needs", "pandas")
        return pandas.DataFrame(self.runs)

    def grid(self, std: bool = False, priors: bool = False, seconds: bool = False) -> Grid:
        """The table as a ``Grid``, to be laid out in another way."""
        names, entries = [], []
        for policy in self.policies:
            title = self.titles[policy]
            cells = [self.cells[policy, metric] for metric in self.metrics]
            # The runs of a row are those of one prior, or of the best prior, as cells are.
            rows = {
                f"{title}{_with_prior(prior)}": [cell.by_prior.get(prior, Runs()) for cell in cells]
                for prior in {prior: None for cell in cells for prior in cell.by_prior}
            }
            for name, runs in (rows if priors and rows else {title: cells}).items():
                names.append(name)
                entries.append(tuple(map(Cell.entry, cells, runs)))
        notes = [f"{self._caption(std)}, in %."]
        if not priors and any(len(cell.by_prior) > 1 for cell in self.cells.values()):
            tried_priors = ", ".join(map(tables.plain, self.priors))
            notes.append(f"λ is the best of {tried_priors} for each entry, chosen with hindsight.")
        if any(entry.instead == UNSUPPORTED for row in entries for entry in row):
            notes.append(f"{UNSUPPORTED} not supported.")
        if not self.complete:
            notes.append(
                f"Stopped before all had run: {PARTIAL} some runs are missing, {MISSING} all are."
            )
        return Grid(
            self.metrics, tuple(names), tuple(entries), tuple(notes), std=std, seconds=seconds
        )

    def plot(
        self, metric: str | None = None, *, title: str = "", everything: bool = False
    ) -> Figure:
        """Draw the metric so far, mean and standard deviation, a panel for each metric or for one.

        The figure has a ``savefig``; ``title`` comes before the line above its panels. Rules that
        never change and are far off are left out of the range, unless ``everything`` is true.
        """
        from omma.plots import plot_bands

        panels = self._panels(lambda cell: (cell.rows, cell.running_mean, cell.running_std), metric)
        return plot_bands(panels, title=f"{title}{self._caption()}.", everything=everything)

    def plot_priors(self, metric: str | None = None, *, title: str = "") -> Figure:
        """Draw what each λ is worth, mean and standard deviation of the final value."""
        from omma.plots import plot_priors

        def by_prior(cell: Cell) -> Vector:
            # None, in place of a prior, becomes NaN: a level line.
            points = [(runs.prior, runs.mean, runs.std) for runs in cell.by_prior.values()]
            return np.array(points, dtype=np.float64).T

        line = f"{title}{self._caption()}. A ring marks the best λ of each policy."
        return plot_priors(self._panels(by_prior, metric), self.priors, title=line)

    def _panels(
        self, points: Callable[[Cell], Iterable[Any]], metric: str | None
    ) -> dict[str, dict[str, Band]]:
        """The curve of each policy that has run, for each metric; metrics without any are left out.

        ``points`` returns x, means and deviations of a curve. A metric that was asked for is kept,
        so that the plot can say what is missing.
        """
        from omma.plots import Band
        from omma.plots.palette import looks

        if metric is not None:
            _check_name("metric", metric, self.metrics)
        fixed = {cell.policy for cell in self.cells.values() if cell.fixed and cell.by_prior}
        if not any(cell.by_prior for cell in self.cells.values()):
            first = self.cell(self.policies[0], self.metrics[0])
            raise ValueError(
                f"plot of Comparison has nothing to draw: no policy ran; {first.policy} by "
                f"{first.metric}: {first.reason}"
            )
        look = looks(self.policies, fixed)
        panels = {
            name: {
                self.titles[policy]: Band(*points(self.cells[policy, name]), **look[policy])
                for policy in self.policies
                if self.cells[policy, name].by_prior
            }
            for name in (self.metrics if metric is None else (metric,))
        }
        return {name: bands for name, bands in panels.items() if bands or name == metric}

    def _caption(self, std: bool = True) -> str:
        value = "Value"
        if len(self.seeds) > 1:
            value = "Mean ± standard deviation" if std else "Mean"
        at_most = "" if self.complete else "at most "
        return f"{value} over {at_most}{self._sequences}"

    @property
    def _sequences(self) -> str:
        if self.seeds == (None,):
            return "one sequence in the order given"
        return f"{len(self.seeds)} shuffled sequence{'s' * (len(self.seeds) != 1)}"

    def __rich__(self) -> Table:
        return self.to_terminal()

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def _repr_html_(self) -> str:
        return tables.to_html(self.grid(std=True), repr(self).strip("<>"))

    def __str__(self) -> str:
        return tables.to_text(self.grid())

    def __repr__(self) -> str:
        stopped = "" if self.complete else ", stopped early"
        return (
            f"<comparison of {len(self.policies)} policies by {len(self.metrics)} metrics over "
            f"{self._sequences}{stopped}>"
        )


def _check_name(parameter: str, name: Any, known: tuple[str, ...]) -> None:
    if name not in known:
        hint = nearest(str(name), known) or f"; it has {', '.join(known)}"
        raise ValueError(f"{parameter} of Comparison must be one of its own, got {name!r}{hint}")
