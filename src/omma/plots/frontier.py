"""The frontier of a metric against a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from omma.frontiers import Frontier
from omma.plots.frames import clean, entitle, require_matplotlib
from omma.plots.palette import FIXED, LEARNING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_frontier(frontier: Frontier, ax: Axes | None = None) -> Axes:
    """Draw the metric against the bound of a limit; a ring is what was reached without it.

    Bounds that could not be met are crosses, where the limit ended up; one that only predicting
    nothing meets, where precision is 0/0, is left out.

    Parameters
    ----------
    frontier : Frontier
        What ``omma.frontier`` returned.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import omma
    >>> from matplotlib.figure import Figure
    >>> from omma.plots import plot_frontier
    >>> eta, y = omma.datasets.long_tail(n=500, m=5, seed=0)
    >>> found = omma.frontier(eta, y, "macro_recall", "micro_precision", bounds=[0.7, 0.9])
    >>> plot_frontier(found, Figure().add_subplot()).get_ylabel()
    'macro_recall, %'
    """
    require_matplotlib()
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(6.0, 4.0)).add_axes((0.09, 0.14, 0.87, 0.75))
    limit, met = frontier.limit, frontier.met
    per_row = limit.of == "labels_per_row"
    scale = 1.0 if per_row else 100.0
    color = LEARNING[0]
    ax.plot(scale * frontier.bounds[met], 100 * frontier.values[met], color=color, linewidth=2.0)
    ax.plot(scale * frontier.bounds[met], 100 * frontier.values[met], ".", color=color)
    start, value = frontier.free
    ring = {"markerfacecolor": "white", "markersize": 8, "color": FIXED[0]}
    ax.plot([scale * start], [100 * value], "o", **ring)  # type: ignore[arg-type]
    side = "left" if limit.sign > 0 else "right"
    beside: dict[str, Any] = {"textcoords": "offset points", "ha": side}
    beside["xytext"] = (8 if limit.sign > 0 else 4, 7)
    ax.annotate("without a limit", (scale * start, 100 * value), color=FIXED[0], **beside)
    near = ~met & ~np.isnan(frontier.reached)
    if near.any():
        crosses = scale * frontier.reached[near], 100 * frontier.values[near]
        ax.plot(*crosses, "x", color=LEARNING[1])
        first = float(crosses[0][0]), float(crosses[1][0])
        ax.annotate("bound not met", first, color=LEARNING[1], **beside)
    clean(ax)
    ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    sign = "at least" if limit.sign > 0 else "at most"
    entitle(ax, f"{frontier.metric.name}, %", f"{limit.name} {sign}{'' if per_row else ', %'}")
    return ax
