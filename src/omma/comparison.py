"""Compare policies: each runs on the same shuffled sequences, for several metrics at once."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib import import_module
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from omma import plots, tables
from omma._rows import SparseProbabilities, read_labels, read_probabilities, read_sparse_labels
from omma._validate import check_budget, check_number, check_positive_int, nearest, shown
from omma.evaluation import replay
from omma.metrics import Metric, metric as find_metric
from omma.plots import Band
from omma.policies import (
    OFO,
    OMMA,
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
from omma.policies.fixed import Fixed
from omma.tables import HAT_ETA, MISSING, PARTIAL, UNSUPPORTED, Entry, Grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

PRIORS = (0.0, 1e-6, 1e-3, 0.1, 1.0)
METRICS = ("micro_f1", "macro_f1")
POLICIES = ("baseline", "ofo", "greedy", "omma", "omma_eta")

Vector = NDArray[np.float64]
Train = tuple[Any, Any]
Make = Callable[[Metric, int | None, float], Policy]
# The policies to run for a metric and a budget, by prior; None is the key of one without prior.
Build = Callable[[Metric, int | None], dict[float | None, Policy]]


@dataclass(frozen=True)
class Runs:
    """What a policy made of a metric with one prior; means and deviations are over the seeds.

    Attributes
    ----------
    prior : float or None
        λ; None where the policy has none.
    seeds : tuple
        Of the sequences that were run.
    values : ndarray of shape (seeds,)
        The metric over the whole sequence.
    rows : ndarray of shape (checkpoints,)
        Numbers of rows.
    running : ndarray of shape (seeds, checkpoints)
        The metric over the first ``rows`` rows.
    times : ndarray of shape (seeds,)
        Seconds of each replay, without compilation and evaluation.
    """

    prior: float | None = None
    seeds: tuple[int | None, ...] = ()
    values: Vector = field(default_factory=lambda: np.empty(0), repr=False)
    rows: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64), repr=False)
    running: Vector = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    times: Vector = field(default_factory=lambda: np.empty(0), repr=False)

    @property
    def mean(self) -> float:
        """Mean of the final values; NaN where nothing has run."""
        return float(_mean(self.values))

    @property
    def std(self) -> float:
        """Sample standard deviation of the final values; NaN for less than two sequences."""
        return float(_std(self.values))

    @property
    def running_mean(self) -> Vector:
        """Mean of the metric so far, at each of ``rows``."""
        return _mean(self.running)

    @property
    def running_std(self) -> Vector:
        """Sample standard deviation of the metric so far, at each of ``rows``."""
        return _std(self.running)

    @property
    def seconds(self) -> float:
        """Mean time of a replay."""
        return float(_mean(self.times))

    @property
    def seconds_std(self) -> float:
        """Sample standard deviation of that time."""
        return float(_std(self.times))


def _mean(values: Vector) -> Vector:
    return values.mean(axis=0) if len(values) else np.full(values.shape[1:], np.nan)


def _std(values: Vector) -> Vector:
    """Of a sample, over the first axis: one value alone says nothing about the spread."""
    return values.std(axis=0, ddof=1) if len(values) > 1 else np.full(values.shape[1:], np.nan)


@dataclass(frozen=True, repr=False)
class Cell:
    """What a policy made of a metric, for every prior it was run with.

    Attributes
    ----------
    policy, metric : str
        As they are called in the comparison.
    k : int or None
        The budget.
    by_prior : dict of float or None to Runs
        All results. Which prior is best is known only afterwards: a choice made with hindsight.
    reason : str
        Why the policy does not support the metric; empty where it does.
    complete : bool
        Whether every run has finished.
    fixed : bool
        Whether the policy's rule never changes.
    """

    policy: str
    metric: str
    k: int | None
    by_prior: dict[float | None, Runs]
    reason: str = ""
    complete: bool = True
    fixed: bool = False

    @property
    def supported(self) -> bool:
        """Whether the policy can be run for the metric."""
        return not self.reason

    @cached_property
    def best(self) -> Runs:
        """The runs with the highest mean, of equals the first; without any where nothing has run.

        Where a comparison was stopped, priors that ran on more sequences go first.
        """

        def worth(runs: Runs) -> tuple[int, float]:
            return len(runs.seeds), -math.inf if math.isnan(runs.mean) else runs.mean

        return max(self.by_prior.values(), key=worth, default=Runs())

    @property
    def prior(self) -> float | None:
        """The best prior; all below is with this one."""
        return self.best.prior

    @property
    def values(self) -> Vector:
        """The metric over the whole sequence, for each seed."""
        return self.best.values

    @property
    def mean(self) -> float:
        """Mean of ``values``."""
        return self.best.mean

    @property
    def std(self) -> float:
        """Sample standard deviation of ``values``."""
        return self.best.std

    @property
    def rows(self) -> NDArray[np.int64]:
        """Numbers of rows at which the running value was taken."""
        return self.best.rows

    @property
    def running_mean(self) -> Vector:
        """Mean of the metric so far, at each of ``rows``."""
        return self.best.running_mean

    @property
    def running_std(self) -> Vector:
        """Sample standard deviation of the metric so far, at each of ``rows``."""
        return self.best.running_std

    @property
    def seconds(self) -> float:
        """Mean time of a replay."""
        return self.best.seconds

    @property
    def seconds_std(self) -> float:
        """Sample standard deviation of that time."""
        return self.best.seconds_std

    def __repr__(self) -> str:
        if not self.by_prior:
            return f"<{self.policy} on {self.metric}: {self.reason or 'not run'}>"
        prior = "" if self.prior is None else f", λ = {self.prior:g}"
        value = tables.content(Entry(self.mean, self.std), std=True, seconds=False)
        return f"<{self.policy} on {self.metric}: {value} %{prior}>"


@dataclass(frozen=True, repr=False)
class Comparison:
    """Policies against metrics; what ``omma.compare`` returns.

    Attributes
    ----------
    policies, metrics : tuple of str
        Their names: rows and columns of the table.
    cells : dict of (policy, metric) to Cell
    seeds : tuple
        Of the sequences.
    priors : tuple of float
        The values of λ that were tried.
    complete : bool
        False where the comparison was stopped (Ctrl-C) before all runs had finished.
    titles : dict of str to str
        What tables and figures call each policy.
    """

    policies: tuple[str, ...]
    metrics: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]
    seeds: tuple[int | None, ...]
    priors: tuple[float, ...]
    complete: bool
    titles: dict[str, str]

    def cell(self, policy: str, metric: str) -> Cell:
        """The results of one policy for one metric."""
        _check_name("policy", policy, self.policies)
        _check_name("metric", metric, self.metrics)
        return self.cells[policy, metric]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One record for each cell and prior; ``chosen`` marks the best prior of its cell."""
        return [
            {**head, **_summary(runs), "note": cell.reason} for cell, head, runs in self._results()
        ]

    @property
    def runs(self) -> list[dict[str, Any]]:
        """One record for each run; a cell without runs has one that says why."""
        return [
            {**head, "seed": seed, "value": value, "seconds": seconds, "note": cell.reason}
            for cell, head, runs in self._results()
            for seed, value, seconds in _each(runs)
        ]

    def _results(self) -> Iterator[tuple[Cell, dict[str, Any], Runs]]:
        for cell in self.cells.values():
            head = {"policy": cell.policy, "metric": cell.metric, "k": cell.k}
            for runs in cell.by_prior.values() or [cell.best]:
                chosen = runs is cell.best and bool(cell.by_prior)
                yield cell, {**head, "prior": runs.prior, "chosen": chosen}, runs

    def to_terminal(
        self, *, std: bool = True, seconds: bool = False, priors: bool = False
    ) -> Table:
        """A table for ``rich.print``: best bold, second italic, × where not supported, in %.

        ``std`` shows standard deviations, ``seconds`` the time of a replay, ``priors`` a row for
        every λ in place of the best one.
        """
        return tables.to_terminal(self._grid(std, priors), std=std, seconds=seconds)

    def to_markdown(self, *, std: bool = True, seconds: bool = False, priors: bool = False) -> str:
        """The table in Markdown; options are those of ``to_terminal``."""
        return tables.to_markdown(self._grid(std, priors), std=std, seconds=seconds)

    def to_latex(self, *, std: bool = True, seconds: bool = False, priors: bool = False) -> str:
        """The table in LaTeX (booktabs); options are those of ``to_terminal``."""
        return tables.to_latex(self._grid(std, priors), std=std, seconds=seconds)

    def to_csv(self) -> str:
        """All runs with all priors, a line each, values as fractions and in full."""
        return tables.to_csv(self.runs)

    def to_dataframe(self) -> Any:
        """All runs with all priors as a pandas DataFrame, a row each."""
        try:
            pandas = import_module("pandas")
        except ImportError as error:
            raise ImportError(
                "to_dataframe of Comparison needs pandas, which is not installed: "
                "pip install pandas"
            ) from error
        return pandas.DataFrame(self.runs)

    def plot(self, metric: str | None = None) -> Figure:
        """Draw the metric so far, mean and standard deviation, a panel for each metric or for one.

        The figure has a ``savefig``.
        """
        return plots.plot_bands(self._panels(metric, _running), title=self._caption())

    def plot_priors(self, metric: str | None = None) -> Figure:
        """Draw what each λ is worth, mean and standard deviation of the final value."""
        panels = self._panels(metric, _by_prior)
        return plots.plot_priors(panels, self.priors, title=self._caption())

    def _panels(
        self, metric: str | None, band: Callable[[Cell, str], Band]
    ) -> dict[str, dict[str, Band]]:
        if metric is not None:
            _check_name("metric", metric, self.metrics)
        return {
            one: {
                self.titles[policy]: band(self.cells[policy, one], self._family(policy))
                for policy in self.policies
                if self.cells[policy, one].by_prior
            }
            for one in (self.metrics if metric is None else (metric,))
        }

    def _family(self, policy: str) -> str:
        """A variant that counts estimates is drawn in the colour of the one it varies."""
        return policy.removesuffix("_eta")

    def _caption(self) -> str:
        spread = ", ± standard deviation" if len(self.seeds) > 1 else ""
        stopped = "" if self.complete else " (stopped before all had run)"
        return f"Mean over {_sequences(self.seeds)}{spread}{stopped}"

    def _grid(self, std: bool = False, priors: bool = False) -> Grid:
        lines = [line for policy in self.policies for line in self._lines(policy, priors)]
        names, entries = tuple(name for name, _ in lines), tuple(entries for _, entries in lines)
        return Grid(self.metrics, names, entries, self._notes(entries, std, priors))

    def _lines(self, policy: str, priors: bool) -> Iterator[tuple[str, tuple[Entry, ...]]]:
        cells = [self.cells[policy, metric] for metric in self.metrics]
        tried = {prior: None for cell in cells for prior in cell.by_prior}
        if not priors or not tried:
            yield self.titles[policy], tuple(_entry(cell, cell.best) for cell in cells)
            return
        for prior in tried:
            name = self.titles[policy] + ("" if prior is None else f", λ = {prior:g}")
            yield name, tuple(_entry(cell, cell.by_prior.get(prior, Runs())) for cell in cells)

    def _notes(
        self, entries: Sequence[Sequence[Entry]], std: bool, priors: bool
    ) -> tuple[str, ...]:
        """What readers have to know: how λ was picked above all."""
        every = [entry for row in entries for entry in row]
        spread = " ± standard deviation" if std and len(self.seeds) > 1 else ""
        notes = [f"Mean{spread} over {_sequences(self.seeds)}, in %."]
        if not priors and any(len(cell.by_prior) > 1 for cell in self.cells.values()):
            tried = ", ".join(f"{prior:g}" for prior in self.priors)
            notes.append(f"λ is the best of {tried} for each entry, chosen with hindsight.")
        if any(entry.instead == UNSUPPORTED for entry in every):
            notes.append(f"{UNSUPPORTED} not supported.")
        if not self.complete:
            notes.append(
                f"Stopped before all had run: {PARTIAL} some runs are missing, {MISSING} all are."
            )
        return tuple(notes)

    def __rich__(self) -> Table:
        return self.to_terminal()

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def __str__(self) -> str:
        return tables.to_text(self._grid())

    def __repr__(self) -> str:
        stopped = "" if self.complete else ", stopped early"
        return (
            f"<comparison of {len(self.policies)} policies by {len(self.metrics)} metrics over "
            f"{_sequences(self.seeds)}{stopped}>"
        )


def _sequences(seeds: tuple[int | None, ...]) -> str:
    if seeds == (None,):
        return "one sequence in the order given"
    return f"{len(seeds)} shuffled sequence{'s' * (len(seeds) != 1)}"


def _summary(runs: Runs) -> dict[str, Any]:
    numbers = {
        name: getattr(runs, name) if runs.seeds else None
        for name in ("mean", "std", "seconds", "seconds_std")
    }
    return {**numbers, "runs": len(runs.seeds)}


def _each(runs: Runs) -> Iterable[tuple[int | None, float | None, float | None]]:
    if not runs.seeds:
        return [(None, None, None)]
    return zip(runs.seeds, runs.values.tolist(), runs.times.tolist(), strict=True)


def _entry(cell: Cell, runs: Runs) -> Entry:
    if not runs.seeds:
        return Entry(instead=MISSING if cell.supported else UNSUPPORTED)
    return Entry(runs.mean, runs.std, runs.seconds, partial=not cell.complete)


def _running(cell: Cell, family: str) -> Band:
    return Band(cell.rows, cell.running_mean, cell.running_std, family, cell.fixed)


def _by_prior(cell: Cell, family: str) -> Band:
    every = list(cell.by_prior.values())
    priors = np.array([math.nan if one.prior is None else one.prior for one in every])
    means, stds = np.array([one.mean for one in every]), np.array([one.std for one in every])
    return Band(priors, means, stds, family, cell.fixed)


# Who takes part.


@dataclass(frozen=True)
class Target:
    """A metric with its budget, and what the two are called together."""

    name: str
    metric: Metric
    k: int | None


@dataclass(frozen=True)
class Entrant:
    """A policy that takes part, and how it is made for a metric."""

    name: str
    title: str
    build: Build


def _baseline(metric: Metric, k: int | None) -> Policy:
    return Threshold(0.5) if k is None else TopK(k)


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
_PLAIN: dict[str, tuple[str, Callable[[Metric, int | None], Policy]]] = dict.fromkeys(
    ("baseline", "top_k_or_half"), (f"Top-k / {HAT_ETA} ≥ 0.5", _baseline)
)
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
        return {None: first} if all(_equal(one, first) for one in made.values()) else made

    return build


def _equal(one: Policy, other: Policy) -> bool:
    try:
        return bool(one == other)
    except ValueError:  # arrays do not say whether they are equal
        return False


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


def _distinct(parameter: str, names: Sequence[Any], hint: str = "") -> None:
    """At least one, and none twice."""
    if not names:
        raise ValueError(f"{parameter} of compare must hold at least one, got none")
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise ValueError(f"{parameter} of compare must be distinct, got {twice[0]!r} twice{hint}")


def _check_name(parameter: str, name: Any, known: tuple[str, ...]) -> None:
    if name not in known:
        hint = nearest(str(name), known) or f"; it has {', '.join(known)}"
        raise ValueError(f"{parameter} of Comparison must be one of its own, got {name!r}{hint}")


def _listed(parameter: str, given: Any) -> list[Any]:
    """What was given as a list; one name, metric or policy alone counts as a list of one."""
    if isinstance(given, Mapping):
        return list(given.items())
    if isinstance(given, str | Metric | Policy) or callable(given):
        return [given]
    if not isinstance(given, Iterable):
        raise TypeError(f"{parameter} of compare must be a list, got {shown(given)}")
    return list(given)


def _read_seeds(seeds: Iterable[int | None]) -> tuple[int | None, ...]:
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
    _distinct("seeds", found)
    return tuple(None if seed is None else int(seed) for seed in found)


def _read_priors(priors: Iterable[float] | float) -> tuple[float, ...]:
    given = list(priors) if isinstance(priors, Iterable) else [priors]
    found = [check_number("compare", "priors", prior, low=0.0) for prior in given]
    _distinct("priors", found)
    return tuple(found)


# The data.


@dataclass(frozen=True)
class Data:
    """Rows that every policy runs on, converted once."""

    eta: Any
    y: Any
    m: int
    one_class: bool


def _read_data(owner: str, eta: Any, y: Any) -> Data:
    """Data as kernels read it fastest, so that no replay converts it again."""
    if y is None:
        raise ValueError(f"y of {owner} must be given, got None")
    rows = read_probabilities(owner, eta).ready()
    labels = read_labels(owner, y, rows.n, rows.m)
    given = labels.given
    if not labels.class_ids:
        given = read_sparse_labels(owner, sparse.csr_array(given), "y")
    array = rows.matrix if isinstance(rows, SparseProbabilities) else rows.array
    return Data(array, given, rows.m, labels.class_ids)


def _read_train(train: Any, m: int) -> Train | None:
    if train is None:
        return None
    if not isinstance(train, tuple | list) or len(train) != 2:
        raise TypeError(f"train of compare must be a pair (eta, y), got {shown(train)}")
    read = _read_data("compare's train", *train)
    if read.m != m:
        raise ValueError(f"train of compare must have {m} labels, as eta, got {read.m}")
    return read.eta, read.y


# The protocol.


Key = tuple[str, str, float | None, int | None]  # policy, metric, prior, seed


@dataclass(frozen=True)
class Made:
    """The policies of a cell, by prior, or why there are none."""

    name: str
    target: Target
    policies: dict[float | None, Policy]
    reason: str = ""

    def key(self, prior: float | None, seed: int | None) -> Key:
        """What a run is known by."""
        return self.name, self.target.name, prior, seed


@dataclass(frozen=True)
class Task:
    """One run: a policy, the metric that judges it, and the sequence."""

    key: Key
    policy: Policy
    metric: Metric

    @property
    def seed(self) -> int | None:
        """Of the sequence."""
        return self.key[3]


@dataclass(frozen=True)
class Outcome:
    """What is kept of a run."""

    value: float
    rows: NDArray[np.int64]
    running: Vector
    seconds: float


def compare(
    eta: Any,
    y: Any,
    metrics: Any = METRICS,
    policies: Any = POLICIES,
    *,
    train: Train | None = None,
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
        As of ``omma.replay``. Where y holds class ids, metrics without a budget take k = 1.
    metrics : list
        Names, with a budget after an @ (``"macro_f1@3"``), metrics, or pairs (metric, k).
    policies : list or dict
        Names: ``baseline`` (the threshold 0.5, or the top k), ``omma``, ``greedy``, ``ofo`` and
        ``online_fw``, each also with ``_eta``, which counts estimates in place of labels;
        ``offline_fw`` and ``tuned``, which learn from ``train``. Or policies, which run as they
        are for every metric; functions of (metric, k, prior) that return a policy; pairs (name,
        policy); or a dict of policies by name. What a policy does not support is a cell marked ×.
    train : pair (eta, y), optional
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
    >>> found = compare(eta, y, ["micro_f1", "macro_f1@3"], ["baseline", "ofo", "omma"])
    >>> found.cell("omma", "macro_f1@3").mean > found.cell("baseline", "macro_f1@3").mean
    True
    >>> found.cell("ofo", "macro_f1@3").supported
    False
    >>> found.cell("omma", "micro_f1").by_prior.keys()
    dict_keys([0.0, 1e-06, 0.001, 0.1, 1.0])
    """
    check_positive_int("compare", "n_jobs", n_jobs, optional=True)
    data = _read_data("compare", eta, y)
    targets = [_target(one, data.one_class) for one in _listed("metrics", metrics)]
    _distinct("metrics", [target.name for target in targets])
    for target in targets:
        target.metric.check_labels(data.m)
        check_budget(f"compare by {target.name}", target.k, data.m)
    tried, sequences = _read_priors(priors), _read_seeds(seeds)
    fitted = _read_train(train, data.m)
    entrants = [_entrant(one, None, fitted, tried) for one in _listed("policies", policies)]
    _distinct("policies", [one.name for one in entrants], ": name them by a dict")
    jobs = _cores() if n_jobs is None else n_jobs

    made = [_made(entrant, target) for entrant in entrants for target in targets]
    # Seeds come outermost: stopped early, the comparison has all policies on some sequences.
    tasks = [
        Task(one.key(prior, seed), policy, one.target.metric)
        for seed in sequences
        for one in made
        for prior, policy in one.policies.items()
    ]
    outcomes = _run_all(tasks, partial(_run, data, checkpoints), jobs, progress)
    cells = {(one.name, one.target.name): _cell(one, outcomes, sequences) for one in made}
    return Comparison(
        tuple(one.name for one in entrants),
        tuple(target.name for target in targets),
        cells,
        sequences,
        tried,
        len(outcomes) == len(tasks),
        {one.name: one.title for one in entrants},
    )


def _cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _made(entrant: Entrant, target: Target) -> Made:
    """Make the policies of a cell, fitting those that learn beforehand."""
    try:
        policies = entrant.build(target.metric, target.k)
        for policy in policies.values():
            _check_budget(policy, target)
    except UnsupportedMetricError as error:
        return Made(entrant.name, target, {}, str(error))
    return Made(entrant.name, target, policies)


def _check_budget(policy: Policy, target: Target) -> None:
    """A policy that predicts more or fewer labels than asked for is not comparable."""
    if target.k is not None and policy.budget != target.k:
        number = "any number of" if policy.budget is None else policy.budget
        raise UnsupportedMetricError(
            f"it predicts {number} labels a row, and {target.name} asks for {target.k}"
        )


def _run(data: Data, checkpoints: int | ArrayLike, task: Task) -> Outcome:
    trace = replay(
        task.policy,
        data.eta,
        data.y,
        metric=task.metric,
        seed=task.seed,
        predictions=False,
        checkpoints=checkpoints,
    )
    assert trace.value is not None
    assert trace.history is not None
    return Outcome(trace.value, trace.history.rows, trace.history.values, trace.seconds)


def _run_all(
    tasks: list[Task], run: Callable[[Task], Outcome], n_jobs: int, progress: bool
) -> dict[Key, Outcome]:
    """Outcomes of all tasks; where Ctrl-C came, of those that had finished by then."""
    # Threads, not processes: kernels let other threads run while they work, and threads share the
    # data, which processes would have to copy. What is kept depends on the task alone, never on
    # which thread ran it or when.
    pool = ThreadPoolExecutor(n_jobs, thread_name_prefix="omma-compare")
    futures: list[Future[Outcome]] = []
    with _bar(len(tasks), progress) as advance:
        try:
            for task in tasks:
                futures.append(pool.submit(run, task))
                futures[-1].add_done_callback(advance)
            for future in futures:
                _await(future)
        except KeyboardInterrupt:
            if not any(map(_finished, futures)):
                raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return {
        task.key: future.result()
        for task, future in zip(tasks, futures, strict=False)
        if _finished(future)
    }


def _await(future: Future[Outcome]) -> None:
    """Wait for a run, and raise what it raised."""
    while not future.done():
        wait((future,), timeout=0.5)  # without a timeout Windows would not see Ctrl-C
    future.result()


def _finished(future: Future[Outcome]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _cell(made: Made, outcomes: dict[Key, Outcome], seeds: tuple[int | None, ...]) -> Cell:
    by_prior: dict[float | None, Runs] = {}
    for prior in made.policies:
        done = [seed for seed in seeds if made.key(prior, seed) in outcomes]
        if done:
            by_prior[prior] = _gather(prior, done, [outcomes[made.key(prior, one)] for one in done])
    return Cell(
        made.name,
        made.target.name,
        made.target.k,
        by_prior,
        made.reason,
        sum(len(runs.seeds) for runs in by_prior.values()) == len(seeds) * len(made.policies),
        all(isinstance(policy, Fixed) for policy in made.policies.values()),
    )


def _gather(prior: float | None, seeds: list[int | None], outcomes: list[Outcome]) -> Runs:
    return Runs(
        prior,
        tuple(seeds),
        np.array([one.value for one in outcomes]),
        outcomes[0].rows,
        np.array([one.running for one in outcomes]),
        np.array([one.seconds for one in outcomes]),
    )


@contextmanager
def _bar(total: int, wanted: bool) -> Iterator[Callable[[Future[Outcome]], None]]:
    """A progress bar on standard error, if wanted."""
    if not wanted:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("runs", total=total)
        yield lambda future: bar.advance(task, int(not future.cancelled()))
