"""The metric so far along the sequence of each trace, and under it each limit, if asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omma.certificate.gap import TWO_SIDED
from omma.limits import Limit
from omma.plots.bands import Band, draw_running, label_bands
from omma.plots.frames import (
    LONGEST,
    clean,
    entitle,
    frames,
    label_ends,
    new_figure,
    require_matplotlib,
)
from omma.plots.palette import looks, name_of
from omma.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BROKEN = "#B00020"


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
    figure, places = frames("plot_panels", panels, title, columns)
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


def plot_limits(traces: Mapping[str, Trace]) -> Figure:
    """Draw the metric so far, and under it the value of each limit, a curve for each trace.

    Parameters
    ----------
    traces : dict of str to Trace
        What ``omma.replay`` returned, by the name to show. Policies without limits are drawn, too:
        how they fare by the limits of the others, which are no limits of theirs.

    Returns
    -------
    matplotlib Figure, with a ``savefig`` of its own

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
    limits = _limits(traces)
    beside = 0.6 + 0.085 * min(max(map(len, traces)) + 6, LONGEST)  # inches for names of curves
    figure = new_figure(5.2 + beside, 3.2 + 2.2 * len(limits), dpi=150)
    heights = [3.0, *(2.0 for _ in limits)]
    grid = figure.add_gridspec(
        len(heights), 1, height_ratios=heights, left=0.6 / (5.2 + beside), hspace=0.42,
        right=5.2 / (5.2 + beside),
        top=1 - 0.5 / figure.get_figheight(), bottom=0.5 / figure.get_figheight(),
    )  # fmt: skip
    plot_running(traces, figure.add_subplot(grid[0]))
    for place, limit in enumerate(limits, start=1):
        _draw(figure.add_subplot(grid[place]), limit, traces)
    return figure


def _limits(traces: Mapping[str, Trace]) -> list[Limit]:
    """Every limit that a trace has, once."""
    found = {
        str(one): one
        for trace in traces.values()
        if trace.history is not None
        for one in trace.history._values.limits
    }
    if not found:
        raise ValueError(
            "traces of plot_limits must have at least one limit and labels to judge it by: replay "
            "a policy with subject_to= on labelled rows"
        )
    return list(found.values())


def _draw(ax: Axes, limit: Limit, traces: Mapping[str, Trace]) -> None:
    """One limit: its value along each trace, its bound, and where it is broken."""
    share = limit.of != "labels_per_row"
    scale, unit = (100.0, ", %") if share else (1.0, "")
    texts, ends, looks, bands = [], [], [], bands_of(traces)
    for name, trace in traces.items():
        assert trace.history is not None
        rows, values = trace.history.rows, scale * _values(limit, trace)
        look = bands[name].look
        ax.plot(rows, values, linewidth=1.6, **look)
        if limit in trace.history._values.limits:
            _shade(ax, rows, values, scale * limit.bound, limit.sign)
            _say_out_of_reach(ax, limit, trace)
        texts.append(f"{values[-1]:.1f}  {name}" if share else f"{values[-1]:.2f}  {name}")
        ends.append(float(values[-1]))
        looks.append(look)
    ax.axhline(scale * limit.bound, color="#222222", linewidth=1.0, linestyle=(0, (4, 2)))
    clean(ax)
    ax.ticklabel_format(axis="y", useOffset=False)  # it would stand where the title is
    entitle(ax, f"{limit.name} so far{unit}", "rows")
    ax.set_xlim(0, float(np.asarray(ax.get_lines()[0].get_xdata())[-1]))
    texts.append(f"{'≥' if limit.sign > 0 else '≤'} {scale * limit.bound:g}")
    label_ends(ax, texts, [*ends, scale * limit.bound], [*looks, {"color": "#222222"}])


def _say_out_of_reach(ax: Axes, limit: Limit, trace: Trace) -> None:
    """Where no rule meets the limit, the picture says so, too."""
    for held in trace.limits:
        if held.limit == limit and not held.reachable:
            said = str(held).partition(": ")[2]
            place: dict[str, Any] = {"transform": ax.transAxes, "ha": "center", "va": "center"}
            ax.text(0.5, 0.5, said, size=10, color=BROKEN, **place)


def _values(limit: Limit, trace: Trace) -> NDArray[np.float64]:
    assert trace.history is not None
    return trace.history.values_of(limit)


def _shade(ax: Axes, rows: Any, values: NDArray[np.float64], bound: float, sign: float) -> None:
    with np.errstate(invalid="ignore"):
        broken = sign * (bound - values) > 0
    ax.fill_between(
        rows, values, bound, where=broken.tolist(), color=BROKEN, alpha=0.22, linewidth=0,
        interpolate=True,
    )  # fmt: skip
