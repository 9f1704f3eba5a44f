"""omma as a scikit-learn classifier: a model of yours, and the decisions that maximize a metric.

``MetricClassifier`` wraps a classifier as ``TunedThresholdClassifierCV`` does, for binary,
multi-class and multi-label problems, and for every metric of omma.
"""

try:
    import sklearn as _sklearn  # scikit-learn itself: this folder is omma.sklearn
except ImportError as error:
    raise ImportError(
        'omma.sklearn needs scikit-learn, which is not installed: pip install "omma-learn[sklearn]"'
    ) from error
else:
    del _sklearn

from omma.sklearn.classifier import MetricClassifier, ScoreHistory
from omma.sklearn.displays import ReliabilityDisplay, ThresholdCurveDisplay
from omma.sklearn.ruled import RuledClassifier
from omma.sklearn.scoring import make_scorer

__all__ = [
    "MetricClassifier",
    "ReliabilityDisplay",
    "RuledClassifier",
    "ScoreHistory",
    "ThresholdCurveDisplay",
    "make_scorer",
]
