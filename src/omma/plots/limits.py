"""The metric so far, and under it each limit: its bound as a line, what breaks it shaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omma.limits import Limit
from omma.plots.frames import LONGEST, clean, entitle, require_matplotlib
from omma.plots.labels import label_ends
from omma.plots.running import bands_of, plot_running
from omma.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BROKEN = "#B00020"


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
    require_matplotlib()
    from matplotlib.figure import Figure

    limits = _limits(traces)
    beside = 0.6 + 0.085 * min(max(map(len, traces)) + 6, LONGEST)  # inches for names of curves
    figure = Figure(figsize=(5.2 + beside, 3.2 + 2.2 * len(limits)), dpi=150)
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
        for one in trace.history._limits
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
        if limit in trace.history._limits:
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
    every = trace.history._counts
    return np.array([limit.value(counts) if counts.n > 0 else np.nan for counts in every])


def _shade(ax: Axes, rows: Any, values: NDArray[np.float64], bound: float, sign: float) -> None:
    with np.errstate(invalid="ignore"):
        broken = sign * (bound - values) > 0
    ax.fill_between(
        rows, values, bound, where=broken.tolist(), color=BROKEN, alpha=0.22, linewidth=0,
        interpolate=True,
    )  # fmt: skip
