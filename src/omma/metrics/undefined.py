"""Values that leave out what is undefined, as scikit-learn's ``zero_division=nan`` does."""

from __future__ import annotations

from typing import Any

import numpy as np

from omma.counts import Counts
from omma.metrics.averages import KINDS, Macro, OverClasses
from omma.metrics.base import Metric
from omma.metrics.binary import RECALL, mean_of
from omma.metrics.sums import Sum


def value_skipping(metric: Metric, counts: Counts) -> float:
    """The metric without labels whose own is 0/0; NaN where nothing is left.

    >>> import omma
    >>> counts = omma.Counts([0, 3], [0, 4], [0, 4], 10)  # the first label never comes
    >>> macro_f1 = omma.metric("macro_f1")
    >>> macro_f1.value(counts), value_skipping(macro_f1, counts)
    (0.375, 0.75)
    """
    if isinstance(metric, Sum):
        return float(sum(weight * value_skipping(part, counts) for weight, part in metric.terms))
    if isinstance(metric, Macro):
        return _mean("arithmetic", *(metric.of_labels(counts, worth) for worth in (0.0, 1.0)))
    if isinstance(metric, OverClasses) and metric.kind not in ("accuracy", "mcc", "kappa"):
        metric.check_counts(counts)
        cells = (counts.tp, counts.predicted, counts.positive, counts.n)
        return _mean(KINDS[metric.kind].mean, *(RECALL.of(*cells, worth) for worth in (0.0, 1.0)))
    low, high = metric.value(counts, 0.0), metric.value(counts, 1.0)
    return low if low == high else float("nan")


def _mean(kind: str, low: Any, high: Any) -> float:
    """The mean of what does not hang on the worth of 0/0."""
    sure = low[low == high]
    if len(sure) < 2:
        return float(sure[0]) if len(sure) else float("nan")
    return float(np.asarray(mean_of(kind, sure)))
