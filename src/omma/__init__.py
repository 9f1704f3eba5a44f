"""omma: decisions that maximize the metric you are judged by.

A classifier gives probabilities; ``omma`` turns them into decisions that maximize F1, G-mean,
recall@3, MCC and others, one row at a time, in one pass, remembering nothing but counts.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from omma import datasets, metrics, plots as plots, policies as policies
    from omma.batch_step import step
    from omma.comparison import Choice, Comparison, choose, compare
    from omma.counts import Counts
    from omma.curves import Curve, curve
    from omma.evaluation import replay
    from omma.frontiers import Frontier, frontier
    from omma.label_drift import Drift, drift
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
    from omma.trace import History, Trace


# Modules are imported when they are first used: `omma --help` loads neither Numba nor SciPy.
SUBMODULES = (
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
NAMES_BY_MODULE = {
    "comparison": ("Choice", "Comparison", "choose", "compare"),
    "counts": ("Counts",),
    "curves": ("Curve", "curve"),
    "evaluation": ("replay",),
    "frontiers": ("Frontier", "frontier"),
    "limits": ("Limit", "at_least", "at_most"),
    "batch_step": ("step",),
    "metrics": ("Metric", "metric"),
    "label_drift": ("Drift", "drift"),
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

MODULE_OF = {name: module for module, names in NAMES_BY_MODULE.items() for name in names}
PUBLIC_NAMES = {name: MODULE_OF.get(name, "policies") for name in __all__ if name not in SUBMODULES}
SOURCES = frozenset(module.split(".")[0] for module in PUBLIC_NAMES.values())


def __getattr__(name: str) -> Any:
    """Import what is asked for, once."""
    if name in SUBMODULES or name in SOURCES:
        return import_module(f"omma.{name}")
    if name in PUBLIC_NAMES:
        globals()[name] = getattr(import_module(f"omma.{PUBLIC_NAMES[name]}"), name)
        return globals()[name]
    raise AttributeError(f"module 'omma' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names alone; other modules are imported by their own names."""
    return sorted((*__all__, "__version__"))
