"""Which decisions are better to go on with: the model's own, or the tuned ones."""

import math
from collections import defaultdict
from collections.abc import Collection, Hashable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from omma.counts import Counts
from omma.metrics import Metric
from omma.river.metric import value_of

HALF_LIFE = 1000  # rows after which a decision counts half
WAIT = 100  # first rows that are decided as the model does: nobody knows much yet
EVERY = 200  # rows between two comparisons, of which the first is after WAIT
SURE = 3.0  # standard errors by which tuned decisions must be better, to be followed
SPOILED = 0.5  # weight of what tuned decisions would cost if the model became perfect
BEHIND = 0.005  # by how much of the metric predictions may fall behind the model's own decisions
DECAY = 0.5 ** (EVERY / HALF_LIFE)

OWN, TUNED, PREDICTED = range(3)  # the model's decisions, the policy's, and those predicted
TP, CELL_PREDICTED, CELL_POSITIVE = range(3)
# Numbers of a label between two comparisons: how often it was there; decided by both ways alike,
# and rightly so; and the same of each way where they differ.
POSITIVE, ALIKE, FIRST = 0, 1, 3
ZEROS = [0.0] * 9


class Hedge:
    """Says whether tuned decisions are better to go on with than the model's own.

    A stream that changes, or a model that starts untrained, can make the tuned decisions the worse
    ones for a while. Both ways are counted on every row whose label comes, with a half-life of
    ``HALF_LIFE`` rows. Followed is the way by which the metric over the whole stream would be
    higher, if as many rows as so far came after it, decided as that way did lately. Predictions
    made before are a part of it, as decisions of two kinds can be worse together than either alone.

    The first ``WAIT`` rows are decided as the model does. After them, tuned decisions are followed
    if all of this holds:

    - They are better by ``SURE`` standard errors: what the metric would lose if so many labels more
      were wrong as the root of how many the two ways decide differently.
    - They are better by ``SPOILED`` times what they would cost if the model were right from then
      on: thousands of false alarms are better than nothing only while the model knows nothing.
    - For metrics of recalls alone, such as the G-mean, they are better than guessing. Guesses make
      half of it where a model that always says yes makes nothing, but such a model has the better
      share of hits once rows of the other class come more often.
    - Predictions have not fallen behind the model's own decisions on all rows, or going on with
      tuned ones would surely make up for it.

    >>> import omma
    >>> hedge = Hedge(omma.metric("f1"))
    >>> for _ in range(WAIT):
    ...     hedge.count(("yes",), own=(), tuned=("yes",), predicted=(), weight=1.0, labels=("yes",))
    >>> hedge.tuned
    True
    >>> hedge.counts(("yes",))
    Counts(n=100, tp=[0.], predicted=[0.], positive=[100.])
    """

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.tuned = False
        self._of_recalls = of_recalls(metric)
        self._rows = 0
        # Since the last comparison, by name; and before it, in the order of labels, tp, predicted
        # and positive of each way: on all rows, and on late ones.
        self._block = _empty_block()
        self._weight = self._differ = 0.0  # of rows, and squared of labels decided differently
        self._all = np.zeros((3, 3, 0))
        self._late = np.zeros((3, 3, 0))
        self._all_weight = self._late_weight = self._late_differ = 0.0

    def count(
        self,
        true: Collection[Hashable],
        own: Collection[Hashable],
        tuned: Collection[Hashable],
        predicted: Collection[Hashable],
        weight: float,
        labels: tuple[Hashable, ...],
    ) -> None:
        """Count the labels predicted for a row, and those that either way would predict."""
        self._weight += weight
        for label in true:
            self._block[label][POSITIVE] += weight
        if own == tuned:
            self._add(ALIKE, own, true, weight)
        else:
            alike = sum(label in tuned for label in own)
            self._differ += weight * weight * (max(len(own), len(tuned)) - alike)
            for way, decided in enumerate((own, tuned, predicted)):
                self._add(FIRST + 2 * way, decided, true, weight)
        self._rows += 1
        if self._rows % EVERY == WAIT:
            self._fold(labels)
            if self._late_weight > 0.0:
                self._compare()

    def counts(self, labels: tuple[Hashable, ...]) -> Counts:
        """True labels against predictions, on all rows so far."""
        cells = self._block_of(labels)[PREDICTED]
        cells[:, : self._all.shape[2]] += self._all[PREDICTED]
        return _counts(cells, self._all_weight + self._weight)

    def _add(
        self, at: int, decided: Collection[Hashable], true: Collection[Hashable], weight: float
    ) -> None:
        for label in decided:
            cell = self._block[label]
            cell[at] += weight
            if label in true:
                cell[at + 1] += weight

    def _block_of(self, labels: tuple[Hashable, ...]) -> NDArray[np.float64]:
        """Counts since the last comparison: of each way the three cells of each label."""
        table = np.array([self._block.get(label, ZEROS) for label in labels]).T
        cells = np.empty((3, 3, len(labels)))
        for way in (OWN, TUNED, PREDICTED):
            predicted, right = table[ALIKE : ALIKE + 2] + table[FIRST + 2 * way :][:2]
            cells[way] = right, predicted, table[POSITIVE]
        return cells

    def _fold(self, labels: tuple[Hashable, ...]) -> None:
        """Add the counts since the last comparison to those before."""
        cells, known = self._block_of(labels), self._all.shape[2]
        late = cells.copy()
        cells[..., :known] += self._all
        late[..., :known] += DECAY * self._late
        self._all, self._late = cells, late
        self._all_weight += self._weight
        self._late_weight = DECAY * self._late_weight + self._weight
        self._late_differ = DECAY * self._late_differ + self._differ
        self._block, self._weight, self._differ = _empty_block(), 0.0, 0.0

    def _compare(self) -> None:
        """Compare what is to come; the way that is followed stays so where both are as good."""
        rows, ways = self._all_weight, [self._ahead(OWN), self._ahead(TUNED)]
        own, tuned = (self._value(way, 2.0 * rows) for way in ways)
        gain = tuned - own
        better = gain >= 0.0 if self.tuned else gain > SURE * self._error(ways[TUNED], tuned)
        better = better and (not self._of_recalls or self._skilled())
        if better:
            perfect = rows / self._late_weight * self._late[OWN, CELL_POSITIVE]
            own, tuned = (self._value(way + perfect, 3.0 * rows) for way in ways)
            better = gain >= SPOILED * (own - tuned) and not self._behind()
        self.tuned = better

    def _ahead(self, way: int) -> NDArray[np.float64]:
        """Cells of predictions so far, and of as many rows to come as a way decided lately."""
        cells: NDArray[np.float64] = (
            self._all[PREDICTED] + self._all_weight / self._late_weight * self._late[way]
        )
        return cells

    def _error(self, way: NDArray[np.float64], value: float) -> float:
        """The standard error of tuned decisions, by their cells and value with rows to come."""
        ahead, predicted = self._all_weight / self._late_weight, self._late[TUNED, CELL_PREDICTED]
        flips = math.sqrt(self._late_differ)
        # One hit less is two errors more. Half of what is compared are rows with one prediction.
        hits = 0.5 * ahead * flips * predicted / max(predicted.sum(), 1.0)
        worse = np.stack((np.maximum(way[TP] - hits, 0.0), *way[1:]))
        labels = max(self._late_weight, self._late[OWN, CELL_POSITIVE].sum())
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
        """Whether predictions are worth less than the model's own decisions on all rows.

        They are not, where going on with tuned decisions would surely make good what was lost: a
        few rows can spoil a metric of rare labels, and must not rule out for ever what is far
        better.
        """
        rows = self._all_weight
        predicted, own = (self._value(self._all[way], rows) for way in (PREDICTED, OWN))
        if predicted >= own - BEHIND:
            return False
        later = self._value(self._ahead(TUNED), 2.0 * rows)
        own_ahead = self._all[OWN] + rows / self._late_weight * self._late[OWN]
        own = self._value(own_ahead, 2.0 * rows)
        return not later - own > SURE * self._error(self._ahead(TUNED), later)

    def _value(self, cells: NDArray[np.float64], n: float) -> float:
        return value_of(self.metric, _counts(cells, n))


def _counts(cells: NDArray[np.float64], n: float) -> Counts:
    tp, predicted, positive = cells
    return Counts(tp, predicted, positive, n)


def _empty_block() -> defaultdict[Hashable, list[float]]:
    return defaultdict(partial(list, ZEROS))


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
    all_rows = np.full(once.m, once.n)
    extremes = (Counts(positive, all_rows, positive, once.n), Counts(none, none, positive, once.n))
    return metric.multiclass or all(metric.value(counts) < 1.0 for counts in extremes)
