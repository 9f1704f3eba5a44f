"""The arguments of ``compare`` and ``choose``: rows, metrics and policies, checked once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

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
from omma.policies.registry import NAMES, REGISTRY
from omma.rows.batch import Batch


def read_rows(
    owner: str,
    eta: Any,
    y: Any,
    names: Sequence[str] | None = None,
    weights: ArrayLike | None = None,
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


def read_train(train: Any, data: Batch) -> Batch | None:
    """What policies learn from beforehand, if there is any."""
    if train is None:
        return None
    pair = (train, None) if isinstance(train, Batch) else train  # a batch has its labels with it
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"train of compare must be a pair (eta, y), got {shown(train)}")
    sample = read_rows("compare's train", pair[0], pair[1], data.names)
    if sample.m != data.m:
        raise ValueError(f"train of compare must have {data.m} labels, as eta, got {sample.m}")
    return sample


class BudgetedMetric(NamedTuple):
    """A metric with its budget, and what the two are called together."""

    name: str
    metric: Metric
    k: int | None


def read_metrics(owner: str, metrics: Any, data: Batch) -> list[BudgetedMetric]:
    """All metrics, each with its budget; both must go with the labels of the data.

    A metric comes by its name, with its budget after an @, as a pair with it, or as it is.
    """
    targets = []
    for choice in listed("metrics", metrics):
        is_pair = isinstance(choice, tuple) and len(choice) == 2
        metric, k = choice if is_pair else (choice, None)
        if not isinstance(metric, str | Metric):
            raise TypeError(
                f"metrics of {owner} must be names, metrics or pairs (metric, k), got "
                f"{shown(metric)}"
            )
        metric, own = read_target(metric)
        k = own if k is None else k  # of "macro_f1@3", unless a budget comes beside it
        check_positive_int(owner, f"budget of {metric.name}", k, optional=True)
        name = str(Target(metric.name, k))
        if k is None and (data.class_ids or metric.multiclass):
            k = 1
        targets.append(BudgetedMetric(name, metric, k))
    check_distinct("metrics", [target.name for target in targets])
    for name, metric, k in targets:
        metric.check_labels(data.m)
        check_budget(f"{owner} by {name}", k, data.m)
        why = whole_for(metric)  # metrics of one class a row cannot judge part of a row
        if why is not None and data.labels is not None:
            data.labels.refuse_partly_known(owner, why)
    return targets


def check_distinct(parameter: str, names: Sequence[Any], hint: str = "") -> None:
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
        # True is an Integral, too.
        whole = isinstance(seed, Integral) and not isinstance(seed, bool) and seed >= 0
        if seed is not None and not whole:
            raise ValueError(
                "seeds of compare must be whole numbers of at least 0, or None for the order "
                f"given, got {shown(seed)}"
            )
    check_distinct("seeds", seeds)
    return tuple(None if seed is None else int(seed) for seed in seeds)


def read_priors(priors: Iterable[float] | float) -> tuple[float, ...]:
    """The values of λ to try."""
    numbers = list(priors) if isinstance(priors, Iterable) else [priors]
    numbers = [check_number("compare", "priors", prior, low=0.0) for prior in numbers]
    check_distinct("priors", numbers)
    return tuple(numbers)


class Entrant(NamedTuple):
    """A policy to compare: what it is called, and how it is made.

    ``make`` is a function of (metric, k, prior), called for each of ``priors``; None alone is the
    prior of a policy that has none to choose.
    """

    name: str
    title: str
    make: Callable[[Metric, int | None, Any], Policy]
    priors: tuple[float | None, ...]

    def policies(self, metric: Metric, k: int | None) -> dict[float | None, Policy]:
        """The policies to run for a metric and a budget, by prior."""
        policies = {prior: self.make(metric, k, prior) for prior in self.priors}
        for policy in policies.values():
            if not isinstance(policy, Policy):
                raise TypeError(
                    f"the function {self.name!r} in policies of compare must return a policy, got "
                    f"{shown(policy)}"
                )
        first = policies[self.priors[0]]
        # A user's function may ignore the prior: then one run is enough.
        if len(policies) > 1 and all(_equal(policy, first) for policy in policies.values()):
            return {None: first}
        return policies


def _equal(policy: Policy, second: Policy) -> bool:
    try:
        return bool(policy == second)
    except ValueError:  # arrays do not say whether they are equal
        return False


def read_entrants(policies: Any, train: Batch | None, priors: tuple[float, ...]) -> list[Entrant]:
    """The policies to compare, each under a name of its own."""
    entrants = [_entrant(choice, train, priors) for choice in listed("policies", policies)]
    check_distinct("policies", [entrant.name for entrant in entrants], ": name them by a dict")
    # Where two have one title, tables call both by their names.
    titles = [entrant.title for entrant in entrants]
    return [
        entrant._replace(title=entrant.name) if titles.count(entrant.title) > 1 else entrant
        for entrant in entrants
    ]


def _entrant(choice: Any, train: Batch | None, priors: tuple[float, ...]) -> Entrant:
    """A policy by its name in the roster, as it is, or as a function that makes it."""
    name = None
    if isinstance(choice, tuple) and len(choice) == 2 and isinstance(choice[0], str):
        name, choice = choice
    if isinstance(choice, str):
        entry = REGISTRY.get(choice)
        if entry is None:
            hint = nearest(choice, NAMES) or f"; names are {', '.join(NAMES)}"
            raise ValueError(f"policies of compare must be known, got {choice!r}{hint}")
        entry.check_train(train)
        make = partial(entry.policy, train=train)
        return Entrant(
            name or choice, name or entry.title, make, priors if entry.priors else (None,)
        )
    if isinstance(choice, Policy):
        name = name or shown(choice)
        return Entrant(name, name, lambda *_: choice, (getattr(choice, "prior", None),))
    name = name or str(getattr(choice, "__name__", shown(choice)))
    if isinstance(choice, type) and issubclass(choice, MetricPolicy):
        return Entrant(name, name, lambda metric, k, prior: choice(metric, k, prior=prior), priors)
    if callable(choice) and not isinstance(choice, type | Metric):
        return Entrant(name, name, choice, priors)
    raise TypeError(
        "policies of compare must be names, policies, functions of (metric, k, prior) or pairs "
        f"(name, policy), got {shown(choice)}"
    )
