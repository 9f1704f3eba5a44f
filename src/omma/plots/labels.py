"""Names at the ends of curves, in place of a legend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from omma.plots.frames import LONGEST

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = 10.0  # points, as all that follows
AWAY = 16.0  # of a name from the end of its curve


def label_ends(
    ax: Axes, texts: list[str], values: list[float], looks: list[dict[str, Any]]
) -> None:
    """A text beside the value each curve ends in, moved apart where they would touch."""
    low, high = ax.get_ylim()
    points = ax.get_window_extent().height * 72 / ax.figure.dpi
    ends = [(value - low) / (high - low) * points for value in values]
    places = within(ends, 1.28 * SIZE, points)
    for text, end, place, look in zip(texts, ends, places, looks, strict=True):
        short = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
        _label(ax, short, end / points, place - end, look)


def _label(ax: Axes, text: str, end: float, up: float, look: dict[str, Any]) -> None:
    """A line leads from a curve to its name; an arrow shows where one is that is far off."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path
    from matplotlib.transforms import Affine2D, ScaledTranslation

    # In points from the curve's end, which is a share of the height, so that both can be resized.
    inches: Any = Affine2D().scale(1 / 72) + ax.figure.dpi_scale_trans
    offset = inches + ScaledTranslation(1, end, ax.transAxes)  # type: ignore[arg-type]
    outside = "↓ " if end < 0 else "↑ " if end > 1 else ""
    ax.text(AWAY, up, outside + text, transform=offset, color=look["color"], size=SIZE, va="center")
    if not outside:
        leader = Path([(1, 0), (AWAY - 2, up)])
        stroke: dict[str, Any] = {"fill": False, "linewidth": 0.7, "clip_on": False}
        ax.add_artist(PathPatch(leader, transform=offset, **stroke, **look))


def spread(values: list[float], gap: float) -> list[float]:
    """Places near the values, in their order, each at least a gap from the next.

    Values that crowd share their middle, so that none is moved further than it must be.

    >>> spread([1.0, 1.2, 5.0], gap=1.0)
    [0.6, 1.6, 5.0]
    """
    order = np.argsort(values, kind="stable")
    groups: list[list[int]] = []
    for index in order.tolist():
        groups.append([index])
        while len(groups) > 1 and _start(groups[-1], values, gap) < (
            _start(groups[-2], values, gap) + gap * len(groups[-2])
        ):
            groups[-2:] = [groups[-2] + groups[-1]]
    places = [0.0] * len(values)
    for group in groups:
        for rank, index in enumerate(group):
            places[index] = _start(group, values, gap) + gap * rank
    return places


def _start(group: list[int], values: list[float], gap: float) -> float:
    middle = sum(values[index] for index in group) / len(group)
    return middle - gap * (len(group) - 1) / 2


def within(values: list[float], gap: float, top: float) -> list[float]:
    """As ``spread``, but from 0 to ``top`` as far as all fit.

    >>> within([9.0, 9.5, 9.6], gap=1.0, top=10.0)
    [8.0, 9.0, 10.0]
    """
    places = spread([min(max(value, 0.0), top) for value in values], gap)
    order = np.argsort(places, kind="stable").tolist()
    for rank, index in enumerate(reversed(order)):
        places[index] = min(places[index], top - gap * rank)
    for rank, index in enumerate(order):
        places[index] = max(places[index], gap * rank if gap * len(order) <= top + gap else -top)
    return places
