"""Distributions of rows for which the average counts of any rule are known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import integrate, special, stats

from omma import Counts, Rule

Vector = NDArray[np.float64]
POINTS = 2**16  # of a support that stands for a continuous distribution


class Stream(NamedTuple):
    """Rows drawn from a distribution: probabilities, indicators of labels, places in the support.

    ``places`` is None where the distribution is continuous.
    """

    eta: Vector
    y: NDArray[np.int8]
    places: NDArray[np.int64] | None = None


class Distribution:
    """Where rows come from.

    Attributes
    ----------
    m : int
        Number of labels.
    multiclass : bool
        Whether a row has exactly one label; else labels are independent given the row.
    frequencies : ndarray of shape (m,)
        How often each label occurs.
    support : Discrete
        Kinds of rows that stand for the distribution, or are all that it has.
    """

    m: int
    multiclass: bool = False
    frequencies: Vector
    support: Discrete

    def draw(self, n: int, rng: np.random.Generator) -> Stream:
        """Independent rows."""
        eta = self.draw_eta(n, rng)
        return Stream(eta, self.draw_labels(eta, rng))

    def draw_eta(self, n: int, rng: np.random.Generator) -> Vector:
        """Probabilities of independent rows."""
        raise NotImplementedError

    def draw_labels(self, eta: Vector, rng: np.random.Generator) -> NDArray[np.int8]:
        """Labels of rows with known probabilities."""
        if not self.multiclass:
            return (rng.random(eta.shape) < eta).astype(np.int8)
        # Inverse transform: the class is how many cumulative probabilities a uniform draw passes.
        passed = rng.random((len(eta), 1)) >= np.cumsum(eta, axis=1)[:, :-1]
        return np.eye(self.m, dtype=np.int8)[passed.sum(axis=1)]

    def counts(self, rule: Rule) -> Counts:
        """Average counts of one row that a rule decides."""
        return self.support.counts_of(rule.predict(self.support.points))


class Discrete(Distribution):
    """Finitely many kinds of rows.

    Parameters
    ----------
    points : array-like of shape (s, m), or (s,) for one label
        Probabilities of the labels in each kind.
    weights : array-like of shape (s,), optional
        How often each kind comes; default equally often.
    multiclass : bool

    Examples
    --------
    >>> import omma
    >>> from omma_study.theory import Discrete
    >>> coin = Discrete([0.2, 0.9], weights=[3, 1])
    >>> coin.frequencies
    array([0.375])
    >>> coin.counts(omma.Rule([1.0], [-0.5]))
    Counts(n=1, tp=[0.225], predicted=[0.25], positive=[0.375])
    """

    def __init__(
        self, points: ArrayLike, weights: ArrayLike | None = None, *, multiclass: bool = False
    ) -> None:
        self.points = np.array(points, dtype=np.float64)
        if self.points.ndim == 1:
            self.points = self.points[:, np.newaxis]
        # Kinds that come equally often where nothing is said.
        raw = np.ones(len(self.points)) if weights is None else np.array(weights, dtype=np.float64)
        is_valid = ((self.points >= 0) & (self.points <= 1)).all()
        is_valid &= not multiclass or np.allclose(self.points.sum(axis=1), 1.0)
        if (
            not is_valid
            or raw.shape != (len(self.points),)
            or not ((raw >= 0).all() and raw.sum() > 0)
        ):
            raise ValueError(
                "points of Discrete must be rows of probabilities, which add up to 1 where "
                "multiclass, and weights a number of at least 0 for each"
            )
        self.weights = raw / raw.sum()
        self.m = self.points.shape[1]
        self.multiclass = multiclass
        self.frequencies = self.weights @ self.points
        self.support = self

    def draw(self, n: int, rng: np.random.Generator) -> Stream:
        places = rng.choice(len(self.points), n, p=self.weights)
        eta = self.points[places]
        return Stream(eta, self.draw_labels(eta, rng), places)

    def counts_of(self, decisions: NDArray[Any]) -> Counts:
        """Average counts of decisions about each kind of row."""
        tp = self.weights @ (self.points * decisions)
        return Counts(tp, self.weights @ decisions, self.frequencies, 1.0)


@dataclass(frozen=True)
class Beta:
    """A label whose probability has a Beta distribution; all is known in closed form.

    >>> from omma_study.theory import Beta
    >>> [round(part, 6) for part in Beta(1.0, 1.0).above(0.5)]
    [0.5, 0.375]
    """

    a: float
    b: float

    def quantiles(self, share: Vector) -> Vector:
        """The probability below which a share of the rows lies."""
        return special.betaincinv(self.a, self.b, share)

    def above(self, threshold: float) -> tuple[float, float]:
        """How often the probability reaches a threshold, and its sum over those rows."""
        # E[η·1(η ≥ t)] of Beta(a, b) is its mean times P(η′ ≥ t) of Beta(a + 1, b).
        cut = min(max(threshold, 0.0), 1.0)
        mean = self.a / (self.a + self.b)
        often = 1.0 - special.betainc(self.a, self.b, cut)
        return float(often), float(mean * (1.0 - special.betainc(self.a + 1.0, self.b, cut)))

    def draw(self, n: int, rng: np.random.Generator) -> Vector:
        return rng.beta(self.a, self.b, n)


@dataclass(frozen=True)
class LogisticNormal:
    """A label whose log-odds are normal; sums are integrated to 1e-10.

    >>> from omma_study.theory import LogisticNormal
    >>> [round(part, 6) for part in LogisticNormal(0.0, 1.0).above(0.0)]
    [1.0, 0.5]
    """

    mean: float
    spread: float

    def quantiles(self, share: Vector) -> Vector:
        return special.expit(self.mean + self.spread * special.ndtri(share))

    def above(self, threshold: float) -> tuple[float, float]:
        # Nothing reaches it, and its logit is infinite.
        if threshold >= 1.0:
            return 0.0, 0.0
        start = (special.logit(max(threshold, 0.0)) - self.mean) / self.spread
        start = max(float(start), -12.0)  # below lies less than 1e-32 of the rows

        def density(z: float) -> float:
            level = special.expit(self.mean + self.spread * z)
            return float(level * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi))

        # With break points, quadrature does not miss the peak of the density.
        middles = [z for z in (-3.0, 0.0, 3.0) if start < z < 12.0]
        end, options = max(12.0, start + 1.0), {"epsabs": 1e-13, "epsrel": 1e-11}
        share, _ = integrate.quad(density, start, end, points=middles or None, **options)
        return float(special.ndtr(-start)), float(share)

    def draw(self, n: int, rng: np.random.Generator) -> Vector:
        return special.expit(self.mean + self.spread * rng.standard_normal(n))


class Independent(Distribution):
    """Labels whose probabilities are independent of each other, each with its own distribution.

    Without a budget all is known to rounding; with one, a rule is applied to a grid of 65,536
    points that fills the space evenly (Sobol), which is accurate to some 1e-5.

    >>> import omma
    >>> from omma_study.theory import Beta, Independent
    >>> Independent(Beta(1, 1)).counts(omma.Rule([1.0], [-0.5]))
    Counts(n=1, tp=[0.375], predicted=[0.5], positive=[0.5])
    """

    def __init__(self, *marginals: Beta | LogisticNormal) -> None:
        self.marginals = marginals
        self.m = len(marginals)
        self.frequencies = np.array([marginal.above(0.0)[1] for marginal in marginals])

    def draw_eta(self, n: int, rng: np.random.Generator) -> Vector:
        return np.column_stack([marginal.draw(n, rng) for marginal in self.marginals])

    def counts(self, rule: Rule) -> Counts:
        # A budget ties labels together, and a negative slope is no threshold from below.
        if rule.k is not None or not (rule.slope >= 0).all():
            return super().counts(rule)
        pairs = zip(self.marginals, rule.thresholds, strict=True)
        above = np.array([marginal.above(threshold) for marginal, threshold in pairs])
        return Counts(above[:, 1], above[:, 0], self.frequencies, 1.0)

    @cached_property
    def support(self) -> Discrete:  # type: ignore[override]
        share = _sobol(self.m)
        columns = [marginal.quantiles(share[:, j]) for j, marginal in enumerate(self.marginals)]
        return Discrete(np.stack(columns, axis=1))


class Softmax(Distribution):
    """Classes whose logits are independent and normal; rules are applied to a Sobol grid.

    >>> from omma_study.theory import Softmax
    >>> Softmax([0.0, 0.0, 0.0], spread=1.0).frequencies.round(3)
    array([0.333, 0.333, 0.333])
    """

    multiclass = True

    def __init__(self, means: ArrayLike, spread: float) -> None:
        self.means = np.array(means, dtype=np.float64)
        self.m = len(self.means)
        self.spread = spread
        # Quantiles of the normal distribution at evenly spread points.
        logits = self.means + spread * special.ndtri(_sobol(self.m))
        self.support = Discrete(special.softmax(logits, axis=1), multiclass=True)
        self.frequencies = self.support.frequencies

    def draw_eta(self, n: int, rng: np.random.Generator) -> Vector:
        logits = self.means + self.spread * rng.standard_normal((n, self.m))
        return special.softmax(logits, axis=1)


def threshold(cut: float) -> Rule:
    """The rule of one label that predicts from a probability on.

    >>> threshold(0.25).thresholds
    array([0.25])
    """
    return Rule(np.ones(1), np.array([-cut]))


def _sobol(m: int) -> Vector:
    """Points that fill the cube evenly, none on its faces."""
    if m == 1:
        return ((np.arange(POINTS) + 0.5) / POINTS)[:, np.newaxis]
    # At 0 and 1 quantiles are infinite.
    cube = stats.qmc.Sobol(m, seed=0).random(POINTS)
    return np.clip(cube, 1e-12, 1.0 - 1e-12)
