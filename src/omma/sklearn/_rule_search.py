"""Search for the rule to keep, on rows with out-of-fold probabilities.

A policy is made to be good over a whole sequence; the rule that it ends with may be a bad one of
its many. A rule worth keeping reproduces itself: decide all rows by it, and the gradient at their
counts is that rule again. So one online pass is followed by passes with a fixed rule until
decisions repeat, and the best rule seen is kept. Where the policy calibrates, all rows are
calibrated together, so that their order does not matter.

Under limits, the last price of an online pass wanders about the right one, and a rule at it may
miss a limit. So rules at prices around the mean price are tried on all rows, and beside them tuned
thresholds, where each label has one. A rule must first meet the limits with their margins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from omma.calibration.online import OnlineCalibrator
from omma.calibration.whole import calibration_of
from omma.counts import Counts, state_of
from omma.evaluation import replay
from omma.limits import Limit
from omma.metrics.scoring import value_with
from omma.policies import OMMA, Auto, FixedRule, TunedThresholds
from omma.policies.thresholds import bagged_rule, has_cuts
from omma.rows.batch import Batch
from omma.rule import Rule
from omma.state import Prices, State
from omma.trace import History, Trace

PASSES = 20
FACTORS = np.geomspace(1 / 8, 8, 13)  # of the mean price
HAIR = 1e-9


@dataclass(frozen=True)
class Candidate:
    """A rule, its counts on the sample, and the state of a learner that goes on from there."""

    rule: Rule
    counts: Counts
    state: State


def usual_rule(policy: OMMA | Auto, m: int) -> Rule:
    """What is decided without a metric: the threshold 0.5, or the most probable labels."""
    k = policy.budget
    return Rule(np.ones(m), np.full(m, -0.5 if k is None else 0.0), k, at_most=policy.at_most)


def find_rule(
    policy: OMMA | Auto, sample: Batch, seed: int, zero_division: float = 0.0
) -> tuple[Candidate, History]:
    """Run the policy over the sample in a random order, then search from the rule it ends with.

    Rules are compared by their value with 0/0 worth ``zero_division``. The history is that of the
    online pass.
    """
    trace = replay(policy, sample, seed=seed, predictions=False)
    assert trace.history is not None
    search = RuleSearch(policy, sample, seed, zero_division)
    best = search.under_limits(trace.state) if policy.limits else search.without_limits(trace)
    return best, trace.history


class RuleSearch:
    """Rules tried on a whole sample."""

    def __init__(
        self, policy: OMMA | Auto, sample: Batch, seed: int, zero_division: float = 0.0
    ) -> None:
        self.policy, self.sample = policy, sample
        self.seed, self.zero_division = seed, zero_division
        self.limits = tuple(
            limit.named(None, sample.m, "MetricClassifier") for limit in policy.limits
        )
        # Probabilities that the policy counts in place of labels, or beside them.
        self.calibration, self.estimates = None, sample.values if policy.soft else None
        if isinstance(policy, Auto):
            self.calibration = calibration_of(sample)
            calibrator = OnlineCalibrator.from_arrays(self.calibration.arrays())
            self.estimates = calibrator.predict(sample.values)

    def value(self, counts: Counts) -> float:
        """The metric; −∞ where it is undefined."""
        if not counts.n > 0:
            return -np.inf
        value = value_with(self.policy.objective, counts, self.zero_division)
        return -np.inf if np.isnan(value) else value

    def rank(self, counts: Counts) -> tuple[float, float]:
        """The lower, the better: by how much all limits are missed, then by the value."""
        if not counts.n > 0:
            return np.inf, np.inf
        missed = [
            limit.sign * (limit.bound - limit.value(counts)) + limit.tighter(counts)
            for limit in self.limits
        ]
        excess = np.nan_to_num(missed) - HAIR  # 0/0 misses nothing
        return float(np.maximum(excess, 0.0).sum()), -self.value(counts)

    def judge(self, rule: Rule) -> Candidate:
        """Decide the whole sample by one rule."""
        policy, sample = self.policy, self.sample
        fixed = FixedRule(rule, policy.objective)
        trace = replay(fixed, sample, predictions=policy.soft, checkpoints=0)
        assert trace.counts is not None
        state = state_of(trace.counts)
        if policy.soft:
            weights = sample.weights if len(sample.weights) else None
            estimates = Counts.from_labels(
                self.estimates, trace.predictions, sample_weight=weights, n_labels=sample.m
            )
            labels, state = state, state_of(estimates)
            state.labels, state.calibration = labels, self.calibration
            if policy.feedback == "both":  # all labels came: both were counted on the same rows
                state.known = state_of(estimates)
        return Candidate(rule, trace.counts, state)

    def without_limits(self, trace: Trace) -> Candidate:
        """The best of the usual rule, a rule that reproduces itself, and averaged cuts."""
        candidates = [self.judge(usual_rule(self.policy, self.sample.m))]
        rule, states = trace.rule, []
        for _ in range(PASSES):
            candidates.append(self.judge(rule))
            state = candidates[-1].state
            if state in states:  # decisions repeat
                break
            states.append(state)
            rule = self.policy.rule(state)
        best = max(candidates, key=lambda candidate: self.value(candidate.counts))
        bagged = bagged_rule(self.policy, self.sample, best.rule, self.seed, self.value)
        return best if bagged is best.rule else self.judge(bagged)

    def under_limits(self, state: State) -> Candidate:
        """The best of rules at prices around the mean price, and thresholds tuned under limits."""

        def rank(candidate: Candidate) -> tuple[float, float]:
            return self.rank(candidate.counts)

        prices = state.prices
        assert prices is not None
        best = min(self._at_prices(state, prices), key=rank)
        # Once more from the counts of that rule itself, with the calibration of all rows.
        best = min([best, *self._at_prices(best.state, prices)], key=rank)
        if not has_cuts(self.policy):
            return best
        if self.rank(self._cross_tuned()) < rank(best):
            best = self._priced(tuned_rule(self.policy, self.limits, self.sample), prices)
        return best

    def _at_prices(self, state: State, prices: Prices) -> Iterator[Candidate]:
        for factor in FACTORS:
            dearer = state.copy()
            spread, rates = prices.spread.copy(), prices.rates.copy()
            dearer.prices = Prices(factor * prices.settled, spread, rates)
            yield self._priced(self.policy.rule(dearer), prices)

    def _priced(self, rule: Rule, prices: Prices) -> Candidate:
        """A candidate whose state goes on from the prices of the online pass."""
        candidate = self.judge(rule)
        candidate.state.prices = prices * 1.0
        candidate.state.prices.settle(candidate.state.limited.cells)
        return candidate

    def _cross_tuned(self) -> Counts:
        """Counts of tuned thresholds on rows they were not tuned on: each half on the other."""
        order = np.random.default_rng(self.seed).permutation(self.sample.n)
        first, second = np.split(order, [len(order) // 2])
        if min(len(first), len(second)) == 0:
            return Counts.zeros(1)
        limits = tuple(replace(limit, margin=0.0) for limit in self.limits)
        counts = []
        for tuned_on, judged_on in ((first, second), (second, first)):
            rule = tuned_rule(self.policy, limits, self.sample.take(tuned_on))
            fixed, rows = FixedRule(rule, self.policy.objective), self.sample.take(judged_on)
            counts.append(replay(fixed, rows, predictions=False, checkpoints=0).counts)
        return counts[0] + counts[1]  # type: ignore[operator]


def tuned_rule(policy: OMMA | Auto, limits: tuple[Limit, ...], sample: Batch) -> Rule:
    """The rule of thresholds tuned under limits."""
    return TunedThresholds(policy.objective, limits).fit(sample).decision
