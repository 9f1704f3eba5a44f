"""Curves with their spread over several sequences: as rows come, or by prior."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omma.plots.frames import INK, clean, entitle, frames, label_ends, new_figure
from omma.plots.palette import DASHES, FIXED, LEARNING
from omma.tables import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE, HIGH = 1.9, 1.45  # inches of a panel with its margins


@dataclass(frozen=True)
class Band:
    """A curve with its spread, and how it looks.

    Attributes
    ----------
    x : ndarray
        Numbers of rows, or priors; NaN is the prior of a policy that has none.
    mean, std : ndarray
        Fractions; a NaN in ``std`` draws no spread.
    color, dash : int
        Numbers: variants of one policy share a colour and differ by their dashes.
    fixed : bool
        Whether it is of a rule that never changes, drawn in grey.
    """

    x: NDArray[Any]
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    color: int = 0
    dash: int = 0
    fixed: bool = False

    @property
    def look(self) -> dict[str, Any]:
        """The stroke, as matplotlib takes it."""
        palette = FIXED if self.fixed else LEARNING
        again, color = divmod(self.color, len(palette))
        dash = DASHES[(self.dash + again) % len(DASHES)]
        return {"color": palette[color], "linestyle": dash}

    @property
    def end(self) -> float:
        """Its last value, in %."""
        return 100 * float(self.mean[-1])

    def extent(self, start: float) -> tuple[float, float]:
        """Lowest and highest value in %, spread included, where x is not below ``start``."""
        late = ~(self.x < start)
        mean, std = 100 * self.mean[late], 100 * np.nan_to_num(self.std[late])
        return float(np.nanmin(mean - std)), float(np.nanmax(mean + std))


Bands = Mapping[str, Band]


def plot_bands(panels: Mapping[str, Bands], *, title: str = "", everything: bool = False) -> Figure:
    """Draw running values of several metrics, a panel each, with a band of one deviation.

    Panels show the policies that learn, once the first tenth of the rows has passed; an arrow
    points to fixed rules that are far off.

    Parameters
    ----------
    panels : dict of str to dict of str to Band
        The curves of each panel by their names, by the name of its metric.
    title : str
        A line above all panels.
    everything : bool
        Make room for fixed rules that are far off, too.

    Returns
    -------
    matplotlib Figure, with a ``savefig`` of its own

    Examples
    --------
    >>> import numpy as np
    >>> from omma.plots import Band, plot_bands
    >>> band = Band(np.array([10, 20]), np.array([0.4, 0.5]), np.array([0.02, 0.01]))
    >>> figure = plot_bands({"macro_f1": {"OMMA": band}})
    >>> figure.axes[0].get_ylabel()
    'macro_f1 so far, %'
    """
    figure, places = frames("plot_bands", panels, title)
    for ax, (metric, bands) in zip(places, panels.items(), strict=True):
        draw_running(ax, metric, bands)
        ax.set_ylim(*limits(bands.values(), 0.1 * ax.get_xlim()[1], everything))
        label_bands(ax, bands)
    return figure


def draw_running(ax: Axes, metric: str, bands: Bands) -> None:
    """Curves of the metric so far, without their names."""
    for (name, band), width in zip(bands.items(), widths(bands), strict=True):
        ax.plot(band.x, 100 * band.mean, label=name, linewidth=width, **band.look)
        if not np.isnan(band.std).all():
            low, high = 100 * (band.mean - band.std), 100 * (band.mean + band.std)
            faint: dict[str, Any] = {"alpha": min(0.16, 0.5 / len(bands)), "linewidth": 0}
            ax.fill_between(band.x, low, high, color=band.look["color"], **faint)
    clean(ax)
    entitle(ax, f"{metric} so far, %", "rows")
    ax.set_xlim(0, max(int(band.x[-1]) for band in bands.values()))


def label_bands(ax: Axes, bands: Bands, digits: int = 2, most: float = np.inf) -> None:
    """Last value and name of each curve at its end; the name alone of more points than ``most``."""
    texts = [
        f"{band.end:.{digits}f}  {name}" if len(band.x) <= most else name
        for name, band in bands.items()
    ]
    ends, looks = zip(*((band.end, band.look) for band in bands.values()), strict=True)
    label_ends(ax, texts, ends, looks)


def widths(bands: Bands) -> list[float]:
    """Of strokes: thinner ones come on top, so that curves which coincide can all be seen."""
    thinner = np.linspace(2.4, 1.2, len(bands)).tolist()
    return [
        1.3 if band.fixed else width for band, width in zip(bands.values(), thinner, strict=True)
    ]


def limits(
    bands: Collection[Band], start: float = 0.0, everything: bool = False
) -> tuple[float, float]:
    """Where the vertical axis starts and ends: fixed rules far off would squeeze the others.

    >>> near, far = (Band(np.ones(1), np.array([x]), np.zeros(1), fixed=True) for x in (0.5, 0.1))
    >>> learning = Band(np.ones(2), np.array([0.5, 0.6]), np.zeros(2))
    >>> [round(limit, 1) for limit in limits([learning, near, far])]
    [49.3, 60.7]
    >>> [round(limit, 1) for limit in limits([learning, near, far], everything=True)]
    [6.5, 63.5]
    """
    extents = [band.extent(start) for band in sorted(bands, key=lambda band: band.fixed)]
    learning = sum(not band.fixed for band in bands) or len(extents)
    lows, highs = zip(*extents, strict=True)
    low, high = min(lows[:learning]), max(highs[:learning])
    for extent in extents[learning:]:
        wider = min(low, extent[0]), max(high, extent[1])
        if everything or wider[1] - wider[0] <= 2 * max(high - low, 0.5):
            low, high = wider
    margin = max(0.07 * (high - low), 0.05)
    return low - margin, high + margin


def plot_priors(panels: Mapping[str, Bands], priors: Sequence[float], *, title: str = "") -> Figure:
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
    >>> band = Band(np.array([0.0, 0.1]), np.array([0.4, 0.5]), np.array([0.02, 0.01]))
    >>> figure = plot_priors({"macro_f1": {"OMMA": band}}, [0.0, 0.1])
    >>> [tick.get_text() for tick in figure.axes[0].get_xticklabels()]
    ['0', '0.1']
    """
    figure, places = frames("plot_priors", panels, title)
    for ax, (metric, bands) in zip(places, panels.items(), strict=True):
        clean(ax)
        entitle(ax, f"{metric}, %", "prior λ")
        curves = [name for name, band in bands.items() if len(band.x) > 1]
        # Curves are moved to the side, so that whiskers do not cover each other.
        sides = np.linspace(-0.16, 0.16, len(curves)) if len(curves) > 1 else np.zeros(1)
        for (name, band), width in zip(bands.items(), widths(bands), strict=True):
            mean, std = 100 * band.mean, 100 * np.nan_to_num(band.std)
            if name not in curves:
                ax.axhline(mean[0], zorder=1.5, linewidth=width, **band.look)
                continue
            x = _places(band.x, priors) + sides[curves.index(name)]
            points: dict[str, Any] = {"marker": "o", "markersize": 3.6, "elinewidth": 1.0}
            ax.errorbar(x, mean, std, linewidth=width, **points, **band.look)
            best = int(np.nanargmax(mean))
            ring: dict[str, Any] = {"markersize": 8.5, "fillstyle": "none", "markeredgewidth": 1.1}
            ax.plot(x[best], mean[best], "o", color=band.look["color"], **ring)
        ax.set_xticks(range(len(priors)), [plain(prior) for prior in priors])
        ax.set_xlim(-0.4, len(priors) - 0.6)
        ax.set_ylim(*limits(bands.values()))
        label_bands(ax, bands, most=1)  # of level lines their value, too
    return figure


def _places(x: NDArray[Any], priors: Sequence[float]) -> NDArray[Any]:
    """Priors stand at equal distances."""
    return np.array([list(priors).index(prior) for prior in x])


def plot_family(
    rows: Mapping[str, Mapping[str, Bands]], priors: Sequence[float] | None = None
) -> Figure:
    """Draw panels of many datasets (rows) and metrics (columns), with one legend for all.

    Parameters
    ----------
    rows : dict of str to dict of str to dict of str to Band
        Curves by their names, by metric, by dataset; x is the number of rows, or the prior.
    priors : sequence of float, optional
        All priors where x is the prior: they stand at equal distances.

    Returns
    -------
    matplotlib Figure, with a ``savefig`` of its own

    Examples
    --------
    >>> import numpy as np
    >>> from omma.plots import Band, plot_family
    >>> band = Band(np.array([10, 20]), np.array([0.4, 0.5]), np.array([0.02, 0.01]))
    >>> figure = plot_family({"yeast": {"macro F1": {"OMMA": band}, "micro F1": {"OMMA": band}}})
    >>> [ax.get_title() for ax in figure.axes]
    ['macro F1', 'micro F1']
    """
    if not rows or not all(rows.values()):
        raise ValueError("rows of plot_family must each hold at least one panel, got none")
    columns = list(dict.fromkeys(metric for panels in rows.values() for metric in panels))
    size = max(WIDE * len(columns), 6.0), HIGH * len(rows) + 0.25 * len(rows) + 0.6
    figure = new_figure(*size, layout="constrained")
    from matplotlib.lines import Line2D

    parts = figure.subfigures(len(rows), 1, squeeze=False)[:, 0]
    lines: dict[str, Line2D] = {}  # every name once, for the legend under all panels
    for part, (dataset, panels) in zip(parts, rows.items(), strict=True):
        part.suptitle(dataset, size=9, color=INK)
        places = part.subplots(1, len(columns), squeeze=False)[0]
        for ax, metric in zip(places, columns, strict=True):
            if metric not in panels:
                ax.set_axis_off()
                continue
            _panel(ax, metric, panels[metric], priors)
            for name, band in panels[metric].items():
                lines[name] = Line2D([], [], linewidth=1.4, **band.look)
    options = {"frameon": False, "fontsize": 8, "ncols": min(len(lines), 8)}
    figure.legend(list(lines.values()), list(lines), loc="outside lower center", **options)
    return figure


def _panel(ax: Axes, metric: str, bands: Bands, priors: Sequence[float] | None) -> None:
    clean(ax)
    for band in bands.values():
        mean, std = 100 * band.mean, 100 * np.nan_to_num(band.std)
        if priors is not None and len(band.x) == 1:
            ax.axhline(mean[0], linewidth=1.0, **band.look)
            continue
        x = band.x if priors is None else _places(band.x, priors)
        ax.plot(x, mean, linewidth=1.1, **band.look)
        ax.fill_between(x, mean - std, mean + std, color=band.look["color"], alpha=0.1, linewidth=0)
    ax.set_title(metric, size=7.5, color=INK)
    ax.tick_params(labelsize=6.5, pad=1.5)
    if priors is None:
        last = max(float(band.x[-1]) for band in bands.values())
        ax.set_xlim(0, last)
        ax.set_xticks([0, last], ["0", f"{last:,.0f}"])
        ax.set_ylim(*limits(bands.values(), 0.1 * last))
    else:
        ax.set_xticks(range(len(priors)), [plain(prior) for prior in priors])
        ax.set_ylim(*limits(bands.values()))
