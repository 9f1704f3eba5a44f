"""One online pass, then passes with the rule standing still until it reproduces its own counts.

A policy is made to be good over a whole sequence; the rule it ends with may be a bad one of its
many. A rule worth keeping is one that stays what it is when all rows are decided by it: its counts
have it for their gradient. Passes go there where they can, and the best rule seen is kept. Where
the policy calibrates, all rows together say how, so that their order does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.calibrated import Calibration
from omma.calibration.online import OnlineCalibrator
from omma.calibration.whole import calibration_of
from omma.counts import Counts, state_of
from omma.evaluation import replay
from omma.metrics.scoring import value_with
from omma.policies import OMMA, Auto, FixedRule
from omma.policies.best_mixture import top
from omma.rows.batch import Batch
from omma.rule import Rule
from omma.sklearn._steady import steady_rule
from omma.state import State

PASSES = 20


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
        from omma.sklearn._limited import find_limited_rule  # it stands on this file

        return find_limited_rule(policy, sample, seed, worth)
    trace = replay(policy, sample, seed=seed, predictions=False)
    assert trace.history is not None
    judge = Judge.of(policy, sample)
    tried = [judge(_usual(trace.rule)), *_settled(judge, trace.rule)]
    best = max(tried, key=lambda one: worth(one.counts))
    rule = steady_rule(policy, sample, best.rule, seed, worth)
    best = best if rule is best.rule else judge(rule)
    return Found(best, trace.history.rows, trace.history.values)


def _usual(rule: Rule) -> Rule:
    """What is decided without a metric: the threshold 0.5, or the most probable labels."""
    return Rule(*top(rule.k, rule.m), rule.k, at_most=rule.at_most)


def _settled(judge: Judge, rule: Rule) -> Iterator[Judged]:
    """The rule after each pass, until decisions repeat."""
    seen: list[State] = []
    for one in islice(_followed(judge, rule), PASSES):
        yield one
        if one.state in seen:
            return
        seen.append(one.state)


def _followed(judge: Judge, rule: Rule) -> Iterator[Judged]:
    while True:
        one = judge(rule)
        yield one
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
