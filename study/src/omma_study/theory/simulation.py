"""A simulation: one statement of the paper, the grid of runs that checks it, tables and figures.

Tables and panels that several simulations share are here, too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from omma.plots import LEARNING, color_of
from omma_study.records import Record
from omma_study.runs import Job
from omma_study.tables import Table

Spec = Mapping[str, Any]


@dataclass(frozen=True)
class Simulation:
    """Runs of one kind.

    Attributes
    ----------
    name : str
        Such as ``theory-regret``.
    title : str
        What it shows, in a line.
    grid : sequence of dict
        What tells its runs apart.
    simulate : function
        The result of a run, given its specification.
    rows, sequences : pair
        In full, and for a first look; a run of the grid may have rows of its own.
    seed : int
    tables, figures : function
        What records show.
    label : str
        How tables name a run, with fields of its specification in braces.
    """

    name: str
    title: str
    grid: Sequence[Spec] = field(repr=False)
    simulate: Callable[[Spec], Mapping[str, Any]] = field(repr=False)
    rows: tuple[Any, Any]
    sequences: tuple[int, int]
    seed: int
    tables: Callable[[list[Record]], list[Table]] = field(repr=False)
    figures: Callable[[list[Record]], dict[str, Any]] = field(repr=False)
    label: str = "{policy}"

    @property
    def runs(self) -> list[Job]:
        """All of its runs at full length."""
        return self.jobs(False)

    def jobs(self, quick: bool) -> list[Job]:
        """Its runs, at full length or for a first look."""
        jobs = []
        for point in self.grid:
            rows = point.get("rows", self.rows[0])
            spec = {
                **point,
                # Rows may be a tuple; tuples compare by their first numbers.
                "rows": min(rows, self.rows[1]) if quick else rows,
                "sequences": self.sequences[quick],
                "seed": self.seed,
            }
            label = self.label.format(**point)
            jobs.append(Job(self.name, spec, label, partial(self._run, spec), kind="theory"))
        return jobs

    def _run(self, spec: Spec) -> dict[str, Any]:
        start = perf_counter()
        result = self.simulate(spec)
        return {"result": result, "seconds": {"run": perf_counter() - start}}


# Tables


def table(
    title: str, row: Callable[[Record], Mapping[str, str]], words: int = 2
) -> Callable[[list[Record]], list[Table]]:
    """A function that makes a table of records, a row for each."""
    return lambda records: [Table(title, pd.DataFrame([row(record) for record in records]), words)]


def last(record: Record, name: str, form: str, times: float = 1) -> str:
    """The last number of a curve.

    >>> last({"result": {"regret": [3.0, 1.5]}}, "regret", ".1f", times=2)
    '3.0'
    """
    return format(times * record["result"][name][-1], form)


def power_and_interval(record: Record) -> dict[str, str]:
    """The fitted power of n and its 95% interval; dashes if none was fitted."""
    if record["result"]["rate"] is None:
        return {"power": "–", "95% interval": "–"}
    exponent, low, high = record["result"]["rate"]
    return {"power": f"{exponent:.2f}", "95% interval": f"{low:.2f} to {high:.2f}"}


# Figures, in the look of all omma's pictures

COLORS = {
    "Auto": color_of("auto"),
    "OMMA": color_of("omma"),
    "OMMA(η̂)": LEARNING[-1],  # a lighter blue: dashes are for bounds here
    "Greedy": color_of("greedy"),
    "OFO": color_of("ofo"),
    "Online-FW": color_of("online_fw"),
}
BOUND, INK = color_of("baseline"), "#333333"
DASHED: Any = (0, (4, 3))
LARGE = (6.4, 3.8)  # inches of a figure of one panel


def panels(
    titles: Sequence[str], columns: int = 2, high: float = 3.2, *, logs: bool = False
) -> tuple[Figure, list[Any]]:
    """A figure with a panel for each title, some inches high; axes may be logarithmic."""
    columns = min(columns, len(titles))
    rows = -(-len(titles) // columns)
    figure = Figure(figsize=(0.4 + 4.3 * columns, 0.3 + high * rows), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)  # type: ignore[union-attr, call-arg]
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for ax in axes[len(titles) :]:  # the last row may have fewer panels
        ax.set_axis_off()
    for ax, title in zip(axes, titles, strict=False):
        ax.spines[:].set_visible(False)
        ax.grid(color="#e4e4e4", linewidth=0.8)
        ax.set_axisbelow(True)
        ax.tick_params(which="both", length=0, labelsize=9, labelcolor=INK)
        if logs:
            ax.set(xscale="log", yscale="log")
        ax.set_title(title, size=10.5, color=INK, loc="left")
    return figure, axes[: len(titles)]


def pictured(
    name: str,
    title: str,
    draw: Callable[[Any, list[Record]], None],
    cases: Mapping[str, Any] | None = None,
    *,
    names: tuple[str, str] = ("rows n", "regret"),
    place: str = "lower left",
    size: tuple[float, float] | None = None,
    **options: Any,
) -> Callable[[list[Record]], dict[str, Figure]]:
    """A function that makes a figure of records: those with the same title share a panel.

    In braces, a title has fields of the specification, the ``label``, or the ``case``.
    """

    def figures(records: list[Record]) -> dict[str, Figure]:
        groups: dict[str, list[Record]] = {}
        for record in records:
            spec, case = record["spec"], (cases or {}).get(record["spec"]["dataset"])
            panel = title.format(**spec, label=record["label"], case=case)
            groups.setdefault(panel, []).append(record)
        figure, axes = panels(list(groups), **{"logs": True, **options})
        if size is not None:
            figure.set_size_inches(*size)
        for ax, group in zip(axes, groups.values(), strict=True):
            draw(ax, group)
            finish(ax, *names, loc=place)
        return {name: figure}

    return figures


def finish(ax: Any, below: str, aside: str, loc: str) -> None:
    """Names of both axes, and a legend without a frame."""
    ax.set_xlabel(below, size=9.5, color=INK)
    ax.set_ylabel(aside, size=9.5, color=INK)
    ax.legend(frameon=False, fontsize=8.5, labelcolor=INK, loc=loc)


def band(ax: Any, x: Any, mean: Any, error: Any, **look: Any) -> None:
    """A curve with a band of two standard errors; on a logarithmic axis only what is positive."""
    x, mean, error = (np.array(part, dtype=float) for part in (x, mean, error))
    low = mean - 2.0 * error
    if ax.get_yscale() == "log":
        # A band that reaches zero ends two decades below its curve.
        low = np.maximum(low, mean / 100.0)
        x, mean, error, low = (part[mean > 0] for part in (x, mean, error, low))
    ax.plot(x, mean, **{"linewidth": 1.8, "marker": "o", "markersize": 3.2, **look})
    ax.fill_between(x, low, mean + 2.0 * error, color=look.get("color"), alpha=0.15, linewidth=0)


def curve(
    ax: Any, record: Record, of: str = "regret", name: str = "", n: str = "n", **look: Any
) -> None:
    """A curve of a record against the number of rows, with its power of n in the legend."""
    result, label = record["result"], name or record["label"]
    if result["rate"] is not None:
        label = f"{label}: {n}^{power_and_interval(record)['power']}"
    look = {"color": COLORS.get(record["label"]), "label": label, **look}
    band(ax, result["rows"], result[of], result[f"{of}_error"], **look)


def curves(ax: Any, records: list[Record]) -> None:
    """The regret of each record."""
    for record in records:
        curve(ax, record)


def bound(ax: Any, x: Any, y: Any, label: str, width: float = 1.0) -> None:
    """A dashed grey line: a bound, or a shape to compare with."""
    ax.plot(x, y, color=BOUND, linestyle=DASHED, linewidth=width, label=label)
