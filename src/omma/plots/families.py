"""A family of figures: many small panels of one kind, a row for each dataset, one legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from omma.plots.bands import Band, Bands, limits
from omma.plots.frames import INK, clean, require_matplotlib
from omma.tables import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE, HIGH = 1.9, 1.45  # inches of a panel with its margins


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
    require_matplotlib()
    from matplotlib.figure import Figure

    if not rows or not all(rows.values()):
        raise ValueError("rows of plot_family must each hold at least one panel, got none")
    columns = list(dict.fromkeys(metric for panels in rows.values() for metric in panels))
    size = max(WIDE * len(columns), 6.0), HIGH * len(rows) + 0.25 * len(rows) + 0.6
    figure = Figure(figsize=size, layout="constrained")
    parts = figure.subfigures(len(rows), 1, squeeze=False)[:, 0]
    for part, (dataset, panels) in zip(parts, rows.items(), strict=True):
        part.suptitle(dataset, size=9, color=INK)
        places = part.subplots(1, len(columns), squeeze=False)[0]
        for ax, metric in zip(places, columns, strict=True):
            if metric in panels:
                _panel(ax, metric, panels[metric], priors)
            else:
                ax.set_axis_off()
    _legend(figure, rows)
    return figure


def _panel(ax: Axes, metric: str, bands: Bands, priors: Sequence[float] | None) -> None:
    clean(ax)
    for band in bands.values():
        mean, std = 100 * band.mean, 100 * np.nan_to_num(band.std)
        if priors is not None and len(band.x) == 1:
            ax.axhline(mean[0], linewidth=1.0, **band.look)
            continue
        x = band.x if priors is None else np.array([list(priors).index(one) for one in band.x])
        ax.plot(x, mean, linewidth=1.1, **band.look)
        ax.fill_between(x, mean - std, mean + std, color=band.look["color"], alpha=0.1, linewidth=0)
    ax.set_title(metric, size=7.5, color=INK)
    ax.tick_params(labelsize=6.5, pad=1.5)
    if priors is None:
        longest = max(float(band.x[-1]) for band in bands.values())
        ax.set_xlim(0, longest)
        ax.set_xticks([0, longest], ["0", f"{longest:,.0f}"])
        ax.set_ylim(*limits(bands.values(), 0.1 * longest))
    else:
        ax.set_xticks(range(len(priors)), [plain(one) for one in priors])
        ax.set_ylim(*limits(bands.values()))


def _legend(figure: Figure, rows: Mapping[str, Mapping[str, Bands]]) -> None:
    """Every name once, under all panels."""
    from matplotlib.lines import Line2D

    every: dict[str, Band] = {
        name: band
        for panels in rows.values()
        for bands in panels.values()
        for name, band in bands.items()
    }
    lines = [Line2D([], [], linewidth=1.4, **band.look) for band in every.values()]
    options = {"frameon": False, "fontsize": 8, "ncols": min(len(every), 8)}
    figure.legend(lines, list(every), loc="outside lower center", **options)
