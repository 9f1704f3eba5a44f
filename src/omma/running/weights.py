"""Slope and offset of every label at the present counts: the rule that decides the next row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from omma.kernels import (
    fade as fade_kernel,
    gradient as gradient_kernel,
    prices as prices_kernel,
)
from omma.kernels.count import Sums
from omma.running.plan import Plan
from omma.state import State


def weights_now(
    plan: Plan, state: State, *, settled: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Slope and offset of every label, at the present counts.

    Those of a rule that will stand still (``settled``) are at the mean price of each limit.
    """
    slope, offset = np.empty(state.m), np.empty(state.m)
    cells, totals = state.side_by_side, state.totals
    corrected = plan.shrinkage is not None and state.known is not None
    if corrected or (state.labels is None and state.missed is not None):
        cells, totals = looked_at(plan, state)
    prior = float(plan.prior) * state.unit
    gradient_kernel.gradient(plan.term, prior, cells, totals, slope, offset)
    if plan.limits is not None:
        own, prices = np.zeros((2, state.m)), plan.prices(state)
        if settled and prices is not None and state.prices is not None:
            prices = prices._replace(mu=state.prices.settled)
        prices_kernel.add_prices(prices, own[0], own[1], slope, offset)
    return slope, offset


def looked_at(plan: Plan, state: State) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The counts that decisions look at, where these are not those that are kept."""
    feedback = plan.feedback(state)
    fade_kernel.seen(feedback, Sums(plan.sums, 0))
    seen = (feedback if state.judged is None else feedback.of).seen
    return np.ascontiguousarray(seen.cells), seen.totals
