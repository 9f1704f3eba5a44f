"""Whether to follow the model's own decisions or the tuned ones."""

import math

import numpy as np
from numpy.typing import NDArray

from omma.counts import Counts
from omma.metrics import Metric
from omma.metrics.scoring import value_with

HALF_LIFE = 1000  # rows after which a decision counts half
WAIT = 100  # the first rows, which are decided as the model does: too few to compare anything
EVERY = 200  # rows between two comparisons, of which the first is after WAIT
SURE = 3.0  # standard errors by which tuned decisions must be better before they are followed
SPOILED = 0.5  # weight of what tuned decisions would cost if the model became perfect
BEHIND = 0.005  # how much lower the metric of predictions may be than that of the model alone
DECAY = 0.5 ** (EVERY / HALF_LIFE)

OWN, TUNED, PREDICTED = range(3)  # the model's decisions, the policy's, and those predicted
TP, CELL_PREDICTED, CELL_POSITIVE = range(3)

Floats = NDArray[np.float64]
# Indicators of true labels, of the model's decisions, of the policy's, and of those predicted.
Row = tuple[NDArray[np.int8], ...]


class Hedge:
    """Says whether to follow the policy's tuned decisions or the model's own.

    While a stream changes, or while the model is hardly trained, tuned decisions can be worse than
    the model's own. Both are counted on every labelled row, with a half-life of ``HALF_LIFE`` rows.
    The hedge supposes that as many rows follow as there were so far, decided as well as lately, and
    follows the decisions that would then have the higher metric over the whole stream. That
    includes the predictions so far: decisions of two kinds can be worse together than either alone.

    The first ``WAIT`` rows are decided as the model does. After them, tuned decisions are followed
    if all of this holds:

    - They are better by ``SURE`` standard errors. The error is the loss of the metric if √d more
      labels were wrong, where d is the number of labels that the two decide differently.
    - They are better by ``SPOILED`` times what they would cost if the model were right from then
      on: thousands of false alarms are better than nothing only while the model knows nothing.
    - For metrics of recalls alone, such as the G-mean, they are better than guessing. Guesses reach
      half of it where a model that predicts the more frequent class reaches nothing. But such a
      model has more hits over the whole stream once the other class becomes more frequent.
    - Predictions have not fallen behind the model's own decisions on all rows, or following tuned
      decisions would surely make up for it.

    >>> import numpy as np
    >>> import omma
    >>> hedge, no, yes = Hedge(omma.metric("f1")), np.array([0]), np.array([1])
    >>> for _ in range(WAIT):
    ...     hedge.count((yes, no, yes, no), weight=1.0)
    >>> hedge.tuned
    True
    >>> hedge.counts(1)
    Counts(n=100, tp=[0.], predicted=[0.], positive=[100.])
    """

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.tuned = False
        self._of_recalls = of_recalls(metric)
        self._rows = 0
        # Rows are counted in blocks, which is five times as fast: these are not in the cells yet.
        self._block: list[tuple[Row, float]] = []
        # Three cells for each label and each kind of decision: of all rows, and of recent rows,
        # which count less and less.
        self._all = np.zeros((3, 3, 0))
        self._late = np.zeros((3, 3, 0))
        self._all_weight = self._late_weight = 0.0
        self._late_differ = 0.0  # squared weights of labels that were decided differently

    def count(self, row: Row, weight: float) -> None:
        """Count a row: its labels, the model's decisions, the tuned ones, and those predicted.

        All are indicators of the labels met so far; later rows may have more labels.
        """
        if len(row[0]) > self._all.shape[2]:
            self._fold(len(row[0]))
        self._block.append((row, weight))
        self._rows += 1
        if self._rows % EVERY == WAIT:
            self._fold(len(row[0]))
            if self._late_weight > 0.0:
                self._compare()
            self._late *= DECAY
            self._late_weight *= DECAY
            self._late_differ *= DECAY

    def counts(self, m: int) -> Counts:
        """True labels against predictions, on all rows so far, of m labels."""
        self._fold(m)
        tp, predicted, positive = self._all[PREDICTED].copy()
        return Counts(tp, predicted, positive, self._all_weight)

    def _fold(self, m: int) -> None:
        """Add the rows of the block to the cells, and make room for m labels."""
        if self._block:
            table = np.array([row for row, _ in self._block], dtype=np.float64)
            weights = np.array([weight for _, weight in self._block])
            true, decided = table[:, 0], table[:, 1:]
            weighted = weights[:, np.newaxis, np.newaxis] * decided
            tp = (weighted * true[:, np.newaxis]).sum(axis=0)
            cells = np.stack((tp, weighted.sum(axis=0), np.tile(weights @ true, (3, 1))), axis=1)
            self._all += cells
            self._late += cells
            self._all_weight += weights.sum()
            self._late_weight += weights.sum()
            # How many labels are decided differently: the larger of what either predicts alone.
            own, tuned = decided[:, OWN], decided[:, TUNED]
            differ = np.maximum(own.sum(axis=1), tuned.sum(axis=1)) - (own * tuned).sum(axis=1)
            self._late_differ += float(weights**2 @ differ)
            self._block = []
        room = np.zeros((3, 3, max(0, m - self._all.shape[2])))  # no row before had these labels
        self._all, self._late = (
            np.concatenate((cells, room), axis=2) for cells in (self._all, self._late)
        )

    def _compare(self) -> None:
        """Compare both on the rows to come; of equally good ones, the present one is followed."""
        rows = self._all_weight
        ways = [self._ahead(PREDICTED, OWN), self._ahead(PREDICTED, TUNED)]
        own, tuned = (self._value(way, 2.0 * rows) for way in ways)
        gain = tuned - own
        # To start following tuned decisions takes more than to continue.
        better = gain >= 0.0 if self.tuned else gain > SURE * self._error(ways[TUNED], tuned)
        better = better and (not self._of_recalls or self._skilled())
        if better:
            # A perfect model adds as many hits, predictions and occurrences as labels come.
            perfect = rows / self._late_weight * self._late[OWN, CELL_POSITIVE]
            own, tuned = (self._value(way + perfect, 3.0 * rows) for way in ways)
            better = gain >= SPOILED * (own - tuned) and not self._behind()
        self.tuned = better

    def _ahead(self, way: int, lately: int) -> Floats:
        """Cells of ``way`` so far, plus as many rows to come, decided as by ``lately`` of late."""
        rows = self._all_weight / self._late_weight
        cells: Floats = self._all[way] + rows * self._late[lately]
        return cells

    def _error(self, way: Floats, value: float) -> float:
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
        """Whether tuned decisions had a higher rate of hits than of false alarms of late.

        Before they are followed, by more than chance.
        """
        tp, predicted, positive = self._late[TUNED]
        both = (positive > 0.0) & (positive < self._late_weight)
        if not both.any():
            return False
        absent = (self._late_weight - positive)[both]
        hits, alarms = tp[both] / positive[both], (predicted - tp)[both] / absent
        # Shares of independent draws: the variance of each is p (1 - p) / n.
        spread = hits * (1.0 - hits) / positive[both] + alarms * (1.0 - alarms) / absent
        error = math.sqrt(max(float(spread.sum()), 0.0)) / len(hits)
        return float((hits - alarms).mean()) > (0.0 if self.tuned else SURE * error)

    def _behind(self) -> bool:
        """Whether predictions have a lower metric on all rows than the model's own decisions.

        It does not count if tuned decisions would surely make up for it: a few bad rows can spoil a
        metric of rare labels, and must not rule out much better decisions for ever.
        """
        rows = self._all_weight
        predicted, own = (self._value(self._all[way], rows) for way in (PREDICTED, OWN))
        if predicted >= own - BEHIND:
            return False
        ahead = self._ahead(PREDICTED, TUNED)
        later = self._value(ahead, 2.0 * rows)
        own = self._value(self._ahead(OWN, OWN), 2.0 * rows)
        return not later - own > SURE * self._error(ahead, later)

    def _value(self, cells: Floats, n: float) -> float:
        tp, predicted, positive = cells
        return value_with(self.metric, Counts(tp, predicted, positive, n), 0.0)


def of_recalls(metric: Metric) -> bool:
    """Whether a metric depends on the recall of each class alone, and on more than one of them.

    >>> import omma
    >>> [of_recalls(omma.metric(name)) for name in ("gmean", "multiclass_gmean", "f1", "recall")]
    [True, True, False, False]
    """
    # Twice as many rows of a class, with the same share of hits, leave recalls as they are.
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
