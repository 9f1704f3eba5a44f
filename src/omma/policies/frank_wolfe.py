"""Frank-Wolfe: the best mixture of linear rules on a sample, by linearizing again and again."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omma._rows import (
    Labels,
    Probabilities,
    Rows,
    blocks,
    read_labels,
    read_probabilities,
    read_weights,
)
from omma._run import (
    NO_NUMBERS,
    NO_ROWS,
    UNKNOWN,
    Plan,
    Progress,
    Run,
    Runner,
    State,
    compiled_for,
    fixed_plan,
    run,
    weights_now,
)
from omma._validate import check_choice, check_number, check_positive_int, check_seed, shown
from omma.counts import Counts
from omma.kernels import utility
from omma.kernels.layout import TOTALS, N
from omma.metrics import Metric, metric as find_metric
from omma.metrics.base import state_of
from omma.policies.base import (
    MetricPolicy,
    SparseRow,
    Stepper,
    UnsupportedMetricError,
    check_task,
)
from omma.policies.fixed import Fixed
from omma.rule import Rule

STEPS = ("line_search", "2/(i+2)")


class ConvergenceWarning(UserWarning):
    """Frank-Wolfe stopped before its tolerance was reached."""


@dataclass(frozen=True)
class Iteration:
    """One step of Frank-Wolfe: how far it went, and what the mixture was worth then.

    ``gap`` is what the linearized metric promised before the step. With ``feedback="estimates"``,
    where the linear rule is the best answer to a linear metric, no mixture of classifiers is better
    by more than that if the metric is concave; with labels the promise is only as good as eta.
    """

    step: float
    value: float
    gap: float


@dataclass
class Solution:
    """Rules with the shares that Frank-Wolfe gives them, best shares not sorted."""

    slopes: NDArray[np.float64]
    offsets: NDArray[np.float64]
    shares: NDArray[np.float64]
    values: NDArray[np.float64]
    log: list[Iteration]
    converged: bool


Confusion = Callable[[NDArray[np.float64], NDArray[np.float64]], State]


def first_rule(k: int | None, m: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What is done before anything is known: the 0.5 threshold, or the top k."""
    return np.ones(m), np.full(m, -0.5 if k is None else 0.0)


def with_sums(cells: NDArray[np.float64], n: float) -> State:
    """Counts of a mixture as the kernels hold them."""
    return state_of(Counts(cells[0], cells[1], cells[2], n))


def maximize(
    metric: Metric,
    confusion: Confusion,
    *,
    k: int | None,
    m: int,
    prior: float,
    max_iter: int,
    tolerance: float,
    step: str,
) -> Solution:
    """Mix linear rules until the linearized metric promises no more than the tolerance.

    ``confusion(slope, offset)`` counts what a rule does on the sample.
    """
    slope, offset = first_rule(k, m)
    found = confusion(slope, offset)
    cells, n = found.cells, float(found.totals[N])
    plan = metric.scaled_plan(prior)
    value_at = Utility(metric, prior, n, m)
    slopes, offsets, shares = [slope], [offset], [1.0]
    values = [value_at(cells)]
    log: list[Iteration] = []
    converged = False
    for i in range(max_iter):
        slope, offset = weights_now(plan, with_sums(cells, n))
        corner = confusion(slope, offset).cells
        away = (corner - cells) / n
        gap = float(slope @ away[0] + offset @ away[1])
        if gap <= tolerance:
            converged = True
            break
        values.append(value_at(corner))
        if step == "line_search" and metric.compiles:
            share, value = value_at.best_share(cells, corner)
        else:
            share = 2.0 / (i + 2.0)
            value = value_at(cells + share * (corner - cells))
        log.append(Iteration(share, value, gap))
        if share == 0.0:
            values.pop()
            break
        cells = cells + share * (corner - cells)
        shares = [(1.0 - share) * one for one in shares] + [share]
        slopes.append(slope)
        offsets.append(offset)
    return Solution(
        np.array(slopes), np.array(offsets), np.array(shares), np.array(values), log, converged
    )


class Utility:
    """The metric with its prior, at mixtures of counts over the same rows."""

    def __init__(self, metric: Metric, prior: float, n: float, m: int) -> None:
        self.metric = metric
        self.n = n
        table = metric.table()
        values = (metric.macro_value, metric.micro_value)
        self.arguments = (None if not len(table) else table, *values, prior)
        self.totals = np.zeros(TOTALS)
        self.totals[N] = n
        self.mixed = np.empty((3, m))
        self.evaluate = compiled_for(utility.evaluate, *values)
        self.search = compiled_for(utility.best_share, *values)

    def __call__(self, cells: NDArray[np.float64]) -> float:
        if not self.metric.compiles:
            return self.metric.value(Counts(cells[0], cells[1], cells[2], self.n))
        return float(self.evaluate(*self.arguments, cells, self.totals))

    def best_share(
        self, start: NDArray[np.float64], end: NDArray[np.float64]
    ) -> tuple[float, float]:
        """How much of ``end`` to mix into ``start``, and what that is worth."""
        share, value = self.search(*self.arguments, start, end, self.totals, self.mixed)
        return float(share), float(value)


@dataclass(eq=False)
class MixtureState(State):
    """Counts, and how many rows were drawn for."""

    rows: int = 0

    @classmethod
    def start(cls, m: int) -> MixtureState:
        """Nothing counted or drawn yet."""
        state = State.zeros(m)
        return cls(state.cells, state.totals)

    def copy(self) -> MixtureState:
        return MixtureState(self.cells.copy(), self.totals.copy(), self.rows)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**super().arrays(), "rows": np.array(self.rows)}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        super().restore(arrays)
        self.rows = int(arrays["rows"])
        if self.rows < 0:
            raise ValueError(f"rows must be at least 0, got {self.rows}")


class MixtureStepper(Stepper):
    """Single steps of a policy that draws a rule for each row."""

    def decide(
        self, state: Any, eta: NDArray[np.float64] | SparseRow, pick: int | None = None
    ) -> NDArray[Any]:
        return super().decide(state, eta, self.policy.pick(state) if pick is None else pick)

    def count(
        self,
        state: Any,
        eta: NDArray[np.float64] | SparseRow,
        y: NDArray[Any],
        prediction: NDArray[Any],
        weight: float,
        soft: bool | None = None,
    ) -> None:
        super().count(state, eta, y, prediction, weight, soft)
        if isinstance(state, MixtureState):
            state.rows += 1


def draws(seed: int, start: int, count: int) -> NDArray[np.float64]:
    """The draws for rows ``start`` onwards: the same whether taken one by one or together."""
    generator = np.random.PCG64(seed)
    generator.advance(start)
    return np.random.Generator(generator).random(count)


def picked(shares: NDArray[np.float64], drawn: NDArray[np.float64]) -> NDArray[np.int32]:
    """Which rule each draw falls on."""
    edges = np.cumsum(shares)
    return np.minimum(np.searchsorted(edges, drawn, side="right"), len(shares) - 1).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Mixture(Fixed):
    """Rules of which one is drawn for each row; what ``FrankWolfe.fit`` returns.

    Parameters
    ----------
    rules : sequence of Rule
    shares : array-like
        The probability of each rule.
    metric : str or Metric, optional
        What it was made to maximize.
    seed : int
        The draws are those of ``numpy.random.PCG64(seed)``, one a row.
    values : array-like, optional
        What each rule alone was worth on the sample.
    log : tuple of Iteration
        How the mixture was found.

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=10, seed=0)
    >>> mixture = omma.FrankWolfe("macro_f1").fit(eta, y)
    >>> omma.replay(mixture, eta, y).value > 0.3
    True
    >>> len(mixture.deterministic().rules)
    1
    """

    rules: tuple[Rule, ...]
    shares: NDArray[np.float64]
    metric: Metric | str | None = None
    seed: int = 0
    values: NDArray[np.float64] | None = field(default=None, repr=False)
    log: tuple[Iteration, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        rules = tuple(Rule.from_json(one) if isinstance(one, str) else one for one in self.rules)
        shares = np.array(self.shares, dtype=np.float64)
        fits = shares.shape == (len(rules),) and np.isfinite(shares).all() and (shares >= 0).all()
        if not rules or not fits or shares.sum() <= 0:
            raise ValueError(
                f"shares of Mixture must be a finite number of at least 0 for each of "
                f"{len(rules)} rules, and not all 0, got {shown(self.shares)}"
            )
        if any(rule.matrix is not None for rule in rules):
            raise ValueError("rules of Mixture must have no matrix of costs")
        object.__setattr__(self, "seed", check_seed("Mixture", self.seed))
        if len({(rule.m, rule.k) for rule in rules}) > 1:
            raise ValueError("rules of Mixture must have one number of labels and one budget")
        object.__setattr__(self, "rules", rules)
        object.__setattr__(self, "shares", shares / shares.sum())
        if self.metric is not None:
            object.__setattr__(self, "metric", find_metric(self.metric))

    @property
    def objective(self) -> Metric | None:
        return None if self.metric is None else find_metric(self.metric)

    @property
    def budget(self) -> int | None:
        return self.rules[0].k

    def check_labels(self, m: int) -> None:
        super().check_labels(m)
        if m != self.rules[0].m:
            raise ValueError(f"the rules of Mixture are for {self.rules[0].m} labels, got {m}")

    def deterministic(self) -> Mixture:
        """The one rule that was worth most on the sample; of equals, that of the largest share."""
        order = self.shares if self.values is None else self.values
        best = int(np.lexsort((self.shares, order))[-1])
        values = None if self.values is None else np.array(self.values)[[best]]
        return replace(self, rules=(self.rules[best],), shares=np.ones(1), values=values)

    def plan(self, m: int) -> Plan:
        fixed = np.array([(rule.slope, rule.offset) for rule in self.rules])
        return Plan(k=self.budget, fixed=fixed)

    def init(self, m: int) -> MixtureState:
        self.check_labels(m)
        return MixtureState.start(m)

    def pick(self, state: Any) -> int:
        """The rule drawn for the row that comes now."""
        return int(picked(self.shares, draws(self.seed, state.rows, 1))[0])

    def stepper(self, m: int) -> MixtureStepper:
        return MixtureStepper(self, m)

    def decide_rows(self, state: Any, eta: Any) -> Any:
        rows = read_probabilities("Mixture", eta)
        picks = picked(self.shares, draws(self.seed, state.rows, rows.n))
        return run("Mixture", self.plan(rows.m), rows, None, picks=picks).predictions

    def rule(self, state: Any) -> Rule:
        return self.rules[self.pick(state)]

    def replay(
        self,
        eta: Probabilities,
        labels: Labels | None,
        *,
        order: Rows | None = None,
        weights: NDArray[Any] = NO_NUMBERS,
        checkpoints: NDArray[np.int64] = NO_ROWS,
        keep: bool = True,
        progress: Progress | None = None,
    ) -> Run:
        self.check_labels(eta.m)
        done = run(
            f"replay of {type(self).__name__}",
            self.plan(eta.m),
            eta,
            labels,
            order=order,
            weights=weights,
            checkpoints=checkpoints,
            keep=keep,
            progress=progress,
            picks=picked(self.shares, draws(self.seed, 0, eta.n)),
        )
        done.state = MixtureState(done.state.cells, done.state.totals, eta.n)
        return done

    def to_json(self) -> dict[str, Any]:
        return {
            "policy": "Mixture",
            "rules": [rule.to_json() for rule in self.rules],
            "shares": self.shares.tolist(),
            "metric": None if self.objective is None else self.objective.to_json(),
            "seed": self.seed,
            "values": None if self.values is None else np.asarray(self.values).tolist(),
        }


def check_metric(owner: str, metric: Metric) -> None:
    """A cost matrix needs no mixture: its best rule is fixed from the start."""
    if metric.needs_matrix:
        raise UnsupportedMetricError(
            f"metric of {owner} must be a function of per-label counts, got {metric.name}; the "
            "best rule for a cost matrix is fixed, and OMMA has it at once"
        )


@dataclass(frozen=True)
class FrankWolfe:
    """The offline algorithm: fit a mixture of rules to a labelled sample.

    Parameters
    ----------
    metric, k, feedback, prior
        As of ``omma.OMMA``.
    step : {"line_search", "2/(i+2)"}
        How far to go in each iteration.
    max_iter : int
        Stop after so many iterations, with a warning.
    tolerance : float
        Stop when the duality gap is at most this.
    seed : int
        Of the mixture's draws.

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=10, seed=0)
    >>> mixture = omma.FrankWolfe("macro_gmean").fit(eta, y)
    >>> round(omma.replay(mixture, eta, y).value, 2)
    0.75
    """

    metric: Metric | str
    k: int | None = None
    feedback: str = "labels"
    prior: float = 1e-6
    step: str = "line_search"
    max_iter: int = 100
    tolerance: float = 1e-4
    seed: int = 0

    def __post_init__(self) -> None:
        shared = _Objective(self.metric, self.k, self.feedback, self.prior)
        object.__setattr__(self, "metric", shared.objective)
        check_metric("FrankWolfe", shared.objective)
        check_choice("FrankWolfe", "step", self.step, STEPS)
        check_positive_int("FrankWolfe", "max_iter", self.max_iter)
        check_number("FrankWolfe", "tolerance", self.tolerance, low=0.0)
        check_seed("FrankWolfe", self.seed)

    def fit(self, eta: Any, y: Any = None, *, weights: ArrayLike | None = None) -> Mixture:
        """Find the mixture that maximizes the metric on a sample.

        Parameters
        ----------
        eta, y, weights
            As of ``omma.replay``; y may be left out with ``feedback="estimates"``.
        """
        shared = _Objective(self.metric, self.k, self.feedback, self.prior)
        owner = "FrankWolfe.fit"
        rows = read_probabilities(owner, eta)
        shared.check_labels(rows.m)
        if y is None and shared.soft:
            labels, row_weights = None, read_weights(owner, weights, rows.n)
        else:
            labels, row_weights = read_sample(
                owner, rows, y, weights, shared.budget, shared.objective
            )
        parts = [
            (block, UNKNOWN if labels is None else labels.block(block))
            for _, block in blocks(rows.n, rows.rows_per_block, None)
        ]

        def confusion(slope: NDArray[np.float64], offset: NDArray[np.float64]) -> State:
            plan = fixed_plan(slope, offset, shared.budget, soft=shared.soft)
            runner = Runner(owner, plan, rows, keep=False)
            for block, true in parts:
                part = row_weights[block] if len(row_weights) else row_weights
                runner.feed(block, true, part)
            return runner.state

        solution = maximize(
            shared.objective,
            confusion,
            k=shared.budget,
            m=rows.m,
            prior=self.prior,
            max_iter=self.max_iter,
            tolerance=self.tolerance,
            step=self.step,
        )
        if not solution.converged:
            gap = solution.log[-1].gap if solution.log else float("nan")
            stuck = bool(solution.log) and solution.log[-1].step == 0.0
            advice = "no step gains any more" if stuck else "raise max_iter or tolerance"
            warnings.warn(
                f"FrankWolfe stopped after {len(solution.log)} iterations with a gap of {gap:.2g} "
                f"above its tolerance {self.tolerance:g}: {advice}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return as_mixture(solution, shared.budget, shared.objective, self.seed)


def read_sample(
    owner: str,
    rows: Probabilities,
    y: Any,
    weights: ArrayLike | None,
    k: int | None = None,
    metric: Metric | None = None,
) -> tuple[Labels, NDArray[Any]]:
    """Labels and weights of a sample to fit on."""
    if rows.n == 0:
        raise ValueError(f"eta of {owner} must have at least one row, got none")
    if y is None:
        raise ValueError(f"y of {owner} must be given, got None")
    labels = read_labels(owner, y, rows.n, rows.m)
    check_task(owner, labels, rows, k, metric)
    given = read_weights(owner, weights, rows.n)
    if len(given) and given.sum() == 0:
        raise ValueError(f"weights of {owner} must not all be 0")
    return labels, given


def as_mixture(solution: Solution, k: int | None, metric: Metric, seed: int) -> Mixture:
    """The rules that have a share, as a policy."""
    used = np.flatnonzero(solution.shares > 0)
    return Mixture(
        tuple(Rule(solution.slopes[i], solution.offsets[i], k) for i in used),
        solution.shares[used],
        metric,
        seed,
        solution.values[used],
        tuple(solution.log),
    )


class _Objective(MetricPolicy):
    """The checks and names that metric, k, feedback and prior share with the online policies."""

    def plan(self, m: int) -> Plan:
        return self.objective.plan(k=self.budget, prior=self.prior, soft=self.soft)
