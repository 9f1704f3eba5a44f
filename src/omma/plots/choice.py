"""Values of several rules, each with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from omma.plots.frames import AXIS, INK, bare, figure_of, require_matplotlib
from omma.plots.palette import FIXED, LEARNING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Bars = Mapping[str, tuple[float, float, float]]
WIDE, HIGH, GAP = 6.4, 0.36, 0.15  # inches: of a figure, of a line, before what follows


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
    height = _height(bars)  # which refuses no bars at all
    if ax is not None:
        _draw(ax, bars, best)
        ax.set_title(title, size=10, color=INK, loc="left")
        return figure_of(ax)
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDE, height))
    _add_panel(figure, bars, best, title, height)
    return figure


def above(figure: Figure, panels: Mapping[str, tuple[Bars, str]]) -> Figure:
    """Add panels of rules and their intervals at the top of a figure, which grows.

    Panels are bars and the best of them, as ``plot_choice`` takes them, by their titles.
    """
    width, old = figure.get_size_inches()
    top = new = old + sum(_height(bars) for bars, _ in panels.values()) + GAP
    across, up = width / max(width, WIDE), old / new  # all that is there stays as large as it was
    figure.set_size_inches(max(width, WIDE), new)
    # Positions are shares of the figure, which has grown.
    for ax in figure.axes:
        x, y, wide, high = ax.get_position().bounds
        ax.set_position((x * across, y * up, wide * across, high * up))
    for text in figure.texts:
        x, y = text.get_position()
        text.set_position((x * across, y * up))
    for title, (bars, best) in panels.items():
        _add_panel(figure, bars, best, title, top)
        top -= _height(bars)
    return figure


def _height(bars: Bars) -> float:
    """Inches that the rules, their title and their axis need."""
    if not bars:
        raise ValueError("bars of plot_choice must hold at least one rule, got none")
    return HIGH * len(bars) + 0.9


def _add_panel(figure: Figure, bars: Bars, best: str, title: str, top: float) -> None:
    """Add a panel to a figure, its upper edge ``top`` inches from the bottom."""
    width, height = figure.get_size_inches()
    figure.text(0.19 / width, (top - 0.12) / height, title, size=10, color=INK, va="top")
    # Names of rules stand to the left of the intervals, values to the right.
    wide, high = 0.6 * WIDE + 0.5 * (width - WIDE), _height(bars) - 0.95
    corner = (1.92 / width, (top - high - 0.5) / height)
    _draw(figure.add_axes((*corner, wide / width, high / height)), bars, best)


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
