"""What each prior is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omma.plots.bands import Band, Bands, check_bands, limits, widths
from omma.plots.frames import clean, entitle, frames
from omma.plots.labels import label_ends
from omma.tables import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    check_bands("plot_priors", panels)
    figure, places = frames(panels, title)
    for ax, (metric, bands) in zip(places, panels.items(), strict=True):
        clean(ax)
        entitle(ax, f"{metric}, %", "prior λ")
        shifts = _shifts([name for name, band in bands.items() if len(band.x) > 1])
        for (name, band), width in zip(bands.items(), widths(bands), strict=True):
            at = np.array([list(priors).index(x) for x in band.x if x in priors], dtype=float)
            _draw(ax, at + shifts.get(name, 0.0), band, width)
        ax.set_xticks(range(len(priors)), [plain(prior) for prior in priors])
        ax.set_xlim(-0.4, len(priors) - 0.6)
        ax.set_ylim(*limits(bands.values()))
        _label(ax, bands)
    return figure


def _shifts(names: list[str]) -> dict[str, float]:
    """How far each curve is moved to the side, so that whiskers do not cover each other."""
    places = np.linspace(-0.16, 0.16, len(names)) if len(names) > 1 else np.zeros(1)
    return dict(zip(names, places.tolist(), strict=False))


def _draw(ax: Axes, at: NDArray[np.float64], band: Band, width: float) -> None:
    """One curve over the priors, or a level line where there is but one value."""
    mean, std = 100 * band.mean, 100 * np.nan_to_num(band.std)
    if len(band.x) == 1:
        ax.axhline(mean[0], zorder=1.5, linewidth=width, **band.look)
        return
    points: dict[str, Any] = {"marker": "o", "markersize": 3.6, "elinewidth": 1.0}
    ax.errorbar(at, mean, std, linewidth=width, **points, **band.look)
    best = int(np.nanargmax(band.mean))
    ring: dict[str, Any] = {"markersize": 8.5, "fillstyle": "none", "markeredgewidth": 1.1}
    ax.plot(at[best], mean[best], "o", color=band.look["color"], **ring)


def _label(ax: Axes, bands: Bands) -> None:
    """Names of all, and of level lines their value."""
    texts = [
        f"{band.end:.2f}  {name}" if len(band.x) == 1 else name for name, band in bands.items()
    ]
    every = bands.values()
    label_ends(ax, texts, [band.end for band in every], [band.look for band in every])
