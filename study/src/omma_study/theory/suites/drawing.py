"""Panels with logarithmic axes, in the look of all omma's pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from omma.plots.frames import INK, bare, new_figure
from omma.plots.palette import ESTIMATES, LEARNING, color_of
from omma.tables import HAT_ETA
from omma_study.records import Record
from omma_study.theory.suite import with_power

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = {
    "Auto": color_of("auto"),
    "OMMA": color_of("omma"),
    f"OMMA({HAT_ETA})": ESTIMATES,  # dashes are for bounds here
    "Greedy": color_of("greedy"),
    "OFO": color_of("ofo"),
    "Online-FW": color_of("online_fw"),
}
BOUND = color_of("baseline")
DASHED: Any = (0, (4, 3))
MORE = LEARNING
LARGE = (6.4, 3.8)  # inches of a figure of one panel


def panels(
    titles: Sequence[str], columns: int = 2, high: float = 3.2, *, logs: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure with a panel for each title, some inches high; axes may be logarithmic."""
    columns = min(columns, len(titles))
    rows = -(-len(titles) // columns)
    figure = new_figure(0.4 + 4.3 * columns, 0.3 + high * rows, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)  # type: ignore[union-attr, call-arg]
    places = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for ax in places[len(titles) :]:
        ax.set_axis_off()
    for ax, name in zip(places, titles, strict=False):
        bare(ax, "both", ticks="both")
        if logs:
            ax.set_xscale("log")
            ax.set_yscale("log")
        ax.set_title(name, size=10.5, color=INK, loc="left")
    return figure, places[: len(titles)]


def pictured(
    name: str,
    title: str,
    draw: Callable[[Axes, list[Record]], None] | None = None,
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
            spec, label = record["spec"], record["label"]
            case = (cases or {}).get(spec["dataset"])
            groups.setdefault(title.format(**spec, label=label, case=case), []).append(record)
        figure, places = panels(list(groups), **{"logs": True, **options})
        if size is not None:
            figure.set_size_inches(*size)
        for ax, some in zip(places, groups.values(), strict=True):
            if draw is not None:
                draw(ax, some)
            else:
                for record in some:
                    curve(ax, record)
            named(ax, *names)
            legend(ax, loc=place)
        return {name: figure}

    return figures


def named(ax: Axes, below: str, aside: str) -> None:
    """Names of both axes."""
    ax.set_xlabel(below, size=9.5, color=INK)
    ax.set_ylabel(aside, size=9.5, color=INK)


def band(ax: Axes, x: ArrayLike, mean: ArrayLike, error: ArrayLike, **look: Any) -> None:
    """A curve with a band of two standard errors; on a logarithmic axis only what is positive."""
    places, middle, wide = (np.array(part, dtype=float) for part in (x, mean, error))
    shown = middle > 0 if ax.get_yscale() == "log" else np.ones(len(middle), dtype=bool)
    places, middle, wide = places[shown], middle[shown], wide[shown]
    look = {"linewidth": 1.8, "marker": "o", "markersize": 3.2, **look}
    ax.plot(places, middle, **look)
    low = middle - 2.0 * wide
    if ax.get_yscale() == "log":
        low = np.maximum(low, middle / 100.0)
    ax.fill_between(
        places, low, middle + 2.0 * wide, color=look.get("color"), alpha=0.15, linewidth=0
    )


def curve(
    ax: Axes, record: Record, of: str = "regret", name: str = "", power: str = "n", **look: Any
) -> None:
    """What a record has against the number of rows; named by who ran, and the power of n."""
    result, who = record["result"], record["label"]
    said = with_power(name or who, record, power)
    look = {"color": COLORS.get(who), "label": said, **look}
    band(ax, result["rows"], result[of], result[f"{of}_error"], **look)


def bound(ax: Axes, x: ArrayLike, y: ArrayLike, label: str, width: float = 1.0) -> None:
    """A dashed grey line: a bound, or a shape to compare with."""
    ax.plot(x, y, color=BOUND, linestyle=DASHED, linewidth=width, label=label)


def legend(ax: Axes, **more: Any) -> None:
    """Names of the curves, without a frame."""
    ax.legend(**{"frameon": False, "fontsize": 8.5, "labelcolor": INK, **more})
