"""Metrics: what people are judged by, with the derivatives that decisions need.

``omma.metric("macro_f1")`` finds a metric by name. ``macro``, ``micro`` and ``over_classes`` wrap a
metric of one label; ``fbeta``, ``costs`` and ``custom`` make new ones; sums and multiples of
metrics are metrics.

>>> import omma
>>> mixed = 0.5 * omma.metric("macro_f1") + 0.5 * omma.metric("micro_precision")
>>> round(mixed.score([[1, 0], [1, 1]], [[1, 0], [0, 1]]), 4)
0.9167
"""

from omma.metrics.averages import Macro, Micro, OverClasses, Sum, Weighted, over_classes
from omma.metrics.base import Metric
from omma.metrics.binary import Binary, LabelMetric, Minimum, Rate, Smoothing
from omma.metrics.catalog import (
    NAMES,
    accuracy,
    balanced_accuracy,
    f1,
    fbeta,
    gmean,
    hmean,
    jaccard,
    macro,
    mcc,
    metric,
    metric_from_json,
    micro,
    min_recall_specificity,
    minimum,
    precision,
    qmean,
    read_target,
    recall,
    smoothed,
    smoothed_value,
    specificity,
)
from omma.metrics.costs import Costs, RowCosts, costs
from omma.metrics.custom import Custom, custom
from omma.metrics.names import MetricName

__all__ = [
    "NAMES",
    "Binary",
    "Costs",
    "RowCosts",
    "Custom",
    "LabelMetric",
    "Macro",
    "Metric",
    "MetricName",
    "Micro",
    "Minimum",
    "OverClasses",
    "Rate",
    "Smoothing",
    "Sum",
    "Weighted",
    "accuracy",
    "balanced_accuracy",
    "costs",
    "custom",
    "f1",
    "fbeta",
    "gmean",
    "hmean",
    "jaccard",
    "macro",
    "mcc",
    "metric",
    "metric_from_json",
    "micro",
    "min_recall_specificity",
    "minimum",
    "over_classes",
    "precision",
    "qmean",
    "read_target",
    "recall",
    "smoothed",
    "smoothed_value",
    "specificity",
]
