"""The best classifier of a known distribution, and its value."""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from omma import Counts, Metric, Mixture, Rule
from omma_study.theory.distributions import Discrete, Distribution, Vector

MOST = 200_000  # classifiers to try


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
    rule : Rule
        The best answer to the linearized metric: its slope and offset are the derivatives by tp
        and by predicted.
    by_positive : ndarray
        Derivatives of the metric by positive.
    gain : float
        What that answer gains on average.
    """

    value: float
    gap: float
    counts: Counts
    classifier: Mixture | NDArray[np.int8]
    rule: Rule
    by_positive: Vector
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
    # Start from the rule that ignores the metric: the 0.5 threshold, or the top k.
    m = distribution.m
    rules = [Rule(np.ones(m), np.full(m, -0.5 if k is None else 0.0), k)]
    shares, counts = np.ones(1), distribution.counts(rules[0])
    for _ in range(max_iter):
        slope, offset = metric.gradient(counts)
        rule = Rule(slope, offset, k)
        corner = distribution.counts(rule)
        # Frank-Wolfe's duality gap, ∇ψ(C)·(C′ − C): no concave ψ is higher by more.
        gap = slope @ (corner.tp - counts.tp) + offset @ (corner.predicted - counts.predicted)
        if gap <= tolerance:
            break
        share = _line_search(metric, counts, corner)
        if share == 0.0:
            break
        counts = mixed(counts, corner, share)
        shares = np.append((1.0 - share) * shares, share)
        rules.append(rule)
    # After a full step, earlier rules have no share.
    used = shares > 0
    mixture = Mixture(tuple(np.array(rules, dtype=object)[used]), shares[used], metric)
    best = linearized(metric, distribution, k, counts, mixture)
    corner = distribution.counts(best.rule)
    if metric.value(corner) >= best.value:  # without ties, one rule is as good as the mixture
        alone = Mixture((best.rule,), np.ones(1), metric)
        return linearized(metric, distribution, k, corner, alone)
    return best


def mixed(counts: Counts, corner: Counts, share: float) -> Counts:
    """Average counts where a share of the rows is decided as at the corner."""
    tp, predicted = (
        (1.0 - share) * getattr(counts, part) + share * getattr(corner, part)
        for part in ("tp", "predicted")
    )
    return Counts(tp, predicted, counts.positive, 1.0)


def _line_search(metric: Metric, counts: Counts, corner: Counts) -> float:
    """The share of the corner with the highest value."""

    def loss(share: float) -> float:
        return -metric.value(mixed(counts, corner, share))

    search = optimize.minimize_scalar(
        loss, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-13, "maxiter": 200}
    )
    # Golden section never tries the ends.
    return float(min((0.0, 1.0, float(search.x)), key=lambda share: (loss(share), share)))


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
    m, points = distribution.m, len(distribution.points)
    # All decisions about one row; with a budget exactly k of the labels.
    options = np.array(list(product((0, 1), repeat=m)), dtype=np.int8)
    if k is not None:
        options = options[options.sum(axis=1) == k][::-1]  # of equals the first labels
    size = len(options) ** points
    if size > MOST:
        raise ValueError(f"exhaustive can try {MOST:,} classifiers, the support has {size:,}")
    classifiers = (options[list(places)] for places in product(range(len(options)), repeat=points))
    best = max(classifiers, key=lambda decided: metric.value(distribution.counts_of(decided)))
    return linearized(metric, distribution, k, distribution.counts_of(best), best, gap=0.0)


def linearized(
    metric: Metric,
    distribution: Distribution,
    k: int | None,
    counts: Counts,
    classifier: Mixture | NDArray[np.int8],
    gap: float | None = None,
) -> Optimum:
    """The optimum that a classifier is, with the metric linearized at its counts."""
    # ∇ψ(C)·C′ is largest at the rule whose slope and offset are this gradient.
    slope, offset = metric.gradient(counts)
    rule = Rule(slope, offset, k)
    corner = distribution.counts(rule)
    gain = float(slope @ corner.tp + offset @ corner.predicted)
    lead = gain - float(slope @ counts.tp + offset @ counts.predicted)

    # ``gradient`` has no derivative by positive, as no decision changes it.
    def value_with(change: Vector) -> float:
        return metric.value(Counts(counts.tp, counts.predicted, counts.positive + change, 1.0))

    steps = 1e-6 * np.eye(counts.m)  # central differences
    by_positive = np.array([(value_with(step) - value_with(-step)) / 2e-6 for step in steps])
    value = metric.value(counts)
    return Optimum(value, lead if gap is None else gap, counts, classifier, rule, by_positive, gain)
