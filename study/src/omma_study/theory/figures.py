"""Panels with logarithmic axes, in the look of all omma's pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from omma.plots import LEARNING, color_of
from omma_study.records import Record
from omma_study.theory.simulation import power

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
    places = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for ax in places[len(titles) :]:
        ax.set_axis_off()
    for ax, title in zip(places, titles, strict=False):
        ax.spines[:].set_visible(False)
        ax.grid(color="#e4e4e4", linewidth=0.8)
        ax.set_axisbelow(True)
        ax.tick_params(which="both", length=0, labelsize=9, labelcolor=INK)
        if logs:
            ax.set_xscale("log")
            ax.set_yscale("log")
        ax.set_title(title, size=10.5, color=INK, loc="left")
    return figure, places[: len(titles)]


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
    """What makes a figure of records: those of one title are drawn into one panel.

    A title has fields of the specification in braces, the ``label``, or the ``case``.
    """

    def figures(records: list[Record]) -> dict[str, Figure]:
        groups: dict[str, list[Record]] = {}
        for record in records:
            spec, case = record["spec"], (cases or {}).get(record["spec"]["dataset"])
            panel = title.format(**spec, label=record["label"], case=case)
            groups.setdefault(panel, []).append(record)
        figure, places = panels(list(groups), **{"logs": True, **options})
        if size is not None:
            figure.set_size_inches(*size)
        for ax, group in zip(places, groups.values(), strict=True):
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
    if ax.get_yscale() == "log":
        x, mean, error = (part[mean > 0] for part in (x, mean, error))
    low = mean - 2.0 * error
    if ax.get_yscale() == "log":
        low = np.maximum(low, mean / 100.0)
    ax.plot(x, mean, **{"linewidth": 1.8, "marker": "o", "markersize": 3.2, **look})
    ax.fill_between(x, low, mean + 2.0 * error, color=look.get("color"), alpha=0.15, linewidth=0)


def curve(
    ax: Any, record: Record, of: str = "regret", name: str = "", n: str = "n", **look: Any
) -> None:
    """What a record has against the number of rows; named by who ran, and the power of n."""
    result, who = record["result"], record["label"]
    told = name or who
    told = told if result["rate"] is None else f"{told}: {n}^{power(record)}"
    look = {"color": COLORS.get(who), "label": told, **look}
    band(ax, result["rows"], result[of], result[f"{of}_error"], **look)


def curves(ax: Any, records: list[Record]) -> None:
    """The regret of each record."""
    for record in records:
        curve(ax, record)


def bound(ax: Any, x: Any, y: Any, label: str, width: float = 1.0) -> None:
    """A dashed grey line: a bound, or a shape to compare with."""
    ax.plot(x, y, color=BOUND, linestyle=DASHED, linewidth=width, label=label)
