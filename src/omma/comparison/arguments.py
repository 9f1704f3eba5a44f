"""What ``compare`` is given, read and checked once for all runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from scipy import sparse

from omma._validate import check_budget, check_number, check_positive_int, shown
from omma.metrics import Metric, metric as find_metric
from omma.policies import Policy
from omma.rows.arrays import (
    SparseProbabilities,
    read_labels,
    read_probabilities,
    read_sparse_labels,
)
from omma.rows.frames import Names, opened_pair

Train = tuple[Any, Any]


@dataclass(frozen=True)
class Data:
    """Rows that every policy runs on, converted once."""

    eta: Any
    y: Any
    m: int
    one_class: bool
    names: Names | None = None


def read_data(owner: str, eta: Any, y: Any, names: Names | None = None) -> Data:
    """Data as kernels read it fastest, so that no replay converts it again."""
    if y is None:
        raise ValueError(f"y of {owner} must be given, got None")
    table, y = opened_pair(owner, eta, y, names)
    rows = read_probabilities(owner, table.values).ready()
    labels = read_labels(owner, y, rows.n, rows.m)
    given = labels.given
    if not labels.class_ids:
        given = read_sparse_labels(owner, sparse.csr_array(given), "y")
    array = rows.matrix if isinstance(rows, SparseProbabilities) else rows.array
    return Data(array, given, rows.m, labels.class_ids, table.names)


def read_train(train: Any, m: int, names: Names | None = None) -> Train | None:
    """What policies learn from beforehand, if there is any."""
    if train is None:
        return None
    if not isinstance(train, tuple | list) or len(train) != 2:
        raise TypeError(f"train of compare must be a pair (eta, y), got {shown(train)}")
    read = read_data("compare's train", train[0], train[1], names)
    if read.m != m:
        raise ValueError(f"train of compare must have {m} labels, as eta, got {read.m}")
    return read.eta, read.y


@dataclass(frozen=True)
class Target:
    """A metric with its budget, and what the two are called together."""

    name: str
    metric: Metric
    k: int | None


def read_targets(metrics: Any, data: Data) -> list[Target]:
    """All metrics, each with a budget that the data has labels for."""
    targets = [_target(one, data.one_class) for one in listed("metrics", metrics)]
    distinct("metrics", [target.name for target in targets])
    for target in targets:
        target.metric.check_labels(data.m)
        check_budget(f"compare by {target.name}", target.k, data.m)
    return targets


def _target(given: Any, one_class: bool) -> Target:
    """A metric by its name, with its budget after an @, as a pair with it, or as it is."""
    k = None
    if isinstance(given, tuple) and len(given) == 2:
        given, k = given
    elif isinstance(given, str) and "@" in given:
        given, _, after = given.partition("@")
        if not after.isdecimal():
            raise ValueError(
                "metrics of compare must have a whole number after the @, as in 'macro_f1@3', "
                f"got {given + '@' + after!r}"
            )
        k = int(after)
    if not isinstance(given, str | Metric):
        raise TypeError(
            f"metrics of compare must be names, metrics or pairs (metric, k), got {shown(given)}"
        )
    metric = find_metric(given)
    check_positive_int("compare", f"budget of {metric.name}", k, optional=True)
    name = metric.name if k is None else f"{metric.name}@{k}"
    return Target(name, metric, 1 if k is None and (one_class or metric.multiclass) else k)


def distinct(parameter: str, names: Sequence[Any], hint: str = "") -> None:
    """At least one, and none twice."""
    if not names:
        raise ValueError(f"{parameter} of compare must hold at least one, got none")
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise ValueError(f"{parameter} of compare must be distinct, got {twice[0]!r} twice{hint}")


def listed(parameter: str, given: Any) -> list[Any]:
    """What was given as a list; one name, metric or policy alone counts as a list of one."""
    if isinstance(given, Mapping):
        return list(given.items())
    if isinstance(given, str | Metric | Policy) or callable(given):
        return [given]
    if not isinstance(given, Iterable):
        raise TypeError(f"{parameter} of compare must be a list, got {shown(given)}")
    return list(given)


def read_seeds(seeds: Iterable[int | None]) -> tuple[int | None, ...]:
    """A whole number for each sequence, or None for the order given."""
    if not isinstance(seeds, Iterable):
        raise TypeError(
            f"seeds of compare must be whole numbers, such as range(5), got {shown(seeds)}"
        )
    found = list(seeds)
    for seed in found:
        whole = isinstance(seed, Integral) and not isinstance(seed, bool) and seed >= 0
        if seed is not None and not whole:
            raise ValueError(
                "seeds of compare must be whole numbers of at least 0, or None for the order "
                f"given, got {shown(seed)}"
            )
    distinct("seeds", found)
    return tuple(None if seed is None else int(seed) for seed in found)


def read_priors(priors: Iterable[float] | float) -> tuple[float, ...]:
    """The values of λ to try."""
    given = list(priors) if isinstance(priors, Iterable) else [priors]
    found = [check_number("compare", "priors", prior, low=0.0) for prior in given]
    distinct("priors", found)
    return tuple(found)
