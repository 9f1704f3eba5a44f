"""Values of several rules, each with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from omma.plots.frames import AXIS, FAINT, INK, require_matplotlib
from omma.plots.palette import FIXED, LEARNING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HIGH = 0.36  # inches of a line


def plot_choice(
    bars: Mapping[str, tuple[float, float, float]], best: str, *, title: str = ""
) -> Figure:
    """Draw a point and its interval for each rule, the best in colour.

    Parameters
    ----------
    bars : dict of str to (value, low, high)
    best : str
        Whose name is to stand out, and where the line is drawn.
    title : str

    Returns
    -------
    matplotlib Figure, with a ``savefig`` of its own

    Examples
    --------
    >>> from omma.plots import plot_choice
    >>> figure = plot_choice({"0.5": (30.0, 28.0, 32.0), "Auto": (42.0, 40.0, 44.0)}, "Auto")
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['0.5', 'Auto']
    """
    require_matplotlib()
    if not bars:
        raise ValueError("bars of plot_choice must hold at least one rule, got none")
    from matplotlib.figure import Figure

    height = HIGH * len(bars) + 0.9
    figure = Figure(figsize=(6.4, height))
    figure.text(0.03, 1 - 0.12 / height, title, size=10, color=INK, va="top")
    ax = figure.add_axes((0.3, 0.45 / height, 0.6, 1 - 0.95 / height))
    for place, (name, (value, low, high)) in enumerate(bars.items()):
        color = LEARNING[0] if name == best else FIXED[0]
        ax.plot([low, high], [place, place], color=color, linewidth=2.0, solid_capstyle="round")
        ax.plot([value], [place], color=color, marker="o", markersize=6.0)
        ax.annotate(
            f"{value:.2f}", (1.02, place), xycoords=("axes fraction", "data"), va="center",
            size=9, color=color,
        )  # fmt: skip
        if name == best:
            ax.axvline(value, color=AXIS, linewidth=0.8, linestyle=(0, (3, 3)), zorder=0)
    ax.set_yticks(range(len(bars)), list(bars), color=INK, size=10)
    ax.invert_yaxis()
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(AXIS)
    ax.grid(axis="x", color=FAINT, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(length=0, labelsize=9, labelcolor=INK)
    return figure
