"""Cells as curves of a figure."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from omma.comparison.results import Cell
from omma.plots import Band
from omma.plots.palette import Look

Draw = Callable[[Cell, Look], Band]


def running(cell: Cell, look: Look) -> Band:
    """The metric so far."""
    return Band(cell.rows, cell.running_mean, cell.running_std, **look)


def by_prior(cell: Cell, look: Look) -> Band:
    """The final value with each prior."""
    every = list(cell.by_prior.values())
    priors = np.array([math.nan if one.prior is None else one.prior for one in every])
    means, stds = np.array([one.mean for one in every]), np.array([one.std for one in every])
    return Band(priors, means, stds, **look)
