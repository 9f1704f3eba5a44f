"""Thresholds tuned by hand's method: for each label the best cut of a labelled sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from omma.limits import check_limits, read_limits
from omma.metrics import LabelMetric, Macro, Metric, metric as find_metric
from omma.metrics.names import MetricName
from omma.policies.base import UnsupportedMetricError
from omma.policies.fixed import FixedRule
from omma.policies.frank_wolfe import check_sample
from omma.policies.thresholds import CutSample, best_cuts, metric_of_label, threshold_rule
from omma.rows.batch import Batch


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
        is unknown (NaN) in some rows is tuned on the others; limits on rates are held on known
        labels, those on what is predicted on all rows.

        >>> import omma
        >>> eta, y = [[0.9, 0.2], [0.6, 0.4], [0.3, 0.7]], [[1, 0], [float("nan"), 1], [0, 1]]
        >>> omma.TunedThresholds("macro_f1").fit(eta, y).decision.thresholds
        array([0.9, 0.4])
        """
        owner = "TunedThresholds.fit"
        metric = find_metric(self.metric)
        batch = Batch.read(owner, eta, y, weights)
        metric.check_labels(batch.m)
        batch.check(owner)
        check_sample(owner, batch)
        limits = tuple(
            limit.named(batch.names, batch.m, "TunedThresholds") for limit in self.subject_to or ()
        )
        check_limits("TunedThresholds", limits, batch.m, 0.0, float(batch.m))
        sample = CutSample.of(batch, metric_of_label(metric))
        chosen = best_cuts(sample, limits)
        thresholds = [
            cuts.thresholds[place] for cuts, place in zip(sample.labels, chosen, strict=True)
        ]
        return FixedRule(threshold_rule(np.array(thresholds)).named(batch.names), metric)
