"""omma: decisions that maximize the metric you are judged by.

A classifier gives probabilities; ``omma`` turns them into decisions that maximize F1, G-mean,
recall@3, MCC and others, one row at a time, in one pass, remembering nothing but counts.
"""

from typing import TYPE_CHECKING, Any

from omma import datasets, metrics
from omma.counts import Counts
from omma.evaluation import History, Trace, replay
from omma.metrics import Metric, metric
from omma.online import OnlineClassifier
from omma.policies import (
    OFO,
    OMMA,
    Auto,
    FixedRule,
    Forgetting,
    FrankWolfe,
    Greedy,
    Mixture,
    OnlineFrankWolfe,
    Policy,
    Threshold,
    TopK,
    TunedThresholds,
)
from omma.rule import Rule
from omma.state import State
from omma.stepping import step

__version__ = "0.1.0"

if TYPE_CHECKING:
    from omma.comparison import Comparison, compare
    from omma.curves import Curve, curve
    from omma.moved import Drift, drift


def __getattr__(name: str) -> Any:
    """Import comparisons and the like only when they are asked for: serving does without them."""
    if name in ("Comparison", "compare"):
        from omma import comparison

        return getattr(comparison, name)
    if name in ("Curve", "curve"):
        from omma import curves

        return getattr(curves, name)
    if name in ("Drift", "drift"):
        from omma import moved

        return getattr(moved, name)
    raise AttributeError(f"module 'omma' has no attribute {name!r}")


__all__ = [
    "OFO",
    "OMMA",
    "Auto",
    "Comparison",
    "Counts",
    "Curve",
    "Drift",
    "FixedRule",
    "Forgetting",
    "FrankWolfe",
    "Greedy",
    "History",
    "Metric",
    "Mixture",
    "OnlineClassifier",
    "OnlineFrankWolfe",
    "Policy",
    "Rule",
    "State",
    "Threshold",
    "TopK",
    "Trace",
    "TunedThresholds",
    "compare",
    "curve",
    "datasets",
    "drift",
    "metric",
    "metrics",
    "replay",
    "step",
]
