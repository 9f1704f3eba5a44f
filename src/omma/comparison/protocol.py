"""``omma.comparison.compare``: policies run on the same sequences, for several metrics at once.

All arguments are checked before anything runs. ``choose`` reads metrics by the same function.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omma._pool import run_all
from omma._validate import (
    check_budget,
    check_number,
    check_positive_int,
    nearest,
    repeated,
    shown,
)
from omma.comparison.results import Cell, Comparison, Runs, Vector
from omma.evaluation import replay
from omma.metrics import Metric, read_target
from omma.metrics.target import Target
from omma.policies import MetricPolicy, Policy, UnsupportedMetricError
from omma.policies.base import whole_for
from omma.policies.fixed import FixedPolicy
from omma.policies.registry import NAMES, REGISTRY
from omma.rows.batch import Batch, read_labelled

PRIORS = (0.0, 1e-6, 1e-3, 0.1, 1.0)  # those of the paper
METRICS = ("micro_f1", "macro_f1")
POLICIES = ("baseline", "ofo", "greedy", "omma", "omma_eta", "auto")
CellName = tuple[str, str]  # policy and metric
Task = tuple[CellName, float | None, int | None]  # a cell, its prior, and the seed of a sequence
# Of a run: its value, its seconds, and rows and values of its curve.
Outcome = tuple[float, float, NDArray[np.int64], Vector]


def compare(
    eta: Any,
    y: Any = None,
    metrics: Any = METRICS,
    policies: Any = POLICIES,
    *,
    weights: ArrayLike | None = None,
    train: Any = None,
    seeds: Iterable[int | None] = range(5),
    priors: Iterable[float] | float = PRIORS,
    checkpoints: int | ArrayLike = 50,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Comparison:
    """Run every policy for every metric on the same shuffled sequences.

    A policy that takes a prior is run with each of ``priors``; the one with the best mean is shown,
    as in the paper. That is a choice made with hindsight: tables say so, and all results are kept
    (``cell.by_prior``, ``rows``, ``to_csv``, ``plot_priors``).

    Parameters
    ----------
    eta, y
        As of ``omma.replay``, or an ``omma.Batch`` of both. Where y holds class ids, metrics
        without a budget take k = 1. Labels may be unknown (NaN), of a row all or some: policies
        are judged by those that are known, and what cannot learn from such rows is marked ×.
    metrics : list
        Names, with a budget after an @ (``"macro_f1@3"``), metrics, or pairs (metric, k).
    policies : list or dict
        Names: ``baseline`` (the threshold 0.5, or the top k), ``omma``, ``greedy``, ``ofo`` and
        ``online_fw``, each also with ``_eta``, which counts estimates in place of labels;
        ``auto``; ``offline_fw`` and ``tuned``, which learn from ``train``. ``greedy_plug_in``,
        ``online_fw_random`` and ``offline_fw_random`` decide as the code behind the paper's tables,
        ``offline_fw_top`` has a single start. Or policies, which run as they are for every metric;
        functions of (metric, k, prior) that return a policy; pairs (name, policy); or a dict of
        policies by name. What a policy does not support is a cell marked ×.
    weights : array-like of shape (n,), optional
        A row of weight w counts as w rows, for policies and for the metrics that judge them.
        Weights are not costs: see ``omma.metrics.RowCosts``.
    train : pair (eta, y) or Batch, optional
        For policies that learn beforehand. Their fitting is not part of ``seconds``.
    seeds : iterable of int
        One sequence for each, as of ``omma.replay``; None keeps the order given.
    priors : iterable of float
        The values of λ to try.
    checkpoints : int or array-like
        Where to take the running value, as of ``omma.replay``.
    n_jobs : int, optional
        How many runs at a time; default the number of cores. All results but ``seconds`` are the
        same for any number; take 1 where times have to be undisturbed.
    progress : bool
        Show a progress bar on standard error.

    Returns
    -------
    Comparison
        Where it is stopped by Ctrl-C, that of the runs that finished, with ``complete=False``.

    Examples
    --------
    >>> import omma
    >>> from omma.comparison import compare
    >>> eta, y = omma.datasets.long_tail(n=2000, m=10, seed=0)
    >>> results = compare(eta, y, ["micro_f1", "macro_f1@3"], ["baseline", "ofo", "omma"])
    >>> results.cell("omma", "macro_f1@3").mean > results.cell("baseline", "macro_f1@3").mean
    True
    >>> results.cell("ofo", "macro_f1@3").supported
    False
    >>> results.cell("omma", "micro_f1").by_prior.keys()
    dict_keys([0.0, 1e-06, 0.001, 0.1, 1.0])
    """
    check_positive_int("compare", "n_jobs", n_jobs, optional=True)
    # In the types of the kernels, so that no replay converts rows again.
    data = read_labelled("compare", eta, y, weights).ready()
    targets = {target.name: target for target in read_metrics("compare", metrics, data)}
    tried, sequences = read_priors(priors), read_seeds(seeds)
    entrants = read_entrants(policies, read_train(train, data), tried)
    # The policies of each cell by prior, and why a cell has none.
    cell_policies: dict[CellName, dict[float | None, Policy]] = {}
    reasons: dict[CellName, str] = {}
    for entrant, target in product(entrants, targets.values()):
        name = entrant.name, target.name
        try:
            cell_policies[name] = entrant.policies(target.metric, target.k)
            for policy in cell_policies[name].values():
                _check_comparable(entrant.name, policy, target, data)
        except UnsupportedMetricError as error:
            cell_policies[name], reasons[name] = {}, str(error)

    def run(task: Task) -> Outcome:
        name, prior, seed = task
        # Labels are given, so that the trace has a value and a history.
        trace: Any = replay(
            cell_policies[name][prior],
            data,
            metric=targets[name[1]].metric,
            seed=seed,
            predictions=False,
            checkpoints=checkpoints,
        )
        return trace.value, trace.seconds, trace.history.rows, trace.history.values

    # Seeds come outermost: stopped early, a comparison has all policies on some sequences.
    tasks = [
        (name, prior, seed)
        for seed in sequences
        for name, by_prior in cell_policies.items()
        for prior in by_prior
    ]
    outcomes: dict[Task, Outcome] = {}
    complete = run_all(
        tasks, run, outcomes.__setitem__, n_jobs=n_jobs or _cores(), progress=progress
    )
    if not complete and not outcomes:
        raise KeyboardInterrupt

    cells = {}
    for name, by_prior in cell_policies.items():
        runs: dict[float | None, Runs] = {}
        for prior in by_prior:
            finished = {
                seed: outcomes[name, prior, seed]
                for seed in sequences
                if (name, prior, seed) in outcomes
            }
            if finished:
                values, seconds, rows, curves = map(np.array, zip(*finished.values(), strict=True))
                runs[prior] = Runs(prior, tuple(finished), values, rows[0], seconds, curves)
        cells[name] = Cell.of(
            runs,
            policy=name[0],
            metric=name[1],
            k=targets[name[1]].k,
            reason=reasons.get(name, ""),
            complete=all(task in outcomes for task in product([name], by_prior, sequences)),
            fixed=all(isinstance(policy, FixedPolicy) for policy in by_prior.values()),
        )
    return Comparison(
        policies=tuple(entrant.name for entrant in entrants),
        metrics=tuple(targets),
        cells=cells,
        seeds=sequences,
        priors=tried,
        complete=complete,
        titles={entrant.name: entrant.title for entrant in entrants},
    )


def _cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # in a container, fewer than the machine has
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _check_comparable(name: str, policy: Policy, target: BudgetedMetric, data: Batch) -> None:
    """Refuse a policy with another budget than the metric's, or that cannot take the rows."""
    # A rule that was made for labels in another order would decide about the wrong ones.
    if data.names is not None and policy.names not in (None, data.names):
        raise ValueError(
            f"{name!r} in policies of compare must have labels in the order of eta, "
            f"{shown(list(data.names))}, got {shown(list(policy.names or ()))}"
        )
    if target.k is not None and policy.budget != target.k:
        number = "any number of" if policy.budget is None else policy.budget
        raise UnsupportedMetricError(
            f"it predicts {number} labels a row, and {target.name} asks for {target.k}"
        )
    labels = data.labels
    assert labels is not None
    why = policy.whole_rows(target.metric)
    if labels.missing is not None and why is not None:
        raise UnsupportedMetricError(f"it needs all labels of a row or none{why}")
    if labels.known is not None and policy.needs_labels:
        raise UnsupportedMetricError("it learns from labels alone, and of some rows none is known")


# Arguments


def read_train(train: Any, data: Batch) -> Batch | None:
    """The sample that policies are fitted to beforehand, if there is one."""
    if train is None:
        return None
    pair = (train, None) if isinstance(train, Batch) else train  # a batch has its labels with it
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"train of compare must be a pair (eta, y), got {shown(train)}")
    sample = read_labelled("compare's train", pair[0], pair[1], names=data.names).ready()
    if sample.m != data.m:
        raise ValueError(f"train of compare must have {data.m} labels, as eta, got {sample.m}")
    return sample


class BudgetedMetric(NamedTuple):
    """A metric with its budget, and a name for both, such as macro_f1@3."""

    name: str
    metric: Metric
    k: int | None


def read_metrics(owner: str, metrics: Any, data: Batch) -> list[BudgetedMetric]:
    """Read metrics and their budgets; both must fit the labels of the data.

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
    """Refuse a list that is empty or repeats an entry."""
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
    numbers = [
        check_positive_int("compare", "seeds", seed, optional=True, least=0) for seed in seeds
    ]
    check_distinct("seeds", numbers)
    return tuple(numbers)


def read_priors(priors: Iterable[float] | float) -> tuple[float, ...]:
    """The values of λ to try."""
    listed_priors = priors if isinstance(priors, Iterable) else [priors]
    numbers = [check_number("compare", "priors", prior, low=0.0) for prior in listed_priors]
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
    """A policy by its name in the registry, as it is, or by a function that makes it."""
    name = None
    if isinstance(choice, tuple) and len(choice) == 2 and isinstance(choice[0], str):
        name, choice = choice
    if isinstance(choice, str):
        entry = REGISTRY.get(choice)
        if entry is None:
            hint = nearest(choice, NAMES) or f"; names are {', '.join(NAMES)}"
            raise ValueError(f"policies of compare must be known, got {choice!r}{hint}")
        make = partial(entry.policy, train=train)
        return Entrant(
            name or choice, name or entry.title, make, priors if entry.priors else (None,)
        )
    name = name or str(getattr(choice, "__name__", shown(choice)))
    if isinstance(choice, Policy):
        return Entrant(name, name, lambda *_: choice, (getattr(choice, "prior", None),))
    if isinstance(choice, type) and issubclass(choice, MetricPolicy):
        return Entrant(name, name, lambda metric, k, prior: choice(metric, k, prior=prior), priors)
    if callable(choice) and not isinstance(choice, type | Metric):
        return Entrant(name, name, choice, priors)
    raise TypeError(
        "policies of compare must be names, policies, functions of (metric, k, prior) or pairs "
        f"(name, policy), got {shown(choice)}"
    )
