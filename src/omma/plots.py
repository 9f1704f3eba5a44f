"""Pictures of how a metric develops along a sequence; the only file that knows matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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


# Comparisons: curves with their spread over several sequences.


@dataclass(frozen=True)
class Band:
    """A curve with its spread.

    Attributes
    ----------
    x : ndarray
        Numbers of rows, or priors; NaN is the prior of a policy that has none.
    mean, std : ndarray
        Fractions; a NaN in ``std`` draws no spread.
    family : str
        Curves of one family share a colour.
    fixed : bool
        Whether it is of a rule that never changes, drawn in grey.
    """

    x: NDArray[Any]
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    family: str
    fixed: bool = False


Panels = Mapping[str, Mapping[str, Band]]
DASHES: tuple[Any, ...] = ("-", (0, (3.2, 1.4)), (0, (1, 1.2)))


def plot_bands(panels: Panels, *, title: str = "") -> Figure:
    """Draw running values of several metrics, a panel each, with a band of one deviation.

    Parameters
    ----------
    panels : dict of str to dict of str to Band
        The curves of each panel by their names, by the name of its metric.
    title : str
        A line above all panels.

    Returns
    -------
    matplotlib Figure, with a ``savefig`` of its own

    Examples
    --------
    >>> import numpy as np
    >>> from omma.plots import Band, plot_bands
    >>> band = Band(np.array([10, 20]), np.array([0.4, 0.5]), np.array([0.02, 0.01]), "omma")
    >>> figure = plot_bands({"macro_f1": {"OMMA": band}})
    >>> figure.axes[0].get_ylabel()
    'macro_f1 so far, %'
    """
    _check_bands("plot_bands", panels)
    figure, places = _frames(panels, title)
    looks = _band_looks(panels)
    for ax, (metric, bands) in zip(places, panels.items(), strict=True):
        for name, band in bands.items():
            low, high = 100 * (band.mean - band.std), 100 * (band.mean + band.std)
            ax.fill_between(band.x, low, high, color=looks[name]["color"], alpha=0.13, linewidth=0)
            ax.plot(band.x, 100 * band.mean, label=name, **looks[name])
        ax.set_xlim(0, max(int(band.x[-1]) for band in bands.values()))
        ax.set_ylim(*_settled(bands))
        _clean(ax)
        _head(ax, f"{metric} so far, %", "rows")
        _label_with_leaders(ax, bands, looks, [float(band.mean[-1]) for band in bands.values()])
    return figure


def plot_priors(panels: Panels, priors: Sequence[float], *, title: str = "") -> Figure:
    """Draw what each prior λ is worth for several metrics, a panel each.

    Whiskers are one standard deviation, a ring is the best prior of its curve; policies without a
    prior are level lines.

    Parameters
    ----------
    panels : dict of str to dict of str to Band
        As of ``plot_bands``, the priors being ``x``.
    priors : sequence of float
        All priors, in the order to draw them; they stand at equal distances, 0 included.
    title : str

    Returns
    -------
    matplotlib Figure, with a ``savefig`` of its own

    Examples
    --------
    >>> import numpy as np
    >>> from omma.plots import Band, plot_priors
    >>> band = Band(np.array([0.0, 0.1]), np.array([0.4, 0.5]), np.array([0.02, 0.01]), "omma")
    >>> figure = plot_priors({"macro_f1": {"OMMA": band}}, [0.0, 0.1])
    >>> [tick.get_text() for tick in figure.axes[0].get_xticklabels()]
    ['0', '0.1']
    """
    _check_bands("plot_priors", panels)
    figure, places = _frames(panels, title)
    looks = _band_looks(panels)
    for ax, (metric, bands) in zip(places, panels.items(), strict=True):
        _clean(ax)
        shifts = _shifts([name for name, band in bands.items() if len(band.x) > 1])
        for name, band in bands.items():
            at = np.array([list(priors).index(x) for x in band.x if x in priors], dtype=float)
            _draw_priors(ax, at + shifts.get(name, 0.0), band, looks[name])
        ax.set_xticks(range(len(priors)), [_prior(prior) for prior in priors])
        ax.set_xlim(-0.4, len(priors) - 0.6)
        _head(ax, f"{metric}, %", "prior λ")
        _label_with_leaders(ax, bands, looks, [float(band.mean[-1]) for band in bands.values()])
    return figure


def _prior(value: float) -> str:
    """A prior as people write it.

    >>> _prior(0.0), _prior(1e-6), _prior(0.001), _prior(1.0)
    ('0', '1e-6', '0.001', '1')
    """
    return f"{value:g}".replace("e-0", "e-").replace("e+0", "e")


def _check_bands(owner: str, panels: Panels) -> None:
    require_matplotlib()
    for metric, bands in panels.items():
        if not bands or not all(len(band.x) for band in bands.values()):
            raise ValueError(
                f"panels of {owner} must have curves with points, got none for {metric!r}"
            )


def _shifts(names: list[str]) -> dict[str, float]:
    """How far each curve is moved to the side, so that whiskers do not cover each other."""
    places = np.linspace(-0.16, 0.16, len(names)) if len(names) > 1 else np.zeros(1)
    return dict(zip(names, places.tolist(), strict=False))


def _draw_priors(ax: Axes, at: NDArray[np.float64], band: Band, look: dict[str, Any]) -> None:
    """One curve over the priors, or a level line where there is but one value."""
    mean, std = 100 * band.mean, 100 * np.nan_to_num(band.std)
    if len(band.x) == 1:
        ax.axhline(mean[0], zorder=1.5, **look)
        return
    color = look["color"]
    ax.errorbar(at, mean, std, marker="o", markersize=3.6, elinewidth=1.0, **look)
    best = int(np.nanargmax(band.mean))
    ax.plot(at[best], mean[best], "o", markersize=8.5, color=color, fillstyle="none", mew=1.1)


def _band_looks(panels: Panels) -> dict[str, dict[str, Any]]:
    """A colour for each family and a dash for each of its members, the same in all panels."""
    names = {name: band for bands in panels.values() for name, band in bands.items()}
    looks: dict[str, dict[str, Any]] = {}
    colors: dict[str, str] = {}
    members: dict[str, int] = {}
    used = {True: 0, False: 0}
    for name, band in names.items():
        palette = FIXED if band.fixed else LEARNING
        if band.family not in colors:
            colors[band.family] = palette[used[band.fixed] % len(palette)]
            members[band.family] = used[band.fixed] // len(palette)
            used[band.fixed] += 1
        color, dash = colors[band.family], DASHES[members[band.family] % len(DASHES)]
        looks[name] = {"color": color, "linestyle": dash, "linewidth": 1.5}
        members[band.family] += 1
    return looks


def _settled(bands: Mapping[str, Band]) -> tuple[float, float]:
    """Limits that show the curves once the first tenth of the rows has passed, in %."""
    lows, highs = [], []
    for band in bands.values():
        late = band.x >= 0.1 * band.x[-1]
        std = np.nan_to_num(band.std[late])
        lows.append(np.nanmin(band.mean[late] - std))
        highs.append(np.nanmax(band.mean[late] + std))
    low, high = 100 * min(lows), 100 * max(highs)
    margin = 0.06 * (high - low) or 1.0
    return float(low - margin), float(high + margin)


def _frames(panels: Panels, title: str) -> tuple[Figure, list[Axes]]:
    """A figure with a frame for each panel, and room to its right for the names of curves."""
    from matplotlib.figure import Figure

    names = {name for bands in panels.values() for name in bands}
    most = max(len(bands) for bands in panels.values())
    columns = 1 if len(panels) == 1 else 2
    rows = -(-len(panels) // columns)
    # Inches around and between panels, which are as high as the names of their curves need.
    left, below, above, head = 0.5, 0.62, 0.5, 0.42 if title else 0.0
    right = 1.0 + 0.078 * min(max(map(len, names)), LONGEST)
    wide, high = 3.6, max(2.2, 0.2 * most + 0.3)
    width, height = columns * (left + wide + right), rows * (below + high + above) + head
    figure = Figure(figsize=(width, height))
    figure.text(left / width, 1 - 0.16 / height, title, size=11, color=INK, va="top")
    places = []
    for place in range(len(panels)):
        row, column = divmod(place, columns)
        x = left + column * (left + wide + right)
        y = height - head - above - high - row * (below + high + above)
        places.append(figure.add_axes((x / width, y / height, wide / width, high / height)))
    return figure, places


LONGEST = 34  # letters of a name


def _head(ax: Axes, title: str, below: str) -> None:
    """The label of the vertical axis reads as a title: level, above its numbers."""
    ax.set_xlabel(below, size=9.5, color=INK)
    ax.set_ylabel(title, size=11, color=INK, rotation=0, ha="left", va="bottom")
    ax.yaxis.set_label_coords(0.0, 1.05)


def _label_with_leaders(
    ax: Axes, bands: Mapping[str, Band], looks: Mapping[str, dict[str, Any]], ends: list[float]
) -> None:
    """Last value and name of each curve, within the panel's height, each led to its curve."""
    low, high = ax.get_ylim()
    points = ax.get_window_extent().height * 72 / ax.get_figure(root=True).dpi  # type: ignore[union-attr]
    gap = 1.28 * LABEL_SIZE
    wanted = [(100 * end - low) / (high - low) * points for end in ends]
    for name, start, place in zip(bands, wanted, within(wanted, gap, points), strict=True):
        text = name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
        value = start / points * (high - low) + low
        ax.annotate(
            f"{value:.1f}  {text}",
            (1, start / points),
            xycoords="axes fraction",
            xytext=(16, place - start),
            textcoords="offset points",
            color=looks[name]["color"],
            size=LABEL_SIZE,
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": looks[name]["color"],
                "linewidth": 0.7,
                "linestyle": looks[name]["linestyle"],
                "relpos": (0, 0.5),
                "shrinkA": 1,
                "shrinkB": 1,
            },
        )


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
