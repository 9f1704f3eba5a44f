"""The frontier of a metric against a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omma.frontiers import Frontier
from omma.plots.frames import clean, entitle, require_matplotlib
from omma.plots.palette import FIXED, LEARNING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_frontier(frontier: Frontier, ax: Axes | None = None) -> Axes:
    """Draw the metric against the bound of a limit; a ring is what was reached without it.

    Bounds that could not be met are crosses, where the limit ended up.

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
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(6.0, 4.0)).add_axes((0.09, 0.14, 0.87, 0.75))
    limit, met = frontier.limit, frontier.met
    per_row = limit.of == "labels_per_row"
    scale = 1.0 if per_row else 100.0
    color = LEARNING[0]
    ax.plot(scale * frontier.bounds[met], 100 * frontier.values[met], color=color, linewidth=2.0)
    ax.plot(scale * frontier.bounds[met], 100 * frontier.values[met], ".", color=color)
    ax.plot(scale * frontier.reached[~met], 100 * frontier.values[~met], "x", color=LEARNING[1])
    start, value = frontier.free
    ring = {"markerfacecolor": "white", "markersize": 8, "color": FIXED[0]}
    ax.plot([scale * start], [100 * value], "o", **ring)  # type: ignore[arg-type]
    ax.annotate(
        "without a limit", (scale * start, 100 * value), textcoords="offset points",
        xytext=(8, 6) if limit.sign > 0 else (-8, -12), color=FIXED[0],
        ha="left" if limit.sign > 0 else "right",
    )  # fmt: skip
    clean(ax)
    sign = "at least" if limit.sign > 0 else "at most"
    entitle(ax, f"{frontier.metric.name}, %", f"{limit.name} {sign}{'' if per_row else ', %'}")
    return ax
