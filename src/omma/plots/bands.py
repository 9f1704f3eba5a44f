"""Curves with their spread over several sequences: as rows come, or by prior."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omma.plots.frames import WHISKERS, clean, figure_of, frames, label_ends
from omma.plots.palette import stroke
from omma.tables import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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

    Examples
    --------
    >>> import numpy as np
    >>> from omma.plots import Band
    >>> Band(np.array([10, 20]), np.array([0.4, 0.5]), np.array([0.02, 0.01])).end
    50.0
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
        return stroke(self.color, self.dash, self.fixed)

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


def plot_bands(
    panels: Mapping[str, Bands], *, title: str = "", everything: bool = False, ax: Any = None
) -> Figure:
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
    ax : matplotlib Axes, or array or list of them, optional
        Where to draw, an Axes for each panel; default a new figure, which has the title.

    Returns
    -------
    matplotlib Figure
        Save it by its ``savefig``.

    Raises
    ------
    ValueError
        Where there is no panel, a panel has no curve, a curve no points, or ``ax`` another number
        of Axes.

    Examples
    --------
    >>> import numpy as np
    >>> from omma.plots import Band, plot_bands
    >>> band = Band(np.array([10, 20]), np.array([0.4, 0.5]), np.array([0.02, 0.01]))
    >>> figure = plot_bands({"macro_f1": {"OMMA": band}})
    >>> figure.axes[0].get_ylabel()
    'macro_f1 so far, %'
    """
    places = frames("plot_bands", panels, title, ax)
    for ax, (metric, bands) in zip(places, panels.items(), strict=True):
        draw_running(ax, metric, bands)
        ax.set_ylim(*limits(bands.values(), 0.1 * ax.get_xlim()[1], everything))
        label_bands(ax, bands)
    return figure_of(places[0])


def draw_running(ax: Axes, metric: str, bands: Bands) -> None:
    """Curves of the metric so far, without their names."""
    for (name, band), width in zip(bands.items(), widths(bands), strict=True):
        ax.plot(band.x, 100 * band.mean, label=name, linewidth=width, **band.look)
        if not np.isnan(band.std).all():
            low, high = 100 * (band.mean - band.std), 100 * (band.mean + band.std)
            # Many bands that overlap would hide the curves.
            alpha = min(0.16, 0.5 / len(bands))
            ax.fill_between(band.x, low, high, color=band.look["color"], alpha=alpha, linewidth=0)
    clean(ax, f"{metric} so far, %", "rows")
    ax.set_xlim(0, max(int(band.x[-1]) for band in bands.values()))


def label_bands(ax: Axes, bands: Bands, digits: int = 2, most: float = np.inf) -> None:
    """Last value and name of each curve at its end; the name alone of more points than ``most``."""
    curves = [
        (f"{band.end:.{digits}f}  {name}" if len(band.x) <= most else name, band.end, band.look)
        for name, band in bands.items()
    ]
    label_ends(ax, curves)


def widths(bands: Bands) -> list[float]:
    """Widths of strokes: thinner ones come on top, so that equal curves can all be seen."""
    thinner = np.linspace(2.4, 1.2, len(bands)).tolist()
    # Fixed rules are there to compare with, and stay in the background.
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
        # A fixed rule may at most double the range of those that learn.
        if everything or wider[1] - wider[0] <= 2 * max(high - low, 0.5):
            low, high = wider
    margin = max(0.07 * (high - low), 0.05)  # some room even where all curves are level
    return low - margin, high + margin


def plot_priors(
    panels: Mapping[str, Bands], priors: Sequence[float], *, title: str = "", ax: Any = None
) -> Figure:
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
        Where there is no panel, a panel has no curve, a curve no points, or ``ax`` another number
        of Axes.

    Examples
    --------
    >>> import numpy as np
    >>> from omma.plots import Band, plot_priors
    >>> band = Band(np.array([0.0, 0.1]), np.array([0.4, 0.5]), np.array([0.02, 0.01]))
    >>> figure = plot_priors({"macro_f1": {"OMMA": band}}, [0.0, 0.1])
    >>> [tick.get_text() for tick in figure.axes[0].get_xticklabels()]
    ['0', '0.1']
    """
    places = frames("plot_priors", panels, title, ax)
    order = {prior: place for place, prior in enumerate(priors)}
    for ax, (metric, bands) in zip(places, panels.items(), strict=True):
        clean(ax, f"{metric}, %", "prior λ")
        curves = [name for name, band in bands.items() if len(band.x) > 1]
        # Curves are moved to the side, so that whiskers do not cover each other.
        sides = np.linspace(-0.16, 0.16, len(curves)) if len(curves) > 1 else np.zeros(1)
        for (name, band), width in zip(bands.items(), widths(bands), strict=True):
            mean, std = 100 * band.mean, 100 * np.nan_to_num(band.std)
            if name not in curves:
                ax.axhline(mean[0], zorder=1.5, linewidth=width, **band.look)
                continue
            x = np.array([order[prior] for prior in band.x]) + sides[curves.index(name)]
            ax.errorbar(x, mean, std, linewidth=width, **WHISKERS, **band.look)
            best = int(np.nanargmax(mean))
            ax.plot(
                x[best], mean[best], "o", color=band.look["color"], markersize=8.5,
                fillstyle="none", markeredgewidth=1.1,
            )  # fmt: skip
        ax.set_xticks(range(len(priors)), [plain(prior) for prior in priors])
        ax.set_xlim(-0.4, len(priors) - 0.6)
        ax.set_ylim(*limits(bands.values()))
        label_bands(ax, bands, most=1)  # of level lines their value, too
    return figure_of(places[0])
