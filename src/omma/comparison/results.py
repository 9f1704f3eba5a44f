"""The results of one policy for one metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from omma.tables import Entry, content, plain

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs of a policy for a metric with one prior; means and deviations are over the seeds.

    Attributes
    ----------
    prior : float or None
        λ; None where the policy has none.
    seeds : tuple
        Of the sequences that were run.
    values : ndarray of shape (seeds,)
        The metric over the whole sequence.
    rows : ndarray of shape (checkpoints,)
        Numbers of rows.
    times : ndarray of shape (seeds,)
        Seconds of each replay, without compilation and evaluation.
    curves : sequence of ndarrays of shape (checkpoints,)
        The metric over the first ``rows`` rows, for each seed.
    """

    prior: float | None = None
    seeds: tuple[int | None, ...] = ()
    values: Vector = field(default_factory=lambda: np.empty(0), repr=False)
    rows: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64), repr=False)
    times: Vector = field(default_factory=lambda: np.empty(0), repr=False)
    curves: Sequence[Vector] = field(default=(), repr=False)

    @property
    def running(self) -> Vector:
        """The curves as an array of shape (seeds, checkpoints)."""
        return np.reshape(self.curves, (len(self.seeds), len(self.rows)))

    @property
    def mean(self) -> float:
        """Mean of the final values; NaN where nothing has run."""
        return float(_mean(self.values))

    @property
    def std(self) -> float:
        """Sample standard deviation of the final values; NaN for less than two sequences."""
        return float(_std(self.values))

    @property
    def running_mean(self) -> Vector:
        """Mean of the metric so far, at each of ``rows``."""
        return _mean(self.running)

    @property
    def running_std(self) -> Vector:
        """Sample standard deviation of the metric so far, at each of ``rows``."""
        return _std(self.running)

    @property
    def seconds(self) -> float:
        """Mean time of a replay."""
        return float(_mean(self.times))

    @property
    def seconds_std(self) -> float:
        """Sample standard deviation of that time."""
        return float(_std(self.times))


def _mean(values: Vector) -> Vector:
    return values.mean(axis=0) if len(values) else np.full(values.shape[1:], np.nan)


def _std(values: Vector) -> Vector:
    """Of a sample, over the first axis: one value alone says nothing about the spread."""
    return values.std(axis=0, ddof=1) if len(values) > 1 else np.full(values.shape[1:], np.nan)


@dataclass(frozen=True, repr=False)
class Cell:
    """The results of a policy for a metric, for every prior it was run with.

    Attributes
    ----------
    policy, metric : str
        As they are called in the comparison.
    k : int or None
        The budget.
    by_prior : dict of float or None to Runs
        All results. Which prior is best is known only afterwards: a choice made with hindsight.
    reason : str
        Why the policy does not support the metric; empty where it does.
    complete : bool
        Whether every run has finished.
    fixed : bool
        Whether the policy's rule never changes.
    """

    policy: str
    metric: str
    k: int | None
    by_prior: dict[float | None, Runs]
    reason: str = ""
    complete: bool = True
    fixed: bool = False

    @property
    def supported(self) -> bool:
        """Whether the policy can be run for the metric."""
        return not self.reason

    @cached_property
    def best(self) -> Runs:
        """The runs with the highest mean, of equals the first; without any where nothing has run.

        Where a comparison was stopped, priors that ran on more sequences go first.
        """

        def worth(runs: Runs) -> tuple[int, float]:
            return len(runs.seeds), -math.inf if math.isnan(runs.mean) else runs.mean

        return max(self.by_prior.values(), key=worth, default=Runs())

    @property
    def prior(self) -> float | None:
        """The best prior; all below is with this one."""
        return self.best.prior

    @property
    def values(self) -> Vector:
        """The metric over the whole sequence, for each seed."""
        return self.best.values

    @property
    def mean(self) -> float:
        """Mean of ``values``."""
        return self.best.mean

    @property
    def std(self) -> float:
        """Sample standard deviation of ``values``."""
        return self.best.std

    @property
    def rows(self) -> NDArray[np.int64]:
        """Numbers of rows at which the running value was taken."""
        return self.best.rows

    @property
    def running_mean(self) -> Vector:
        """Mean of the metric so far, at each of ``rows``."""
        return self.best.running_mean

    @property
    def running_std(self) -> Vector:
        """Sample standard deviation of the metric so far, at each of ``rows``."""
        return self.best.running_std

    @property
    def seconds(self) -> float:
        """Mean time of a replay."""
        return self.best.seconds

    @property
    def seconds_std(self) -> float:
        """Sample standard deviation of that time."""
        return self.best.seconds_std

    def __repr__(self) -> str:
        if not self.by_prior:
            return f"<{self.policy} on {self.metric}: {self.reason or 'not run'}>"
        value = content(Entry(self.mean, self.std), std=True, seconds=False)
        return f"<{self.policy} on {self.metric}: {value} %{with_prior(self.prior)}>"


def with_prior(prior: float | None) -> str:
    """What is added to a name where it has a prior."""
    return "" if prior is None else f", λ = {plain(prior)}"
