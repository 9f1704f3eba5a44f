"""What ``compare`` is given, read and checked once for all runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from numpy.typing import ArrayLike

from omma._validate import check_budget, check_number, check_positive_int, repeated, shown
from omma.metrics import Metric, read_target
from omma.metrics.target import Target as Named
from omma.policies import Policy
from omma.policies.base import whole_for
from omma.rows.batch import Batch
from omma.rows.frames import Names


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
class Target:
    """A metric with its budget, and what the two are called together."""

    name: str
    metric: Metric
    k: int | None


def read_targets(metrics: Any, data: Batch, owner: str = "compare") -> list[Target]:
    """All metrics, each with a budget that the data has labels for."""
    targets = [_target(one, data.class_ids) for one in listed("metrics", metrics)]
    distinct("metrics", [target.name for target in targets])
    for target in targets:
        target.metric.check_labels(data.m)
        check_budget(f"{owner} by {target.name}", target.k, data.m)
    return targets


def _target(given: Any, one_class: bool) -> Target:
    """A metric by its name, with its budget after an @, as a pair with it, or as it is."""
    k = None
    if isinstance(given, tuple) and len(given) == 2:
        given, k = given
    if not isinstance(given, str | Metric):
        raise TypeError(
            f"metrics of compare must be names, metrics or pairs (metric, k), got {shown(given)}"
        )
    metric, own = read_target(given)
    k = own if k is None else k
    check_positive_int("compare", f"budget of {metric.name}", k, optional=True)
    name = str(Named(metric.name, k))
    return Target(name, metric, 1 if k is None and (one_class or metric.multiclass) else k)


def distinct(parameter: str, names: Sequence[Any], hint: str = "") -> None:
    """At least one, and none twice."""
    if not names:
        raise ValueError(f"{parameter} of compare must hold at least one, got none")
    if len(set(names)) < len(names):
        raise ValueError(
            f"{parameter} of compare must be distinct, got {repeated(names)!r} twice{hint}"
        )


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
