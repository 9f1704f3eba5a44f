"""omma: decisions that maximize the metric you are judged by.

A classifier gives probabilities; ``omma`` turns them into decisions that maximize F1, G-mean,
recall@3, MCC and others, one row at a time, in one pass, remembering nothing but counts.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Whoever imports omma decides rows soon: what that takes of other libraries is loaded here, so that
# the first answer does not wait for it.
import numba as _numba  # noqa: F401
import numpy as _numpy  # noqa: F401
import scipy.sparse as _sparse  # noqa: F401

__version__ = "0.1.0"

if TYPE_CHECKING:
    from omma import datasets, metrics
    from omma.comparison import Choice, Comparison, choose, compare
    from omma.counts import Counts
    from omma.curves import Curve, curve
    from omma.evaluation import replay
    from omma.frontiers import Frontier, frontier
    from omma.limits import Limit, at_least, at_most
    from omma.merging import step
    from omma.metrics import Metric, metric
    from omma.moved import Drift, drift
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
    from omma.trace import History, Trace


# Our own rooms are imported when they are asked for: who replays does without serving, and who
# reads a rule without both.
ROOMS = (
    "calibration",
    "datasets",
    "estimators",  # this, study and theory say that they moved
    "export",
    "metrics",
    "plots",
    "river",
    "sklearn",
    "spark",
    "study",
    "theory",
)
# Where public names come from; those that are not here are policies.
PLACES = {
    "comparison": ("Choice", "Comparison", "choose", "compare"),
    "counts": ("Counts",),
    "curves": ("Curve", "curve"),
    "evaluation": ("replay",),
    "frontiers": ("Frontier", "frontier"),
    "limits": ("Limit", "at_least", "at_most"),
    "merging": ("step",),
    "metrics": ("Metric", "metric"),
    "moved": ("Drift", "drift"),
    "online": ("Journal", "OnlineClassifier"),
    "rows.batch": ("Batch",),
    "rule": ("Rule",),
    "state": ("State",),
    "trace": ("History", "Trace"),
}

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

OTHERS = {name: place for place, names in PLACES.items() for name in names}
WHERE = {name: OTHERS.get(name, "policies") for name in __all__ if name not in ROOMS}
BEHIND = frozenset(place.split(".")[0] for place in WHERE.values())  # rooms that names come from


def __getattr__(name: str) -> Any:
    """Import what is asked for, once."""
    if name in ROOMS or name in BEHIND:
        return import_module(f"omma.{name}")
    if name in WHERE:
        found = globals()[name] = getattr(import_module(f"omma.{WHERE[name]}"), name)
        return found
    raise AttributeError(f"module 'omma' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names alone; rooms behind them are imported by their own names."""
    return sorted((*__all__, "__version__"))
