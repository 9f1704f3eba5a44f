"""Each policy runs on the same shuffled sequences, for several metrics at once."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omma._pool import run_all
from omma._validate import check_positive_int, shown
from omma.comparison.arguments import (
    BudgetedMetric,
    read_entrants,
    read_metrics,
    read_priors,
    read_rows,
    read_seeds,
    read_train,
)
from omma.comparison.results import Cell, Comparison, Runs, Vector
from omma.evaluation import replay
from omma.policies import Policy, UnsupportedMetricError
from omma.policies.fixed import FixedPolicy
from omma.rows.batch import Batch

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
    data = read_rows("compare", eta, y, weights=weights)
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
        metric = targets[name[1]].metric
        options: dict[str, Any] = {"predictions": False, "checkpoints": checkpoints}
        trace = replay(cell_policies[name][prior], data, metric=metric, seed=seed, **options)
        value, history = trace.value, trace.history
        assert value is not None
        assert history is not None
        return value, trace.seconds, history.rows, history.values

    # Seeds come outermost: stopped early, a comparison has all policies on some sequences.
    tasks = [
        (name, prior, seed)
        for seed in sequences
        for name, by_prior in cell_policies.items()
        for prior in by_prior
    ]
    outcomes: dict[Task, Outcome] = {}
    jobs = n_jobs or _cores()
    complete = run_all(tasks, run, outcomes.__setitem__, n_jobs=jobs, progress=progress)
    if not complete and not outcomes:
        raise KeyboardInterrupt

    cells = {}
    for name, by_prior in cell_policies.items():
        runs: dict[float | None, Runs] = {}
        for prior in by_prior:
            finished = tuple(seed for seed in sequences if (name, prior, seed) in outcomes)
            if finished:
                of_prior = (outcomes[name, prior, seed] for seed in finished)
                values, seconds, rows, curves = zip(*of_prior, strict=True)
                numbers = (np.array(values), rows[0], np.array(seconds), np.array(curves))
                runs[prior] = Runs(prior, finished, *numbers)
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
