"""``omma.Auto`` beside the better of OMMA and OMMA(η̂): gains, lost cells, and their tables.

A cell is a row of a frame with the value of each policy. It is lost where ``Auto`` is more than
half a point below the better of the two, of which nobody knows beforehand which it is.
"""

from collections.abc import Callable, Mapping

import pandas as pd

from omma_study.tables import Table

SLACK = 0.005  # half a point: less is not called a loss


def judged(cells: pd.DataFrame, labels: str, estimates: str) -> pd.DataFrame:
    """Cells with the better of two columns, what ``Auto`` adds to it, and whether it loses."""
    better = cells[[labels, estimates]].max(axis=1)
    gain = cells["auto"] - better
    return cells.assign(better=better, gain=gain, lost=gain < -SLACK)


def percent(value: float) -> str:
    """A value in % with two digits."""
    return f"{100 * value:.2f}"


def in_points(gain: float) -> str:
    """A gain in percentage points, with its sign."""
    return f"{100 * gain:+.2f}"


def means(
    cells: pd.DataFrame,
    by: str,
    columns: Mapping[str, str],
    shares: Callable[[pd.DataFrame], Mapping[str, str]],
) -> pd.DataFrame:
    """Means of some columns and of the gain by another column, and over all cells.

    ``shares`` are further texts of a group of cells.
    """
    has_order = isinstance(cells[by].dtype, pd.CategoricalDtype)  # all others: as they come
    groups = dict(iter(cells.groupby(by, sort=has_order, observed=True))) | {"all": cells}
    rows = [
        {
            by: name,
            "cells": str(len(group)),
            **{title: percent(group[key].mean()) for key, title in columns.items()},
            "gain": in_points(group["gain"].mean()),
            **shares(group),
        }
        for name, group in groups.items()
    ]
    return pd.DataFrame(rows)


def lost_cells(cells: pd.DataFrame, names: list[str], columns: Mapping[str, str]) -> Table:
    """Every lost cell with its names and values, worst first."""
    lost = cells[cells["lost"]].sort_values("gain")
    values = lost[list(columns)].map(percent).rename(columns=columns)
    frame = lost[names].join(values).assign(gain=lost["gain"].map(in_points))
    return Table(f"Lost cells, in % ({len(lost)})", frame, words=len(names))
