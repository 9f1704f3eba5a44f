"""omma inside river: a classifier that decides by a metric, and omma's metrics as river's.

``MetricClassifier`` wraps a river model that gives probabilities: binary, multi-class or
multi-label. ``Metric`` is any metric of omma, with river's ``update``, ``revert`` and ``get``.

>>> from river import datasets, evaluate, naive_bayes
>>> from omma.river import Metric, MetricClassifier
>>> model = MetricClassifier(naive_bayes.GaussianNB(), metric="multiclass_gmean")
>>> dataset = datasets.ImageSegments().take(500)
>>> evaluate.progressive_val_score(dataset, model, Metric("multiclass_gmean"))
multiclass_gmean: 52.43%
"""

try:
    import river  # noqa: F401
except ImportError as error:
    raise ImportError(
        'omma.river needs river, which is not installed: pip install "omma-learn[river]"'
    ) from error

from omma.river.classifier import (
    MetricClassifier,
    MultiLabelMetricClassifier,
    SingleLabelMetricClassifier,
)
from omma.river.metric import Metric

__all__ = [
    "Metric",
    "MetricClassifier",
    "MultiLabelMetricClassifier",
    "SingleLabelMetricClassifier",
]
