"""Pictures of how a metric develops along a sequence; the only file that knows matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from omma.evaluation import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind people tell apart; greys are for rules that never
# change, so that the eye goes to those that learn.
LEARNING = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
FIXED = ("#666666", "#9a9a9a", "#444444")
INK, FAINT = "#333333", "#e4e4e4"
LABEL_SIZE = 10.0  # points


def require_matplotlib() -> None:
    """Say how to get matplotlib where it is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            'plots need matplotlib, which is not installed: pip install "omma[plots]"'
        ) from error


def plot_running(
    traces: Mapping[str, Trace],
    ax: Axes | None = None,
    *,
    name: str | None = None,
    bottom: float | None = None,
) -> Axes:
    """Draw the metric so far against the number of rows, a curve for each trace.

    Each curve has its last value and its name at its end. Policies that learn are in colour, fixed
    rules in grey.

    Parameters
    ----------
    traces : dict of str to Trace
        What ``omma.replay`` returned, by the name to show; all measured by one metric.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.
    name : str, optional
        What to call the metric; default its own name.
    bottom : float, optional
        Where the vertical axis starts, in %; default what fits the curves.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import omma
    >>> from matplotlib.figure import Figure
    >>> from omma.plots import plot_running
    >>> eta, y = omma.datasets.long_tail(n=1000, m=10, seed=0)
    >>> half = omma.replay(omma.Threshold(0.5), eta, y, metric="macro_f1")
    >>> learned = omma.replay(omma.OMMA("macro_f1"), eta, y)
    >>> ax = plot_running({"threshold 0.5": half, "OMMA": learned}, Figure().add_subplot())
    >>> ax.get_ylabel()
    'macro_f1 so far, %'
    """
    require_matplotlib()
    metric = _shared_metric(traces)
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(7.0, 4.2)).add_axes((0.08, 0.13, 0.71, 0.76))
    ends = []
    for (label, trace), look in zip(traces.items(), _looks(traces), strict=True):
        history = trace.history
        assert history is not None
        ax.plot(history.rows, 100 * history.values, label=label, solid_capstyle="round", **look)
        ends.append((label, 100 * float(history.values[-1]), look["color"]))
    ax.set_xlim(0, max(int(trace.history.rows[-1]) for trace in traces.values()))  # type: ignore[union-attr]
    if bottom is not None:
        ax.set_ylim(bottom=bottom)
    _clean(ax)
    ax.set_xlabel("rows", size=9.5, color=INK)
    # The label of the vertical axis reads as a title: level, above its numbers.
    ax.set_ylabel(
        f"{name or metric} so far, %", size=11, color=INK, rotation=0, ha="left", va="bottom"
    )
    ax.yaxis.set_label_coords(0.0, 1.05)
    _label_ends(ax, ends)
    return ax


def plot_panels(
    panels: Mapping[str, Mapping[str, Trace]], *, columns: int = 2, title: str = ""
) -> Figure:
    """Draw several metrics side by side, each as ``plot_running`` does.

    Parameters
    ----------
    panels : dict of str to dict of str to Trace
        The traces to draw in each panel, by the name of its metric.
    columns : int
    title : str
        A line above all panels.

    Returns
    -------
    matplotlib Figure, with a ``savefig`` of its own
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    rows = -(-len(panels) // columns)
    # Inches around and between panels; labels of curves stand to the right of each.
    left, right, below, above, head = 0.45, 1.45, 0.6, 0.45, 0.35 if title else 0.0
    width, height = columns * (left + 3.4 + right), rows * (below + 2.1 + above) + head
    figure = Figure(figsize=(width, height))
    places = figure.subplots(rows, columns, squeeze=False)
    figure.subplots_adjust(
        left=left / width,
        right=1 - right / width,
        bottom=below / height,
        top=1 - (above + head) / height,
        wspace=(left + right) / 3.4,
        hspace=(below + above) / 2.1,
    )
    figure.text(left / width, 1 - 0.15 / height, title, size=12.5, color=INK, va="top")
    for ax, (name, traces) in zip(places.flat, panels.items(), strict=False):
        plot_running(traces, ax, name=name, bottom=0.0)
    for ax in places.flat[len(panels) :]:
        ax.remove()
    return figure


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure to a file; its ending (.png, .svg, .pdf) says in which form."""
    figure.savefig(path, dpi=150, facecolor="white")


def _shared_metric(traces: Mapping[str, Trace]) -> str:
    if not traces:
        raise ValueError("traces of plot_running must hold at least one trace, got none")
    for label, trace in traces.items():
        if trace.history is None or not len(trace.history):
            raise ValueError(
                f"traces of plot_running must have a history, {label!r} has none: replay it with "
                "labels y and at least one checkpoint"
            )
    names = {trace.metric.name: None for trace in traces.values()}
    if len(names) > 1:
        raise ValueError(
            f"traces of plot_running must be measured by one metric, got {', '.join(names)}"
        )
    return next(iter(names))


def _looks(traces: Mapping[str, Trace]) -> list[dict[str, Any]]:
    """A colour and a stroke for each trace."""
    looks: list[dict[str, Any]] = []
    fixed = learning = 0
    for trace in traces.values():
        if trace.policy.objective is None:
            looks.append({"color": FIXED[fixed % len(FIXED)], "linewidth": 1.6})
            fixed += 1
        else:
            # Thinner ones come on top, so that curves which coincide can all be seen.
            width = max(2.8 - 1.2 * learning, 1.2)
            looks.append({"color": LEARNING[learning % len(LEARNING)], "linewidth": width})
            learning += 1
    return looks


def _clean(ax: Axes) -> None:
    """Leave what helps reading."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color("#999999")
    ax.grid(axis="y", color=FAINT, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(length=0, labelsize=9, labelcolor=INK)
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _label_ends(ax: Axes, ends: list[tuple[str, float, str]]) -> None:
    """Last value and name of each curve at its end, moved apart where they would touch."""
    low, high = ax.get_ylim()
    points = ax.get_window_extent().height * 72 / ax.get_figure(root=True).dpi  # type: ignore[union-attr]
    gap = 1.3 * LABEL_SIZE / points * (high - low)
    heights = spread([value for _, value, _ in ends], gap)
    for (label, value, color), height in zip(ends, heights, strict=True):
        ax.annotate(
            f"{value:.1f}  {label}",
            (1, height),
            xycoords=("axes fraction", "data"),
            xytext=(6, 0),
            textcoords="offset points",
            color=color,
            size=LABEL_SIZE,
            va="center",
            annotation_clip=False,
        )


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
