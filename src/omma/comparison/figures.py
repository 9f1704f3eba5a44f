"""Cells as curves of a figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np

from omma.comparison.results import Cell
from omma.plots import Band

Look = dict[str, Any]
Draw = Callable[[Cell, Look], Band]

# Whose colours are the same in all figures; those of others come after them.
LEARNING = ("omma", "greedy", "ofo", "online_fw", "auto")
FIXED = ("baseline", "offline_fw", "tuned")


def looks(policies: Iterable[str], fixed: Collection[str]) -> dict[str, Look]:
    """Colour and dash of each policy: variants share a colour.

    >>> looks(["omma", "omma_eta"], fixed=())["omma_eta"]
    {'color': 0, 'dash': 1, 'fixed': False}
    """
    orders = {False: list(LEARNING), True: list(FIXED)}
    found = {}
    for policy in policies:
        family, still = policy.removesuffix("_eta"), policy in fixed
        order = orders[still]
        order += [] if family in order else [family]
        found[policy] = {
            "color": order.index(family),
            "dash": int(policy != family),
            "fixed": still,
        }
    return found


def running(cell: Cell, look: Look) -> Band:
    """The metric so far."""
    return Band(cell.rows, cell.running_mean, cell.running_std, **look)


def by_prior(cell: Cell, look: Look) -> Band:
    """The final value with each prior."""
    every = list(cell.by_prior.values())
    priors = np.array([math.nan if one.prior is None else one.prior for one in every])
    means, stds = np.array([one.mean for one in every]), np.array([one.std for one in every])
    return Band(priors, means, stds, **look)
