"""Values of several rules, each with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from omma.plots.frames import AXIS, INK, bare, figure_of, panel_axes
from omma.plots.palette import FIXED, LEARNING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Bars = Mapping[str, tuple[float, float, float]]
# Inches: width of a panel, height of a line, names to its left, values to its right.
WIDE, HIGH, NAMES, VALUES = 3.8, 0.36, 1.9, 0.7
TITLE, MARGINS, GAP = 0.5, 0.9, 0.15  # room for a title, around a panel, and before what follows


def plot_choice(bars: Bars, best: str, *, title: str = "", ax: Axes | None = None) -> Figure:
    """Draw a point and its interval for each rule, the best in colour.

    Parameters
    ----------
    bars : dict of str to (value, low, high)
        In the order to draw them, the first on top.
    best : str
        The name of the rule to stand out; a line marks its value.
    title : str
        A line above the rules.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Figure
        Save it by its ``savefig``.

    Raises
    ------
    ValueError
        Where there is no rule to draw.

    Examples
    --------
    >>> from omma.plots import plot_choice
    >>> figure = plot_choice({"0.5": (30.0, 28.0, 32.0), "Auto": (42.0, 40.0, 44.0)}, "Auto")
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['0.5', 'Auto']
    """
    if not bars:
        raise ValueError("bars of plot_choice must hold at least one rule, got none")
    (ax,) = panel_axes(
        "plot_choice", ax, 1, size=(WIDE, [HIGH * len(bars)]), left=NAMES, right=VALUES
    )
    _draw(ax, bars, best)
    ax.set_title(title, size=10, color=INK, loc="left")
    return figure_of(ax)


def above(figure: Figure, panels: Mapping[str, tuple[Bars, str]]) -> Figure:
    """Add panels of rules and their intervals at the top of a figure, which grows.

    Panels are bars and the best of them, as ``plot_choice`` takes them, by their titles.
    """
    from matplotlib.transforms import Affine2D

    old_width, old_height = figure.get_size_inches()
    heights = [HIGH * len(bars) for bars, _ in panels.values()]
    width = max(old_width, NAMES + WIDE + VALUES)
    height = old_height + sum(heights) + MARGINS * len(panels) + GAP
    figure.set_size_inches(width, height)
    # Positions are shares of the figure: what is there stays as large as it was.
    shares = Affine2D().scale(old_width / width, old_height / height)
    for ax in figure.axes:
        ax.set_position(ax.get_position().transformed(shares))
    for text in figure.texts:
        text.set_position(tuple(shares.transform(text.get_position())))
    top, wide = height, (width - NAMES - VALUES + WIDE) / 2  # no wider than needed
    for high, (title, (bars, best)) in zip(heights, panels.items(), strict=True):
        figure.text(0.19 / width, (top - 0.12) / height, title, size=10, color=INK, va="top")
        bottom = top - high - TITLE
        corner = NAMES / width, bottom / height
        _draw(figure.add_axes((*corner, wide / width, high / height)), bars, best)
        top -= high + MARGINS
    return figure


def _draw(ax: Axes, bars: Bars, best: str) -> None:
    """A point, its interval and its value for each rule."""
    for place, (name, (value, low, high)) in enumerate(bars.items()):
        color = LEARNING[0] if name == best else FIXED[0]
        ax.plot([low, high], [place, place], color=color, linewidth=2.0, solid_capstyle="round")
        ax.plot([value], [place], color=color, marker="o", markersize=6.0)
        ax.annotate(
            f"{value:.2f}", (1.02, place), xycoords=("axes fraction", "data"), size=9,
            color=color, va="center",
        )  # fmt: skip
        if name == best:
            ax.axvline(value, color=AXIS, linewidth=0.8, linestyle=(0, (3, 3)), zorder=0)
    ax.set_yticks(range(len(bars)), list(bars), color=INK, size=10)
    ax.set_ylim(len(bars) - 0.5, -0.5)  # the first on top
    bare(ax, "x")
