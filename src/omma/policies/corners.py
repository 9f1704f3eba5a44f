"""Corners of what rules can count on a sample: what is best at given weights, and under a limit.

Under a limit the best is a mixture of two rules: the price of the limit is found by bisection, and
of the rules just below and just above it as much is taken as the limit allows. Rates enter by their
linear form at the bound, num - C den.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from omma.counts import Counts
from omma.kernels.layout import POSITIVE, PREDICTED, TP, N
from omma.limits import Limit
from omma.state import State

Vector = NDArray[np.float64]
Confusion = Callable[[Vector, Vector], State]

ROUNDS = 30  # of bisection: the price is then known to six digits
LOWEST, HIGHEST = 1e-6, 1e6
HAIR = 1e-12


class Part(NamedTuple):
    """A rule, its share in a corner, and what it counts."""

    slope: Vector
    offset: Vector
    share: float
    cells: NDArray[np.float64]


class Corner(NamedTuple):
    """What is best at some weights: rules with their shares, and what they count together."""

    parts: tuple[Part, ...]
    n: float

    @property
    def cells(self) -> NDArray[np.float64]:
        """The counts of the whole."""
        if len(self.parts) == 1:
            return self.parts[0].cells
        found: NDArray[np.float64] = sum(one.share * one.cells for one in self.parts)  # type: ignore[assignment]
        return found


class Corners:
    """Finds the corner for given weights, where ``confusion`` counts what a rule does."""

    def __init__(self, confusion: Confusion, limit: Limit | None = None) -> None:
        self.confusion = confusion
        self.limit = limit
        self.reached = True  # whether the last corner meets the limit

    def __call__(self, slope: Vector, offset: Vector) -> Corner:
        state = self.confusion(slope, offset)
        free = Part(slope, offset, 1.0, state.cells)
        n = float(state.totals[N])
        if self.limit is None:
            return Corner((free,), n)
        room = self._room(free.cells, n)
        self.reached = room >= -HAIR
        return Corner((free,), n) if self.reached else Corner(self._priced(free, room, n), n)

    def _priced(self, below: Part, missed: float, n: float) -> tuple[Part, ...]:
        """The rules on both sides of the right price, mixed so that the limit is just met."""
        by_tp, by_predicted = self._forms(below.cells, n)

        def at(price: float) -> tuple[Part, float]:
            slope, offset = below.slope + price * by_tp, below.offset + price * by_predicted
            part = Part(slope, offset, 1.0, self.confusion(slope, offset).cells)
            return part, self._room(part.cells, n)

        scale = float(np.abs(below.slope).mean()) or 1.0
        low, high = LOWEST * scale, HIGHEST * scale
        above, room = at(high)
        self.reached = room >= -HAIR
        if not self.reached:
            return (above,)
        near = below
        for _ in range(ROUNDS):
            price = float(np.sqrt(low * high))
            one, found = at(price)
            if found >= -HAIR:
                above, room, high = one, found, price
            else:
                near, missed, low = one, found, price
        share = -missed / (room - missed)
        return near._replace(share=1.0 - share), above._replace(share=share)

    def _room(self, cells: NDArray[np.float64], n: float) -> float:
        """By how much the linear form of the limit is met, as a share of the rows."""
        limit = self.limit
        assert limit is not None
        if limit.of == "macro_recall":
            some = cells[POSITIVE] > 0
            share = float((cells[TP][some] / cells[POSITIVE][some] - limit.bound).sum())
            return limit.sign * share / max(int(some.sum()), 1)
        found = np.array(limit.cells(Counts(cells[TP], cells[PREDICTED], cells[POSITIVE], n)))
        return float(self._form() @ found) / n

    def _form(self) -> Vector:
        limit = self.limit
        assert limit is not None
        over, under = np.array(limit.rate.over), np.array(limit.rate.under)
        found: Vector = limit.sign * (over - limit.bound * under)
        return found

    def _forms(self, cells: NDArray[np.float64], n: float) -> tuple[Vector, Vector]:
        """What predicting each label adds to that: times its probability, and whatever that is."""
        limit, m = self.limit, cells.shape[1]
        assert limit is not None
        if limit.of == "macro_recall":
            some = cells[POSITIVE] > 0
            each = n / np.where(some, cells[POSITIVE], 1.0) / max(int(some.sum()), 1)
            return limit.sign * np.where(some, each, 0.0), np.zeros(m)
        by_tp, by_predicted, *_ = self._form()
        which = np.ones(m) if limit.over_all else np.eye(m)[limit.index or 0]
        return by_tp * which, by_predicted * which
