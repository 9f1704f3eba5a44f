"""Frank-Wolfe: the best mixture of linear rules on a sample, by linearizing again and again.

Each rule is the best for the metric linearized at the mixture so far, and is a corner of the set of
counts that rules can have on a sample. Under a limit the corner is a mixture of two rules:
bisection finds the price of the limit, and the rules just below and just above that price are mixed
so that the limit holds exactly. Rates enter by their linear form at the bound, num − C·den.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omma._validate import check_choice, check_number, check_positive_int, check_seed
from omma.counts import Counts, state_of
from omma.engine import Engine
from omma.kernels.layout import EPSILON, POSITIVE, PREDICTED, TOTALS, TP, N
from omma.kernels.objectives import with_epsilon
from omma.limits import Limit, check_limits, check_per_row, read_limits
from omma.metrics import Metric, MetricName
from omma.plan import Plan, fixed_plan
from omma.policies.base import MetricPolicy, UnsupportedMetricError, check_sample, whole_for
from omma.policies.fixed import simple_rule
from omma.policies.mixture import Iteration, Mixture
from omma.rows.arrays import Rows
from omma.rows.batch import Batch
from omma.rule import Rule
from omma.state import State

Vector = NDArray[np.float64]
Confusion = Callable[[Vector, Vector], State]
Weights = tuple[Vector, Vector]

ROUNDS = 30  # of bisection: the price is then known to six digits
LOWEST, HIGHEST = 1e-6, 1e6  # prices, in units of the mean slope
ROUNDING = 1e-12  # a limit that is missed by less is met
STARTS = ("top", "random")
STEPS = ("line_search", "2/(i+2)")


class ConvergenceWarning(UserWarning):
    """Frank-Wolfe stopped before its tolerance was reached, or where it had started."""


def check_metric(owner: str, metric: Metric) -> None:
    """A cost matrix needs no mixture: its best rule is fixed from the start."""
    if metric.needs_matrix:
        raise UnsupportedMetricError(
            f"metric of {owner} must be a function of per-label counts, got {metric.name}; the "
            "best rule for a cost matrix is fixed, and OMMA has it at once"
        )


@dataclass(frozen=True)
class FrankWolfe:
    """Fit a mixture of rules to a labelled sample: the paper's offline Frank-Wolfe.

    Most metrics are not concave, and probabilities of rows that the estimator was fitted to are
    overconfident: then no step from a start may seem to gain. So the algorithm starts several times
    and keeps the best mixture on the sample; where that is a start itself, ``mixture.is_start`` and
    a warning say so. Fitting on out-of-fold probabilities is the better cure.

    Parameters
    ----------
    metric, k, feedback, prior, epsilon
        As of ``omma.OMMA``.
    start : {"best", "top", "random"}
        "top" starts from the k most probable labels, or from the 0.5 threshold where there is no
        budget; "random" from slopes in [0, 1) and offsets in [-1/2, 1/2) drawn by ``seed``, as the
        code of the paper's tables. "best" tries both, and keeps the better mixture.
    step : {"line_search", "2/(i+2)"}
        The step size of each iteration.
    max_iter : int
        Stop after this number of iterations, with a warning.
    tolerance : float
        Stop when the duality gap is at most this.
    seed : int
        Seed of the mixture's draws and of the random start.
    subject_to : str or Limit, optional
        One limit that the mixture keeps on the sample, for concave metrics (recall, accuracy,
        G- and H-mean …): the mixture is then the best that keeps it, up to its gap. Each step takes
        about thirty passes over the sample.

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=10, seed=0)
    >>> mixture = omma.FrankWolfe("macro_gmean").fit(eta, y)
    >>> round(omma.replay(mixture, eta, y).value, 2)
    0.75
    >>> few = omma.FrankWolfe("macro_recall", subject_to="labels_per_row <= 1").fit(eta, y)
    >>> bool(abs(omma.replay(few, eta, y).counts.predicted.sum() / 2000 - 1) < 0.05)
    True
    """

    metric: MetricName | Metric | str
    k: int | None = None
    feedback: Literal["labels", "estimates"] = "labels"
    prior: float = 1e-6
    start: str = "best"
    step: str = "line_search"
    max_iter: int = 100
    tolerance: float = 1e-4
    seed: int = 0
    epsilon: float = field(default=EPSILON, kw_only=True)
    subject_to: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        owner, shared = "FrankWolfe", self._shared
        metric, k = shared.objective, shared.budget
        object.__setattr__(self, "metric", metric)
        limits = read_limits(owner, self.subject_to)
        object.__setattr__(self, "subject_to", limits)
        # The number of labels is not known yet: without a budget a row may get any number.
        check_per_row(owner, limits or (), float(k or 0), float(k or "inf"))
        if limits and not metric.concave:  # a mixture need not be the best there
            raise UnsupportedMetricError(
                f"metric of {owner} must be concave for subject_to, such as macro_recall or "
                f"macro_gmean, got {metric.name}; TunedThresholds and Auto take it"
            )
        if limits and (len(limits) > 1 or limits[0].margin):
            raise ValueError(
                f"subject_to of {owner} must be one limit without a margin, got "
                f"{' and '.join(map(str, limits))}"
            )
        check_metric(owner, metric)
        check_choice(owner, "start", self.start, ("best", *STARTS))
        check_choice(owner, "step", self.step, STEPS)
        check_positive_int(owner, "max_iter", self.max_iter)
        check_number(owner, "tolerance", self.tolerance, low=0.0)
        check_seed(owner, self.seed)

    @cached_property
    def _shared(self) -> _Objective:
        return _Objective(self.metric, self.k, self.feedback, self.prior, epsilon=self.epsilon)

    def fit(self, eta: Any, y: Any = None, *, weights: ArrayLike | None = None) -> Mixture:
        """Find the mixture that maximizes the metric on a sample.

        Parameters
        ----------
        eta, y, weights
            As of ``omma.replay``, be it a ``Batch``; y may be left out with
            ``feedback="estimates"``.
        """
        owner, shared = "FrankWolfe.fit", self._shared
        metric, k = shared.objective, shared.budget
        batch = Batch.read(owner, eta, y, weights)
        m = batch.m
        shared.check_labels(m)
        check_sample(owner, batch, k, metric, optional=shared.soft, whole=whole_for(metric))
        limits = tuple(limit.named(batch.names, m, "FrankWolfe") for limit in self.subject_to or ())
        # With a budget each row gets exactly k labels.
        low, high = (0.0, float(m)) if k is None else (float(k), float(k))
        check_limits("FrankWolfe", limits, m, low, high)
        # With estimates as feedback, a small gap proves that no mixture is better; labels promise
        # only as much as eta is good.
        proves = shared.soft and metric.concave
        confusion = confusion_of(owner, batch, k, soft=shared.soft)
        # Most metrics are not concave: another start may lead to a better mixture.
        solutions = {}
        for name in STARTS if self.start == "best" else (self.start,):
            solutions[name] = maximize(
                shared,
                confusion,
                start=start_at(name, k, m, self.seed),
                max_iter=self.max_iter,
                tolerance=self.tolerance,
                step=self.step,
                limit=limits[0] if limits else None,
            )
            if solutions[name].converged and proves:
                break
        start = max(solutions, key=lambda name: solutions[name].value)  # of equals, the first
        best = solutions[start]
        self._warn_of(best, start, proves)
        rules = (Rule(atom.slope, atom.offset, k).named(batch.names) for atom in best.atoms)
        return Mixture(
            tuple(rules),
            best.shares,
            metric,
            self.seed,
            best.values,
            tuple(best.log),
            start,
            best.is_start,
        )

    def _warn_of(self, solution: Solution, start: str, proven: bool) -> None:
        """Warn of a run that did not end, or that ended where it began without proof."""
        if not solution.met:
            (limit,) = self.subject_to
            message = f"FrankWolfe found no mixture that keeps {limit}: the result comes nearest"
        elif not solution.converged:
            gap = solution.log[-1].gap if solution.log else float("nan")
            stuck = bool(solution.log) and solution.log[-1].step == 0.0
            advice = "no step gains any more" if stuck else "raise max_iter or tolerance"
            message = (
                f"FrankWolfe stopped after {len(solution.log)} iterations with a gap of {gap:.2g} "
                f"above its tolerance {self.tolerance:g}: {advice}"
            )
        elif solution.is_start and not proven:
            message = (
                f"FrankWolfe found nothing better than its start ({start}): if eta is of "
                "rows that the estimator was fitted to, fit on out-of-fold probabilities"
            )
        else:
            return
        warnings.warn(message, ConvergenceWarning, stacklevel=3)


class _Objective(MetricPolicy):
    """The checks and names that metric, k, feedback and prior share with the online policies."""

    owner = "FrankWolfe"

    def plan(self, m: int) -> Plan:
        return self.metric_plan


# The loop


def confusion_of(
    owner: str, batch: Batch, k: int | None, *, soft: bool, rows: Rows | None = None
) -> Confusion:
    """What counts the decisions of a fixed rule, given its slope and offset, on some rows.

    Labels are counted, or with ``soft`` probabilities. Where some are unknown, counts are as if
    each label had been known in all rows.
    """
    ready = batch.ready()

    def confusion(slope: Vector, offset: Vector) -> State:
        plan = fixed_plan(slope, offset, k, soft=soft)
        engine = Engine.start(plan, batch.m)
        engine.replay(owner, ready, rows, keep=False)
        state = engine.state
        if state.own.missed is not None:
            # Frank-Wolfe compares counts of several rules, which must be of as many rows.
            state.cells[...] = state.own.in_proportion
        return state

    return confusion


def start_at(start: str, k: int | None, m: int, seed: int, run: int = 0) -> Weights:
    """The first rule: the top one, or slopes in [0, 1) and offsets in [-1/2, 1/2) at random.

    So start the runs behind the paper's tables. Each run has draws of its own.
    """
    if start == "top":
        rule = simple_rule(k, m)
        return rule.slope, rule.offset
    generator = np.random.default_rng((seed, run))
    return generator.random(m), generator.random(m) - 0.5


class Atom(NamedTuple):
    """A rule of a mixture, its share, and what it counts, (3, m), in rows of the weight n."""

    slope: Vector
    offset: Vector
    share: float
    cells: Vector
    n: float


@dataclass
class Solution:
    """The rules that Frank-Wolfe mixes, with the value of each alone."""

    atoms: list[Atom]
    values: Vector
    log: list[Iteration]
    converged: bool
    value: float  # of the mixture
    met: bool  # whether the limit, where there is one, can be met

    @property
    def shares(self) -> Vector:
        """The share of each rule."""
        return np.array([atom.share for atom in self.atoms])

    @property
    def is_start(self) -> bool:
        """Whether nothing was found that is better than the start."""
        return all(iteration.step == 0.0 for iteration in self.log)


def maximize(
    policy: MetricPolicy,
    confusion: Confusion,
    *,
    start: Weights,
    max_iter: int,
    tolerance: float,
    step: str = "line_search",
    limit: Limit | None = None,
) -> Solution:
    """Mix linear rules until the duality gap is at most the tolerance.

    ``policy`` has the metric, its prior and ε; ``confusion(slope, offset)`` returns the counts of a
    rule on the sample; ``start`` is the first rule. Under a ``limit`` each corner meets it, and so
    does the mixture.
    """
    from omma.kernels import value as kernel  # here: serving does without it, and import is faster

    metric, prior = policy.objective, float(policy.prior)
    plan = metric.scaled_plan(prior, policy.epsilon)
    term = kernel.for_values(with_epsilon(metric.term(), policy.epsilon))
    atoms, met = best_response(confusion, *start, limit)
    cells, n = counted(atoms), atoms[0].n
    totals, mixed = np.zeros(TOTALS), np.empty_like(cells)
    totals[N] = n

    def value_at(cells: Vector) -> float:
        # A user's own metric may have a gradient that compiles, and no value that does.
        if not metric.compiles:
            return metric.value(Counts(cells[0], cells[1], cells[2], n))
        return float(kernel.evaluate(term, prior, cells, totals))

    reached = value_at(cells)
    log: list[Iteration] = []
    converged = False
    for i in range(max_iter):
        # The linearized metric is that of OMMA, Eq. (3), at the counts of the mixture so far.
        slope, offset = Engine(plan, state_of(Counts(cells[0], cells[1], cells[2], n))).gradient()
        corner_atoms, met = best_response(confusion, slope, offset, limit)
        corner = counted(corner_atoms)
        away = (corner - cells) / n
        # For a concave metric no mixture is better by more than this, as in Eq. (11).
        gap = float(slope @ away[0] + offset @ away[1])
        if gap <= tolerance:
            converged = True
            break
        # The best point between the mixture and the corner, or the classical step size.
        if step == "line_search" and metric.compiles:
            share, value = kernel.best_share(term, prior, cells, corner, totals, mixed)
            share, value = float(share), float(value)
        else:
            share = 2.0 / (i + 2.0)
            value = value_at(cells + share * (corner - cells))
        log.append(Iteration(share, value, gap))
        if share == 0.0:  # the metric is not concave, and no step gains anything
            break
        cells, reached = cells + share * (corner - cells), value
        atoms = [atom._replace(share=(1.0 - share) * atom.share) for atom in atoms]
        atoms += [atom._replace(share=share * atom.share) for atom in corner_atoms]
    # A full step leaves nothing of the rules before it.
    atoms = [atom for atom in atoms if atom.share > 0.0]
    values = np.array([value_at(atom.cells) for atom in atoms])
    return Solution(atoms, values, log, converged, reached, met)


def counted(atoms: list[Atom]) -> Vector:
    """The counts of a mixture: those of its rules, by their shares."""
    if len(atoms) == 1:
        return atoms[0].cells
    return np.sum([atom.share * atom.cells for atom in atoms], axis=0)  # type: ignore[no-any-return]


def best_response(
    confusion: Confusion, slope: Vector, offset: Vector, limit: Limit | None
) -> tuple[list[Atom], bool]:
    """The best rules at given weights under the limit, and whether they keep it."""

    def at(price: float) -> Atom:
        weights = slope + price * by_tp, offset + price * by_predicted
        state = confusion(*weights)
        return Atom(*weights, 1.0, state.cells, float(state.totals[N]))

    by_tp = by_predicted = np.zeros(len(slope))
    below = at(0.0)
    if limit is None or room_of(limit, below) >= -ROUNDING:
        return [below], True
    by_tp, by_predicted = price_weights(limit, below)
    # A price is paid in the metric: what is high or low goes by the weights themselves.
    scale = float(np.abs(slope).mean()) or 1.0
    low, high = LOWEST * scale, HIGHEST * scale
    above = at(high)
    if room_of(limit, above) < -ROUNDING:
        return [above], False
    for _ in range(ROUNDS):
        price = float(np.sqrt(low * high))
        atom = at(price)
        if room_of(limit, atom) >= -ROUNDING:
            above, high = atom, price
        else:
            below, low = atom, price
    # The linear form is met exactly by this mixture of both sides of the right price.
    missed, room = (room_of(limit, atom) for atom in (below, above))
    share = -missed / (room - missed)
    return [below._replace(share=1.0 - share), above._replace(share=share)], True


def room_of(limit: Limit, atom: Atom) -> float:
    """By how much the linear form of a limit is met, as a share of the rows."""
    counts = Counts(atom.cells[0], atom.cells[1], atom.cells[2], atom.n)
    if limit.of == "macro_recall":  # linear as it is: no decision changes its denominators
        return float(np.nan_to_num(limit.sign * (limit.value(counts) - limit.bound)))
    return float(limit.form @ np.array(limit.cells(counts))) / atom.n


def price_weights(limit: Limit, atom: Atom) -> Weights:
    """Slope and offset that a price adds: how predicting each label changes ``room_of``."""
    m, positive = len(atom.slope), atom.cells[POSITIVE]
    if limit.of == "macro_recall":
        occurs = positive > 0
        share = atom.n / np.where(occurs, positive, 1.0) / max(int(occurs.sum()), 1)
        return limit.sign * np.where(occurs, share, 0.0), np.zeros(m)
    about = np.ones(m) if limit.over_all else np.eye(m)[limit.index or 0]
    return limit.form[TP] * about, limit.form[PREDICTED] * about
