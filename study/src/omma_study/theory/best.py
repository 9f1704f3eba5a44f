"""The best that any classifier can do on a known distribution."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from omma.counts import Counts, state_of
from omma.metrics import Metric
from omma.policies.best_mixture import as_mixture, maximize
from omma.policies.mixture import Mixture
from omma.rule import Rule
from omma.state import State
from omma_study.theory.distributions import Discrete, Distribution

Vector = NDArray[np.float64]
MOST = 200_000  # classifiers to look at one by one


@dataclass(frozen=True)
class Optimum:
    """The population's best classifier, and the metric linearized there.

    Attributes
    ----------
    value : float
        The metric of its average counts, ψ(C*).
    gap : float
        No classifier is better by more than this, for a concave metric; 0 where all were tried.
    counts : Counts
        Its average counts.
    classifier : Mixture or ndarray
        The classifier: rules to draw from, or the decisions for each point of a support.
    slope, offset, by_positive : ndarray
        Derivatives of the metric by tp, predicted and positive.
    rule : Rule
        The best answer to the linearized metric.
    gain : float
        What that answer gains on average.
    """

    value: float
    gap: float
    counts: Counts
    classifier: Mixture | NDArray[np.int8]
    slope: Vector
    offset: Vector
    by_positive: Vector
    rule: Rule
    gain: float


def optimum(
    metric: Metric,
    distribution: Distribution,
    k: int | None = None,
    *,
    tolerance: float = 1e-9,
    max_iter: int = 5000,
) -> Optimum:
    """Find the best classifier by Frank-Wolfe on the distribution itself.

    The duality gap, which is part of the answer, says how good it is if the metric is concave.
    For a ratio of linear forms, such as F1, a gap of 0 is enough to be best.

    Parameters
    ----------
    metric : Metric
    distribution : Distribution
    k : int, optional
        The budget.
    tolerance : float
        Stop at such a gap.
    max_iter : int

    Examples
    --------
    >>> import omma
    >>> from omma_study.theory import Beta, Independent, optimum
    >>> best = optimum(omma.metric("accuracy"), Independent(Beta(1, 1)))
    >>> round(best.value, 6)
    0.75
    """

    def confusion(slope: Vector, offset: Vector) -> State:
        return state_of(distribution.counts(Rule(slope, offset, k)))

    solution = maximize(
        metric, confusion, k=k, m=distribution.m, prior=0.0,
        max_iter=max_iter, tolerance=tolerance, step="line_search",
    )  # fmt: skip
    mixture = as_mixture(solution, k, metric, seed=0)
    counts = mixed_counts(mixture, distribution)
    best = linearized(metric, distribution, k, counts, mixture)
    corner = distribution.counts(best.rule)
    if metric.value(corner) >= best.value:  # where no kind of row is a tie, one rule does it
        alone = Mixture((best.rule,), np.ones(1), metric)
        return linearized(metric, distribution, k, corner, alone)
    return best


def exhaustive(metric: Metric, distribution: Discrete, k: int | None = None) -> Optimum:
    """Try every deterministic classifier of a small support: the best one whatever the metric.

    Examples
    --------
    >>> import omma
    >>> from omma_study.theory import Discrete, exhaustive
    >>> best = exhaustive(omma.metric("f1"), Discrete([0.1, 0.4, 0.8]))
    >>> best.classifier.ravel().tolist(), round(best.value, 6)
    ([0, 1, 1], 0.72727)
    """
    options = _options(distribution.m, k)
    size = len(options) ** len(distribution.points)
    if size > MOST:
        raise ValueError(f"exhaustive can try {MOST:,} classifiers, the support has {size:,}")
    picks = product(range(len(options)), repeat=len(distribution.points))
    every = (options[list(one)] for one in picks)
    found = max(every, key=lambda decided: metric.value(distribution.counts_of(decided)))
    return linearized(metric, distribution, k, distribution.counts_of(found), found, gap=0.0)


def mixed_counts(mixture: Mixture, distribution: Distribution) -> Counts:
    """Average counts of rules drawn from."""
    parts = [
        share * distribution.counts(rule)
        for rule, share in zip(mixture.rules, mixture.shares.tolist(), strict=True)
    ]
    tp, predicted = sum(part.tp for part in parts), sum(part.predicted for part in parts)
    return Counts(tp, predicted, distribution.frequencies, 1.0)


def linearized(
    metric: Metric,
    distribution: Distribution,
    k: int | None,
    counts: Counts,
    classifier: Mixture | NDArray[np.int8],
    gap: float | None = None,
) -> Optimum:
    """A classifier with the metric linearized at its counts."""
    slope, offset = metric.gradient(counts)
    rule = Rule(slope, offset, k)
    corner = distribution.counts(rule)
    gain = float(slope @ corner.tp + offset @ corner.predicted)
    lead = gain - float(slope @ counts.tp + offset @ counts.predicted)
    by_positive = _by_positive(metric, counts)
    return Optimum(
        metric.value(counts), lead if gap is None else gap, counts, classifier,
        slope, offset, by_positive, rule, gain,
    )  # fmt: skip


def _by_positive(metric: Metric, counts: Counts, step: float = 1e-6) -> Vector:
    """Derivatives by how often each label occurs, from central differences."""

    def moved(change: Vector) -> float:
        return metric.value(Counts(counts.tp, counts.predicted, counts.positive + change, 1.0))

    changes = step * np.eye(counts.m)
    return np.array([(moved(one) - moved(-one)) / (2.0 * step) for one in changes])


def _options(m: int, k: int | None) -> NDArray[np.int8]:
    """All decisions about one row."""
    if k is None:
        return np.array(list(product((0, 1), repeat=m)), dtype=np.int8)
    rows = np.zeros((len(list(combinations(range(m), k))), m), dtype=np.int8)
    for row, chosen in zip(rows, combinations(range(m), k), strict=True):
        row[list(chosen)] = 1
    return rows
