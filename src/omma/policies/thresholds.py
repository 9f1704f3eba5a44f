"""Threshold search: the best threshold of each label on a labelled sample.

A cut c predicts the c most probable rows of a label. The metrics here are means over labels, so
each label has a value at each of its cuts. There are three cases:

- No limits: each label has its own best cut, found by one sort and a look at all cuts.
- Limits on a single label: all cuts are tried, and the best that meets all limits is exact.
- Limits on many labels: each limit has a price. At given prices, each label's best cut of
  value + Σ price · room is exact again. A rate enters by its linear form at the bound, num − C·den.
  The value of the best cuts is a convex function of the prices (the Lagrange dual), whose minimum
  is found by cutting planes.

Of all cuts tried under limits, those that miss the limits least are chosen, and of these the best.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from omma.kernels.layout import PREDICTED
from omma.limits import Limit, check_limits, read_limits
from omma.metrics import LabelMetric, Macro, Metric, MetricName, metric as find_metric
from omma.policies.base import UnsupportedMetricError, check_task
from omma.policies.fixed import FixedRule
from omma.rows.batch import Batch, read_labelled
from omma.rule import Rule

PLANES = 60  # prices tried for one set of bounds
ENOUGH = 1e-7  # of the value: cutting planes stop this near to the least
TIGHTENINGS = 6  # of bounds, where the cuts at the best prices just miss a limit
OVERSHOOT = 1.2  # bounds are tightened by this share of what was missed
HIGHEST_PRICE = 1e6  # keeps the linear program bounded where no cuts meet the limits
ROUNDING = 1e-12  # a limit that is missed by less is met

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class TunedThresholds:
    """Exact thresholds for a macro metric on a labelled sample, by one sort a label.

    Parameters
    ----------
    metric : str or Metric
        A ``macro_`` metric, or one of one label.
    subject_to : str, Limit, or list of these, optional
        Limits that must hold on the sample, as for ``omma.Auto``. For one label the best cut that
        meets all limits is exact. For many labels, the prices of limits are found by cutting
        planes; the result is within one label's next cut of the best. Where no cuts meet the
        limits, those that come nearest are chosen.

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=10, seed=0)
    >>> tuned = omma.TunedThresholds("macro_f1").fit(eta, y)
    >>> half = omma.replay(omma.Threshold(0.5), eta, y, metric="macro_f1")
    >>> omma.replay(tuned, eta, y).value > half.value
    True
    >>> tuned.decision.thresholds.shape
    (10,)
    >>> few = omma.TunedThresholds("macro_f1", subject_to="labels_per_row <= 1").fit(eta, y)
    >>> bool(few.decision.predict(eta).sum(axis=1).mean() <= 1)
    True
    """

    metric: MetricName | Metric | str
    subject_to: Any = None

    def __post_init__(self) -> None:
        metric = find_metric(self.metric)
        object.__setattr__(self, "metric", metric)
        if not isinstance(metric, Macro | LabelMetric):
            raise UnsupportedMetricError(
                "metric of TunedThresholds must be a macro_ metric or one of one label, got "
                f"{metric.name}"
            )
        limits = read_limits("TunedThresholds", self.subject_to)
        object.__setattr__(self, "subject_to", limits)

    def fit(self, eta: Any, y: Any = None, *, weights: ArrayLike | None = None) -> FixedRule:
        """Find the thresholds that maximize the metric on a sample; of equals, the highest.

        Labels of probability zero are never predicted, as everywhere in this library. A label that
        is unknown (NaN) in some rows is tuned on the others. Limits on rates are held on known
        labels, limits on predictions on all rows.

        >>> import omma
        >>> eta, y = [[0.9, 0.2], [0.6, 0.4], [0.3, 0.7]], [[1, 0], [float("nan"), 1], [0, 1]]
        >>> omma.TunedThresholds("macro_f1").fit(eta, y).decision.thresholds
        array([0.9, 0.4])
        """
        owner = "TunedThresholds.fit"
        metric: Any = self.metric
        batch = read_labelled(owner, eta, y, weights).check(owner)
        metric.check_labels(batch.m)
        check_task(owner, batch, None, metric, unknown=True, whole=None)
        limits = tuple(
            limit.named(batch.names, batch.m, "TunedThresholds") for limit in self.subject_to or ()
        )
        check_limits("TunedThresholds", limits, batch.m, 0.0, float(batch.m))
        thresholds = best_thresholds(batch, metric.per_label, limits)
        return FixedRule(threshold_rule(thresholds).named(batch.names), metric)


@dataclass(frozen=True)
class RankedLabel:
    """The entries of a label: rows in which its probability is above zero, the highest first.

    ``rows``, ``probabilities`` and ``hits`` have one number for each entry; a hit is 1 if the row
    has the label. ``true`` and ``known`` have one number for each row of the sample: 1 if the row
    has the label, and the row's weight if its label is known, else 0. ``labels`` is the number of
    labels that share the threshold, as in ``pooled``.
    """

    rows: Ints
    probabilities: Floats
    hits: Floats
    true: Floats
    known: Floats
    labels: int = 1

    @property
    def cuts(self) -> Ints:
        """All numbers of entries that a threshold can predict: equal ones are decided alike."""
        # The last entry differs from -1, which no probability is.
        changes = np.flatnonzero(np.diff(self.probabilities, append=-1.0)) + 1
        return np.append(0, changes)

    def thresholds(self, cuts: Ints) -> Floats:
        """The probability of the last entry that each cut predicts; infinite for none."""
        return np.append(np.inf, self.probabilities)[cuts]

    def threshold(self, predicted: float) -> float:
        """A probability between the rows that are predicted and those that are not."""
        if predicted < 0.5:
            return np.inf
        # An average of cuts is no whole number: interpolate linearly between two ranks.
        ranks = np.arange(1, len(self.probabilities) + 1)
        return float(np.interp(predicted + 0.5, ranks, self.probabilities))

    def cells(self, cuts: Ints, weight: Floats) -> Floats:
        """Counts (tp, predicted, positive, n) at each cut, of shape (4, samples, cuts).

        ``weight`` is the weight of each row in each sample, of shape (samples, rows); the first
        cut must be 0. Entries between two cuts are neighbours, so they form one row of a sparse
        matrix, and one matrix product sums them for all samples.
        """
        cells = np.zeros((4, len(weight), len(cuts)))
        shape = (len(cuts) - 1, weight.shape[1])
        for sums, entries in ((cells[0], self.hits), (cells[1], np.ones(len(self.rows)))):
            last = cuts[-1]
            between = sparse.csr_array((entries[:last], self.rows[:last], cuts), shape=shape)
            sums[:, 1:] = (between @ weight.T).cumsum(axis=0).T
        cells[2] = (weight @ self.true)[:, np.newaxis]
        cells[3] = self.labels * weight.sum(axis=1, keepdims=True)
        cells[1] = np.minimum(cells[1], cells[3])  # rounded sums may exceed the sum of all rows
        return cells


def pooled(labels: Sequence[RankedLabel]) -> RankedLabel:
    """The entries of all labels under one threshold."""
    rows, probabilities, hits = (
        np.concatenate([getattr(label, name) for label in labels])
        for name in ("rows", "probabilities", "hits")
    )
    order = np.argsort(-probabilities, kind="stable")
    true, known = (
        np.sum([getattr(label, name) for label in labels], axis=0) for name in ("true", "known")
    )
    return RankedLabel(
        rows[order], probabilities[order], hits[order], true, known, labels=len(labels)
    )


def ranked_labels(sample: Batch, labels: Iterable[int]) -> Iterator[RankedLabel]:
    """Rank the rows of some labels."""
    assert sample.labels is not None
    true_columns = sparse.csc_array(sample.labels.matrix)
    missing = None if sample.labels.missing is None else sparse.csc_array(sample.labels.missing)
    weight = sample.row_weights
    if sample.labels.known is not None:
        weight = np.where(sample.labels.known, weight, 0.0)
    eta: Any = sparse.csc_array(sample.values) if sample.is_sparse else sample.eta
    for j in labels:
        if sample.is_sparse:
            column = slice(eta.indptr[j], eta.indptr[j + 1])
            rows, values = eta.indices[column].astype(np.int64), eta.data[column].astype(np.float64)
        else:
            rows, values = np.arange(sample.n), np.asarray(eta.array[:, j], dtype=np.float64)
        rows, values = rows[values > 0], values[values > 0]
        # Labels of probability zero are never candidates; equal rows stay in their order.
        order = np.argsort(-values, kind="stable")
        true, known = np.zeros(sample.n), weight
        true[true_columns.indices[true_columns.indptr[j] : true_columns.indptr[j + 1]]] = 1.0
        if missing is not None:
            known = weight.copy()
            known[missing.indices[missing.indptr[j] : missing.indptr[j + 1]]] = 0.0
        yield RankedLabel(rows[order], values[order], true[rows[order]], true, known)


def best_thresholds(sample: Batch, metric: LabelMetric, limits: tuple[Limit, ...]) -> Floats:
    """The threshold of each label that maximizes the mean of a metric over labels."""
    weight = sample.row_weights
    labels, thresholds = [], []
    for label in ranked_labels(sample, range(sample.m)):
        cuts = label.cuts
        cells = label.cells(cuts, np.stack((label.known, weight)))
        labels.append(np.vstack((cells[:, 0], cells[PREDICTED, 1])))
        thresholds.append(label.thresholds(cuts))
    assert sample.labels is not None
    known_rows = sample.labels.known
    n = weight.sum() if known_rows is None else weight[known_rows].sum()
    chosen = best_cuts(labels, metric, limits, float(n), float(weight.sum()))
    return np.array([of_label[cut] for of_label, cut in zip(thresholds, chosen, strict=True)])


def best_cuts(
    labels: Sequence[Floats],
    metric: LabelMetric,
    limits: tuple[Limit, ...],
    n: float,
    all_rows: float,
) -> list[int]:
    """The place of each label's best cut; where no cuts meet all limits, of the nearest ones.

    ``labels`` has for each label an array of shape (5, cuts): tp, predicted, positive and n over
    the rows in which the label is known, and ``predicted`` over all rows. The first cut predicts
    nothing. A cut at a row where the label is unknown has the value of the cut before it, so it is
    chosen only where a limit needs it. ``n`` is the weight of rows in which any label is known,
    ``all_rows`` that of all rows.
    """
    values = []
    for tp, predicted, positive, known, _ in labels:
        # A label that is never known is taken as one that never occurs.
        rows = np.where(known > 0.0, known, n)
        values.append(metric.of_cells(tp, predicted, positive, rows) / len(labels))
    if not limits:
        return [int(np.argmax(of_label)) for of_label in values]  # of equals, the fewest rows
    forms = [
        np.array([_form(limit, j, cells, len(labels), n, all_rows) for limit in limits])
        for j, cells in enumerate(labels)
    ]
    search = LimitedSearch(values, forms, limits, n)
    if len(labels) == 1:
        search.consider(np.arange(len(values[0]))[:, np.newaxis])
    else:
        search.try_prices()
    return search.best


def _form(
    limit: Limit, j: int, label: Floats, m: int, n: float, all_rows: float
) -> tuple[Floats, Floats]:
    """The share of each cut of label j in numerator and denominator of a limit's rate."""
    tp, _, positive, known, everywhere = label
    nothing, ones = np.zeros(len(tp)), np.ones(len(tp))
    if not limit.over_all and limit.index != j:
        return nothing, nothing
    if limit.needs_labels:
        # Rows in which the label is known represent all rows with labels; in a mean of recalls, the
        # occurrences of each label represent as many rows.
        rows = m * positive[0] if limit.of == "macro_recall" else known[0]
        scale = n / rows if rows > 0.0 else 1.0
        cells = np.vstack((scale * label[:3], ones * n))
    else:
        # Of labels a row, each label brings its share of the rows.
        rows = all_rows / m if limit.of == "labels_per_row" else all_rows
        cells = np.stack((nothing, everywhere, nothing, ones * rows))
    return np.array(limit.rate.over) @ cells, np.array(limit.rate.under) @ cells


class LimitedSearch:
    """Cuts of all labels under limits; ``best`` are the best of those considered.

    ``values`` has the value of each cut of each label, and ``forms`` the cut's share in numerators
    and denominators of the limits' rates, of shape (limits, 2, cuts) for each label. Dividing by
    ``n`` makes prices independent of the number of rows.
    """

    def __init__(
        self, values: list[Floats], forms: list[Floats], limits: tuple[Limit, ...], n: float
    ) -> None:
        self.values, self.forms, self.n = values, forms, n
        self.sign = np.array([[limit.sign] for limit in limits])
        self.bound = np.array([[limit.bound] for limit in limits])
        variances = [limit.variance_at(limit.bound) for limit in limits]
        margins = [limit.margin for limit in limits]
        self.margin = (np.array(margins) * np.sqrt(variances))[:, np.newaxis]
        self.best: list[int] = []
        self.rank = (np.inf, np.inf)

    def consider(self, chosen: Ints) -> Floats:
        """Compare sets of cuts, of shape (sets, labels), with the best considered before.

        Returns by how much each limit is missed, margin included: of shape (limits, sets).
        """
        pairs = zip(self.forms, chosen.T, strict=True)
        sums = np.sum([form[:, :, cuts] for form, cuts in pairs], axis=0)
        over, under = sums[:, 0], sums[:, 1]
        defined = under > 0.0  # 0/0 misses nothing
        # A margin is a number of standard errors; the denominator is the number of draws.
        draws = np.where(defined, under, 1.0)
        excess = self.sign * (self.bound - over / draws) + self.margin / np.sqrt(draws)
        excess = np.where(defined, excess, 0.0)
        missed = np.maximum(excess - ROUNDING, 0.0).sum(axis=0)
        value = np.sum([of[cuts] for of, cuts in zip(self.values, chosen.T, strict=True)], axis=0)
        first = int(np.lexsort((-value, missed))[0])  # of equals, the fewest rows
        rank = (float(missed[first]), -float(value[first]))
        if rank < self.rank:
            self.rank, self.best = rank, chosen[first].tolist()
        return excess

    def try_prices(self) -> None:
        """Consider the best cuts at prices around the right ones.

        Cuts are discrete, so the best cuts at the right prices may just miss a limit or its margin.
        Then the bounds are tightened by the excess, and the search starts again.
        """
        tightened = self.bound
        for _ in range(TIGHTENINGS):
            rooms = [
                self.sign * (form[:, 0] - tightened * form[:, 1]) / self.n for form in self.forms
            ]
            excess = self.consider(self._best_at(self._right_prices(rooms), rooms))
            if (excess <= ROUNDING).all():
                return
            tightened = tightened + OVERSHOOT * self.sign * np.maximum(excess, 0.0)

    def _best_at(self, prices: Floats, rooms: list[Floats]) -> Ints:
        """The best cut of each label at given prices, as one set; of equals, the fewest rows."""
        pairs = zip(self.values, rooms, strict=True)
        return np.array([[int(np.argmax(values + prices @ room)) for values, room in pairs]])

    def _right_prices(self, rooms: list[Floats]) -> Floats:
        """Prices at which the best cuts are worth least, by Kelley's cutting planes.

        Each set of cuts is a plane over the prices, value + Σ price · room, below the dual.
        """
        from scipy.optimize import linprog  # takes longer to import than all of omma

        count = len(self.bound)
        bounds = [(0.0, HIGHEST_PRICE)] * count + [(None, None)]
        planes, heights = [], []
        right = prices = np.zeros(count)
        least = math.inf
        for _ in range(PLANES):
            chosen = self._best_at(prices, rooms)
            self.consider(chosen)
            cuts = chosen[0]
            value = float(sum(of[cut] for of, cut in zip(self.values, cuts, strict=True)))
            room = np.sum([of[:, cut] for of, cut in zip(rooms, cuts, strict=True)], axis=0)
            if value + prices @ room < least:
                least, right = float(value + prices @ room), prices
            planes.append([*room, -1.0])
            heights.append(-value)
            bottom = linprog([*np.zeros(count), 1.0], A_ub=planes, b_ub=heights, bounds=bounds)
            if not bottom.success or least - bottom.fun <= ENOUGH:
                break
            prices = bottom.x[:count]
        return right


def threshold_rule(thresholds: Floats) -> Rule:
    """Slope one and minus the threshold; a label that is never predicted has no slope."""
    never = np.isinf(thresholds)
    return Rule(np.where(never, 0.0, 1.0), np.where(never, -1.0, -thresholds))
