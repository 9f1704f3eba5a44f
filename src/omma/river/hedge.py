"""Which of two ways to decide was better lately: the model's own, or the tuned one."""

from __future__ import annotations

from collections.abc import Collection, Hashable

import numpy as np

from omma.counts import Counts
from omma.metrics import Metric
from omma.river.metric import value_of

HALF_LIFE = 1000  # rows after which what a decision was worth counts half
WAIT = 100  # rows of which the first are decided as the model does, which knows little yet
EVERY = 50  # rows between two looks
GROWTH = 2.0 ** (1.0 / HALF_LIFE)
LARGEST = 1e100  # weight of a row, before all weights are scaled down


class Tally:
    """Counts of labels by name, in which later rows may weigh more.

    >>> tally = Tally()
    >>> tally.count(["cat"], ["cat", "dog"], 1.0)
    >>> tally.counts(("cat", "dog"))
    Counts(n=1, tp=[1. 0.], predicted=[1. 1.], positive=[1. 0.])
    """

    def __init__(self) -> None:
        self.cells: dict[Hashable, list[float]] = {}
        self.n = 0.0

    def count(
        self, true: Collection[Hashable], chosen: Collection[Hashable], weight: float
    ) -> None:
        """Count a row: the labels it has against those it was given."""
        cells = self.cells
        self.n += weight
        for label in true:
            if label not in cells:
                cells[label] = [0.0, 0.0, 0.0]
            cells[label][2] += weight
        for label in chosen:
            if label not in cells:
                cells[label] = [0.0, 0.0, 0.0]
            cell = cells[label]
            cell[1] += weight
            if label in true:
                cell[0] += weight

    def counts(self, labels: tuple[Hashable, ...], unit: float = 1.0) -> Counts:
        """The counts of these labels, where ``unit`` is what a row weighs."""
        table = np.array([self.cells.get(label, (0.0, 0.0, 0.0)) for label in labels])
        tp, predicted, positive = table.T / unit
        return Counts(tp, predicted, positive, self.n / unit)

    def scale(self, factor: float) -> None:
        """Make all weights smaller."""
        self.n *= factor
        for cell in self.cells.values():
            cell[:] = [factor * number for number in cell]


class Hedge:
    """Says whether tuned decisions were better lately than the model's own.

    A stream that changes, or a model that starts untrained, can make the tuned decisions the worse
    ones for a while. Both ways are counted on every row whose label comes, half as much after every
    ``HALF_LIFE`` rows, and the one whose metric is higher is followed. The first ``WAIT`` rows
    are decided as the model does.

    >>> import omma
    >>> hedge = Hedge(omma.metric("f1"))
    >>> for _ in range(WAIT):
    ...     hedge.count(("yes",), plain=(), tuned=("yes",), weight=1.0, labels=("yes",))
    >>> hedge.tuned
    True
    """

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.tuned = False
        self._ways = (Tally(), Tally())  # the model's own, the tuned
        self._unit = 1.0
        self._rows = 0

    def count(
        self,
        true: Collection[Hashable],
        plain: Collection[Hashable],
        tuned: Collection[Hashable],
        weight: float,
        labels: tuple[Hashable, ...],
    ) -> None:
        """Count what either way would have given to a row."""
        counted = weight * self._unit
        self._ways[0].count(true, plain, counted)
        self._ways[1].count(true, tuned, counted)
        self._unit *= GROWTH
        self._rows += 1
        if self._rows >= WAIT and self._rows % EVERY == 0:
            self._look(labels)

    def _look(self, labels: tuple[Hashable, ...]) -> None:
        """Compare; what is followed stays so where both are as good."""
        if min(way.n for way in self._ways) > 0.0:
            plain, tuned = (
                value_of(self.metric, way.counts(labels, self._unit)) for way in self._ways
            )
            self.tuned = tuned > plain or (self.tuned and tuned == plain)
        if self._unit > LARGEST:
            for way in self._ways:
                way.scale(1.0 / self._unit)
            self._unit = 1.0
