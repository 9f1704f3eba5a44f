"""The rule to keep where limits must hold: of many prices, the best that meets them on the sample.

The last price of an online pass wanders about the right one, and a rule at it may miss a limit. So
rules at prices around it are tried on all rows, and beside them cuts tuned under the limits, where
labels are decided by cuts; what comes first is to meet the limits, with their margins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from omma.counts import Counts
from omma.evaluation import replay
from omma.limits import Limit
from omma.metrics import LabelMetric, Macro
from omma.policies import OMMA, Auto, TunedThresholds
from omma.prices import Prices
from omma.rows.batch import Batch
from omma.rule import Rule
from omma.sklearn._cuts import halves
from omma.sklearn._passes import Found, Judge, Judged, counted
from omma.state import State

FACTORS = np.geomspace(1 / 8, 8, 13)  # of the mean price
HAIR = 1e-9

Rank = tuple[float, float]


def find_limited_rule(
    policy: OMMA | Auto, sample: Batch, seed: int, worth: Callable[[Counts], float]
) -> Found:
    """Run the policy over the sample in a random order, then try prices around its mean."""
    trace = replay(policy, sample, seed=seed, predictions=False)
    assert trace.history is not None
    limits = tuple(one.named(None, sample.m, "MetricClassifier") for one in policy.limits)

    def rank(counts: Counts) -> Rank:
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


def _of_tuning(policy: OMMA | Auto, limits: tuple[Limit, ...], sample: Batch, seed: int) -> Counts:
    """What tuned cuts do on rows that they were not tuned on: each half on the other."""
    one, other = halves(sample, seed)
    if min(one.n, other.n) == 0:
        return Counts.zeros(1)
    pairs = ((one, other), (other, one))
    free = tuple(replace(limit, margin=0.0) for limit in limits)
    parts = [counted(policy, _tuned(policy, free, here), there) for here, there in pairs]
    return parts[0] + parts[1]
