"""One online pass, then passes with the rule standing still until it reproduces its own counts.

A policy is made to be good over a whole sequence; the rule it ends with may be a bad one of its
many. A rule worth keeping is one that stays what it is when all rows are decided by it: its counts
have it for their gradient. Passes go there where they can, and the best rule seen is kept. Where
the policy calibrates, all rows together say how, so that their order does not matter.

Where limits must hold, the last price of an online pass wanders about the right one, and a rule at
it may miss a limit. So rules at prices around it are tried on all rows, and beside them cuts tuned
under the limits, where labels are decided by cuts; what comes first is to meet the limits, with
their margins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.calibration.online import OnlineCalibrator
from omma.calibration.whole import calibration_of
from omma.counts import Counts, state_of
from omma.evaluation import replay
from omma.limits import Limit
from omma.metrics import LabelMetric, Macro
from omma.metrics.scoring import value_with
from omma.parts import Calibration, Prices
from omma.policies import OMMA, Auto, FixedRule, TunedThresholds
from omma.policies.best_mixture import top
from omma.policies.thresholds import bagged_rule
from omma.rows.batch import Batch
from omma.rule import Rule
from omma.state import State

PASSES = 20
FACTORS = np.geomspace(1 / 8, 8, 13)  # of the mean price
HAIR = 1e-9


@dataclass(frozen=True)
class Judged:
    """A rule, what it does on the sample, and what the policy would keep of that."""

    rule: Rule
    counts: Counts
    state: State
    value: float


@dataclass(frozen=True)
class Found:
    """The rule that was kept, and how the online pass went."""

    best: Judged
    rows: NDArray[np.int64]
    values: NDArray[np.float64]


def find_rule(policy: OMMA | Auto, sample: Batch, seed: int, zero_division: float = 0.0) -> Found:
    """Run the policy over the sample in a random order, then settle its rule.

    Rules are chosen by their value with 0/0 worth ``zero_division``.
    """

    def worth(counts: Counts) -> float:
        found = value_with(policy.objective, counts, zero_division) if counts.n > 0 else -np.inf
        return -np.inf if np.isnan(found) else found

    if policy.limits:
        return find_limited_rule(policy, sample, seed, worth)
    trace = replay(policy, sample, seed=seed, predictions=False)
    assert trace.history is not None
    judge = Judge.of(policy, sample)
    k, at_most = trace.rule.k, trace.rule.at_most
    # What is decided without a metric: the threshold 0.5, or the most probable labels.
    usual = Rule(*top(k, trace.rule.m), k, at_most=at_most)
    tried = [judge(usual), *_settled(judge, trace.rule)]
    best = max(tried, key=lambda one: worth(one.counts))
    rule = bagged_rule(policy, sample, best.rule, seed, worth)
    best = best if rule is best.rule else judge(rule)
    return Found(best, trace.history.rows, trace.history.values)


def _settled(judge: Judge, rule: Rule) -> Iterator[Judged]:
    """The rule after each pass, until decisions repeat."""
    seen: list[State] = []
    for _ in range(PASSES):
        one = judge(rule)
        yield one
        if one.state in seen:
            return
        seen.append(one.state)
        rule = judge.policy.rule(one.state)


@dataclass(frozen=True)
class Judge:
    """A sample, and what a policy counts of decisions on it."""

    policy: OMMA | Auto
    sample: Batch
    calibration: Calibration | None  # what all rows together say, where the policy asks
    estimates: Any  # what it counts in place of labels, or beside them

    @classmethod
    def of(cls, policy: OMMA | Auto, sample: Batch) -> Judge:
        """Look at the whole sample once."""
        if not isinstance(policy, Auto):
            return cls(policy, sample, None, sample.values if policy.soft else None)
        found = calibration_of(sample)
        calibrated = OnlineCalibrator.from_arrays(found.arrays()).predict(sample.values)
        return cls(policy, sample, found, calibrated)

    def __call__(self, rule: Rule) -> Judged:
        """Decide the whole sample by one rule."""
        fixed = FixedRule(rule, self.policy.objective)
        trace = replay(fixed, self.sample, predictions=self.policy.soft, checkpoints=0)
        assert trace.counts is not None
        assert trace.value is not None
        state = state_of(trace.counts)
        if self.policy.soft:
            state = self._soft(state, trace.predictions)
        return Judged(rule, trace.counts, state, trace.value)

    def _soft(self, labels: State, predictions: Any) -> State:
        """Estimates in the place of labels, and these beside them."""
        weights = self.sample.weights if len(self.sample.weights) else None
        counts = Counts.from_labels(
            self.estimates, predictions, sample_weight=weights, n_labels=self.sample.m
        )
        made = state_of(counts)
        made.labels = labels
        made.calibration = self.calibration
        if self.policy.feedback == "both":  # all labels came: both were counted on the same rows
            made.known = state_of(counts)
        return made


def counted(policy: OMMA | Auto, rule: Rule, sample: Batch) -> Counts:
    """What a rule does on some rows."""
    trace = replay(FixedRule(rule, policy.objective), sample, predictions=False, checkpoints=0)
    assert trace.counts is not None
    return trace.counts


def find_limited_rule(
    policy: OMMA | Auto, sample: Batch, seed: int, worth: Callable[[Counts], float]
) -> Found:
    """Run the policy over the sample in a random order, then try prices around its mean."""
    trace = replay(policy, sample, seed=seed, predictions=False)
    assert trace.history is not None
    limits = tuple(one.named(None, sample.m, "MetricClassifier") for one in policy.limits)

    def rank(counts: Counts) -> tuple[float, float]:
        return _missed(limits, counts), -worth(counts)

    judge, prices = Judge.of(policy, sample), trace.state.prices
    assert prices is not None
    best = min(_around(judge, trace.state, prices), key=lambda one: rank(one.counts))
    # Once more from the counts of that rule itself, and from what all rows say of calibration.
    tried = [best, *_around(judge, best.state, prices)]
    best = min(tried, key=lambda one: rank(one.counts))
    tuned = _tuned(policy, limits, sample)
    if tuned is not None and rank(_of_tuning(policy, limits, sample, seed)) < rank(best.counts):
        best = _judged(judge, tuned, prices)
    return Found(best, trace.history.rows, trace.history.values)


def _missed(limits: tuple[Limit, ...], counts: Counts) -> float:
    """By how much some counts miss all limits together; 0/0 misses nothing."""
    if not counts.n > 0:
        return np.inf
    missed = [one.sign * (one.bound - one.value(counts)) + one.tighter(counts) for one in limits]
    return float(np.maximum(np.nan_to_num(missed) - HAIR, 0.0).sum())


def _around(judge: Judge, state: State, prices: Prices) -> Iterator[Judged]:
    for factor in FACTORS:
        dearer = state.copy()
        dearer.prices = Prices(factor * prices.settled, prices.spread.copy(), prices.rates.copy())
        yield _judged(judge, judge.policy.rule(dearer), prices)


def _judged(judge: Judge, rule: Rule, prices: Prices) -> Judged:
    """What a rule does on the sample, and what a learner keeps that goes on from there."""
    found = judge(rule)
    found.state.prices = prices * 1.0
    found.state.prices.settle(found.state.limited.cells)
    return found


def _tuned(policy: OMMA | Auto, limits: tuple[Limit, ...], sample: Batch) -> Any:
    """The rule of cuts tuned under limits; None where cuts do not make a rule."""
    metric = policy.objective
    free = policy.budget is None and policy.at_most is None
    cuts = free and isinstance(metric, Macro | LabelMetric) and metric.compiles
    if not cuts or policy.feedback == "estimates":
        return None
    return TunedThresholds(metric, limits).fit(sample).decision


def halves(sample: Batch, seed: int) -> tuple[Batch, Batch]:
    """Two random halves of the rows."""
    order = np.random.default_rng(seed).permutation(sample.n)
    middle = len(order) // 2
    return sample.take(order[:middle]), sample.take(order[middle:])


def _of_tuning(policy: OMMA | Auto, limits: tuple[Limit, ...], sample: Batch, seed: int) -> Counts:
    """What tuned cuts do on rows that they were not tuned on: each half on the other."""
    one, other = halves(sample, seed)
    if min(one.n, other.n) == 0:
        return Counts.zeros(1)
    pairs = ((one, other), (other, one))
    free = tuple(replace(limit, margin=0.0) for limit in limits)
    parts = [counted(policy, _tuned(policy, free, here), there) for here, there in pairs]
    return parts[0] + parts[1]
