"""Whether probabilities come true as often as they say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from omma.calibration import Reliability
from omma.plots.frames import AXIS, INK, clean, entitle, new_figure
from omma.plots.palette import DASHES, LEARNING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_reliability(curves: Mapping[str, Reliability], *, title: str = "") -> Figure:
    """Draw how often probabilities come true, and below it how many there are of each.

    On the grey line they are as good as they claim; below it they claim too much. Bars are two
    standard errors. The number of probabilities in each bin is on a logarithmic scale.

    Parameters
    ----------
    curves : dict of str to Reliability
        What ``omma.calibration.reliability`` returned, by the name to show.
    title : str

    Returns
    -------
    matplotlib Figure, with a ``savefig`` of its own

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
    figure = new_figure(5.2, 5.6)
    figure.text(0.03, 0.985, title, size=10, color=INK, va="top")
    above = figure.add_axes((0.11, 0.38, 0.85, 0.5))
    below = figure.add_axes((0.11, 0.1, 0.85, 0.19))
    above.plot([0, 100], [0, 100], color=AXIS, linewidth=1.0, zorder=1)
    for number, (name, curve) in enumerate(curves.items()):
        _draw(above, below, name, curve, number)
    _finish(above, below)
    return figure


def _draw(above: Axes, below: Axes, name: str, curve: Reliability, number: int) -> None:
    """One curve and its numbers of cases."""
    full = curve.count > 0
    again, color = divmod(number, len(LEARNING))
    look: dict[str, Any] = {"color": LEARNING[color], "linestyle": DASHES[again % len(DASHES)]}
    bars = 200 * curve.deviation[full]
    label = f"{name}: off by {100 * curve.expected_error:.2f} on average"
    above.errorbar(
        100 * curve.predicted[full], 100 * curve.observed[full], bars,
        marker="o", markersize=3.6, linewidth=1.6, elinewidth=1.0, label=label, **look,
    )  # fmt: skip
    below.stairs(
        np.maximum(curve.count, 0.5), 100 * _edges(curve), baseline=0.5, linewidth=1.4, **look
    )


def _edges(curve: Reliability) -> Any:
    """Where bins begin and end; a single bin of one value gets some width."""
    if len(curve.edges) > len(curve.count):
        return curve.edges
    return np.array([curve.edges[0] - 0.005, curve.edges[0] + 0.005])


def _finish(above: Axes, below: Axes) -> None:
    from matplotlib.ticker import MultipleLocator

    for ax in (above, below):
        clean(ax)
        ax.set_xlim(0, 100)
        ax.xaxis.set_major_locator(MultipleLocator(20))
    above.set_ylim(0, 100)
    above.yaxis.set_major_locator(MultipleLocator(20))
    entitle(above, "came true, %", "")
    below.set_yscale("log")
    below.set_ylim(bottom=0.5)
    entitle(below, "how many", "probability, %")
    above.legend(loc="upper left", frameon=False, fontsize=9, labelcolor=INK)
