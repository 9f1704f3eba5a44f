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

__version__ = "0.1.0"

if TYPE_CHECKING:
    from omma.choice import Choice, choose
    from omma.comparison import Comparison, compare


def __getattr__(name: str) -> Any:
    """Import comparisons of policies and rules only when asked for: serving does without them."""
    if name in ("Comparison", "compare"):
        from omma import comparison

        return getattr(comparison, name)
    if name in ("Choice", "choose"):
        from omma import choice

        return getattr(choice, name)
    raise AttributeError(f"module 'omma' has no attribute {name!r}")


__all__ = [
    "OFO",
    "OMMA",
    "Auto",
    "Choice",
    "Comparison",
    "Counts",
    "FixedRule",
    "FrankWolfe",
    "Greedy",
    "History",
    "Metric",
    "Mixture",
    "OnlineClassifier",
    "OnlineFrankWolfe",
    "Policy",
    "Rule",
    "Threshold",
    "TopK",
    "Trace",
    "TunedThresholds",
    "choose",
    "compare",
    "datasets",
    "metric",
    "metrics",
    "replay",
]
