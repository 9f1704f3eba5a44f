"""Which of two ways to decide is better to go on with: the model's own, or the tuned one."""

import math
from collections.abc import Collection, Hashable

import numpy as np
from numpy.typing import NDArray

from omma.counts import Counts
from omma.metrics import Metric
from omma.river.metric import value_of

HALF_LIFE = 1000  # rows after which what a way would have given counts half
WAIT = 100  # rows of which the first are decided as the model does, which knows little yet
EVERY = 200  # rows between two looks, of which the first is after WAIT
SURE = 3.0  # standard errors by which tuned decisions must be better, to be followed
SPOILED = 0.5  # weight of what tuned decisions would cost if the model became perfect
BEHIND = 0.005  # by how much of the metric the decisions given may fall behind the model's own
FADE = 0.5 ** (EVERY / HALF_LIFE)

PLAIN, TUNED, GIVEN = range(3)
CELL_PREDICTED, CELL_POSITIVE = 1, 2  # after true positives
# What is kept of a label between two looks: how often it was there; chosen by all ways alike, and
# rightly so; and for each way where they differ.
POSITIVE, ALIKE, FIRST = 0, 1, 3
NOTHING = [0.0] * 9


class Hedge:
    """Says whether tuned decisions are better to go on with than the model's own.

    A stream that changes, or a model that starts untrained, can make the tuned decisions the worse
    ones for a while. Both ways are counted on every row whose label comes, half as much after every
    ``HALF_LIFE`` rows. The one is followed by which the metric over the whole stream would be
    higher, if as many rows as so far came after it, decided as the way did lately: what was given
    before is a part of it, as decisions of two kinds can be worse together than either alone. Tuned
    decisions must be better by ``SURE`` standard errors first: of what the metric would lose if so
    many labels more were wrong as the root of how many the two choose differently. And by half of
    what they would cost if the model were right from then on, as thousands of false alarms are
    better than nothing only while it knows nothing. Of metrics of recalls alone, such as the
    G-mean, they must be better than guessing, too: guesses make half of it where a model that
    always says yes makes nothing, but such a model has the better share of hits once rows of the
    other class come more often. Where what was given has fallen behind the model's own decisions on
    all rows, and tuned ones would not surely make up for it, these are followed. The first ``WAIT``
    rows are decided as the model does.

    >>> import omma
    >>> hedge = Hedge(omma.metric("f1"))
    >>> for _ in range(WAIT):
    ...     hedge.count(("yes",), plain=(), tuned=("yes",), given=(), weight=1.0, labels=("yes",))
    >>> hedge.tuned
    True
    >>> hedge.given(("yes",))
    Counts(n=100, tp=[0.], predicted=[0.], positive=[100.])
    """

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.tuned = False
        self._of_recalls = of_recalls(metric)
        self._rows = 0
        # Since the last look, by name; and before it, in the order of labels, true positives,
        # predicted and positive of each way: on all rows, and on late ones.
        self._block: dict[Hashable, list[float]] = {}
        self._weight = self._differ = 0.0  # of all rows, and squared of labels chosen differently
        self._all = np.zeros((3, 3, 0))
        self._late = np.zeros((3, 3, 0))
        self._all_weight = self._late_weight = self._late_differ = 0.0

    def count(
        self,
        true: Collection[Hashable],
        plain: Collection[Hashable],
        tuned: Collection[Hashable],
        given: Collection[Hashable],
        weight: float,
        labels: tuple[Hashable, ...],
    ) -> None:
        """Count what was given to a row, and what either way would have given."""
        self._weight += weight
        for label in true:
            self._cell(label)[POSITIVE] += weight
        if plain == tuned:
            self._choose(ALIKE, plain, true, weight)
        else:
            alike = sum(label in tuned for label in plain)
            self._differ += weight * weight * (max(len(plain), len(tuned)) - alike)
            for way, chosen in enumerate((plain, tuned, given)):
                self._choose(FIRST + 2 * way, chosen, true, weight)
        self._rows += 1
        if self._rows % EVERY == WAIT:
            self._fold(labels)
            if self._late_weight > 0.0:
                self._look()

    def given(self, labels: tuple[Hashable, ...]) -> Counts:
        """What was given on all rows so far."""
        cells = self._block_of(labels)[GIVEN]
        cells[:, : self._all.shape[2]] += self._all[GIVEN]
        return _counts(cells, self._all_weight + self._weight)

    def _cell(self, label: Hashable) -> list[float]:
        block = self._block
        if label not in block:
            block[label] = NOTHING.copy()
        return block[label]

    def _choose(
        self, at: int, chosen: Collection[Hashable], true: Collection[Hashable], weight: float
    ) -> None:
        for label in chosen:
            cell = self._cell(label)
            cell[at] += weight
            if label in true:
                cell[at + 1] += weight

    def _block_of(self, labels: tuple[Hashable, ...]) -> NDArray[np.float64]:
        """What was counted since the last look: of each way the three counts of each label."""
        table = np.array([self._block.get(label, NOTHING) for label in labels]).T
        cells = np.empty((3, 3, len(labels)))
        for way in (PLAIN, TUNED, GIVEN):
            predicted, right = table[ALIKE : ALIKE + 2] + table[FIRST + 2 * way :][:2]
            cells[way] = right, predicted, table[POSITIVE]
        return cells

    def _fold(self, labels: tuple[Hashable, ...]) -> None:
        """Add what was counted since the last look to what was before."""
        cells, known = self._block_of(labels), self._all.shape[2]
        late = cells.copy()
        cells[..., :known] += self._all
        late[..., :known] += FADE * self._late
        self._all, self._late = cells, late
        self._all_weight += self._weight
        self._late_weight = FADE * self._late_weight + self._weight
        self._late_differ = FADE * self._late_differ + self._differ
        self._block, self._weight, self._differ = {}, 0.0, 0.0

    def _look(self) -> None:
        """Compare what is to come; what is followed stays so where both are as good."""
        rows = self._all_weight
        given, ahead = self._all[GIVEN], rows / self._late_weight
        ways = [given + ahead * self._late[way] for way in (PLAIN, TUNED)]
        plain, tuned = (self._value(way, 2.0 * rows) for way in ways)
        gain = tuned - plain
        better = gain >= 0.0 if self.tuned else gain > SURE * self._error(ways[TUNED], tuned)
        better = better and (not self._of_recalls or self._skilled())
        if better:
            perfect = ahead * self._late[PLAIN, CELL_POSITIVE]
            plain, tuned = (self._value(way + perfect, 3.0 * rows) for way in ways)
            better = gain >= SPOILED * (plain - tuned) and not self._behind()
        self.tuned = better

    def _error(self, way: NDArray[np.float64], value: float) -> float:
        """The standard error of tuned decisions, given their cells and value with rows to come."""
        ahead, chosen = self._all_weight / self._late_weight, self._late[TUNED, CELL_PREDICTED]
        flips = math.sqrt(self._late_differ)
        # One hit less is two errors more. Half of what is compared are rows that were given alike.
        hits = 0.5 * ahead * flips * chosen / max(chosen.sum(), 1.0)
        worse = np.stack((np.maximum(way[0] - hits, 0.0), *way[1:]))
        labels = max(self._late_weight, self._late[PLAIN, CELL_POSITIVE].sum())
        own = value - self._value(worse, 2.0 * self._all_weight)
        return max(own, 0.5 * flips / float(labels))  # and no less than that of accuracy

    def _skilled(self) -> bool:
        """Whether tuned decisions hit more than they raise alarms, of late; to begin, surely so."""
        tp, predicted, positive = self._late[TUNED]
        both = (positive > 0.0) & (positive < self._late_weight)
        if not both.any():
            return False
        absent = (self._late_weight - positive)[both]
        hits, alarms = tp[both] / positive[both], (predicted - tp)[both] / absent
        spread = hits * (1.0 - hits) / positive[both] + alarms * (1.0 - alarms) / absent
        error = math.sqrt(max(float(spread.sum()), 0.0)) / len(hits)
        return float((hits - alarms).mean()) > (0.0 if self.tuned else SURE * error)

    def _behind(self) -> bool:
        """Whether what was given is worth less than the model's own decisions on all rows.

        It is not, where to go on with tuned decisions would surely make good what was lost: a few
        rows can spoil a metric of rare labels, and must not rule out for ever what is far better.
        """
        rows, ahead = self._all_weight, self._all_weight / self._late_weight
        given, plain = (self._value(self._all[way], rows) for way in (GIVEN, PLAIN))
        if given >= plain - BEHIND:
            return False
        tuned = self._all[GIVEN] + ahead * self._late[TUNED]
        later = self._value(tuned, 2.0 * rows)
        plain = self._value(self._all[PLAIN] + ahead * self._late[PLAIN], 2.0 * rows)
        return not later - plain > SURE * self._error(tuned, later)

    def _value(self, cells: NDArray[np.float64], n: float) -> float:
        return value_of(self.metric, _counts(cells, n))


def of_recalls(metric: Metric) -> bool:
    """Whether a metric depends on the recall of each class alone, and on more than one of them.

    >>> import omma
    >>> [of_recalls(omma.metric(name)) for name in ("gmean", "multiclass_gmean", "f1", "recall")]
    [True, True, False, False]
    """
    if metric.binary:
        once, twice = Counts([3.0], [5.0], [4.0], 10.0), Counts([6.0], [8.0], [8.0], 14.0)
    else:  # of two classes
        once = Counts([4.0, 3.0], [5.0, 5.0], [6.0, 4.0], 10.0)
        twice = Counts([4.0, 6.0], [6.0, 8.0], [6.0, 8.0], 14.0)
    if not math.isclose(metric.value(once), metric.value(twice)):
        return False
    # Where all or nothing is the best, as for recall itself, nobody has to guess.
    positive, none = once.positive, np.zeros(once.m)
    every = np.full(once.m, once.n)
    simple = (Counts(positive, every, positive, once.n), Counts(none, none, positive, once.n))
    return metric.multiclass or all(metric.value(one) < 1.0 for one in simple)


def _counts(cells: NDArray[np.float64], n: float) -> Counts:
    tp, predicted, positive = cells
    return Counts(tp, predicted, positive, n)
