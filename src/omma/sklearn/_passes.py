"""One online pass, then passes with the rule standing still until it reproduces its own counts.

OMMA is made to be good over a whole sequence; the rule it ends with may be a bad one of its many.
A rule worth keeping is one that stays what it is when all rows are decided by it: its counts have
it for their gradient. Passes go there where they can, and the best rule seen is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from omma.counts import Counts, state_of
from omma.evaluation import Trace, replay
from omma.metrics.scoring import value_with
from omma.policies import OMMA, FixedRule
from omma.rows.batch import Batch
from omma.rule import Rule
from omma.sklearn._cuts import halves, tuned_rule

PASSES = 20


@dataclass(frozen=True)
class Judged:
    """A rule, what it does on the sample, and what the policy would count of that."""

    rule: Rule
    counts: Counts
    own: Counts
    value: float


@dataclass(frozen=True)
class Found:
    """The rule that was kept, and how the online pass went."""

    best: Judged
    rows: NDArray[np.int64]
    values: NDArray[np.float64]


def find_rule(policy: OMMA, sample: Batch, seed: int, zero_division: float = 0.0) -> Found:
    """Run the policy over the sample in a random order, then settle its rule.

    Rules are chosen by their value with 0/0 worth ``zero_division``.
    """

    def worth(counts: Counts) -> float:
        found = value_with(policy.objective, counts, zero_division) if counts.n > 0 else -np.inf
        return -np.inf if np.isnan(found) else found

    trace = replay(policy, sample, seed=seed, predictions=False)
    assert trace.history is not None
    tried = [judged(policy, _usual(trace.rule), sample), *_settled(policy, trace.rule, sample)]
    best = max(tried, key=lambda one: worth(one.counts))
    tuned = tuned_rule(policy, sample)
    if tuned is not None and worth(_of_tuning(policy, sample, seed)) > worth(best.counts):
        best = judged(policy, tuned, sample)
    return Found(best, trace.history.rows, trace.history.values)


def _of_tuning(policy: OMMA, sample: Batch, seed: int) -> Counts:
    """What tuned cuts do on rows that they were not tuned on: each half on the other."""
    one, other = halves(sample, seed)
    if min(one.n, other.n) == 0:
        return Counts.zeros(1)
    parts = []
    for here, there in ((one, other), (other, one)):
        rule = tuned_rule(policy, here)
        assert rule is not None
        parts.append(judged(policy, rule, there).counts)
    return parts[0] + parts[1]


def _usual(rule: Rule) -> Rule:
    """What is decided without a metric: the threshold 0.5, or the most probable labels."""
    offset = -0.5 if rule.k is None else 0.0
    return Rule(np.ones(rule.m), np.full(rule.m, offset), rule.k)


def _settled(policy: OMMA, rule: Rule, sample: Batch) -> Iterator[Judged]:
    """The rule after each pass, until decisions repeat."""
    seen: list[Counts] = []
    for one in islice(_followed(policy, rule, sample), PASSES):
        yield one
        if one.own in seen:
            return
        seen.append(one.own)


def _followed(policy: OMMA, rule: Rule, sample: Batch) -> Iterator[Judged]:
    while True:
        one = judged(policy, rule, sample)
        yield one
        rule = policy.rule(state_of(one.own))


def judged(policy: OMMA, rule: Rule, sample: Batch) -> Judged:
    """Decide the whole sample by one rule."""
    fixed = FixedRule(rule, policy.objective)
    trace = replay(fixed, sample, predictions=policy.soft, checkpoints=0)
    assert trace.counts is not None
    assert trace.value is not None
    own = _estimated(trace, sample) if policy.soft else trace.counts
    return Judged(rule, trace.counts, own, trace.value)


def _estimated(trace: Trace, sample: Batch) -> Counts:
    """Probabilities counted in place of labels."""
    weights = sample.weights if len(sample.weights) else None
    return Counts.from_labels(
        sample.values, trace.predictions, sample_weight=weights, n_labels=sample.m
    )
