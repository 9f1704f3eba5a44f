"""Who takes part: policies by their names, as they are, or by functions that make them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from omma._validate import nearest, shown
from omma.comparison.arguments import distinct, listed
from omma.metrics import Metric
from omma.policies import MetricPolicy, Policy
from omma.policies.roster import NAMES, ROSTER
from omma.rows.batch import Batch

Make = Callable[[Metric, int | None, float], Policy]
# The policies to run for a metric and a budget, by prior; None is the key of one without prior.
Build = Callable[[Metric, int | None], dict[float | None, Policy]]


@dataclass(frozen=True)
class Entrant:
    """A policy that takes part, and how it is made for a metric."""

    name: str
    title: str
    build: Build


TITLES: dict[str, str] = {name: entry.title for name, entry in ROSTER.items()}


def _for_each_prior(make: Make, priors: tuple[float, ...]) -> Build:
    return lambda metric, k: {prior: make(metric, k, prior) for prior in priors}


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


def read_entrants(policies: Any, train: Batch | None, priors: tuple[float, ...]) -> list[Entrant]:
    """All who take part, each under a name of its own."""
    entrants = [_entrant(one, None, train, priors) for one in listed("policies", policies)]
    distinct("policies", [one.name for one in entrants], ": name them by a dict")
    return entrants


def titles(entrants: list[Entrant]) -> dict[str, str]:
    """What each is called; by its own name where another has the same title."""
    every = [one.title for one in entrants]
    return {one.name: one.name if every.count(one.title) > 1 else one.title for one in entrants}


def _entrant(given: Any, name: str | None, train: Batch | None, priors: Any) -> Entrant:
    """Whoever takes part, by a name, as a policy, or as a function that makes one."""
    if isinstance(given, str):
        title, build = _by_name(given, train, priors)
        return Entrant(name or given, name or title, build)
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str):
        return _entrant(given[1], given[0], train, priors)
    if isinstance(given, Policy):
        name = name or shown(given)
        return Entrant(name, name, lambda metric, k: {getattr(given, "prior", None): given})
    name = name or str(getattr(given, "__name__", shown(given)))
    if isinstance(given, type) and issubclass(given, MetricPolicy):

        def make(metric: Metric, k: int | None, prior: float) -> Policy:
            return given(metric, k, prior=prior)

        return Entrant(name, name, _for_each_prior(make, priors))
    if callable(given) and not isinstance(given, type | Metric):
        return Entrant(name, name, _users_own(name, given, priors))
    raise TypeError(
        "policies of compare must be names, policies, functions of (metric, k, prior) or pairs "
        f"(name, policy), got {shown(given)}"
    )


def _by_name(name: str, train: Batch | None, priors: tuple[float, ...]) -> tuple[str, Build]:
    entry = ROSTER.get(name)
    if entry is None:
        hint = nearest(name, NAMES) or f"; names are {', '.join(NAMES)}"
        raise ValueError(f"policies of compare must be known, got {name!r}{hint}")
    entry.check_train(train)
    if entry.priors:
        return entry.title, _for_each_prior(entry.policy, priors)
    return entry.title, lambda metric, k: {None: entry.policy(metric, k, priors[0], train)}
