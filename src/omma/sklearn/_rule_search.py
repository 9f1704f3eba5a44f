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
from typing import Any

import numpy as np

from omma.calibration.online import OnlineCalibrator
from omma.calibration.whole import calibration_of
from omma.counts import Counts
from omma.evaluation import replay
from omma.limits import Limit
from omma.metrics.scoring import value_with
from omma.policies import OMMA, Auto, FixedRule, TunedThresholds
from omma.policies.bagged_thresholds import bagged_rule, has_cuts
from omma.rows.batch import Batch
from omma.rule import Rule
from omma.state import State
from omma.state_parts import Prices
from omma.trace import History, Trace

PASSES = 20  # with fixed rules, at most
FACTORS = np.geomspace(1 / 8, 8, 13)  # of the mean price: a grid from an eighth to eight times
ROUNDING = 1e-9  # by which a limit may be missed


@dataclass(frozen=True)
class JudgedRule:
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
) -> tuple[JudgedRule, History]:
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
            # Of the whole sample at once: an online pass would depend on the order of rows.
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
        excess = np.nan_to_num(missed) - ROUNDING  # 0/0 misses nothing
        return float(np.maximum(excess, 0.0).sum()), -self.value(counts)

    def judge(self, rule: Rule) -> JudgedRule:
        """Decide the whole sample by one rule."""
        policy, sample = self.policy, self.sample
        fixed = FixedRule(rule, policy.objective)
        trace = replay(fixed, sample, predictions=policy.soft, checkpoints=0)
        assert trace.counts is not None
        state = policy.init(sample.m)
        counted: list[tuple[Any, Counts]] = [(state, trace.counts)]
        if policy.soft:
            weights = sample.weights if len(sample.weights) else None
            estimates = Counts.from_labels(
                self.estimates, trace.predictions, sample_weight=weights, n_labels=sample.m
            )
            # All labels came: where both are counted, they were on the same rows.
            counted = [(state, estimates), (state.labels, trace.counts), (state.known, estimates)]
        if self.calibration is not None:
            state.calibration = self.calibration
        for part, counts in counted:
            if part is not None:
                part.cells[...] = counts.tp, counts.predicted, counts.positive
                part.totals[...] = counts.n, *part.cells.sum(axis=1)
        return JudgedRule(rule, trace.counts, state)

    def without_limits(self, trace: Trace) -> JudgedRule:
        """The best of the usual rule, a rule that reproduces itself, and averaged cuts."""
        candidates = [self.judge(usual_rule(self.policy, self.sample.m))]
        rule = trace.rule
        seen: set[str] = set()
        while len(seen) < PASSES and rule.to_json() not in seen:  # until rules repeat
            seen.add(rule.to_json())
            candidates.append(self.judge(rule))
            rule = self.policy.rule(candidates[-1].state)
        best = max(candidates, key=lambda candidate: self.value(candidate.counts))
        bagged = bagged_rule(self.policy, self.sample, best.rule, self.seed, self.value)
        return best if bagged is best.rule else self.judge(bagged)

    def under_limits(self, state: State) -> JudgedRule:
        """The best of rules at prices around the mean price, and thresholds tuned under limits."""
        prices = state.prices
        assert prices is not None

        def rank(judged: JudgedRule) -> tuple[float, float]:
            return self.rank(judged.counts)

        best = min(self._at_prices(state, prices), key=rank)
        # Once more from the counts of that rule itself, with the calibration of all rows.
        best = min([best, *self._at_prices(best.state, prices)], key=rank)
        if has_cuts(self.policy) and self.rank(self._cross_tuned()) < rank(best):
            best = self._priced(self._tuned(self.limits, self.sample), prices)
        return best

    def _at_prices(self, state: State, prices: Prices) -> Iterator[JudgedRule]:
        for factor in FACTORS:
            dearer = state.copy()
            spread, rates = prices.spread.copy(), prices.rates.copy()
            dearer.prices = Prices(factor * prices.settled, spread, rates)
            yield self._priced(self.policy.rule(dearer), prices)

    def _priced(self, rule: Rule, prices: Prices) -> JudgedRule:
        """A candidate whose state goes on from the prices of the online pass."""
        candidate = self.judge(rule)
        candidate.state.prices = prices * 1.0
        candidate.state.prices.settle(candidate.state.limited.cells)
        return candidate

    def _cross_tuned(self) -> Counts:
        """Counts of tuned thresholds on rows they were not tuned on: each half on the other."""
        order = np.random.default_rng(self.seed).permutation(self.sample.n)
        if len(order) < 2:
            return Counts.zeros(self.sample.m)
        halves = [self.sample.take(rows) for rows in np.split(order, [len(order) // 2])]
        limits = tuple(replace(limit, margin=0.0) for limit in self.limits)
        total = Counts.zeros(self.sample.m)
        for tuned_on, judged_on in (halves, halves[::-1]):
            rule = self._tuned(limits, tuned_on)
            fixed = FixedRule(rule, self.policy.objective)
            total += replay(fixed, judged_on, predictions=False, checkpoints=0).counts
        return total

    def _tuned(self, limits: tuple[Limit, ...], sample: Batch) -> Rule:
        return TunedThresholds(self.policy.objective, limits).fit(sample).decision
