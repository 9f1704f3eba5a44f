"""Regret on a known distribution, measured so closely that 1/n can be seen.

The metric of n rows fluctuates by 1/√n, its regret is of the order 1/n. Two things bring the
fluctuation down. The best classifier decides the same rows. And from every row's contribution the
part is subtracted that is known to be zero on average: the label's deviation from its probability
where a label was predicted, and what the best linear answer gains on this row beyond its mean.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import omma
from omma import Counts, Metric, Mixture, Policy
from omma_study.theory.distributions import Distribution, Stream, Vector
from omma_study.theory.optimum import Optimum

Distort = Callable[[Vector, np.random.Generator], Vector]
DRAWS = 500  # of the bootstrap over sequences


def until(last: int) -> list[int]:
    """Numbers of rows from 100 on, three to each power of ten.

    >>> until(10_000)
    [100, 215, 464, 1000, 2154, 4642, 10000]
    """
    # 10^(6/3) = 100 is the first.
    powers = np.arange(6, 3 * np.log10(last) + 0.5) / 3
    return [round(10**power) for power in powers.tolist()]


def standard_error(curves: Vector) -> Vector:
    """Of the mean over sequences."""
    return curves.std(axis=0, ddof=1) / np.sqrt(len(curves))


def averaged(name: str, curves: Vector) -> dict[str, list[float]]:
    """The mean of curves and its standard error, as records keep them.

    >>> averaged("regret", np.array([[1.0, 2.0], [3.0, 2.0]]))
    {'regret': [2.0, 2.0], 'regret_error': [1.0, 0.0]}
    """
    errors = standard_error(curves).tolist()
    return {name: curves.mean(axis=0).tolist(), f"{name}_error": errors}


class Rate(NamedTuple):
    """A curve that goes as n to the ``exponent``, and the 95% interval of that."""

    exponent: float
    low: float
    high: float


def fitted_rate(
    rows: NDArray[np.int64], curves: Vector, start: int = 1000, seed: int = 0
) -> Rate | None:
    """Fit a power of n to the mean of curves, from ``start`` rows on; a bootstrap over sequences.

    None where the curve is not clearly above zero, so that it has no logarithm.

    >>> rows = np.array([1000, 10_000, 100_000])
    >>> fitted_rate(rows, np.array([5.0 / rows, 7.0 / rows])).exponent
    -1.0
    """
    # Least squares of log regret on log n; the early rows are not of the asymptotic rate yet.
    late = rows >= start
    logs = np.log(rows[late])
    values = curves[:, late]
    picks = np.random.default_rng(seed).integers(len(curves), size=(DRAWS, len(curves)))
    means = values[picks].mean(axis=1)
    usable = (means > 0).all(axis=1)
    # If bootstrap means are negative now and then, the mean is zero within its error.
    if not (values.mean(axis=0) > 0).all() or usable.mean() < 0.95:
        return None
    slope, _ = np.polyfit(logs, np.log(values.mean(axis=0)), 1)
    slopes, _ = np.polyfit(logs, np.log(means[usable]).T, 1)
    low, high = np.quantile(slopes, (0.025, 0.975))
    return Rate(round(float(slope), 12), float(low), float(high))


@dataclass(frozen=True)
class Problem:
    """What is to be maximized, and on which rows."""

    distribution: Distribution
    metric: Metric
    best: Optimum
    k: int | None = None


class Measured(NamedTuple):
    """Shortfalls of sequences (a row each) at some numbers of rows (a column each).

    ``policy`` and ``best`` are ψ(C*) minus the metric of the policy and of the best classifier.
    Their difference is the regret. The theorems bound the first, which is larger on average where
    the metric is concave.
    """

    rows: NDArray[np.int64]
    policy: Vector
    best: Vector

    @property
    def regret(self) -> Vector:
        """The best classifier's metric minus the policy's, on the same rows."""
        return self.policy - self.best


def measure(
    problem: Problem,
    policy: Policy,
    rows: Iterable[int],
    sequences: int,
    *,
    seed: int = 0,
    distort: Distort | None = None,
) -> Measured:
    """Let a policy decide fresh sequences and compare it with the best classifier.

    Parameters
    ----------
    problem : Problem
    policy : Policy
    rows : list of int
        Where to look; the last is the length of a sequence.
    sequences : int
    seed : int
        Sequences are the same for every policy.
    distort : function, optional
        A function of probabilities and a generator; its result is what the policy sees.

    Examples
    --------
    >>> import omma
    >>> from omma_study.theory import Beta, Independent, Problem, measure, optimum
    >>> rows = Independent(Beta(1, 2))
    >>> metric = omma.metric("accuracy")
    >>> problem = Problem(rows, metric, optimum(metric, rows))
    >>> measure(problem, omma.Threshold(0.5), [100, 200], sequences=3).regret.round(12).tolist()
    [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    """
    places = np.array(sorted(rows), dtype=np.int64)
    metric, best, rule = problem.metric, problem.best, problem.best.rule
    shortfalls = []
    for number in range(sequences):
        rng = np.random.default_rng((seed, number))
        stream = problem.distribution.draw(int(places[-1]), rng)
        estimated = stream if distort is None else stream._replace(eta=distort(stream.eta, rng))
        if isinstance(best.classifier, Mixture):  # rules are drawn anew for each sequence
            mixture = Mixture(best.classifier.rules, best.classifier.shares, seed=number + 1)
            reference = decisions(metric, mixture, stream)
        else:
            reference = best.classifier[stream.places]
        # Control variates: each of these has mean zero, whatever the policy decides.
        gains = ((stream.eta * rule.slope + rule.offset) * rule.predict(stream.eta)).sum(axis=1)
        by_frequency = (stream.y - problem.distribution.frequencies) @ best.by_positive
        pair = []
        for decided in (decisions(metric, policy, estimated), reference):
            noise = ((stream.y - stream.eta) * decided) @ rule.slope
            zero_mean = cumulative(noise + (gains - best.gain + by_frequency), places) / places
            values = [metric.value(counts) for counts in counts_at(stream.y, decided, places)]
            pair.append(best.value - np.array(values) + zero_mean)
        shortfalls.append(pair)
    return Measured(places, *np.array(shortfalls).transpose(1, 0, 2))


def decisions(metric: Metric | str, policy: Policy, stream: Stream) -> Any:
    """What a policy does on a stream."""
    return omma.replay(policy, stream.eta, stream.y, metric=metric, checkpoints=0).predictions


def counts_at(y: NDArray[Any], decided: NDArray[np.int8], rows: NDArray[np.int64]) -> list[Counts]:
    """Counts of the first rows, for each number of rows; y may be probabilities."""
    sums = (cumulative(part, rows) for part in (y * decided, decided, y))
    return [
        Counts(tp, predicted, positive, float(n))
        for tp, predicted, positive, n in zip(*sums, rows, strict=True)
    ]


def cumulative(values: NDArray[Any], rows: NDArray[np.int64]) -> Vector:
    """Sums of the first rows, for each number of rows."""
    # Sums between the places first: a cumulative sum of all rows would be as long as they are.
    starts = np.concatenate(([0], rows[:-1]))
    parts = np.add.reduceat(values[: rows[-1]], starts, axis=0, dtype=np.float64)
    return np.cumsum(parts, axis=0)
