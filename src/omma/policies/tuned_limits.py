"""Thresholds of a labelled sample under limits: the best cuts at a price, and the right price.

For one label every cut is looked at, and the best that meets all limits is exact. For many labels
the price of a limit is found by bisection: at given prices, each label's best cut of metric plus
priced limits is exact again. Rates enter by their linear form at the bound, num - C den, so that at
the right price the limit holds and no cut that meets it is worth more at that price. Prices of
several limits are found together, by cutting planes: what the best cuts are worth at given prices
is a convex function of these, and least at the right ones. (Bisecting one after another creeps
where two limits leave little room between them.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.counts import Counts
from omma.limits import Limit
from omma.metrics import LabelMetric

ROUNDS = 24  # of bisection: the price is then known to five digits
PLANES = 60  # prices of several limits that are tried
NEAR = 1e-7  # of the least worth: what may be left of it
TIGHTENED = 6  # times that bounds are, where cuts just miss
OVER = 1.2  # what they are tightened by, as a share of what was missed
LOWEST, HIGHEST = 1e-6, 1e6
HAIR = 1e-12


@dataclass(frozen=True)
class Cuts:
    """What each cut of one label would give: thresholds, true positives and predictions.

    All of it is of the rows in which the label is known, whose weight is ``n``; ``everywhere`` is
    what is predicted in all rows.
    """

    thresholds: NDArray[np.float64]
    tp: NDArray[np.float64]
    predicted: NDArray[np.float64]
    positive: float
    n: float
    everywhere: NDArray[np.float64]


@dataclass(frozen=True)
class Sample:
    """The cuts of all labels, the weight of rows of which anything is known, and of all rows."""

    labels: list[Cuts]
    of: LabelMetric
    n: float
    all_rows: float

    def counts(self, chosen: list[int]) -> Counts:
        """What some cuts would count, a label that is not always known in proportion."""
        pairs = list(zip(self.labels, chosen, strict=True))
        factors = np.array([self.factor(j) for j in range(len(pairs))])
        tp = factors * [cuts.tp[one] for cuts, one in pairs]
        predicted = factors * [cuts.predicted[one] for cuts, one in pairs]
        return Counts(tp, predicted, factors * [cuts.positive for cuts in self.labels], self.n)

    def predicted(self, chosen: list[int]) -> Counts:
        """What some cuts would predict in all rows, for limits on that alone."""
        pairs = zip(self.labels, chosen, strict=True)
        none = np.zeros(len(self.labels))
        return Counts(none, [cuts.everywhere[one] for cuts, one in pairs], none, self.all_rows)

    def factor(self, j: int) -> float:
        """What counts of label j are multiplied by, to stand for all rows; one where it is known.

        >>> nothing = Cuts(*np.zeros((3, 1)), 0.0, 4.0, np.zeros(1))
        >>> Sample([nothing], None, 8.0, 9.0).factor(0)
        2.0
        """
        known = self.labels[j].n
        return self.n / known if known > 0.0 else 1.0

    def worth(self, j: int) -> NDArray[np.float64]:
        """The metric of each cut of label j, as its part of the mean over labels."""
        cuts = self.labels[j]
        positive = np.full(len(cuts.tp), cuts.positive)
        n = cuts.n or self.n  # a label that is never known is one that never occurs
        return self.of.of_cells(cuts.tp, cuts.predicted, positive, n) / len(self.labels)


@dataclass(frozen=True)
class Priced:
    """What each cut of each label is worth, and the room it leaves to each limit."""

    sample: Sample
    limits: tuple[Limit, ...]
    worth: list[NDArray[np.float64]]
    rooms: list[NDArray[np.float64]]  # of each label: (limits, cuts)

    @classmethod
    def of(cls, sample: Sample, limits: tuple[Limit, ...]) -> Priced:
        """Work it out once: prices only add it up."""
        labels = range(len(sample.labels))
        worth = [sample.worth(j) for j in labels]
        rooms = [
            np.array([_room(limit, sample, j) for limit in limits]).reshape(-1, len(worth[j]))
            for j in labels
        ]
        return cls(sample, limits, worth, rooms)

    def best(self, prices: NDArray[np.float64]) -> list[int]:
        """The best cut of each label at given prices; of equals, the fewest predictions."""
        if not prices.any():
            return [int(np.argmax(worth)) for worth in self.worth]
        pairs = zip(self.worth, self.rooms, strict=True)
        return [int(np.argmax(worth + prices @ room)) for worth, room in pairs]

    def added(self, chosen: list[int]) -> tuple[float, NDArray[np.float64]]:
        """What some cuts are worth, and the room that they leave to each limit, in all."""
        worth = sum(one[cut] for one, cut in zip(self.worth, chosen, strict=True))
        rooms = [room[:, cut] for room, cut in zip(self.rooms, chosen, strict=True)]
        return float(worth), np.sum(rooms, axis=0)

    def tightened(self, by: NDArray[np.float64]) -> Priced:
        """The same with tighter bounds."""
        pairs = zip(self.limits, by, strict=True)
        limits = (replace(one, bound=one.bound + one.sign * float(more)) for one, more in pairs)
        return Priced.of(self.sample, tuple(limits))

    def judged(self, chosen: list[int]) -> tuple[NDArray[np.float64], float]:
        """By how much some cuts miss each limit (0/0 misses nothing), and what they are worth."""
        known, everywhere = self.sample.counts(chosen), self.sample.predicted(chosen)
        counts = [known if limit.needs_labels else everywhere for limit in self.limits]
        pairs = list(zip(self.limits, counts, strict=True))
        values = np.array([limit.value(one) for limit, one in pairs])
        signs = np.array([limit.sign for limit in self.limits])
        bounds = np.array([limit.bound for limit in self.limits])
        margins = np.array([limit.tighter(one) for limit, one in pairs])
        worth = sum(one[cut] for one, cut in zip(self.worth, chosen, strict=True))
        return np.nan_to_num(signs * (bounds - values) + margins), float(worth)


class Search:
    """Prices tried so far, and the best cuts that they led to: first to meet limits, then worth."""

    def __init__(self, priced: Priced) -> None:
        self.priced = priced
        self.prices = np.zeros(len(priced.limits))
        self.chosen: list[int] = []
        self.rank = (np.inf, np.inf)
        self.excess = self.look()

    def look(self) -> NDArray[np.float64]:
        """Take the best cuts at the present prices; returns by how much they miss each limit."""
        self.excess = self.take(self.priced.best(self.prices))
        return self.excess

    def take(self, chosen: list[int]) -> NDArray[np.float64]:
        """Keep some cuts if there are none better; returns by how much they miss each limit."""
        excess, worth = self.priced.judged(chosen)
        rank = (float(np.maximum(excess - HAIR, 0.0).sum()), -worth)
        if rank < self.rank:
            self.rank, self.chosen = rank, chosen
        return excess

    def settle(self, place: int) -> None:
        """Set one price as low as its limit allows, the others as they are."""
        self.prices[place] = 0.0
        if self.look()[place] <= HAIR:
            return
        low, high = LOWEST, HIGHEST
        for _ in range(ROUNDS):
            self.prices[place] = np.sqrt(low * high)
            if self.look()[place] > HAIR:
                low = self.prices[place]
            else:
                high = self.prices[place]
        self.prices[place] = high
        self.look()


def tuned(sample: Sample, limits: tuple[Limit, ...]) -> list[int]:
    """The cut of each label; where no cuts meet all limits, those that come nearest."""
    priced = Priced.of(sample, limits)
    if len(sample.labels) == 1:
        return [_exact(priced)]
    search = Search(priced)
    if len(limits) == 1:
        search.settle(0)
    elif limits:
        _settle_together(search)
    return search.chosen


def _settle_together(search: Search) -> None:
    """Set the prices of several limits where what the best cuts are worth at them is least.

    Those cuts may just miss a limit, and miss its margin: then bounds are tightened by that.
    """
    priced, tighter = search.priced, np.zeros(len(search.prices))
    for _ in range(TIGHTENED):
        missed = search.take(priced.best(_least(priced, search)))
        if (missed <= HAIR).all():
            return
        tighter += OVER * np.maximum(missed, 0.0)
        priced = search.priced.tightened(tighter)


def _least(priced: Priced, search: Search) -> NDArray[np.float64]:
    """Prices at which the best cuts are worth least: the bottom of planes, each of some cuts."""
    from scipy.optimize import linprog  # takes longer to import than all of omma

    count = len(priced.limits)
    bounds = [(0.0, HIGHEST)] * count + [(None, None)]
    planes, heights = [], []
    best = prices = np.zeros(count)
    least = math.inf
    for _ in range(PLANES):
        chosen = priced.best(prices)
        search.take(chosen)
        worth, room = priced.added(chosen)
        if worth + prices @ room < least:
            least, best = float(worth + prices @ room), prices
        planes.append([*room, -1.0])
        heights.append(-worth)
        bottom = linprog([*np.zeros(count), 1.0], A_ub=planes, b_ub=heights, bounds=bounds)
        if not bottom.success or least - bottom.fun <= NEAR:
            break
        prices = bottom.x[:count]
    return best


def _room(limit: Limit, sample: Sample, j: int) -> NDArray[np.float64]:
    """What each cut of label j adds to the linear form of a limit, as a share of the rows."""
    cuts, m = sample.labels[j], len(sample.labels)
    if not limit.over_all and limit.index != j:
        return np.zeros(len(cuts.tp))
    if limit.of == "macro_recall":
        share = cuts.tp / cuts.positive if cuts.positive > 0 else np.full(len(cuts.tp), limit.bound)
        return limit.sign * (share - limit.bound) / m
    over, under = _forms(limit, sample, j)
    rows = sample.n if limit.needs_labels else sample.all_rows
    found: NDArray[np.float64] = limit.sign * np.asarray(over - limit.bound * under) / rows
    return found


def _forms(limit: Limit, sample: Sample, j: int) -> tuple[Any, Any]:
    """Numerator and denominator of a limit at each cut of label j."""
    cuts, m = sample.labels[j], len(sample.labels)
    ones = np.ones(len(cuts.tp))
    if limit.needs_labels:
        cells = np.stack((cuts.tp, cuts.predicted, ones * cuts.positive)) * sample.factor(j)
        cells = np.vstack((cells, ones * sample.n))
    else:
        n = sample.all_rows / m if limit.of == "labels_per_row" else sample.all_rows
        cells = np.stack((0.0 * ones, cuts.everywhere, 0.0 * ones, ones * n))
    return np.array(limit.rate.over) @ cells, np.array(limit.rate.under) @ cells


def _exact(priced: Priced) -> int:
    """Of all cuts of the only label, the best that meets every limit, with its margin."""
    room = priced.rooms[0].copy()
    for place, limit in enumerate(priced.limits):
        if limit.margin:
            under = np.maximum(_forms(limit, priced.sample, 0)[1], 0.0)
            rows = priced.sample.n if limit.needs_labels else priced.sample.all_rows
            room[place] -= limit.margin * np.sqrt(limit.variance * under) / rows
    fine = np.maximum(-room, 0.0).sum(axis=0) <= HAIR
    if not fine.any():
        return _nearest(priced)
    return int(np.argmax(np.where(fine, priced.worth[0], -np.inf)))


def _nearest(priced: Priced) -> int:
    """Of all cuts of the only label, that which misses limits least, as ``judged`` has it."""
    missed = np.zeros(len(priced.worth[0]))
    for limit in priced.limits:
        over, under = _forms(limit, priced.sample, 0)
        some = under > 0.0
        per_row = np.where(some, under, 1.0)
        short = limit.sign * (limit.bound - over / per_row)
        short += limit.margin * np.sqrt(limit.variance / per_row)
        missed += np.where(some, np.maximum(short - HAIR, 0.0), 0.0)  # 0/0 misses nothing
    return int(np.lexsort((-priced.worth[0], missed))[0])
