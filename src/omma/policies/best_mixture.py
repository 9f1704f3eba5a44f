"""The loop of Frank-Wolfe: mix linear rules, each the best answer to the metric linearized."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from omma.counts import Counts, state_of
from omma.kernels.kinds import with_epsilon
from omma.kernels.layout import EPSILON, TOTALS, N
from omma.limits import Limit
from omma.metrics import Metric
from omma.policies.corners import Confusion, Corners
from omma.policies.mixture import Iteration, Mixture
from omma.policies.starts import Weights, top
from omma.rule import Rule
from omma.running.weights import weights_now
from omma.state import State


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
        slope, offset = weights_now(plan, with_sums(cells, n))
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
    made = Solution(*rules, shares, np.array(values), log, converged, reached)
    return replace(made, met=corners.reached)


class Utility:
    """The metric with its prior, at mixtures of counts over the same rows."""

    def __init__(self, metric: Metric, prior: float, n: float, m: int, epsilon: float) -> None:
        from omma.kernels import utility  # here: serving does without it, and import is faster

        self.utility = utility
        self.metric = metric
        self.n = n
        self.term, self.prior = with_epsilon(metric.term(), epsilon), float(prior)
        self.totals = np.zeros(TOTALS)
        self.totals[N] = n
        self.mixed = np.empty((3, m))

    def __call__(self, cells: NDArray[np.float64]) -> float:
        if not self.metric.compiles:
            return self.metric.value(Counts(cells[0], cells[1], cells[2], self.n))
        return float(self.utility.evaluate(self.term, self.prior, cells, self.totals))

    def best_share(
        self, start: NDArray[np.float64], end: NDArray[np.float64]
    ) -> tuple[float, float]:
        """How much of ``end`` to mix into ``start``, and what that is worth."""
        share, value = self.utility.best_share(
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
