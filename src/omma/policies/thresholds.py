"""Threshold search: where to cut each label of a labelled sample.

A cut predicts the most probable rows of a label, so many of them. Where each label is decided by
itself (a macro metric, a metric of one label), each label's best cut is exact: one sort, and every
cut is tried. Of two classes, any metric is decided by a cut through the rank of the second class.

Under limits (``best_cuts``), every cut of a single label is tried, and the best that meets all
limits is exact. For many labels each limit has a price: at given prices each label's best cut of
metric + Σ price · room is exact again, and the right prices are searched for. Rates enter by their
linear form at the bound, num − C · den, so that at the right price the limit holds and no cuts that
meet it are worth more at that price. The price of one limit is found by bisection. Prices of
several limits are found together, by cutting planes: the value of the best cuts is a convex
function of the prices, and least at the right ones. (Bisecting one limit after another creeps where
two limits leave little room between them.)

The best cut of a small sample is an accident: near its top the metric is flat, and a handful of
rows decide where the top is. ``bagged_rule`` averages over bootstrap samples: the rule predicts as
many rows as their best cuts do, by the geometric mean. Out-of-bag rows compare these cuts with the
rule made of calibrated probabilities; where that does as well, the two are averaged: calibration is
wrong where probabilities are, but scatters less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma.counts import Counts
from omma.limits import Limit
from omma.metrics import LabelMetric, Macro, Metric, metric as find_metric
from omma.metrics.averages import OverClasses
from omma.policies.auto import Auto
from omma.policies.omma import OMMA
from omma.rows.arrays import entries_of
from omma.rows.batch import Batch
from omma.rule import Rule

BISECTIONS = 24  # of one price: it is then known to five digits
PLANES = 60  # prices of several limits that are tried
ENOUGH = 1e-7  # of the value: cutting planes stop this near to the least
TIGHTENINGS = 6  # of bounds, where cuts just miss a limit
OVERSHOOT = 1.2  # bounds are tightened by this share of what was missed
LOWEST, HIGHEST = 1e-6, 1e6  # prices
HAIR = 1e-12

RESAMPLES = 30
CANDIDATES = 500  # cuts tried from either end of the ranks, at most: dense where few are predicted
BLOCK = 2_000_000  # numbers that are worked on at a time

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ValueOfCells = Callable[[Floats, Floats, Floats, Floats], Floats]  # tp, predicted, positive, n


def threshold_rule(thresholds: Floats) -> Rule:
    """Slope one and minus the threshold; a label that is never predicted has no slope."""
    never = np.isinf(thresholds)
    return Rule(np.where(never, 0.0, 1.0), np.where(never, -1.0, -thresholds))


@dataclass(frozen=True)
class RankedLabel:
    """Rows in which a label has a probability above zero, the most probable first.

    ``true`` is 1 in all rows that have the label, and ``known`` is the weight of all rows in which
    the label is known, zero elsewhere; both are in the order of the sample.
    """

    rows: Ints
    probabilities: Floats
    true: Floats
    known: Floats

    @property
    def cuts(self) -> Ints:
        """How many rows may be predicted: equal probabilities are decided alike."""
        changes = np.flatnonzero(np.diff(self.probabilities) != 0) + 1
        return np.unique(np.concatenate(([0], changes, [len(self.probabilities)])))

    def threshold(self, predicted: float) -> float:
        """A probability between the rows that are predicted and those that are not."""
        if predicted < 0.5:
            return np.inf
        ranks = np.arange(1, len(self.probabilities) + 1)
        return float(np.interp(predicted + 0.5, ranks, self.probabilities))


def row_weights(sample: Batch) -> Floats:
    """The weight of each row: one where none were given."""
    return sample.weights if len(sample.weights) else np.ones(sample.n)


def ranked_labels(sample: Batch, labels: range) -> Iterator[RankedLabel]:
    """Rank the rows of some labels."""
    assert sample.labels is not None
    starts, ends, ids = sample.labels.block(np.arange(sample.n, dtype=np.int64))
    row_of, present = np.repeat(np.arange(sample.n), ends - starts), ids[entries_of(starts, ends)]
    entries = (np.ones(len(present)), (row_of, present))
    true_columns = sparse.csc_array(entries, shape=(sample.n, sample.m))
    missing = None if sample.labels.missing is None else sparse.csc_array(sample.labels.missing)
    weight = row_weights(sample)
    if sample.labels.known is not None:
        weight = np.where(sample.labels.known, weight, 0.0)
    eta: Any = sparse.csc_array(sample.values) if sample.thin else sample.eta
    for j in labels:
        if sample.thin:
            column = slice(eta.indptr[j], eta.indptr[j + 1])
            rows, values = eta.indices[column].astype(np.int64), eta.data[column].astype(np.float64)
        else:
            rows, values = np.arange(sample.n), np.asarray(eta.array[:, j], dtype=np.float64)
        rows, values = rows[values > 0], values[values > 0]
        order = np.argsort(-values, kind="stable")
        true, known = np.zeros(sample.n), weight
        true[true_columns.indices[true_columns.indptr[j] : true_columns.indptr[j + 1]]] = 1.0
        if missing is not None:
            known = weight.copy()
            known[missing.indices[missing.indptr[j] : missing.indptr[j + 1]]] = 0.0
        yield RankedLabel(rows[order], values[order], true, known)


# The best cuts of a sample, also under limits.


@dataclass(frozen=True)
class LabelCuts:
    """Counts at each cut of one label, from none predicted on; the first threshold is infinite.

    ``tp``, ``predicted``, ``positive`` and ``n`` are of the rows in which the label is known;
    ``everywhere`` is what is predicted in all rows. A cut at a row where the label is unknown has
    the value of the cut before it, so that only a limit can ask for it.
    """

    thresholds: Floats
    tp: Floats
    predicted: Floats
    positive: float
    n: float
    everywhere: Floats

    @classmethod
    def of(cls, label: RankedLabel, weight: Floats) -> LabelCuts:
        """Count every cut; ``weight`` is that of all rows."""
        cuts, known = label.cuts, label.known
        ranked_known, ranked_weight = known[label.rows], weight[label.rows]
        tp = np.append(0.0, np.cumsum(ranked_known * label.true[label.rows]))[cuts]
        # Weights may add up to more than their total by a rounding.
        predicted = np.minimum(np.append(0.0, np.cumsum(ranked_known)), known.sum())[cuts]
        everywhere = np.minimum(np.append(0.0, np.cumsum(ranked_weight)), weight.sum())[cuts]
        thresholds = np.append(np.inf, label.probabilities)[cuts]
        positive = float((known * label.true).sum())
        return cls(thresholds, tp, predicted, positive, float(known.sum()), everywhere)


@dataclass(frozen=True)
class CutSample:
    """The cuts of all labels, and the metric of one label whose mean over labels is maximized.

    ``n`` is the weight of rows in which any label is known, ``all_rows`` that of all rows.
    """

    labels: list[LabelCuts]
    metric: LabelMetric
    n: float
    all_rows: float

    @classmethod
    def of(cls, sample: Batch, metric: LabelMetric) -> CutSample:
        """Count the cuts of all labels of a sample."""
        weight = row_weights(sample)
        labels = [LabelCuts.of(label, weight) for label in ranked_labels(sample, range(sample.m))]
        assert sample.labels is not None
        known = sample.labels.known
        n = weight.sum() if known is None else np.where(known, weight, 0.0).sum()
        return cls(labels, metric, float(n), float(weight.sum()))

    def values(self, j: int) -> Floats:
        """The metric at each cut of label j, as its part of the mean over labels."""
        cuts = self.labels[j]
        positive = np.full(len(cuts.tp), cuts.positive)
        n = cuts.n or self.n  # a label that is never known is one that never occurs
        return self.metric.of_cells(cuts.tp, cuts.predicted, positive, n) / len(self.labels)

    def scale(self, j: int) -> float:
        """All rows over rows in which label j is known: its counts are scaled up by that.

        >>> never_predicted = LabelCuts(*np.zeros((3, 1)), 0.0, 4.0, np.zeros(1))
        >>> CutSample([never_predicted], None, 8.0, 9.0).scale(0)
        2.0
        """
        known = self.labels[j].n
        return self.n / known if known > 0.0 else 1.0

    def counts(self, chosen: list[int]) -> Counts:
        """Counts at the chosen cut of each label, as if every label were known in every row."""
        pairs = list(zip(self.labels, chosen, strict=True))
        scales = np.array([self.scale(j) for j in range(len(pairs))])
        tp = scales * [cuts.tp[cut] for cuts, cut in pairs]
        predicted = scales * [cuts.predicted[cut] for cuts, cut in pairs]
        return Counts(tp, predicted, scales * [cuts.positive for cuts in self.labels], self.n)

    def predicted_counts(self, chosen: list[int]) -> Counts:
        """What the chosen cuts predict in all rows, for limits on that alone."""
        pairs = zip(self.labels, chosen, strict=True)
        nothing = np.zeros(len(self.labels))
        predicted = [cuts.everywhere[cut] for cuts, cut in pairs]
        return Counts(nothing, predicted, nothing, self.all_rows)

    def forms(self, limit: Limit, j: int) -> tuple[Floats, Floats]:
        """Numerator and denominator of a limit's rate at each cut of label j."""
        cuts = self.labels[j]
        ones = np.ones(len(cuts.tp))
        if limit.needs_labels:
            cells = np.stack((cuts.tp, cuts.predicted, ones * cuts.positive)) * self.scale(j)
            cells = np.vstack((cells, ones * self.n))
        else:
            shares = len(self.labels) if limit.of == "labels_per_row" else 1
            n = self.all_rows / shares  # every label brings its share of the rows
            cells = np.stack((0.0 * ones, cuts.everywhere, 0.0 * ones, ones * n))
        return np.array(limit.rate.over) @ cells, np.array(limit.rate.under) @ cells

    def rows_of(self, limit: Limit) -> float:
        """The weight of the rows that a limit is about."""
        return self.n if limit.needs_labels else self.all_rows

    def room(self, limit: Limit, j: int) -> Floats:
        """What each cut of label j adds to sign · (num − bound · den), as a share of the rows."""
        cuts = self.labels[j]
        if not limit.over_all and limit.index != j:
            return np.zeros(len(cuts.tp))
        if limit.of == "macro_recall":
            bound = np.full(len(cuts.tp), limit.bound)
            recall = cuts.tp / cuts.positive if cuts.positive > 0 else bound
            return limit.sign * (recall - limit.bound) / len(self.labels)
        over, under = self.forms(limit, j)
        return np.asarray(limit.sign * (over - limit.bound * under) / self.rows_of(limit))


def best_cuts(sample: CutSample, limits: tuple[Limit, ...]) -> list[int]:
    """The place of each label's cut; where no cuts meet all limits, those that come nearest."""
    values = [sample.values(j) for j in range(len(sample.labels))]
    if not limits:
        return [int(np.argmax(of_label)) for of_label in values]  # of equals, the fewest rows
    if len(sample.labels) == 1:
        return [_best_cut(sample, limits, values[0])]
    search = PriceSearch(sample, limits, values)
    if len(limits) == 1:
        search.bisect()
    else:
        search.cut_planes()
    return search.chosen


def _best_cut(sample: CutSample, limits: tuple[Limit, ...], values: Floats) -> int:
    """Of all cuts of the only label, the best that meets every limit with its margin."""
    short = np.zeros(len(values))  # of room, in all limits
    missed = np.zeros(len(values))  # of the bounds
    for limit in limits:
        over, under = sample.forms(limit, 0)
        variance, rows = limit.variance, sample.rows_of(limit)
        margin = limit.margin * np.sqrt(variance * np.maximum(under, 0.0)) / rows
        short += np.maximum(margin - sample.room(limit, 0), 0.0)
        defined = under > 0.0  # 0/0 misses nothing
        divisor = np.where(defined, under, 1.0)
        excess = limit.sign * (limit.bound - over / divisor)
        excess += limit.margin * np.sqrt(variance / divisor)
        missed += np.where(defined, np.maximum(excess - HAIR, 0.0), 0.0)
    meets = short <= HAIR
    if meets.any():
        return int(np.argmax(np.where(meets, values, -np.inf)))
    return int(np.lexsort((-values, missed))[0])


class PriceSearch:
    """Prices of limits, tried one after another.

    ``chosen`` are the best cuts seen: those that miss the limits least, then by their value.
    """

    def __init__(self, sample: CutSample, limits: tuple[Limit, ...], values: list[Floats]) -> None:
        self.sample, self.limits, self.values = sample, limits, values
        self.rooms = self._rooms(limits)
        self.chosen: list[int] = []
        self.rank = (np.inf, np.inf)

    def _rooms(self, limits: tuple[Limit, ...]) -> list[Floats]:
        """The room that each cut of each label leaves: (limits, cuts) for each label."""
        labels = range(len(self.values))
        return [np.array([self.sample.room(limit, j) for limit in limits]) for j in labels]

    def best(self, prices: Floats, rooms: list[Floats]) -> list[int]:
        """The best cut of each label at given prices; of equals, the fewest rows."""
        pairs = zip(self.values, rooms, strict=True)
        return [int(np.argmax(values + prices @ room)) for values, room in pairs]

    def value(self, chosen: list[int]) -> float:
        """The metric at some cuts."""
        return float(sum(of[cut] for of, cut in zip(self.values, chosen, strict=True)))

    def take(self, chosen: list[int]) -> Floats:
        """Remember cuts that are the best so far; returns by how much they miss each limit."""
        known = self.sample.counts(chosen)
        everywhere = self.sample.predicted_counts(chosen)
        excess = np.zeros(len(self.limits))
        for i, limit in enumerate(self.limits):
            counts = known if limit.needs_labels else everywhere
            short = limit.sign * (limit.bound - limit.value(counts))
            excess[i] = np.nan_to_num(short + limit.tighter(counts))  # 0/0 misses nothing
        rank = (float(np.maximum(excess - HAIR, 0.0).sum()), -self.value(chosen))
        if rank < self.rank:
            self.rank, self.chosen = rank, chosen
        return excess

    def bisect(self) -> None:
        """Set the price of the only limit as low as the limit allows."""

        def misses(price: float) -> bool:
            return bool(self.take(self.best(np.array([price]), self.rooms))[0] > HAIR)

        if not misses(0.0):
            return
        low, high = LOWEST, HIGHEST
        for _ in range(BISECTIONS):
            price = math.sqrt(low * high)
            if misses(price):
                low = price
            else:
                high = price
        misses(high)  # has not been tried where nothing below it was enough

    def cut_planes(self) -> None:
        """Set the prices of several limits where the value of the best cuts is least.

        Those cuts may just miss a limit, and miss its margin: then bounds are tightened by that.
        """
        self.take(self.best(np.zeros(len(self.limits)), self.rooms))
        rooms, tighter = self.rooms, np.zeros(len(self.limits))
        for _ in range(TIGHTENINGS):
            excess = self.take(self.best(self._least(rooms), rooms))
            if (excess <= HAIR).all():
                return
            tighter += OVERSHOOT * np.maximum(excess, 0.0)
            rooms = self._rooms(
                tuple(
                    replace(limit, bound=limit.bound + limit.sign * float(by))
                    for limit, by in zip(self.limits, tighter, strict=True)
                )
            )

    def _least(self, rooms: list[Floats]) -> Floats:
        """Prices at which the best cuts are worth least: the bottom of planes, one per cuts."""
        from scipy.optimize import linprog  # takes longer to import than all of omma

        count = len(self.limits)
        bounds = [(0.0, HIGHEST)] * count + [(None, None)]
        planes, heights = [], []
        best = prices = np.zeros(count)
        least = math.inf
        for _ in range(PLANES):
            chosen = self.best(prices, rooms)
            self.take(chosen)
            value = self.value(chosen)
            pairs = zip(rooms, chosen, strict=True)
            room = np.sum([of_label[:, cut] for of_label, cut in pairs], axis=0)
            if value + prices @ room < least:
                least, best = float(value + prices @ room), prices
            planes.append([*room, -1.0])
            heights.append(-value)
            bottom = linprog([*np.zeros(count), 1.0], A_ub=planes, b_ub=heights, bounds=bounds)
            if not bottom.success or least - bottom.fun <= ENOUGH:
                break
            prices = bottom.x[:count]
        return best


# Cuts averaged over bootstrap samples.


@dataclass(frozen=True)
class CutTask:
    """Labels that are decided by a cut each, and the metric as a mean over them.

    ``value`` is the metric of one label at each of many cells. ``two_classes`` says that there are
    two classes, of which the second is ranked; ``matrix`` that their metric counts pairs of them.
    """

    labels: list[RankedLabel]
    weight: Floats
    value: ValueOfCells
    two_classes: bool = False
    matrix: bool = False

    @classmethod
    def of(cls, policy: OMMA | Auto, sample: Batch) -> CutTask | None:
        """Rank the sample; None where cuts do not make a rule of the policy."""
        metric, weight = policy.objective, row_weights(sample)
        if has_cuts(policy):
            labels = list(ranked_labels(sample, range(sample.m)))
            return cls(labels, weight, metric_of_label(metric).of_cells)
        two_classes = policy.budget == 1 and sample.m == 2 and sample.class_ids
        if two_classes and not sample.thin and learns_from_labels(policy):
            second = list(ranked_labels(sample, range(1, 2)))
            return cls(second, weight, value_of_two_classes(metric), True, metric.needs_matrix)
        return None

    def counts(self, cells: Floats) -> Counts:
        """Counts of (tp, predicted, positive, n) of each label."""
        tp, predicted, positive, n = cells.T
        if self.two_classes:
            return counts_of_two_classes(cells[0].tolist(), self.matrix)
        return Counts(tp, predicted, positive, float(n[0]))

    def rule(self, predicted: Floats) -> Rule:
        """The rule that predicts so many rows of each label."""
        pairs = zip(self.labels, predicted.tolist(), strict=True)
        thresholds = np.array([label.threshold(count) for label, count in pairs])
        if self.two_classes:  # p + 1 − 2·threshold > 1 − p; no threshold is above 1
            return Rule(np.ones(2), np.array([0.0, 1.0 - 2.0 * min(float(thresholds[0]), 2.0)]), 1)
        return threshold_rule(thresholds)


def learns_from_labels(policy: OMMA | Auto) -> bool:
    """Whether a policy may be tuned on labels, and its metric be worked out at many cells."""
    return policy.feedback != "estimates" and policy.objective.compiles


def has_cuts(policy: OMMA | Auto) -> bool:
    """Whether each label is decided by itself; a budget ranks a row's labels against each other."""
    no_budget = policy.budget is None and policy.at_most is None
    by_label = isinstance(policy.objective, Macro | LabelMetric)
    return no_budget and by_label and learns_from_labels(policy)


def metric_of_label(metric: Metric) -> LabelMetric:
    """The metric of one label, of which the metric is the mean or which it is."""
    of_label = metric.of if isinstance(metric, Macro) else metric
    assert isinstance(of_label, LabelMetric)
    return of_label


def value_of_two_classes(metric: Metric) -> ValueOfCells:
    """The metric of two classes, by cells of the second."""
    if isinstance(metric, Macro):
        of_label = metric_of_label(metric)

        def mean(tp: Floats, predicted: Floats, positive: Floats, n: Floats) -> Floats:
            tn = np.maximum(n - predicted - positive + tp, 0.0)
            first = of_label.of_cells(tn, n - predicted, n - positive, n)
            return np.asarray((of_label.of_cells(tp, predicted, positive, n) + first) / 2)

        return mean
    if isinstance(metric, OverClasses) and metric.smoothing is None and metric.kind != "kappa":
        # Of two classes, the recall of the first is the specificity of the second.
        name = "min_recall_specificity" if metric.kind == "min_recall" else metric.kind
        return metric_of_label(find_metric(name)).of_cells

    def each(tp: Floats, predicted: Floats, positive: Floats, n: Floats) -> Floats:
        cells = np.broadcast_arrays(tp, predicted, positive, n)
        rows = zip(*(cell.ravel().tolist() for cell in cells), strict=True)
        values = [metric.value(counts_of_two_classes(row, metric.needs_matrix)) for row in rows]
        return np.array(values).reshape(cells[0].shape)

    return each


def counts_of_two_classes(cells: Sequence[float], matrix: bool) -> Counts:
    """Counts of both classes, from (tp, predicted, positive, n) of the second."""
    tp, predicted, positive, n = cells
    fp, fn = predicted - tp, positive - tp
    tn = max(n - predicted - fn, 0.0)  # weights may add up to more by a rounding
    pairs = [[tn, fp], [fn, tp]] if matrix else None
    return Counts([tn, tp], [n - predicted, predicted], [n - positive, positive], n, pairs)


def bagged_rule(
    policy: OMMA | Auto,
    sample: Batch,
    calibrated: Rule,
    seed: int,
    value: Callable[[Counts], float],
) -> Rule:
    """The rule of cuts averaged over bootstrap samples.

    It is ``calibrated``, the rule made of probabilities, where labels are not decided by cuts, or
    where no cuts are better on the sample.
    """
    task = CutTask.of(policy, sample)
    if task is None:
        return calibrated
    decided = calibrated.predict(sample.values)
    predicted = np.asarray(decided.sum(axis=0), dtype=np.int64).reshape(-1)
    predicted = predicted[1:] if task.two_classes else predicted
    whole = resample(task, predicted, np.ones((1, sample.n), dtype=np.uint8))
    if not value(task.counts(whole.tuned)) > value(task.counts(whole.standing)):
        return calibrated
    bags = resample(task, predicted, bootstrap_samples(sample.n, seed))
    mean = bags.mean
    tuned, standing = task.counts(bags.tuned_out_of_bag), task.counts(bags.standing_out_of_bag)
    if not value(tuned) > value(standing):
        mean = np.sqrt((mean + 0.5) * (predicted + 0.5)) - 0.5
    return task.rule(mean)


def bootstrap_samples(n: int, seed: int) -> NDArray[np.uint8]:
    """How often each row is in each bootstrap sample."""
    rng = np.random.default_rng(seed)
    times = np.empty((RESAMPLES, n), dtype=np.uint8)
    for bag in times:
        bag[:] = np.minimum(np.bincount(rng.integers(n, size=n), minlength=n), 255)
    return times


class Resampled(NamedTuple):
    """The best cut of each label in each bootstrap sample, beside a standing one.

    ``predicted`` is how many rows each best cut predicts, (labels, samples). The others are cells,
    (labels, 4): tp, predicted, positive and n, summed over the samples.
    """

    predicted: Ints
    tuned: Floats
    standing: Floats
    tuned_out_of_bag: Floats
    standing_out_of_bag: Floats

    @property
    def mean(self) -> Floats:
        """The geometric mean of how many rows are predicted."""
        return np.asarray(np.exp(np.log(self.predicted + 0.5).mean(axis=1)) - 0.5)


def resample(task: CutTask, standing: Ints, times: NDArray[np.uint8]) -> Resampled:
    """Find the best cut of every label in every sample; ``standing`` cuts are compared with it."""
    pairs = zip(task.labels, standing.tolist(), strict=True)
    of_labels = [_resample_label(task, label, cut, times) for label, cut in pairs]
    predicted = np.stack([best for best, _ in of_labels])
    return Resampled(predicted, *np.stack([cells for _, cells in of_labels], axis=1))


def _resample_label(
    task: CutTask, label: RankedLabel, standing: int, times: NDArray[np.uint8]
) -> tuple[Ints, Floats]:
    """The best cut of one label in each sample, and the four kinds of cells of ``Resampled``."""
    cuts = candidate_cuts(label, standing)
    place = int(np.searchsorted(cuts, standing))
    block = max(1, BLOCK // max(len(label.true), 1))
    predicted, sums = [], np.zeros((4, 4))
    for start in range(0, len(times), block):
        drawn = times[start : start + block]
        in_bag = _cells(label, cuts, drawn * task.weight)
        out_of_bag = _cells(label, cuts, (drawn == 0) * task.weight)
        values = task.value(*(cell.ravel() for cell in in_bag)).reshape(in_bag[0].shape)
        best = np.nan_to_num(values, nan=-np.inf).argmax(axis=1)  # of equals, the fewest rows
        # A sample without the label, or with nothing else, tells nothing.
        positive, n = in_bag[2][:, 0], in_bag[3][:, 0]
        best = np.where((positive > 0) & (positive < n), best, place)
        predicted.append(cuts[best])
        samples = np.arange(len(drawn))
        sums += [
            [cell[samples, at].sum() for cell in cells]
            for cells in (in_bag, out_of_bag)
            for at in (best, place)
        ]
    return np.concatenate(predicted), sums


def candidate_cuts(label: RankedLabel, standing: int) -> Ints:
    """Cuts to try: all there are, or so many that steps are about one per cent."""
    cuts = label.cuts
    if len(cuts) > 2 * CANDIDATES:
        steps = np.unique(np.geomspace(1, len(cuts), CANDIDATES).astype(np.int64)) - 1
        cuts = cuts[np.union1d(steps, len(cuts) - 1 - steps)]
    return np.union1d(cuts, [0, standing])


def _cells(label: RankedLabel, cuts: Ints, weight: Floats) -> tuple[Floats, ...]:
    """tp, predicted, positive and n, (samples, cuts); ``weight`` is (samples, rows)."""
    ranked = weight[:, label.rows]
    tp, predicted = _sums_up_to(cuts, ranked * label.true[label.rows]), _sums_up_to(cuts, ranked)
    totals = (weight @ label.true, weight.sum(axis=1))
    positive, n = (np.broadcast_to(total[:, np.newaxis], tp.shape) for total in totals)
    return tp, predicted, positive, n


def _sums_up_to(cuts: Ints, weight: Floats) -> Floats:
    """The sum of the first so many entries of each row."""
    if cuts[-1] == 0:
        return np.zeros((len(weight), len(cuts)))
    parts = np.add.reduceat(weight[:, : cuts[-1]], cuts[:-1], axis=1)
    return np.concatenate((np.zeros((len(weight), 1)), parts.cumsum(axis=1)), axis=1)
