"""Who takes part: policies by their names, as they are, or by functions that make them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from omma._validate import nearest, shown
from omma.comparison.arguments import Train, distinct, listed
from omma.metrics import Metric, metric as find_metric
from omma.policies import (
    OFO,
    OMMA,
    Auto,
    FrankWolfe,
    Greedy,
    MetricPolicy,
    OnlineFrankWolfe,
    Policy,
    Threshold,
    TopK,
    TunedThresholds,
    UnsupportedMetricError,
)
from omma.tables import HAT_ETA

Make = Callable[[Metric, int | None, float], Policy]
# The policies to run for a metric and a budget, by prior; None is the key of one without prior.
Build = Callable[[Metric, int | None], dict[float | None, Policy]]


@dataclass(frozen=True)
class Entrant:
    """A policy that takes part, and how it is made for a metric."""

    name: str
    title: str
    build: Build


def _baseline(metric: Metric, k: int | None) -> Policy:
    return Threshold(0.5) if k is None else TopK(k)


def _auto(metric: Metric, k: int | None) -> Policy:
    return Auto(metric, k)


def _online(
    kind: type[MetricPolicy], feedback: str, metric: Metric, k: int | None, prior: float
) -> Policy:
    return kind(metric, k, feedback, prior)


def _ofo(feedback: str, metric: Metric, k: int | None, prior: float) -> Policy:
    for name, average in (("macro_f1", "macro"), ("f1", "macro"), ("micro_f1", "micro")):
        if k is None and metric == find_metric(name):
            return OFO(average, feedback, prior)
    raise UnsupportedMetricError("OFO is for f1, macro_f1 and micro_f1 without a budget")


def _offline(train: Train, metric: Metric, k: int | None) -> Policy:
    return FrankWolfe(metric, k).fit(*train)


def _tuned(train: Train, metric: Metric, k: int | None) -> Policy:
    if k is not None:
        raise UnsupportedMetricError("TunedThresholds is for metrics without a budget")
    return TunedThresholds(metric).fit(*train)


# For each name a title, and a function that makes the policy.
_BY_PRIOR: dict[str, tuple[str, Make]] = {
    f"{name}{ending}": (f"{title}{variant}", partial(make, feedback))
    for ending, variant, feedback in (("", "", "labels"), ("_eta", f"({HAT_ETA})", "estimates"))
    for name, title, make in (
        ("omma", "OMMA", partial(_online, OMMA)),
        ("greedy", "Greedy", partial(_online, Greedy)),
        ("ofo", "OFO", _ofo),
        ("online_fw", "Online-FW", partial(_online, OnlineFrankWolfe)),
    )
}
_TRAINED: dict[str, tuple[str, Callable[[Train, Metric, int | None], Policy]]] = {
    "offline_fw": ("Offline-FW", _offline),
    "tuned": ("Tuned thresholds", _tuned),
}
_PLAIN: dict[str, tuple[str, Callable[[Metric, int | None], Policy]]] = {
    **dict.fromkeys(("baseline", "top_k_or_half"), (f"Top-k / {HAT_ETA} ≥ 0.5", _baseline)),
    "auto": ("Auto", _auto),
}
NAMES: tuple[str, ...] = (*_PLAIN, *_BY_PRIOR, *_TRAINED)


def _for_each_prior(make: Make, priors: tuple[float, ...]) -> Build:
    return lambda metric, k: {prior: make(metric, k, prior) for prior in priors}


def _once(make: Callable[[Metric, int | None], Policy]) -> Build:
    return lambda metric, k: {None: make(metric, k)}


def _as_it_is(policy: Policy) -> Build:
    return lambda metric, k: {getattr(policy, "prior", None): policy}


def _users_own(name: str, make: Make, priors: tuple[float, ...]) -> Build:
    """From a function of a user, which may ignore the prior: then one run is enough."""

    def build(metric: Metric, k: int | None) -> dict[float | None, Policy]:
        made: dict[float | None, Policy] = {prior: make(metric, k, prior) for prior in priors}
        first = made[priors[0]]
        for policy in made.values():
            if not isinstance(policy, Policy):
                raise TypeError(
                    f"the function {name!r} in policies of compare must return a policy, got "
                    f"{shown(policy)}"
                )
        ignored = len(priors) > 1 and all(_equal(one, first) for one in made.values())
        return {None: first} if ignored else made

    return build


def _equal(one: Policy, other: Policy) -> bool:
    try:
        return bool(one == other)
    except ValueError:  # arrays do not say whether they are equal
        return False


def read_entrants(policies: Any, train: Train | None, priors: tuple[float, ...]) -> list[Entrant]:
    """All who take part, each under a name of its own."""
    entrants = [_entrant(one, None, train, priors) for one in listed("policies", policies)]
    distinct("policies", [one.name for one in entrants], ": name them by a dict")
    return entrants


def titles(entrants: list[Entrant]) -> dict[str, str]:
    """What each is called; by its own name where another has the same title."""
    every = [one.title for one in entrants]
    return {one.name: one.name if every.count(one.title) > 1 else one.title for one in entrants}


def _entrant(given: Any, name: str | None, train: Train | None, priors: Any) -> Entrant:
    """Whoever takes part, by a name, as a policy, or as a function that makes one."""
    if isinstance(given, str):
        title, build = _by_name(given, train, priors)
        return Entrant(name or given, name or title, build)
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str):
        return _entrant(given[1], given[0], train, priors)
    if isinstance(given, Policy):
        name = name or shown(given)
        return Entrant(name, name, _as_it_is(given))
    name = name or str(getattr(given, "__name__", shown(given)))
    if isinstance(given, type) and issubclass(given, MetricPolicy):
        return Entrant(name, name, _for_each_prior(partial(_online, given, "labels"), priors))
    if callable(given) and not isinstance(given, type):
        return Entrant(name, name, _users_own(name, given, priors))
    raise TypeError(
        "policies of compare must be names, policies, functions of (metric, k, prior) or pairs "
        f"(name, policy), got {shown(given)}"
    )


def _by_name(name: str, train: Train | None, priors: tuple[float, ...]) -> tuple[str, Build]:
    if name in _PLAIN:
        return _PLAIN[name][0], _once(_PLAIN[name][1])
    if name in _BY_PRIOR:
        return _BY_PRIOR[name][0], _for_each_prior(_BY_PRIOR[name][1], priors)
    if name not in _TRAINED:
        hint = nearest(name, NAMES) or f"; names are {', '.join(NAMES)}"
        raise ValueError(f"policies of compare must be known, got {name!r}{hint}")
    if train is None:
        raise ValueError(
            f"train of compare must be a pair (eta, y) for {name!r}, which learns beforehand, "
            "got None"
        )
    return _TRAINED[name][0], _once(partial(_TRAINED[name][1], train))
