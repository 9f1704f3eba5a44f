"""Figures and their axes before anything is drawn on them, and names at the ends of curves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from omma._atomic import replacing
from omma._validate import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Greys of text, of lines in the background, and of axes: colours are for curves alone.
INK, FAINT, AXIS = "#333333", "#e4e4e4", "#999999"
WHISKERS: dict[str, Any] = {"marker": "o", "markersize": 3.6, "elinewidth": 1.0}  # of error bars
LONGEST = 40  # letters of a label, its value included
SIZE = 10.0  # points of the name at the end of a curve
AWAY = 16.0  # points from there to its name


def require_matplotlib() -> None:
    """Raise an ImportError that says how to get matplotlib, where it is missing.

    Examples
    --------
    >>> from omma.plots import require_matplotlib
    >>> require_matplotlib()
    """
    require("matplotlib", "plots need", '"omma-learn[plots]"')


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure to a file, whole or not at all.

    Parameters
    ----------
    figure : matplotlib Figure
    path : str or Path
        The ending (.png, .svg, .pdf) says in which form; without one it becomes a .png file.

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=200, m=5, seed=0)
    >>> figure = omma.curve(eta, y, "micro_f1", bootstrap=0).plot()
    >>> omma.plots.save(figure, "curve.svg")
    """
    target = Path(path)
    if not target.suffix:
        target = target.with_name(f"{target.name}.png")
    with replacing(target) as file:
        figure.savefig(file, format=target.suffix[1:].lower(), dpi=150, facecolor="white")


def name_room(names: Collection[str]) -> float:
    """Inches to the right of a panel for values and names at the ends of its curves."""
    # Letters of SIZE are 0.085 wide on average; six of them are the value before a name.
    return 0.6 + 0.085 * min(max(map(len, names)) + 6, LONGEST)


def panel_axes(
    owner: str,
    ax: Any,
    count: int,
    *,
    size: tuple[float, Sequence[float]],
    left: float = 0.55,
    right: float = 0.2,
    columns: int = 1,
    title: str = "",
    pyplot: bool = False,
) -> list[Axes]:
    """An Axes for each panel: those that the caller passed as ``ax``, or those of a new figure.

    ``size`` is the width of a panel, and the height of the panels of each row, ``left`` and
    ``right`` the room for names beside a panel: all in inches. ``title`` is a line above all panels
    of a new figure, and ``pyplot`` says that notebooks show it by themselves.
    """
    require_matplotlib()
    if ax is not None:
        places: list[Axes] = list(np.asarray(ax, dtype=object).ravel())  # one, a list, or an array
        if len(places) != count:
            raise ValueError(
                f"ax of {owner} must be an Axes for each panel, {count} in all, got {len(places)}"
            )
        return places
    wide, heights = size
    below, above, head = 0.62, 0.5, 0.38 if title else 0.0  # inches
    width = columns * (left + wide + right)
    height = len(heights) * (below + above) + sum(heights) + head
    if pyplot:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(width, height))
    else:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height))
    figure.text(left / width, 1 - 0.16 / height, title, size=10, color=INK, va="top")
    # Matplotlib takes margins as shares of the figure, and gaps as shares of the mean panel.
    grid = figure.add_gridspec(
        len(heights), columns, height_ratios=heights,
        left=left / width, right=1 - right / width,
        bottom=below / height, top=1 - (head + above) / height,
        wspace=(left + right) / wide, hspace=(below + above) / np.mean(heights),
    )  # fmt: skip
    return [figure.add_subplot(grid[divmod(place, columns)]) for place in range(count)]


def frames(
    owner: str, panels: Mapping[str, Mapping[str, Any]], title: str, ax: Any, columns: int = 2
) -> list[Axes]:
    """An Axes for each panel, with room to its right for the names of its curves.

    Each panel must have at least one curve, and each curve must have points.
    """
    if not panels:
        raise ValueError(f"panels of {owner} must hold at least one panel, got none")
    for metric, curves in panels.items():
        if not curves:
            raise ValueError(f"panels of {owner} must have curves, got none for {metric!r}")
        for name, curve in curves.items():
            if not len(getattr(curve, "x", (0,))):  # plot_running checks the history of traces
                raise ValueError(
                    f"panels of {owner} must have curves with points, got none for {name!r} in "
                    f"{metric!r}"
                )
    columns = min(len(panels), columns)
    rows = -(-len(panels) // columns)
    # Panels are as high as the names of their curves need.
    names = 0.2 * max(map(len, panels.values()))
    wide, high = (3.6, max(2.2, names + 0.3)) if columns > 1 else (4.8, max(2.9, names))
    right = name_room([name for curves in panels.values() for name in curves])
    size = wide, [high] * rows
    return panel_axes(owner, ax, len(panels), size=size, right=right, columns=columns, title=title)


def figure_of(ax: Axes) -> Figure:
    """The whole figure that an Axes is in, also where it is in a part of one."""
    return ax.get_figure(root=True)  # type: ignore[return-value]


def bare(ax: Axes, lines: Literal["both", "x", "y"]) -> None:
    """Leave what helps reading: lines at the ticks of one axis, or of both, and no ticks."""
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(AXIS)
    ax.grid(axis=lines, color=FAINT, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(length=0, labelsize=9, labelcolor=INK)


def clean(ax: Axes, title: str, below: str, numbers: str = "{x:,.0f}") -> None:
    """The same for values above numbers, of which there are few, with labels of both axes.

    ``numbers`` is the format of those on the horizontal axis.
    """
    from matplotlib.ticker import MaxNLocator

    bare(ax, "y")
    ax.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.xaxis.set_major_formatter(numbers)
    ax.set_xlabel(below, size=9.5, color=INK)
    # The label of the vertical axis reads as a title: level, above its numbers.
    ax.set_ylabel(title, size=11, color=INK, rotation=0, ha="left", va="bottom")
    ax.yaxis.set_label_coords(0.0, 1.05)


def label_ends(ax: Axes, curves: Sequence[tuple[str, float, dict[str, Any]]]) -> None:
    """A text beside the value each curve ends in, moved apart where they would touch.

    ``curves`` are the text, the last value and the stroke of each. A line leads from a curve to its
    name; an arrow points to curves that end outside.
    """
    low, high = ax.get_ylim()
    points = ax.get_window_extent().height * 72 / ax.figure.dpi  # 72 of them are an inch
    values = np.array([value for _, value, _ in curves])
    # A rate may be 0/0 at the end: its name is at the bottom, and no line leads to it.
    ends = np.where(np.isnan(values), 0.0, (values - low) / (high - low)).tolist()
    # Lines of text that are 1.28 of their size apart do not touch.
    places = spread([end * points for end in ends], 1.28 * SIZE, points)
    for (text, value, look), end, place in zip(curves, ends, places, strict=True):
        outside = "↓ " if end < 0 else "↑ " if end > 1 else ""
        short = outside + (text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")
        # From the left of the text, whatever box matplotlib thinks is around it, to the curve.
        leader = {
            "arrowstyle": "-", "linewidth": 0.7, "patchA": None, "relpos": (0, 0.5),
            "shrinkA": 2, "shrinkB": 1, **look,
        }  # fmt: skip
        # In points from the curve's end, a share of the height, so that both can be resized.
        ax.annotate(
            short, (1, end), (AWAY, place - end * points), xycoords="axes fraction",
            textcoords="offset points", color=look["color"], size=SIZE, va="center",
            annotation_clip=False, arrowprops=None if outside or np.isnan(value) else leader,
        )  # fmt: skip


def spread(values: Sequence[float], gap: float, top: float | None = None) -> list[float]:
    """Places near the values, in their order, each at least a gap from the next.

    Values that crowd share their middle, so that none is moved further than it must be.

    Parameters
    ----------
    values : sequence of float
    gap : float
    top : float, optional
        Places are from 0 to there, as far as all fit.

    Returns
    -------
    list of float

    Examples
    --------
    >>> spread([1.0, 1.2, 5.0], gap=1.0)
    [0.6, 1.6, 5.0]
    >>> spread([9.0, 9.5, 9.6], gap=1.0, top=10.0)
    [8.0, 9.0, 10.0]
    """
    from scipy.optimize import isotonic_regression

    wishes = np.asarray(values, dtype=np.float64)
    if top is not None:
        wishes = np.clip(wishes, 0.0, top)
    order = np.argsort(wishes, kind="stable")
    # Without these steps between them, places need only keep their order: the nearest such places
    # are an isotonic regression, and within bounds the same, cut off there.
    steps = gap * np.arange(len(wishes))
    nearest = isotonic_regression(wishes[order] - steps).x
    if top is not None:
        highest = top - steps[-1]
        nearest = np.clip(nearest, min(0.0, highest), highest)
    places = np.empty(len(wishes))
    places[order] = nearest + steps
    return places.tolist()
