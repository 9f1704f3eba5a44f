"""The loop of Frank-Wolfe: mix linear rules, each the best answer to the metric linearized.

Such an answer is a corner of what rules can count on a sample. Under a limit it is a mixture of two
rules: the price of the limit is found by bisection, and of the rules just below and just above it
as much is taken as the limit allows. Rates enter by their linear form at the bound, num - C den.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from omma.counts import Counts, state_of
from omma.engine import Engine
from omma.kernels.layout import EPSILON, POSITIVE, PREDICTED, TOTALS, TP, N
from omma.kernels.objectives import with_epsilon
from omma.limits import Limit
from omma.metrics import Metric
from omma.policies.mixture import Iteration, Mixture
from omma.rule import Rule
from omma.state import State

Vector = NDArray[np.float64]
Confusion = Callable[[Vector, Vector], State]

ROUNDS = 30  # of bisection: the price is then known to six digits
LOWEST, HIGHEST = 1e-6, 1e6
HAIR = 1e-12
Weights = tuple[Vector, Vector]
STARTS = ("top", "random")


def top(k: int | None, m: int) -> Weights:
    """What is done before anything is known: the 0.5 threshold, or the top k."""
    return np.ones(m), np.full(m, -0.5 if k is None else 0.0)


def at_random(m: int, seed: int, run: int = 0) -> Weights:
    """A classifier drawn at random: slopes in [0, 1), offsets in [-1/2, 1/2), of each label.

    So start the runs behind the paper's tables. Each run has draws of its own.
    """
    generator = np.random.default_rng((seed, run))
    return generator.random(m), generator.random(m) - 0.5


def start_at(start: str, k: int | None, m: int, seed: int, run: int = 0) -> Weights:
    """The start of that name."""
    return top(k, m) if start == "top" else at_random(m, seed, run)


class Part(NamedTuple):
    """A rule, its share in a corner, and what it counts."""

    slope: Vector
    offset: Vector
    share: float
    cells: NDArray[np.float64]


class Corner(NamedTuple):
    """What is best at some weights: rules with their shares, and what they count together."""

    parts: tuple[Part, ...]
    n: float

    @property
    def cells(self) -> NDArray[np.float64]:
        """The counts of the whole."""
        if len(self.parts) == 1:
            return self.parts[0].cells
        found: NDArray[np.float64] = sum(one.share * one.cells for one in self.parts)  # type: ignore[assignment]
        return found


class Corners:
    """Finds the corner for given weights, where ``confusion`` counts what a rule does."""

    def __init__(self, confusion: Confusion, limit: Limit | None = None) -> None:
        self.confusion = confusion
        self.limit = limit
        self.reached = True  # whether the last corner meets the limit

    def __call__(self, slope: Vector, offset: Vector) -> Corner:
        state = self.confusion(slope, offset)
        free = Part(slope, offset, 1.0, state.cells)
        n = float(state.totals[N])
        if self.limit is None:
            return Corner((free,), n)
        room = _room(self.limit, free.cells, n)
        self.reached = room >= -HAIR
        return Corner((free,) if self.reached else self._priced(self.limit, free, room, n), n)

    def _priced(self, limit: Limit, below: Part, missed: float, n: float) -> tuple[Part, ...]:
        """The rules on both sides of the right price, mixed so that the limit is just met."""
        by_tp, by_predicted = _forms(limit, below.cells, n)

        def at(price: float) -> tuple[Part, float]:
            slope, offset = below.slope + price * by_tp, below.offset + price * by_predicted
            part = Part(slope, offset, 1.0, self.confusion(slope, offset).cells)
            return part, _room(limit, part.cells, n)

        scale = float(np.abs(below.slope).mean()) or 1.0
        low, high = LOWEST * scale, HIGHEST * scale
        above, room = at(high)
        self.reached = room >= -HAIR
        if not self.reached:
            return (above,)
        near = below
        for _ in range(ROUNDS):
            price = float(np.sqrt(low * high))
            one, found = at(price)
            if found >= -HAIR:
                above, room, high = one, found, price
            else:
                near, missed, low = one, found, price
        share = -missed / (room - missed)
        return near._replace(share=1.0 - share), above._replace(share=share)


def _room(limit: Limit, cells: Vector, n: float) -> float:
    """By how much the linear form of a limit is met, as a share of the rows."""
    if limit.of == "macro_recall":
        some = cells[POSITIVE] > 0
        share = float((cells[TP][some] / cells[POSITIVE][some] - limit.bound).sum())
        return limit.sign * share / max(int(some.sum()), 1)
    found = np.array(limit.cells(Counts(cells[TP], cells[PREDICTED], cells[POSITIVE], n)))
    return float(_form(limit) @ found) / n


def _form(limit: Limit) -> Vector:
    over, under = np.array(limit.rate.over), np.array(limit.rate.under)
    found: Vector = limit.sign * (over - limit.bound * under)
    return found


def _forms(limit: Limit, cells: Vector, n: float) -> Weights:
    """What predicting each label adds to that: times its probability, and whatever that is."""
    m = cells.shape[1]
    if limit.of == "macro_recall":
        some = cells[POSITIVE] > 0
        each = n / np.where(some, cells[POSITIVE], 1.0) / max(int(some.sum()), 1)
        return limit.sign * np.where(some, each, 0.0), np.zeros(m)
    by_tp, by_predicted, *_ = _form(limit)
    which = np.ones(m) if limit.over_all else np.eye(m)[limit.index or 0]
    return by_tp * which, by_predicted * which


@dataclass
class Solution:
    """Rules with the shares that Frank-Wolfe gives them, best shares not sorted."""

    slopes: NDArray[np.float64]
    offsets: NDArray[np.float64]
    shares: NDArray[np.float64]
    values: NDArray[np.float64]
    log: list[Iteration]
    converged: bool
    value: float  # of the mixture
    start: str = "top"
    met: bool = True  # whether the limit, where there is one, can be met

    @property
    def is_start(self) -> bool:
        """Whether nothing was found that is better than the start."""
        return all(one.step == 0.0 for one in self.log)


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
    epsilon: float = EPSILON,
    start: Weights | None = None,
    limit: Limit | None = None,
) -> Solution:
    """Mix linear rules until the linearized metric promises no more than the tolerance.

    ``confusion(slope, offset)`` counts what a rule does on the sample; ``start`` is the first rule,
    None the top k or the 0.5 threshold. Under a ``limit`` each corner meets it, and so does the
    mixture.
    """
    corners = Corners(confusion, limit)
    first = corners(*(top(k, m) if start is None else start))
    cells, n = first.cells, first.n
    plan = metric.scaled_plan(prior, epsilon)
    value_at = Utility(metric, prior, n, m, epsilon)
    parts = list(first.parts)
    reached = value_at(cells)
    values = [value_at(one.cells) for one in parts]
    log: list[Iteration] = []
    converged = False
    for i in range(max_iter):
        slope, offset = Engine(plan, state_of(Counts(cells[0], cells[1], cells[2], n))).gradient()
        found = corners(slope, offset)
        corner = found.cells
        away = (corner - cells) / n
        gap = float(slope @ away[0] + offset @ away[1])
        if gap <= tolerance:
            converged = True
            break
        if step == "line_search" and metric.compiles:
            share, value = value_at.best_share(cells, corner)
        else:
            share = 2.0 / (i + 2.0)
            value = value_at(cells + share * (corner - cells))
        log.append(Iteration(share, value, gap))
        if share == 0.0:
            break
        cells, reached = cells + share * (corner - cells), value
        parts = [one._replace(share=(1.0 - share) * one.share) for one in parts]
        parts += [one._replace(share=share * one.share) for one in found.parts]
        values += [value_at(one.cells) for one in found.parts]
    rules = (np.array([one.slope for one in parts]), np.array([one.offset for one in parts]))
    shares = np.array([one.share for one in parts])
    worth, met = np.array(values), corners.reached
    return Solution(*rules, shares, worth, log, converged, reached, met=met)


class Utility:
    """The metric with its prior, at mixtures of counts over the same rows."""

    def __init__(self, metric: Metric, prior: float, n: float, m: int, epsilon: float) -> None:
        from omma.kernels import value  # here: serving does without it, and import is faster

        self.kernel = value
        self.metric = metric
        self.n = n
        self.term, self.prior = with_epsilon(metric.term(), epsilon), float(prior)
        self.totals = np.zeros(TOTALS)
        self.totals[N] = n
        self.mixed = np.empty((3, m))

    def __call__(self, cells: NDArray[np.float64]) -> float:
        if not self.metric.compiles:
            return self.metric.value(Counts(cells[0], cells[1], cells[2], self.n))
        return float(self.kernel.evaluate(self.term, self.prior, cells, self.totals))

    def best_share(
        self, start: NDArray[np.float64], end: NDArray[np.float64]
    ) -> tuple[float, float]:
        """How much of ``end`` to mix into ``start``, and what that is worth."""
        share, value = self.kernel.best_share(
            self.term, self.prior, start, end, self.totals, self.mixed
        )
        return float(share), float(value)


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
        solution.start,
        solution.is_start,
    )
