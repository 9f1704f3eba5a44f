"""A metric against the threshold or the bound of a limit, and truth against probability."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from omma.calibration import Reliability
from omma.curves import Curve, CurveLine
from omma.frontiers import Frontier
from omma.plots.frames import AXIS, INK, WHISKERS, clean, figure_of, panel_axes
from omma.plots.palette import FIXED, LEARNING, stroke

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = 24  # more would not be looked at


def plot_curve(curve: Curve, *, title: str = "", columns: int = 3, ax: Any = None) -> Figure:
    """Draw the metric at every threshold, with its band and the best threshold marked.

    Parameters
    ----------
    curve : omma.Curve
        What ``omma.curve`` returned; of more than 24 lines, pass ``labels`` to it.
    title : str
        A line above all panels.
    columns : int
        Panels side by side, at most.
    ax : matplotlib Axes, or array or list of them, optional
        Where to draw, an Axes for each line of the curve; default a new figure, which has the
        title.

    Returns
    -------
    matplotlib Figure
        Save it by its ``savefig``.

    Raises
    ------
    ValueError
        Where the curve has no line or more than 24, or ``ax`` another number of Axes.

    Examples
    --------
    >>> import omma
    >>> from omma.plots import plot_curve
    >>> eta, y = omma.datasets.long_tail(n=500, m=3, seed=0)
    >>> figure = plot_curve(omma.curve(eta, y, "macro_f1", bootstrap=20))
    >>> [ax.get_title(loc="left") for ax in figure.axes]
    ['label 0', 'label 1', 'label 2']
    """
    if not 1 <= len(curve) <= PANELS:
        raise ValueError(
            f"curve of plot_curve must have from 1 to {PANELS} lines, got {len(curve)}: pick some "
            "by labels= of omma.curve"
        )
    # Panels of the caller may be anywhere: each gets a label.
    columns = min(columns, len(curve)) if ax is None else 1
    size = 2.6, [1.8] * -(-len(curve) // columns)
    places = panel_axes("plot_curve", ax, len(curve), size=size, columns=columns, title=title)
    name = curve.metric.name.removeprefix("macro_")  # a panel is of one label
    for place, (panel, line) in enumerate(zip(places, curve, strict=True)):
        _draw(panel, line)
        ylabel = f"{name}, %" if place % columns == 0 else ""
        panel.set_ylabel(ylabel, rotation=90, size=9.5, ha="center", va="bottom")
        panel.yaxis.set_label_coords(-0.16, 0.5)
        panel.set_title(line.name, loc="left", size=10, color=INK)
    return figure_of(places[0])


def _draw(ax: Axes, line: CurveLine) -> None:
    """The steps of one label, their band, and the best of them."""
    low, high, values = 100 * line.low, 100 * line.high, 100 * line.values
    thresholds = np.clip(line.thresholds, 0.0, 1.0)  # the last is infinite
    ax.fill_between(
        thresholds[line.at], low, high, step="pre", color=LEARNING[0], alpha=0.18, linewidth=0
    )
    ax.plot(
        np.append(0.0, thresholds), np.append(values[0], values), drawstyle="steps-pre",
        color=LEARNING[0], linewidth=1.5,
    )  # fmt: skip
    best = thresholds[line.best], values[line.best]
    ax.plot(*best, marker="o", markersize=6, color=LEARNING[1], zorder=3)
    never = np.isinf(line.threshold)
    ax.annotate(
        "never" if never else f"{best[1]:.1f} at {line.threshold:.3g}", best, xytext=(0, 7),
        textcoords="offset points", ha="left" if best[0] < 0.5 else "right", size=9,
        color=LEARNING[1],
    )  # fmt: skip
    clean(ax, "", "threshold", "{x:g}")
    ax.set_xlim(0, 1)
    ax.set_xticks(np.linspace(0, 1, 5))
    ax.margins(y=0.18)  # room for the text above the best threshold
    if np.append(values, low[:1]).min() >= 0:
        ax.set_ylim(bottom=0)


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
        That it was drawn on.

    Examples
    --------
    >>> import omma
    >>> from matplotlib.figure import Figure
    >>> from omma.plots import plot_frontier
    >>> eta, y = omma.datasets.long_tail(n=500, m=5, seed=0)
    >>> frontier = omma.frontier(eta, y, "macro_recall", "micro_precision", bounds=[0.7, 0.9])
    >>> plot_frontier(frontier, Figure().add_subplot()).get_ylabel()
    'macro_recall, %'
    """
    (ax,) = panel_axes("plot_frontier", ax, 1, size=(5.2, [3.0]), pyplot=True)
    from matplotlib.ticker import MaxNLocator

    limit, met = frontier.limit, frontier.met
    # Rates are in %, a number of labels is not.
    scale, unit = (1.0, "") if limit.of == "labels_per_row" else (100.0, ", %")
    color, values = LEARNING[0], 100 * frontier.values
    ax.plot(scale * frontier.bounds[met], values[met], ".-", color=color, linewidth=2.0)
    free = scale * frontier.free[0], 100 * frontier.free[1]
    ax.plot(*free, "o", markerfacecolor="white", markersize=8, color=FIXED[0])
    # Without an upper bound the rate is highest: the point is at the right end of the picture.
    right, side = (8, "left") if limit.sign > 0 else (4, "right")
    beside: dict[str, Any] = {"textcoords": "offset points", "xytext": (right, 7), "ha": side}
    ax.annotate("without a limit", free, color=FIXED[0], **beside)
    missed = ~met & ~np.isnan(frontier.reached)
    if missed.any():
        crosses = scale * frontier.reached[missed], values[missed]
        ax.plot(*crosses, "x", color=LEARNING[1])
        first = float(crosses[0][0]), float(crosses[1][0])
        ax.annotate("bound not met", first, color=LEARNING[1], **beside)
    sense = "at least" if limit.sign > 0 else "at most"
    clean(ax, f"{frontier.metric.name}, %", f"{limit.name} {sense}{unit}", "{x:g}")
    ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    return ax


def plot_reliability(
    curves: Mapping[str, Reliability], *, title: str = "", ax: Any = None
) -> Figure:
    """Draw how often probabilities come true, and below it how many there are of each.

    On the grey line they are as good as they claim; below it they claim too much. Bars are two
    standard errors. The number of probabilities in each bin is on a logarithmic scale.

    Parameters
    ----------
    curves : dict of str to Reliability
        What ``omma.calibration.reliability`` returned, by the name to show.
    title : str
        A line above the panels.
    ax : matplotlib Axes, or two of them, optional
        Where to draw: on one Axes only how often probabilities come true, on two also how many
        there are. Default a new figure, which has the title.

    Returns
    -------
    matplotlib Figure
        Save it by its ``savefig``.

    Raises
    ------
    ValueError
        Where there is no curve, or ``ax`` are more than two Axes.

    Examples
    --------
    >>> import omma
    >>> from omma.calibration import reliability
    >>> from omma.plots import plot_reliability
    >>> eta, y = omma.datasets.long_tail(n=1000, m=10, seed=0)
    >>> figure = plot_reliability({"true probabilities": reliability(eta, y)})
    >>> figure.axes[0].get_xlabel(), figure.axes[1].get_xlabel()
    ('', 'probability, %')
    """
    if not curves:
        raise ValueError("curves of plot_reliability must hold at least one curve, got none")
    # The first is nearly square, so that its diagonal is one.
    count = 2 if ax is None else min(max(np.size(ax), 1), 2)
    places = panel_axes("plot_reliability", ax, count, size=(4.4, [2.8, 1.1]), title=title)
    above, *below = places  # on one Axes there is no room for how many there are
    above.plot([0, 100], [0, 100], color=AXIS, linewidth=1.0, zorder=1)
    for number, (name, curve) in enumerate(curves.items()):
        look = stroke(number)
        label = f"{name}: off by {100 * curve.expected_error:.2f} on average"
        full = curve.count > 0
        x, y, errors = (
            100 * of_bins[full]
            for of_bins in (curve.predicted, curve.observed, 2 * curve.deviation)
        )
        above.errorbar(x, y, errors, linewidth=1.6, label=label, **WHISKERS, **look)
        edges = 100 * curve.edges
        if len(edges) == len(curve.count):  # a single bin of one value gets some width
            edges = np.array([edges[0] - 0.5, edges[0] + 0.5])
        for counts in below:
            counts.stairs(np.maximum(curve.count, 0.5), edges, baseline=0.5, linewidth=1.4, **look)
    clean(above, "came true, %", "" if below else "probability, %")
    for counts in below:
        clean(counts, "how many", "probability, %")
        counts.set_yscale("log")
        counts.set_ylim(bottom=0.5)
    for panel in places:
        panel.set_xlim(0, 100)
        panel.set_xticks(range(0, 101, 20))
    above.set_ylim(0, 100)
    above.set_yticks(range(0, 101, 20))
    # Curves end in the upper right corner, if they are any good.
    above.legend(loc="upper left", frameon=False, fontsize=9, labelcolor=INK)
    return figure_of(above)
