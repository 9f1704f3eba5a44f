"""omma: decisions that maximize the metric you are judged by.

A classifier gives probabilities; ``omma`` turns them into decisions that maximize F1, G-mean,
recall@3, MCC and others, one row at a time, in one pass, remembering nothing but counts.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from omma import metrics
from omma.counts import Counts
from omma.evaluation import replay
from omma.frontiers import Frontier, frontier
from omma.history import History
from omma.limits import Limit, at_least, at_most
from omma.metrics import Metric, metric
from omma.online import Journal, OnlineClassifier
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
    Window,
)
from omma.rows.batch import Batch
from omma.rule import Rule
from omma.state import State
from omma.stepping import step
from omma.trace import Trace

__version__ = "0.1.0"

if TYPE_CHECKING:
    from omma import datasets
    from omma.choice import Choice, choose
    from omma.comparison import Comparison, compare
    from omma.curves import Curve, curve
    from omma.moved import Drift, drift


# Serving does without these: they are imported when they are asked for.
ROOMS = (
    "calibration",
    "datasets",
    "export",
    "plots",
    "river",
    "sklearn",
    "spark",
    "study",
    "theory",
)
ELSEWHERE = {
    "Choice": "choice",
    "Comparison": "comparison",
    "Curve": "curves",
    "Drift": "moved",
    "choose": "choice",
    "compare": "comparison",
    "curve": "curves",
    "drift": "moved",
}


def __getattr__(name: str) -> Any:
    """Import what is not needed by everybody, once it is asked for."""
    if name in ROOMS:
        return import_module(f"omma.{name}")
    if name in ELSEWHERE:
        return getattr(import_module(f"omma.{ELSEWHERE[name]}"), name)
    raise AttributeError(f"module 'omma' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names alone; rooms behind them are imported by their own names."""
    return sorted((*__all__, "__version__"))


__all__ = [
    "OFO",
    "OMMA",
    "Auto",
    "Batch",
    "Choice",
    "Comparison",
    "Counts",
    "Curve",
    "Drift",
    "FixedRule",
    "Forgetting",
    "FrankWolfe",
    "Frontier",
    "Greedy",
    "History",
    "Journal",
    "Limit",
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
    "Window",
    "at_least",
    "at_most",
    "choose",
    "compare",
    "curve",
    "datasets",
    "frontier",
    "drift",
    "metric",
    "metrics",
    "replay",
    "step",
]
