"""Thresholds tuned by hand's method: for each label the best cut of a labelled sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from omma.limits import check_limits, read_limits
from omma.metrics import LabelMetric, Macro, Metric, metric as find_metric
from omma.metrics.names import MetricName
from omma.policies.base import UnsupportedMetricError
from omma.policies.fixed import FixedRule
from omma.policies.frank_wolfe import check_sample
from omma.policies.tuned_limits import Cuts, Sample, tuned
from omma.rows.arrays import entries_of
from omma.rows.batch import Batch
from omma.rule import Rule


@dataclass(frozen=True)
class TunedThresholds:
    """Exact thresholds for a macro metric, one sort a label: what people do by hand today.

    Parameters
    ----------
    metric : str or Metric
        A ``macro_`` metric, or one of one label.
    subject_to : str, Limit, or list of these, optional
        What must hold on the sample, as for ``omma.Auto``. For one label the best cut that meets
        all limits is exact; for many, the price of each limit is found by bisection, and what is
        lost to the best is what one label's next cut is worth. Where no cuts meet the limits, those
        that come nearest are taken.

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
        found = find_metric(self.metric)
        object.__setattr__(self, "metric", found)
        if not isinstance(found, Macro | LabelMetric):
            raise UnsupportedMetricError(
                "metric of TunedThresholds must be a macro_ metric or one of one label, got "
                f"{found.name}"
            )
        limits = read_limits("TunedThresholds", self.subject_to)
        object.__setattr__(self, "subject_to", limits)

    def fit(self, eta: Any, y: Any = None, *, weights: ArrayLike | None = None) -> FixedRule:
        """Find the thresholds that maximize the metric on a sample; of equals, the highest.

        Labels of probability zero are never predicted, as everywhere in this library. A label that
        is unknown (NaN) in some rows is tuned on the others; limits on rates are held on known
        labels, those on what is predicted on all rows.

        >>> import omma
        >>> eta, y = [[0.9, 0.2], [0.6, 0.4], [0.3, 0.7]], [[1, 0], [float("nan"), 1], [0, 1]]
        >>> omma.TunedThresholds("macro_f1").fit(eta, y).decision.thresholds
        array([0.9, 0.4])
        """
        owner = "TunedThresholds.fit"
        found = find_metric(self.metric)
        batch = Batch.read(owner, eta, y, weights)
        found.check_labels(batch.m)
        batch.check(owner)
        check_sample(owner, batch)
        weight = batch.weights if len(batch.weights) else np.ones(batch.n)
        truth = _Truth.of(batch, weight)
        columns = sparse.csc_array(batch.values) if batch.thin else None
        of = found.of if isinstance(found, Macro) else found
        assert isinstance(of, LabelMetric)
        limits = tuple(
            one.named(batch.names, batch.m, "TunedThresholds") for one in self.subject_to or ()
        )
        check_limits("TunedThresholds", limits, batch.m, 0.0, float(batch.m))
        every = []
        for j in range(batch.m):
            which, values = _column(batch.eta, columns, j)
            every.append(_cuts(values, truth.column(j), weight, which, truth.weights(j)))
        sample = Sample(every, of, float(truth.weight.sum()), float(weight.sum()))
        chosen = tuned(sample, limits)
        thresholds = np.array(
            [cuts.thresholds[one] for cuts, one in zip(every, chosen, strict=True)]
        )
        return FixedRule(rule_of_cuts(thresholds).named(batch.names), found)


@dataclass(frozen=True)
class _Truth:
    """True labels by columns, and where they are known.

    ``weight`` is that of the rows, and zero of rows of which nothing is known.
    """

    true: Any
    weight: NDArray[np.float64]
    missing: Any = None

    @classmethod
    def of(cls, batch: Batch, weight: NDArray[np.float64]) -> _Truth:
        labels = batch.labels
        assert labels is not None
        starts, ends, ids = labels.block(np.arange(batch.n, dtype=np.int64))
        row_of = np.repeat(np.arange(batch.n), ends - starts)
        present = ids[entries_of(starts, ends)]
        shape = (batch.n, batch.m)
        true = sparse.csc_array((np.ones(len(present)), (row_of, present)), shape=shape)
        if labels.known is not None:
            weight = np.where(labels.known, weight, 0.0)
        missing = None if labels.missing is None else sparse.csc_array(labels.missing)
        return cls(true, weight, missing)

    def column(self, j: int) -> NDArray[np.float64]:
        """Whether label j is true, in each row."""
        found = np.zeros(len(self.weight))
        entries = slice(self.true.indptr[j], self.true.indptr[j + 1])
        found[self.true.indices[entries]] = self.true.data[entries]
        return found

    def weights(self, j: int) -> NDArray[np.float64]:
        """The weight of each row for label j: zero where it is unknown."""
        if self.missing is None:
            return self.weight
        found: NDArray[np.float64] = self.weight.copy()
        found[self.missing.indices[self.missing.indptr[j] : self.missing.indptr[j + 1]]] = 0.0
        return found


def _column(rows: Any, columns: Any, j: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Rows where label j has a probability above zero, and those probabilities."""
    if columns is None:
        values = np.asarray(rows.array[:, j], dtype=np.float64)
        which = np.flatnonzero(values > 0)
        return which, values[which]
    start, end = columns.indptr[j], columns.indptr[j + 1]
    values = columns.data[start:end].astype(np.float64)
    return columns.indices[start:end][values > 0].astype(np.int64), values[values > 0]


def _cuts(
    values: NDArray[np.float64],
    y: NDArray[np.float64],
    weight: NDArray[np.float64],
    which: NDArray[np.int64],
    known: NDArray[np.float64],
) -> Cuts:
    """The cuts of one label, from none predicted on; the first threshold is infinite.

    ``known`` is the weight of each row in which the label is known, and zero of others. A cut at
    one of these is worth what the last one is, so that it is taken for the sake of a limit alone.
    """
    order = np.argsort(-values, kind="stable")
    falling = values[order]
    chosen = which[order]
    tp = np.concatenate(([0.0], np.cumsum(known[chosen] * y[chosen])))
    predicted = np.concatenate(([0.0], np.cumsum(known[chosen])))
    predicted = np.minimum(predicted, known.sum())  # they may add up to more by a rounding
    everywhere = predicted
    if known is not weight:
        everywhere = np.concatenate(([0.0], np.cumsum(weight[chosen])))
        everywhere = np.minimum(everywhere, weight.sum())
    # A cut may stand only where the probability changes: equal ones are decided alike.
    cuts = np.concatenate(([0], np.flatnonzero(np.diff(falling) != 0) + 1, [len(falling)]))
    cuts = np.unique(cuts)
    thresholds = np.concatenate(([np.inf], falling))[cuts]
    positive = float((known * y).sum())
    counted = (thresholds, tp[cuts], predicted[cuts], positive)
    return Cuts(*counted, float(known.sum()), everywhere[cuts])


def rule_of_cuts(thresholds: NDArray[np.float64]) -> Rule:
    """Slope one and minus the threshold; a label that is never predicted has no slope."""
    never = np.isinf(thresholds)
    return Rule(np.where(never, 0.0, 1.0), np.where(never, -1.0, -thresholds))
