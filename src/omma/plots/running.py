"""The metric so far along the sequence of each trace, and under it each limit, if asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from omma.certificate.gap import TWO_SIDED
from omma.limits import Limit
from omma.plots.bands import Band, draw_running, label_bands
from omma.plots.frames import clean, figure_of, frames, label_ends, name_room, panel_axes
from omma.plots.palette import looks, name_of
from omma.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BROKEN, BOUND = "#B00020", "#222222"


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
        That it was drawn on.

    Raises
    ------
    ValueError
        Where there is no trace, a trace has no history, metrics differ, or ``gap`` is not known.

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
    if not traces:
        raise ValueError("traces of plot_running must hold at least one trace, got none")
    for label, trace in traces.items():
        if trace.history is None or not len(trace.history):
            raise ValueError(
                f"traces of plot_running must have a history, {label!r} has none: replay it with "
                "labels y and at least one checkpoint"
            )
    metrics = list(dict.fromkeys(trace.metric.name for trace in traces.values()))
    if len(metrics) > 1:
        raise ValueError(
            f"traces of plot_running must be measured by one metric, got {', '.join(metrics)}"
        )
    bands = bands_of(traces)
    if gap:
        bands = {**_attainable(traces), **bands}
    (ax,) = panel_axes(
        "plot_running", ax, 1, size=(4.7, [3.1]), right=name_room(bands), pyplot=True
    )
    draw_running(ax, name or metrics[0], bands)
    if bottom is not None:
        ax.set_ylim(bottom=bottom)
    label_bands(ax, bands, digits=1)
    return ax


def plot_panels(
    panels: Mapping[str, Mapping[str, Trace]],
    *,
    columns: int = 2,
    title: str = "",
    ax: Any = None,
) -> Figure:
    """Draw several metrics side by side, each as ``plot_running`` does.

    Parameters
    ----------
    panels : dict of str to dict of str to Trace
        The traces to draw in each panel, by the name of its metric.
    columns : int
        Panels side by side, at most.
    title : str
        A line above all panels.
    ax : matplotlib Axes, or array or list of them, optional
        Where to draw, an Axes for each panel; default a new figure, which has the title.

    Returns
    -------
    matplotlib Figure
        Save it by its ``savefig``.

    Raises
    ------
    ValueError
        Where there is no panel, a panel has no trace, or ``ax`` another number of Axes.

    Examples
    --------
    >>> import omma
    >>> from omma.plots import plot_panels
    >>> eta, y = omma.datasets.long_tail(n=500, m=5, seed=0)
    >>> panels = {name: {"Auto": omma.replay(omma.Auto(name), eta, y)} for name in
    ...           ("macro_f1", "micro_f1")}
    >>> [ax.get_ylabel() for ax in plot_panels(panels).axes]
    ['macro_f1 so far, %', 'micro_f1 so far, %']
    """
    places = frames("plot_panels", panels, title, ax, columns)
    for place, (name, traces) in zip(places, panels.items(), strict=True):
        plot_running(traces, place, name=name, bottom=0.0)
    return figure_of(places[0])


def bands_of(traces: Mapping[str, Trace]) -> dict[str, Band]:
    """Curves without spread, each in the colour of its policy; the same twice differ by dashes."""
    names = {label: name_of(trace.policy) for label, trace in traces.items()}
    fixed = {names[label] for label, trace in traces.items() if trace.policy.objective is None}
    look, drawn, bands = looks(names.values(), fixed), Counter[str](), {}
    for label, trace in traces.items():
        history, name = trace.history, names[label]
        assert history is not None
        own = {**look[name], "dash": look[name]["dash"] + drawn[name]}
        drawn[name] += 1
        bands[label] = Band(history.rows, history.values, np.full(len(history), np.nan), **own)
    return bands


def _attainable(traces: Mapping[str, Trace]) -> dict[str, Band]:
    """The best attainable value: the same for all policies with the same budget."""
    # Traces that share a budget were all given the same rows, so any of them tells.
    by_budget = {trace.policy.budget: trace for trace in traces.values() if trace.gap is not None}
    if len(by_budget) > 1:
        raise ValueError("traces of plot_running must have one budget")
    if not by_budget:
        tried = any(trace.history is not None and trace.history.gaps for trace in traces.values())
        few_rows = ", and those replayed with gap=True have too few rows with weight for one"
        reason = few_rows if tried else ": replay one with gap=True"
        raise ValueError(f"traces of plot_running must have a gap{reason}")
    (trace,) = by_budget.values()
    assert trace.history is not None
    assert trace.gap is not None
    pairs = [
        (np.nan, np.nan) if gap is None else (gap.attainable, TWO_SIDED * gap.error)
        for gap in trace.history.gaps
    ]
    value, error = np.array(pairs).T
    name = "attainable?" if trace.gap.heuristic else "attainable"
    return {name: Band(trace.history.rows, value, error, color=2, dash=1, fixed=True)}


def plot_limits(traces: Mapping[str, Trace], *, ax: Any = None) -> Figure:
    """Draw the metric so far, and under it the value of each limit, a curve for each trace.

    Parameters
    ----------
    traces : dict of str to Trace
        What ``omma.replay`` returned, by the name to show. Policies without limits are drawn, too:
        their values of the limits of the others.
    ax : array or list of matplotlib Axes, optional
        Where to draw: an Axes for the metric, and one for each limit; default a new figure.

    Returns
    -------
    matplotlib Figure
        Save it by its ``savefig``.

    Raises
    ------
    ValueError
        Where no trace has a limit, or ``ax`` has another number of Axes.

    Examples
    --------
    >>> import omma
    >>> from omma.plots import plot_limits
    >>> eta, y = omma.datasets.long_tail(n=1000, m=10, seed=0)
    >>> policy = omma.Auto("macro_recall", subject_to="micro_precision >= 0.8")
    >>> figure = plot_limits({"limited": omma.replay(policy, eta, y)})
    >>> [ax.get_ylabel() for ax in figure.axes]
    ['macro_recall so far, %', 'micro_precision so far, %']
    """
    judged = [trace for trace in traces.values() if trace.history is not None]
    limits = {str(status.limit): status.limit for trace in judged for status in trace.limits}
    if not limits:
        raise ValueError(
            "traces of plot_limits must have at least one limit and labels to judge it by: replay "
            "a policy with subject_to= on labelled rows"
        )
    # The metric is looked at first, so its panel is half as high again as that of a limit.
    heights = [2.6] + [1.7] * len(limits)
    above, *below = panel_axes(
        "plot_limits", ax, len(heights), size=(4.6, heights), right=name_room(traces)
    )
    plot_running(traces, above)
    for panel, limit in zip(below, limits.values(), strict=True):
        _draw_limit(panel, limit, traces)
    return figure_of(above)


def _draw_limit(ax: Axes, limit: Limit, traces: Mapping[str, Trace]) -> None:
    """The value of one limit along each trace, its bound, and where it is broken."""
    scale, unit, digits = (1.0, "", 2) if limit.of == "labels_per_row" else (100.0, ", %", 1)
    bound, bands = scale * limit.bound, bands_of(traces)
    curves = []
    for name, trace in traces.items():
        history, look = trace.history, bands[name].look
        assert history is not None
        values = scale * history.values_of(limit)
        ax.plot(history.rows, values, linewidth=1.6, **look)
        curves.append((f"{values[-1]:.{digits}f}  {name}", float(values[-1]), look))
        for status in trace.limits:
            if status.limit != limit:  # it is no limit of this policy
                continue
            with np.errstate(invalid="ignore"):  # it is NaN where nothing was predicted yet
                broken: Any = limit.sign * (bound - values) > 0
            ax.fill_between(
                history.rows, values, bound, where=broken, interpolate=True, color=BROKEN,
                alpha=0.22, linewidth=0,
            )  # fmt: skip
            if not status.reachable:  # no rule meets it: the picture says so, too
                text = str(status).partition(": ")[2]
                ax.text(
                    0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", size=10,
                    color=BROKEN,
                )  # fmt: skip
    ax.axhline(bound, color=BOUND, linewidth=1.0, linestyle=(0, (4, 2)))
    clean(ax, f"{limit.name} so far{unit}", "rows")
    ax.ticklabel_format(axis="y", useOffset=False)  # it would stand where the title is
    ax.set_xlim(0, float(next(iter(bands.values())).x[-1]))
    curves.append((f"{'≥' if limit.sign > 0 else '≤'} {bound:g}", bound, {"color": BOUND}))
    label_ends(ax, curves)
