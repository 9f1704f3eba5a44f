"""omma: decisions that maximize the metric you are judged by.

A classifier gives probabilities; ``omma`` turns them into decisions that maximize F1, G-mean,
recall@3, MCC and others, one row at a time, in one pass, remembering nothing but counts.
"""

from omma import datasets, metrics
from omma.comparison import Comparison, compare
from omma.counts import Counts
from omma.evaluation import History, Trace, replay
from omma.metrics import Metric, metric
from omma.online import OnlineClassifier
from omma.policies import (
    OFO,
    OMMA,
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

__all__ = [
    "OFO",
    "OMMA",
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
    "compare",
    "datasets",
    "metric",
    "metrics",
    "replay",
]
