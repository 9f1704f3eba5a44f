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

        Labels of probability zero are never predicted, as everywhere in this library.
        """
        owner = "TunedThresholds.fit"
        found = find_metric(self.metric)
        batch = Batch.read(owner, eta, y, weights)
        found.check_labels(batch.m)
        batch.check(owner)
        check_sample(owner, batch)
        assert batch.labels is not None
        weight = batch.weights if len(batch.weights) else np.ones(batch.n)
        starts, ends, ids = batch.labels.block(np.arange(batch.n, dtype=np.int64))
        row_of = np.repeat(np.arange(batch.n), ends - starts)
        present = ids[entries_of(starts, ends)]
        shape = (batch.n, batch.m)
        true = sparse.csc_array((np.ones(len(present)), (row_of, present)), shape=shape)
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
            every.append(_cuts(values, true[:, [j]].toarray().ravel(), weight, which))
        sample = Sample(every, of, float(weight.sum()))
        chosen = tuned(sample, limits)
        thresholds = np.array(
            [cuts.thresholds[one] for cuts, one in zip(every, chosen, strict=True)]
        )
        return FixedRule(_as_rule(thresholds).named(batch.names), found)


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
) -> Cuts:
    """The cuts of one label, from none predicted on; the first threshold is infinite."""
    order = np.argsort(-values, kind="stable")
    falling = values[order]
    chosen = which[order]
    tp = np.concatenate(([0.0], np.cumsum(weight[chosen] * y[chosen])))
    predicted = np.concatenate(([0.0], np.cumsum(weight[chosen])))
    predicted = np.minimum(predicted, weight.sum())  # they may add up to more by a rounding
    # A cut may stand only where the probability changes: equal ones are decided alike.
    cuts = np.concatenate(([0], np.flatnonzero(np.diff(falling) != 0) + 1, [len(falling)]))
    cuts = np.unique(cuts)
    thresholds = np.concatenate(([np.inf], falling))[cuts]
    return Cuts(thresholds, tp[cuts], predicted[cuts], float((weight * y).sum()))


def _as_rule(thresholds: NDArray[np.float64]) -> Rule:
    """Slope one and minus the threshold; a label that is never predicted has no slope."""
    never = np.isinf(thresholds)
    return Rule(np.where(never, 0.0, 1.0), np.where(never, -1.0, -thresholds))
