"""The Frank-Wolfe loop: mix linear rules, each the best for the metric linearized at the mixture.

Each rule is a corner of the set of counts that rules can have on a sample. Under a limit the corner
is a mixture of two rules: bisection finds the price of the limit, and the rules just below and just
above that price are mixed so that the limit holds exactly. Rates enter by their linear form at the
bound, num − C·den.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from omma.counts import Counts, state_of
from omma.engine import Engine
from omma.kernels.layout import POSITIVE, PREDICTED, TOTALS, TP, N
from omma.kernels.objectives import with_epsilon
from omma.limits import Limit
from omma.plan import fixed_plan
from omma.policies.base import MetricPolicy
from omma.policies.mixture import Iteration
from omma.replaying import Sequence
from omma.rows.arrays import Rows
from omma.rows.batch import Batch
from omma.state import State

Vector = NDArray[np.float64]
Confusion = Callable[[Vector, Vector], State]
Weights = tuple[Vector, Vector]

ROUNDS = 30  # of bisection: the price is then known to six digits
LOWEST, HIGHEST = 1e-6, 1e6  # prices, in units of the mean slope
ROUNDING = 1e-12  # a limit that is missed by less is met
STARTS = ("top", "random")


def confusion_of(
    owner: str, batch: Batch, k: int | None, *, soft: bool, rows: Rows | None = None
) -> Confusion:
    """What counts the decisions of a fixed rule, given its slope and offset, on some rows.

    Labels are counted, or with ``soft`` probabilities. Where some are unknown, counts are as if
    each label had been known in all rows.
    """
    sequence = Sequence(batch.ready(), rows, keep=False)

    def confusion(slope: Vector, offset: Vector) -> State:
        plan = fixed_plan(slope, offset, k, soft=soft)
        state = Engine(plan, plan.start(batch.m)).replay(owner, sequence).state
        if state.own.missed is not None:
            # Frank-Wolfe compares counts of several rules, which must be of as many rows.
            state.cells[...] = state.own.in_proportion
        return state

    return confusion


def top(k: int | None, m: int) -> Weights:
    """The rule before anything is known: the 0.5 threshold, or the top k."""
    return np.ones(m), np.full(m, -0.5 if k is None else 0.0)


def start_at(start: str, k: int | None, m: int, seed: int, run: int = 0) -> Weights:
    """The first rule: the top one, or slopes in [0, 1) and offsets in [-1/2, 1/2) at random.

    So start the runs behind the paper's tables. Each run has draws of its own.
    """
    if start == "top":
        return top(k, m)
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
    start: str = "top"

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
