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
from numpy.typing import ArrayLike

from omma._validate import check_choice, check_number, check_positive_int, check_seed
from omma.counts import Counts
from omma.engine import Engine
from omma.kernels.layout import EPSILON, PREDICTED, TOTALS, TP, N
from omma.kernels.objectives import with_epsilon
from omma.limits import Limit
from omma.metrics import Metric, MetricName
from omma.plan import fixed_plan
from omma.policies.base import MetricPolicy, UnsupportedMetricError, check_task, whole_for
from omma.policies.mixture import Iteration, Mixture, Vector
from omma.policies.omma import OMMA
from omma.rows.arrays import Rows
from omma.rows.batch import Batch, read_labelled
from omma.rule import Rule, simple_rule

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
        owner, options = "FrankWolfe", self._options
        metric, limits = options.objective, options.limits
        object.__setattr__(self, "metric", metric)
        object.__setattr__(self, "subject_to", options.subject_to)
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
    def _options(self) -> _Options:
        shared = ("metric", "k", "feedback", "prior", "epsilon", "subject_to")
        return _Options(**{name: getattr(self, name) for name in shared})

    def fit(self, eta: Any, y: Any = None, *, weights: ArrayLike | None = None) -> Mixture:
        """Find the mixture that maximizes the metric on a sample.

        Parameters
        ----------
        eta, y, weights
            As of ``omma.replay``, be it a ``Batch``; y may be left out with
            ``feedback="estimates"``.
        """
        owner = "FrankWolfe.fit"
        batch = read_labelled(owner, eta, y, weights, optional=self._options.soft)
        options, m = self._options.for_names(batch.names), batch.m
        metric, k = options.objective, options.budget
        options.check_labels(m)
        check_task(owner, batch, k, metric, unknown=True, whole=whole_for(metric))
        limits = options.named_limits(m)
        # With estimates as feedback, a small gap proves that no mixture is better; labels promise
        # only as much as eta is good.
        proves = options.soft and metric.concave
        count = rule_counter(owner, batch, k, soft=options.soft)
        # Most metrics are not concave: another start may lead to a better mixture.
        solutions = {}
        for name in STARTS if self.start == "best" else (self.start,):
            solutions[name] = maximize(
                options,
                count,
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
        rules = (
            Rule(atom.weights[0], atom.weights[1], k).named(batch.names) for atom in best.atoms
        )
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


class _Options(OMMA):
    """The options that Frank-Wolfe shares with OMMA, read and checked as OMMA's."""

    owner = "FrankWolfe"
    FEEDBACKS = ("labels", "estimates")
    FOLLOWS_KINKS = False  # a mixture of rules does not jump


# The loop


class Atom(NamedTuple):
    """A rule of a mixture: its slope and offset, (2, m), its share, and its counts."""

    weights: Vector
    share: float
    counts: Counts


CountRule = Callable[[Vector], Atom]


def counts_at(cells: Vector, n: float) -> Counts:
    """Counts of an array (3, m)."""
    return Counts(cells[0], cells[1], cells[2], n)


def rule_counter(
    owner: str, batch: Batch, k: int | None, *, soft: bool, rows: Rows | None = None
) -> CountRule:
    """A function that counts the decisions of a fixed rule, of shape (2, m), on some rows.

    It counts labels, or with ``soft`` probabilities. Where some are unknown, counts are as if each
    label had been known in all rows.
    """
    ready = batch.ready()

    def count(weights: Vector) -> Atom:
        engine = Engine.start(fixed_plan(weights[0], weights[1], k, soft=soft), batch.m)
        engine.replay(owner, ready, rows, keep=False)
        state = engine.state
        # Counts of several rules are compared, so they must be of the same number of rows.
        cells = state.cells if state.own.missed is None else state.own.in_proportion
        return Atom(weights, 1.0, counts_at(cells, float(state.totals[N])))

    return count


def start_at(start: str, k: int | None, m: int, seed: int, run: int = 0) -> Vector:
    """The first rule: the top one, or slopes in [0, 1) and offsets in [-1/2, 1/2) at random.

    So start the runs behind the paper's tables. Each run has draws of its own.
    """
    if start == "top":
        rule = simple_rule(k, m)
        return np.stack((rule.slope, rule.offset))
    return np.random.default_rng((seed, run)).random((2, m)) - [[0.0], [0.5]]


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
    count: CountRule,
    *,
    start: Vector,
    max_iter: int,
    tolerance: float,
    step: str = "line_search",
    limit: Limit | None = None,
) -> Solution:
    """Mix linear rules until the duality gap is at most the tolerance.

    ``policy`` has the metric, its prior and ε; ``count`` counts the decisions of a rule on the
    sample; ``start`` is the first rule. Under a ``limit`` each corner meets it, and so does the
    mixture.
    """
    from omma.kernels import value as kernel  # here: serving does without it, and import is faster

    metric, prior = policy.objective, float(policy.prior)
    term = kernel.for_values(with_epsilon(metric.term(), policy.epsilon))
    atoms, met = best_response(count, start, limit)
    cells, n = mixed_cells(atoms), atoms[0].counts.n
    totals, scratch = np.zeros(TOTALS), np.empty_like(cells)
    totals[N] = n

    def value_at(cells: Vector) -> float:
        # A user's own metric may have a gradient that compiles, and no value that does.
        if not metric.compiles:
            return metric.value(counts_at(cells, n))
        return float(kernel.evaluate(term, prior, cells, totals))

    reached = value_at(cells)
    log: list[Iteration] = []
    converged = False
    for i in range(max_iter):
        # The linearized metric is that of OMMA, Eq. (3), at the counts of the mixture so far.
        counts = counts_at(cells, n)
        gradient = np.stack(metric.gradient(counts, prior, epsilon=policy.epsilon))
        corner_atoms, met = best_response(count, gradient, limit)
        corner = mixed_cells(corner_atoms)
        # For a concave metric no mixture is better by more than this, as in Eq. (11).
        gap = float((gradient * (corner - cells)[[TP, PREDICTED]]).sum() / n)
        if gap <= tolerance:
            converged = True
            break
        # The best point between the mixture and the corner, or the classical step size.
        if step == "line_search" and metric.compiles:
            best = kernel.best_share(term, prior, cells, corner, totals, scratch)
            share, value = map(float, best)
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
    values = np.array([value_at(atom.counts.cells) for atom in atoms])
    return Solution(atoms, values, log, converged, reached, met)


def mixed_cells(atoms: list[Atom]) -> Vector:
    """The counts of a mixture: those of its rules, by their shares."""
    return np.sum([atom.share * atom.counts.cells for atom in atoms], axis=0)  # type: ignore[no-any-return]


def best_response(
    count: CountRule, weights: Vector, limit: Limit | None
) -> tuple[list[Atom], bool]:
    """The best rules at given weights under the limit, and whether they keep it."""
    below = count(weights)
    if limit is None or room_of(limit, below) >= -ROUNDING:
        return [below], True
    # Slope and offset that a price adds: how predicting each label changes ``room_of``.
    direction = np.outer(limit.form[[TP, PREDICTED]], limit.label_weights(below.counts))
    # Prices are in units of the metric, so their range scales with the slopes.
    scale = float(np.abs(weights[0]).mean()) or 1.0
    low, high = LOWEST * scale, HIGHEST * scale
    above = count(weights + high * direction)
    if room_of(limit, above) < -ROUNDING:
        return [above], False
    for _ in range(ROUNDS):
        price = float(np.sqrt(low * high))
        atom = count(weights + price * direction)
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
    return float(limit.form @ np.array(limit.cells(atom.counts))) / atom.counts.n
