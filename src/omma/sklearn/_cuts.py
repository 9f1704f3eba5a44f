"""Labels that are decided by a cut of their own: their rows by rank, and what a cut is worth.

A cut takes the most probable rows of a label, so many of them. Where each label is decided by
itself that is any macro metric; of two classes it is every metric, by the rank of the second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma.counts import Counts
from omma.metrics import LabelMetric, Macro, Metric, metric as find_metric
from omma.metrics.averages import OverClasses
from omma.policies import OMMA, Auto
from omma.policies.tuned import rule_of_cuts
from omma.rows.batch import Batch
from omma.rule import Rule

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Worth = Callable[[Floats, Floats, Floats, Floats], Floats]


@dataclass(frozen=True)
class Ranked:
    """The rows in which a label has a probability, the most probable first.

    ``true`` is 1 in all rows that have the label, in their own order.
    """

    rows: Ints
    values: Floats
    true: Floats

    @property
    def cuts(self) -> Ints:
        """How many rows may be taken: equal probabilities are taken together."""
        ends = np.flatnonzero(np.diff(self.values) < 0) + 1
        return np.unique(np.concatenate(([0], ends, [len(self.values)])))

    def threshold(self, taken: float) -> float:
        """A probability between the rows that are taken and those that are not."""
        if taken < 0.5:
            return np.inf
        return float(np.interp(taken + 0.5, np.arange(1, len(self.values) + 1), self.values))


@dataclass(frozen=True)
class Cuts:
    """Every label of a sample by rank.

    ``worth`` is the metric of some cuts of one label, by true positives, predicted and positive
    rows and all rows; the metric is their mean over labels. ``two`` says that there are two
    classes, of which the second is ranked.
    """

    labels: list[Ranked]
    weight: Floats
    worth: Worth
    two: bool
    matrix: bool

    @classmethod
    def of(cls, policy: OMMA | Auto, sample: Batch) -> Cuts | None:
        """Rank the sample; None where cuts do not make a rule."""
        metric = policy.objective
        if policy.feedback == "estimates" or not metric.compiles:
            return None
        weight = sample.weights if len(sample.weights) else np.ones(sample.n)
        if policy.at_most is not None:  # labels of a row are ranked against each other
            return None
        if policy.budget is None and isinstance(metric, Macro | LabelMetric):
            single = metric.of if isinstance(metric, Macro) else metric
            assert isinstance(single, LabelMetric)
            labels = _ranked(sample, range(sample.m))
            return cls(labels, weight, single.of_cells, False, False)
        if policy.budget == 1 and sample.m == 2 and not sample.thin and sample.class_ids:
            worth = worth_of_two(metric)
            return cls(_ranked(sample, range(1, 2)), weight, worth, True, metric.needs_matrix)
        return None

    def taken_by(self, rule: Rule, sample: Batch) -> Ints:
        """How many rows of each label a rule takes."""
        decided = rule.predict(sample.values)
        taken = np.asarray(decided.sum(axis=0), dtype=np.int64).reshape(-1)
        return taken[1:] if self.two else taken

    def counts(self, cells: Floats) -> Counts:
        """Counts of (tp, predicted, positive, n) of each label, the last alike for all."""
        tp, predicted, positive, n = cells.T
        if not self.two:
            return Counts(tp, predicted, positive, float(n[0]))
        return counts_of_two(cells[0].tolist(), self.matrix)

    def rule(self, taken: Floats) -> Rule:
        """The rule that takes so many rows of each label; a label of which none has no slope."""
        pairs = zip(self.labels, taken.tolist(), strict=True)
        at = np.array([label.threshold(wanted) for label, wanted in pairs])
        if self.two:  # p + 1 − 2·cut > 1 − p; no cut is above 1
            return Rule(np.ones(2), np.array([0.0, 1.0 - 2.0 * min(float(at[0]), 2.0)]), 1)
        return rule_of_cuts(at)


def halves(sample: Batch, seed: int) -> tuple[Batch, Batch]:
    """Two random halves of the rows."""
    order = np.random.default_rng(seed).permutation(sample.n)
    middle = len(order) // 2
    return sample.take(order[:middle]), sample.take(order[middle:])


def worth_of_two(metric: Metric) -> Worth:
    """The metric of two classes, by counts of the second."""
    if isinstance(metric, Macro):
        single = metric.of
        assert isinstance(single, LabelMetric)

        def both(tp: Floats, predicted: Floats, positive: Floats, n: Floats) -> Floats:
            rest = np.maximum(n - predicted - positive + tp, 0.0)
            other = single.of_cells(rest, n - predicted, n - positive, n)
            return np.asarray((single.of_cells(tp, predicted, positive, n) + other) / 2)

        return both
    if isinstance(metric, OverClasses) and metric.smoothing is None and metric.kind != "kappa":
        name = "min_recall_specificity" if metric.kind == "min_recall" else metric.kind
        same = find_metric(name)  # of two classes, the recall of the first is specificity
        assert isinstance(same, LabelMetric)
        return same.of_cells

    def each(tp: Floats, predicted: Floats, positive: Floats, n: Floats) -> Floats:
        cells = np.broadcast_arrays(tp, predicted, positive, n)
        every = zip(*(cell.ravel().tolist() for cell in cells), strict=True)
        found = [metric.value(counts_of_two(one, metric.needs_matrix)) for one in every]
        return np.array(found).reshape(cells[0].shape)

    return each


def counts_of_two(cells: Sequence[float], matrix: bool) -> Counts:
    """Counts of both classes, from (tp, predicted, positive, n) of the second."""
    tp, predicted, positive, n = cells
    fp, fn = predicted - tp, positive - tp
    tn = max(n - predicted - fn, 0.0)  # weights may add up to more by a rounding
    return Counts(
        [tn, tp],
        [n - predicted, predicted],
        [n - positive, positive],
        n,
        [[tn, fp], [fn, tp]] if matrix else None,
    )


def _ranked(sample: Batch, wanted: range) -> list[Ranked]:
    """Rows where a label has a probability above zero, for each label that is wanted."""
    assert sample.labels is not None
    given = sample.labels.given
    given = sparse.csc_array(given) if sparse.issparse(given) else given
    if sample.thin:
        columns = sparse.csc_array(sample.values)
        columns.sort_indices()
    else:
        dense = np.asarray(sample.eta.array, dtype=np.float64).reshape(sample.n, -1)  # type: ignore[union-attr]
    found = []
    for j in wanted:
        if sample.thin:
            at = slice(columns.indptr[j], columns.indptr[j + 1])
            rows, values = columns.indices[at].astype(np.int64), columns.data[at].astype(np.float64)
        else:
            rows, values = np.arange(sample.n), dense[:, j]
        rows, values = rows[values > 0], values[values > 0]
        order = np.argsort(-values, kind="stable")
        found.append(Ranked(rows[order], values[order], _true(given, sample.n, j)))
    return found


def _true(given: Any, n: int, j: int) -> Floats:
    """1 in the rows that have label j."""
    if sparse.issparse(given):
        found = np.zeros(n)
        at = slice(given.indptr[j], given.indptr[j + 1])
        found[given.indices[at]] = given.data[at]
        return found
    return np.asarray(given[:, j] if given.ndim == 2 else given == j, dtype=np.float64)
