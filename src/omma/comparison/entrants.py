"""The arguments of ``compare`` and ``choose``: rows, metrics and policies, checked once."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from numpy.typing import ArrayLike

from omma._validate import (
    check_budget,
    check_number,
    check_positive_int,
    nearest,
    repeated,
    shown,
)
from omma.metrics import Metric, read_target
from omma.metrics.target import Target
from omma.policies import MetricPolicy, Policy
from omma.policies.base import whole_for
from omma.policies.roster import NAMES, ROSTER
from omma.rows.batch import Batch
from omma.rows.frames import Names

Make = Callable[[Metric, int | None, float], Policy]
TITLES: dict[str, str] = {name: entry.title for name, entry in ROSTER.items()}
# The policies to run for a metric and a budget, by prior; None is the key of one without prior.
Build = Callable[[Metric, int | None], dict[float | None, Policy]]


def read_rows(
    owner: str, eta: Any, y: Any, names: Names | None = None, weights: ArrayLike | None = None
) -> Batch:
    """Rows as kernels read them fastest, so that no replay converts them again."""
    if y is None and not isinstance(eta, Batch):
        raise ValueError(f"y of {owner} must be given, got None")
    batch = Batch.read(owner, eta, y, weights, names)
    if not batch.n or not batch.m:
        raise ValueError(
            f"eta of {owner} must have at least one row and label, got {batch.n} rows and "
            f"{batch.m} labels"
        )
    if batch.labels is None:
        raise ValueError(f"eta of {owner} must be a batch with labels, got {batch!r}")
    known = batch.labels.known
    if known is not None and not known.any():
        raise ValueError(f"y of {owner} must have labels that are known, got nan alone")
    return batch.ready()


def check_whole(owner: str, metric: Metric, data: Batch) -> None:
    """Refuse rows that are labelled in part by whom no metric of one class a row could judge."""
    why = whole_for(metric)
    if why is not None and data.labels is not None:
        data.labels.refuse_halves(owner, why)


def read_train(train: Any, data: Batch) -> Batch | None:
    """What policies learn from beforehand, if there is any."""
    if train is None:
        return None
    pair = (train, None) if isinstance(train, Batch) else train
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"train of compare must be a pair (eta, y), got {shown(train)}")
    read = read_rows("compare's train", pair[0], pair[1], data.names)
    if read.m != data.m:
        raise ValueError(f"train of compare must have {data.m} labels, as eta, got {read.m}")
    return read


@dataclass(frozen=True)
class BudgetedMetric:
    """A metric with its budget, and what the two are called together."""

    name: str
    metric: Metric
    k: int | None


def read_targets(metrics: Any, data: Batch, owner: str = "compare") -> list[BudgetedMetric]:
    """All metrics, each with a budget that the data has labels for."""
    targets = [_target(choice, data.class_ids) for choice in listed("metrics", metrics)]
    distinct("metrics", [target.name for target in targets])
    for target in targets:
        target.metric.check_labels(data.m)
        check_budget(f"{owner} by {target.name}", target.k, data.m)
    return targets


def _target(choice: Any, one_class: bool) -> BudgetedMetric:
    """A metric by its name, with its budget after an @, as a pair with it, or as it is."""
    k = None
    if isinstance(choice, tuple) and len(choice) == 2:
        choice, k = choice
    if not isinstance(choice, str | Metric):
        raise TypeError(
            f"metrics of compare must be names, metrics or pairs (metric, k), got {shown(choice)}"
        )
    metric, own = read_target(choice)
    k = own if k is None else k
    check_positive_int("compare", f"budget of {metric.name}", k, optional=True)
    name = str(Target(metric.name, k))
    return BudgetedMetric(name, metric, 1 if k is None and (one_class or metric.multiclass) else k)


def distinct(parameter: str, names: Sequence[Any], hint: str = "") -> None:
    """At least one, and none twice."""
    if not names:
        raise ValueError(f"{parameter} of compare must hold at least one, got none")
    if len(set(names)) < len(names):
        raise ValueError(
            f"{parameter} of compare must be distinct, got {repeated(names)!r} twice{hint}"
        )


def listed(parameter: str, choices: Any) -> list[Any]:
    """Choices as a list; one name, metric or policy alone is a list of one."""
    if isinstance(choices, Mapping):
        return list(choices.items())
    if isinstance(choices, str | Metric | Policy) or callable(choices):
        return [choices]
    if not isinstance(choices, Iterable):
        raise TypeError(f"{parameter} of compare must be a list, got {shown(choices)}")
    return list(choices)


def read_seeds(seeds: Iterable[int | None]) -> tuple[int | None, ...]:
    """A whole number for each sequence, or None for the order given."""
    if not isinstance(seeds, Iterable):
        raise TypeError(
            f"seeds of compare must be whole numbers, such as range(5), got {shown(seeds)}"
        )
    seeds = list(seeds)
    for seed in seeds:
        whole = isinstance(seed, Integral) and not isinstance(seed, bool) and seed >= 0
        if seed is not None and not whole:
            raise ValueError(
                "seeds of compare must be whole numbers of at least 0, or None for the order "
                f"given, got {shown(seed)}"
            )
    distinct("seeds", seeds)
    return tuple(None if seed is None else int(seed) for seed in seeds)


def read_priors(priors: Iterable[float] | float) -> tuple[float, ...]:
    """The values of λ to try."""
    numbers = list(priors) if isinstance(priors, Iterable) else [priors]
    numbers = [check_number("compare", "priors", prior, low=0.0) for prior in numbers]
    distinct("priors", numbers)
    return tuple(numbers)


@dataclass(frozen=True)
class Entrant:
    """A policy to compare, and how it is made for a metric."""

    name: str
    title: str
    build: Build


def _for_each_prior(make: Make, priors: tuple[float, ...]) -> Build:
    return lambda metric, k: {prior: make(metric, k, prior) for prior in priors}


def _users_own(name: str, make: Make, priors: tuple[float, ...]) -> Build:
    """From a function of a user, which may ignore the prior: then one run is enough."""

    def build(metric: Metric, k: int | None) -> dict[float | None, Policy]:
        policies: dict[float | None, Policy] = {prior: make(metric, k, prior) for prior in priors}
        first = policies[priors[0]]
        for policy in policies.values():
            if not isinstance(policy, Policy):
                raise TypeError(
                    f"the function {name!r} in policies of compare must return a policy, got "
                    f"{shown(policy)}"
                )
        ignored = len(priors) > 1 and all(_equal(policy, first) for policy in policies.values())
        return {None: first} if ignored else policies

    return build


def _equal(policy: Policy, second: Policy) -> bool:
    try:
        return bool(policy == second)
    except ValueError:  # arrays do not say whether they are equal
        return False


def read_entrants(policies: Any, train: Batch | None, priors: tuple[float, ...]) -> list[Entrant]:
    """The policies to compare, each under a name of its own."""
    entrants = [_entrant(choice, None, train, priors) for choice in listed("policies", policies)]
    distinct("policies", [entrant.name for entrant in entrants], ": name them by a dict")
    return entrants


def titles(entrants: list[Entrant]) -> dict[str, str]:
    """What tables call each policy: by its own name where two have one title."""
    all_titles = [entrant.title for entrant in entrants]
    return {
        entrant.name: entrant.name if all_titles.count(entrant.title) > 1 else entrant.title
        for entrant in entrants
    }


def _entrant(choice: Any, name: str | None, train: Batch | None, priors: Any) -> Entrant:
    """A policy by its name, as it is, or as a function that makes it."""
    if isinstance(choice, str):
        title, build = _by_name(choice, train, priors)
        return Entrant(name or choice, name or title, build)
    if isinstance(choice, tuple) and len(choice) == 2 and isinstance(choice[0], str):
        return _entrant(choice[1], choice[0], train, priors)
    if isinstance(choice, Policy):
        name = name or shown(choice)
        return Entrant(name, name, lambda metric, k: {getattr(choice, "prior", None): choice})
    name = name or str(getattr(choice, "__name__", shown(choice)))
    if isinstance(choice, type) and issubclass(choice, MetricPolicy):

        def make(metric: Metric, k: int | None, prior: float) -> Policy:
            return choice(metric, k, prior=prior)

        return Entrant(name, name, _for_each_prior(make, priors))
    if callable(choice) and not isinstance(choice, type | Metric):
        return Entrant(name, name, _users_own(name, choice, priors))
    raise TypeError(
        "policies of compare must be names, policies, functions of (metric, k, prior) or pairs "
        f"(name, policy), got {shown(choice)}"
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
