"""Policies: ways to keep a decision rule up to date.

A policy is a frozen description. All that changes while it runs is in its state, which ``init``
makes, ``predict`` reads and ``update`` changes; ``replay`` runs a whole sequence at once.
"""

from collections.abc import Iterator
from inspect import isabstract
from typing import Any

from omma._validate import nearest, shown
from omma.metrics import Metric, metric_from_json
from omma.policies.around import Around, Forgetting, Window
from omma.policies.auto import Auto
from omma.policies.base import LinearPolicy, MetricPolicy, Policy, UnsupportedMetricError
from omma.policies.fixed import FixedRule, Threshold, TopK
from omma.policies.frank_wolfe import ConvergenceWarning, FrankWolfe
from omma.policies.greedy import Greedy
from omma.policies.mixture import Mixture
from omma.policies.ofo import OFO
from omma.policies.omma import OMMA
from omma.policies.online_frank_wolfe import OnlineFrankWolfe
from omma.policies.roster import ROSTER
from omma.policies.tuned import TunedThresholds


def _kinds(of: Any) -> Iterator[type[Policy]]:
    """Every policy that can be made; whoever is in the roster has been imported."""
    for one in of.__subclasses__():
        if not (isabstract(one) or one.__name__.startswith("_")):
            yield one
        yield from _kinds(one)


POLICIES: dict[str, type[Policy]] = {one.__name__: one for one in _kinds(Policy)}


def policy_from_json(content: Any, metric: Metric | None = None) -> Policy:
    """What ``Policy.to_json`` described; ``metric`` stands in for one that cannot be saved."""
    if not isinstance(content, dict) or "policy" not in content:
        raise ValueError(f"cannot make a policy of {shown(content)}")
    options = dict(content)
    name = options.pop("policy")
    if name not in POLICIES:
        raise ValueError(f"unknown policy {name!r}{nearest(str(name), POLICIES)}")
    kind = POLICIES[name]
    if issubclass(kind, Around):
        options["policy"] = policy_from_json(options.pop("of", None), metric)
    elif options.get("metric") is not None:
        options["metric"] = _metric_of(options["metric"], metric)
    return kind(**options)


def _metric_of(saved: Any, given: Metric | None) -> Metric:
    """The metric that was saved; one that was given must be the same."""
    if given is None:
        return metric_from_json(saved)
    if given.to_json() != saved:
        raise ValueError(f"metric must be the one that was saved, {shown(saved)}, got {given.name}")
    return given


__all__ = [
    "OFO",
    "OMMA",
    "POLICIES",
    "ROSTER",
    "Auto",
    "ConvergenceWarning",
    "FixedRule",
    "Forgetting",
    "FrankWolfe",
    "Greedy",
    "LinearPolicy",
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
