"""What ``omma warmup`` compiles: every path that is asked for, run once on a small stream."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import omma
from omma.kernels.jit import CACHE
from omma.metrics import NAMES
from omma.metrics.target import Target
from omma.policies import UnsupportedMetricError

ROWS = 12
LABELS = 4
COMMON = ("macro_f1", "micro_f1")
LAYOUTS = {"dense": np.asarray, "sparse": sparse.csr_array}
METRIC_POLICIES: tuple[Any, ...] = (omma.OMMA, omma.Greedy)


class Path(NamedTuple):
    """Something to compile: what it is, and how it is run."""

    title: str
    run: Callable[[], Any]


def paths(every: bool) -> list[Path]:
    """The common paths, or every kind of metric, budget, layout, feedback and float type."""
    found = [path for policy in policies(every) for path in replays(policy, every)]
    found += [Path(f"steps of {name_of(one)}", partial(steps, one)) for one in policies(every)]
    able = batch_policies(every)
    return found + [Path(f"batches of {name_of(one)}", partial(batches, one)) for one in able]


def batch_policies(every: bool) -> list[Any]:
    """Policies that decide rows by one rule at a time, which batches of rows need."""
    found = [one for one in policies(every) if not isinstance(one, omma.Greedy)]
    return [*found, omma.Auto("macro_f1")]


def name_of(policy: Any) -> str:
    """A policy in few words."""
    objective, name = policy.objective, type(policy).__name__
    target = Target(name if objective is None else objective.name, policy.budget)
    said = str(target) if objective is None else f"{name} for {target}"
    return f"{said}{' from estimates' if policy.feedback == 'estimates' else ''}"


def policies(every: bool) -> Iterator[Any]:
    """Policies of which no two are one kind: those that a kernel would tell apart."""
    seen = set()
    feedbacks = ("labels", "estimates") if every else ("labels",)
    # Metrics of one label last: most are of the same kind as their averages.
    names = sorted(NAMES if every else COMMON, key=lambda name: omma.metric(name).binary)
    ways = product(METRIC_POLICIES if every else METRIC_POLICIES[:1], names, (None, 2), feedbacks)
    for make, name, k, feedback in ways:
        policy = made(make, name, k, feedback)
        kind = None if policy is None else kind_of(policy)
        if kind is not None and kind not in seen:
            seen.add(kind)
            yield policy
    yield from (omma.Threshold(0.5), omma.TopK(2))
    if every:
        yield from (omma.OFO("macro"), omma.OFO("micro"))


def made(make: Any, name: str, k: int | None, feedback: str) -> Any:
    """A policy, or None where it has no such metric or the metric no such budget."""
    metric = omma.metric(name)
    if k is not None and (metric.multiclass or metric.binary):
        return None
    try:
        return make(metric, k=k, feedback=feedback)
    except UnsupportedMetricError:
        return None


def kind_of(policy: Any) -> Any:
    """What the compiler sees of a policy: classes and types, no numbers."""
    m = 1 if policy.objective.binary else LABELS
    plan = policy.plan(m)
    return shape_of(plan.objective), plan.budget is None, plan.soft


def shape_of(value: Any) -> Any:
    """A nested tuple as its classes, other values as their types."""
    if isinstance(value, tuple):
        return type(value), *map(shape_of, value)
    return type(value)


def stream(policy: Any, make: Any = np.asarray, kind: Any = np.float64) -> tuple[Any, Any]:
    """A small stream that a policy can run over."""
    objective = policy.objective
    m = 1 if objective is not None and objective.binary else LABELS
    eta = np.random.default_rng(0).dirichlet(np.ones(LABELS), size=ROWS)[:, :m]
    y = np.eye(LABELS, dtype=np.int8)[np.arange(ROWS) % LABELS][:, :m]
    return make(eta.astype(kind)), make(y)


def replays(policy: Any, every: bool) -> Iterator[Path]:
    """Replays of a policy in each layout and float type, and their certificates."""
    metric = policy.objective or "macro_f1"
    for (layout, make), kind in product(LAYOUTS.items(), (np.float64, np.float32)):
        eta, y = stream(policy, make, kind)
        title = f"{layout} replay of {name_of(policy)}, {np.dtype(kind)}"
        yield Path(title, partial(omma.replay, policy, eta, y, metric=metric))
    if every and isinstance(policy, omma.OMMA):
        for layout, make in LAYOUTS.items():
            eta, y = stream(policy, make)
            title = f"{layout} certificate of {name_of(policy)}"
            yield Path(title, partial(certify, policy, eta, y))


def certify(policy: Any, eta: Any, y: Any) -> None:
    """A replay with its certificate, for metrics that have one."""
    try:
        omma.replay(policy, eta, y, gap=True)
    except ValueError as error:
        if "gap" not in str(error):
            raise


def steps(policy: Any) -> None:
    """One row decided and counted, dense and sparse."""
    for make in LAYOUTS.values():
        eta, y = stream(policy, make)
        learner = omma.OnlineClassifier(policy, n_labels=eta.shape[1])
        first = slice(0, 1) if make is not np.asarray else 0
        learner.predict(eta[first])
        learner.update(y[first])
    learner.rule  # noqa: B018 — works out the rule, which is a kernel of its own


def batches(policy: Any) -> None:
    """Rows decided on one state and counted, as workers of a cluster do it; dense and sparse."""
    for make, kind in product(LAYOUTS.values(), (np.float64, np.float32)):
        eta, y = stream(policy, make, kind)
        omma.step(policy, policy.init(eta.shape[1]), eta, y)


def cache_folder() -> str | None:
    """Where the machine code lies; None where it is not kept."""
    return None if CACHE is None else str(CACHE)
