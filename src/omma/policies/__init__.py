"""Policies: each keeps a decision rule up to date.

A policy is a frozen configuration. Whatever changes while it runs is in its state: ``init`` returns
one, ``predict`` reads it, ``update`` changes it, and ``replay`` runs a whole sequence at once.
"""

from collections.abc import Iterator
from inspect import isabstract
from typing import Any

from omma._validate import nearest, shown
from omma.metrics import Metric, metric_from_json
from omma.policies.auto import Auto
from omma.policies.base import MetricPolicy, Policy, UnsupportedMetricError
from omma.policies.fixed import FixedRule, Threshold, TopK
from omma.policies.frank_wolfe import ConvergenceWarning, FrankWolfe
from omma.policies.greedy import Greedy
from omma.policies.mixture import Mixture
from omma.policies.ofo import OFO
from omma.policies.omma import OMMA
from omma.policies.online_frank_wolfe import OnlineFrankWolfe
from omma.policies.registry import REGISTRY
from omma.policies.thresholds import TunedThresholds
from omma.policies.wrapper import Forgetting, PolicyWrapper, Window


def _concrete(base: Any) -> Iterator[type[Policy]]:
    """All policies that can be made; those in the registry have been imported."""
    for kind in base.__subclasses__():
        if not (isabstract(kind) or kind.__name__.startswith("_")):
            yield kind
        yield from _concrete(kind)


POLICIES: dict[str, type[Policy]] = {kind.__name__: kind for kind in _concrete(Policy)}


def policy_from_json(content: Any, metric: Metric | None = None) -> Policy:
    """Make a policy from its JSON; ``metric`` is for a metric that cannot be saved."""
    if not isinstance(content, dict) or "policy" not in content:
        raise ValueError(f"cannot make a policy from {shown(content)}")
    options = dict(content)
    name = options.pop("policy")
    if name not in POLICIES:
        raise ValueError(f"unknown policy {name!r}{nearest(str(name), POLICIES)}")
    kind, saved = POLICIES[name], options.get("metric")
    if issubclass(kind, PolicyWrapper):
        options["policy"] = policy_from_json(options.pop("of", None), metric)
    elif saved is not None:
        # A metric that was passed must be the one that was saved, not take its place.
        if metric is not None and metric.to_json() != saved:
            raise ValueError(
                f"metric must be the one that was saved, {shown(saved)}, got {metric.name}"
            )
        options["metric"] = metric_from_json(saved) if metric is None else metric
    return kind(**options)


__all__ = [
    "OFO",
    "OMMA",
    "POLICIES",
    "REGISTRY",
    "Auto",
    "ConvergenceWarning",
    "FixedRule",
    "Forgetting",
    "FrankWolfe",
    "Greedy",
    "MetricPolicy",
    "Mixture",
    "OnlineFrankWolfe",
    "Policy",
    "Threshold",
    "TopK",
    "TunedThresholds",
    "UnsupportedMetricError",
    "Window",
    "policy_from_json",
]
