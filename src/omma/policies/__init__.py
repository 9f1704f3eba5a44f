"""Policies: ways to keep a decision rule up to date.

A policy is a frozen description. All that changes while it runs is in its state, which ``init``
makes, ``predict`` reads and ``update`` changes; ``replay`` runs a whole sequence at once.
"""

from __future__ import annotations

from typing import Any

from omma._validate import nearest, shown
from omma.metrics import Metric, metric_from_json
from omma.policies.auto import Auto
from omma.policies.base import LinearPolicy, MetricPolicy, Policy, UnsupportedMetricError
from omma.policies.fixed import FixedRule, Threshold, TopK
from omma.policies.forgetting import Forgetting
from omma.policies.frank_wolfe import ConvergenceWarning, FrankWolfe
from omma.policies.greedy import Greedy
from omma.policies.mixture import Mixture
from omma.policies.ofo import OFO
from omma.policies.omma import OMMA
from omma.policies.online_frank_wolfe import OnlineFrankWolfe
from omma.policies.tuned import TunedThresholds
from omma.policies.window import Window

POLICIES: dict[str, type[Policy]] = {
    one.__name__: one
    for one in (Auto, OMMA, Greedy, OFO, OnlineFrankWolfe, Threshold, TopK, FixedRule, Mixture)
}


def policy_from_json(content: Any, metric: Metric | None = None) -> Policy:
    """What ``Policy.to_json`` described; ``metric`` stands in for one that cannot be saved."""
    if not isinstance(content, dict) or "policy" not in content:
        raise ValueError(f"cannot make a policy of {shown(content)}")
    options = dict(content)
    name = options.pop("policy")
    for around in (Forgetting, Window):
        if name == around.__name__:
            return around(policy_from_json(options.pop("of", None), metric), **options)  # type: ignore[arg-type]
    if name not in POLICIES:
        raise ValueError(f"unknown policy {name!r}{nearest(str(name), POLICIES)}")
    if options.get("metric") is not None:
        if metric is None:
            options["metric"] = metric_from_json(options["metric"])
        elif metric.to_json() != options["metric"]:
            raise ValueError(
                f"metric must be the one that was saved, {shown(options['metric'])}, got "
                f"{metric.name}"
            )
        else:
            options["metric"] = metric
    return POLICIES[name](**options)


__all__ = [
    "OFO",
    "OMMA",
    "POLICIES",
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
