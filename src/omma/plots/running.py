"""The metric so far, along the sequence of each trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from omma.certificate.gap import TWO_SIDED
from omma.plots.bands import Band, draw_running, label_bands
from omma.plots.frames import check_panels, frames, require_matplotlib
from omma.plots.palette import looks, name_of
from omma.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_running(
    traces: Mapping[str, Trace],
    ax: Axes | None = None,
    *,
    name: str | None = None,
    bottom: float | None = None,
    gap: bool = False,
) -> Axes:
    """Draw the metric so far against the number of rows, a curve for each trace.

    Each curve has its last value and its name at its end. Policies that learn are in colour, each
    in its own, fixed rules in grey.

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
    gap : bool
        Draw also the best value that is attainable, as estimated along the way, with its 95%
        interval; at least one trace must have been replayed with ``gap=True``.

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

        ax = plt.figure(figsize=(7.0, 4.2)).add_axes((0.08, 0.13, 0.67, 0.76))
    bands = bands_of(traces)
    if gap:
        bands = {**_attainable(traces), **bands}
    draw_running(ax, name or metric, bands)
    if bottom is not None:
        ax.set_ylim(bottom=bottom)
    label_bands(ax, bands, digits=1)
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
    check_panels("plot_panels", panels)
    figure, places = frames(panels, title, columns)
    for ax, (name, traces) in zip(places, panels.items(), strict=True):
        plot_running(traces, ax, name=name, bottom=0.0)
    return figure


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


def bands_of(traces: Mapping[str, Trace]) -> dict[str, Band]:
    """Curves without spread, each in the colour of its policy; the same twice differ by dashes."""
    names = {label: name_of(trace.policy) for label, trace in traces.items()}
    still = {names[label] for label, trace in traces.items() if trace.policy.objective is None}
    look = looks(names.values(), still)
    seen: Counter[str] = Counter()
    bands = {}
    for label, trace in traces.items():
        history, name = trace.history, names[label]
        assert history is not None
        unknown = np.full(len(history), np.nan)
        mine = {**look[name], "dash": look[name]["dash"] + seen[name]}
        seen[name] += 1
        bands[label] = Band(history.rows, history.values, unknown, **mine)
    return bands


def _attainable(traces: Mapping[str, Trace]) -> dict[str, Band]:
    """The best attainable value: the same for all policies with the same budget."""
    found = {trace.policy.budget: trace for trace in traces.values() if trace.gap is not None}
    if len(found) != 1:
        asked = any(trace.history is not None and trace.history.gaps for trace in traces.values())
        missing = (
            "a gap, and those replayed with gap=True have too few rows with weight for one"
            if asked
            else "a gap: replay one with gap=True"
        )
        raise ValueError(f"traces of plot_running must have {'one budget' if found else missing}")
    (trace,) = found.values()
    assert trace.history is not None
    assert trace.gap is not None
    pairs = [
        (np.nan, np.nan) if gap is None else (gap.attainable, TWO_SIDED * gap.error)
        for gap in trace.history.gaps
    ]
    value, error = np.array(pairs).T
    name = "attainable?" if trace.gap.heuristic else "attainable"
    return {name: Band(trace.history.rows, value, error, color=2, dash=1, fixed=True)}
