"""What ``fit`` does: compute out-of-fold probabilities, and search for the best rule on them.

A policy maximizes the metric over a whole sequence of rows; the last of its many rules may be a bad
one. A good rule reproduces itself: decide all rows by it, and the gradient at their counts is that
rule again. So after one online pass, all rows are decided by a fixed rule, which the gradient then
replaces, until rules repeat; the best rule of all is kept. A policy that calibrates does so on all
rows together, so that their order does not matter.

Under limits, the price in an online pass oscillates around the right one, and a rule at its last
value may miss a limit. So the search tries rules at many prices around the mean price on all rows,
and also tuned thresholds, if each label has one. Limits with their margins come first, the metric
second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.parallel import Parallel, delayed

from omma.calibration.whole import calibration_of
from omma.counts import Counts, add_counts
from omma.evaluation import replay
from omma.limits import Limit
from omma.metrics import Metric
from omma.metrics.scoring import value_with
from omma.policies import OMMA, Auto, TunedThresholds
from omma.policies.bagged_thresholds import bagged_rule, has_cuts
from omma.rows.batch import Batch
from omma.rule import Rule, calibrated, simple_rule
from omma.sklearn._problem import MULTILABEL, Problem
from omma.state import State
from omma.state_parts import Prices
from omma.trace import History

PASSES = 20  # the largest number of passes with fixed rules
FACTORS = np.geomspace(1 / 8, 8, 13)  # prices to try, as multiples of the mean price
ROUNDING = 1e-9  # a limit that is missed by less holds


@dataclass(frozen=True)
class JudgedRule:
    """A rule, its counts on rows, and the state from which a policy continues."""

    rule: Rule
    counts: Counts
    state: State


def out_of_fold(
    model: Any, X: Any, y: Any, problem: Problem, routed: Any, weights: NDArray[Any] | None
) -> tuple[Any, Batch, int]:
    """The trained estimator, out-of-fold probabilities with labels, and how many rows trained it.

    For each split, a clone is trained on the training rows and predicts the test rows.
    """
    owner = problem.owner
    cv = check_cv(model.cv, y=y, classifier=problem.kind != MULTILABEL)
    splits = list(cv.split(X, y, **routed.splitter.split))
    if not splits:
        raise ValueError(f"cv of {owner} must give at least one split, got none")
    if not model.refit and len(splits) != 1:
        raise ValueError(
            f"refit of {owner} must be True where cv has several splits, got False with "
            f"{len(splits)}: which of their estimators should be kept is not clear"
        )
    params, labels = routed.estimator.fit, problem.encode(y)
    folds = Parallel(n_jobs=model.n_jobs, verbose=model.verbose)(
        delayed(_fold)(clone(model.estimator), X, y, problem, train, test, params)
        for train, test in splits
    )
    estimators, etas = zip(*folds, strict=True)
    if any(map(sparse.issparse, etas)):
        eta = sparse.vstack([sparse.csr_array(part) for part in etas], format="csr")
    else:
        eta = np.concatenate(etas)
    # A row may be in several test parts, or in none: it counts as often as it is predicted.
    all_rows = np.arange(labels.shape[0])
    rows = np.concatenate([all_rows[test] for _, test in splits])  # by ids or by flags
    weights = None if weights is None else weights[rows]
    sample = Batch.read(owner, eta, labels[rows], weights).ready()
    if model.refit:
        return clone(model.estimator).fit(X, y, **params), sample, len(all_rows)
    return estimators[0], sample, len(all_rows[splits[0][0]])


def _fold(
    model: Any, X: Any, y: Any, problem: Problem, train: Any, test: Any, fit_params: dict[str, Any]
) -> tuple[Any, Any]:
    """One split: the trained model, and its probabilities of the test rows."""
    n, params = number_of_rows(y), {}
    for name, value in fit_params.items():
        # A value for each row is split as the rows are; anything else is passed on.
        is_by_row = number_of_rows(value) == n
        params[name] = _safe_indexing(indexable(value)[0], train) if is_by_row else value
    model.fit(_safe_indexing(X, train), _safe_indexing(y, train), **params)
    return model, problem.eta(model, _safe_indexing(X, test))


def number_of_rows(values: Any) -> int | None:
    """The number of rows of a frame, matrix, array or list; None for a single number or text."""
    if isinstance(values, list | tuple):  # of texts, or of rows of several lengths
        return len(values)
    shape = values.shape if hasattr(values, "shape") else np.asarray(values).shape
    return shape[0] if shape else None


def find_rule(
    policy: OMMA | Auto, sample: Batch, seed: int, zero_division: float = 0.0
) -> tuple[JudgedRule, History]:
    """Run the policy over the sample in a random order, and search for a rule from its last one.

    Rules are compared by the metric, in which a rate of 0/0 is ``zero_division``. The history is
    that of the online pass.
    """
    trace = replay(policy, sample, seed=seed, predictions=False)
    assert trace.history is not None
    search = RuleSearch(policy, sample, seed, zero_division)
    find = search.under_limits if policy.limits else search.without_limits
    return find(trace.state), trace.history


def counts_of_rows(metric: Metric, rows: Batch, decisions: Any) -> Counts:
    """Count the true labels of rows against decisions; also class pairs, if a metric needs them."""
    assert rows.labels is not None
    options: Any = {"sample_weight": rows.row_weights, "n_labels": rows.m}
    return Counts.from_labels(rows.labels.values, decisions, matrix=metric.needs_matrix, **options)


class RuleSearch:
    """Compares rules on a whole sample."""

    def __init__(
        self, policy: OMMA | Auto, sample: Batch, seed: int, zero_division: float = 0.0
    ) -> None:
        self.policy, self.sample = policy, sample
        self.seed, self.zero_division = seed, zero_division
        self.limits = policy.named_limits(sample.m)
        # The probabilities that a soft policy counts, in place of labels or beside them.
        self.calibration, self.estimates = None, sample.values if policy.soft else None
        if isinstance(policy, Auto):
            # Of the whole sample at once: an online pass would depend on the order of rows.
            self.calibration = calibration_of(sample, classes=policy.objective.multiclass)
            self.estimates = calibrated(sample.values, self.calibration.curve)

    def value(self, counts: Counts) -> float:
        """The metric; −∞ where it is undefined."""
        if not counts.n > 0:
            return -np.inf
        value = value_with(self.policy.objective, counts, self.zero_division)
        return -np.inf if np.isnan(value) else value

    def rank(self, counts: Counts) -> tuple[float, float]:
        """A key that is lowest for the best rule: first misses of limits, then the metric."""
        if not counts.n > 0:
            return np.inf, np.inf
        missed = [
            limit.sign * (limit.bound - limit.value(counts)) + limit.tighter(counts)
            for limit in self.limits
        ]
        excess = np.nan_to_num(missed) - ROUNDING  # a rate of 0/0 misses nothing
        return float(np.maximum(excess, 0.0).sum()), -self.value(counts)

    def best(self, candidates: Iterable[JudgedRule]) -> JudgedRule:
        """The best of some rules; of equally good ones, the first."""
        return min(candidates, key=lambda judged: self.rank(judged.counts))

    def judge(self, rule: Rule) -> JudgedRule:
        """Decide the whole sample by a rule."""
        policy, sample = self.policy, self.sample
        decisions = rule.predict(sample.values)
        counts = counts_of_rows(policy.objective, sample, decisions)
        state = policy.init(sample.m)
        if self.calibration is not None:
            state.calibration.fill(self.calibration)
        add_counts(state.truth, counts)
        if policy.soft:
            options: Any = {"sample_weight": sample.row_weights, "n_labels": sample.m}
            estimates = Counts.from_labels(self.estimates, decisions, **options)
            add_counts(state.own, estimates)
            if state.known is not None:  # estimates of the rows whose labels are known: all rows
                add_counts(state.known, estimates)
        return JudgedRule(rule, counts, state)

    def without_limits(self, state: State) -> JudgedRule:
        """The best of the usual rule, the rules of repeated passes, and bootstrap thresholds."""
        policy = self.policy
        usual = self.judge(simple_rule(policy.budget, self.sample.m, policy.at_most))
        tried: list[JudgedRule] = []
        rule = policy.rule(state)
        # A rule that was tried before would lead through the same rules again.
        while len(tried) < PASSES and all(rule != judged.rule for judged in tried):
            tried.append(self.judge(rule))
            rule = policy.rule(tried[-1].state)
        # Of equally good rules the latest: the first ones depend on the order of the online pass.
        best = self.best([usual, *reversed(tried)])
        bagged = bagged_rule(policy, self.sample, best.rule, self.seed, self.value)
        return best if bagged is best.rule else self.judge(bagged)

    def under_limits(self, state: State) -> JudgedRule:
        """The best of rules at prices around the mean price, and thresholds tuned under limits."""
        prices = state.prices
        assert prices is not None
        best = self.best(self._at_prices(state, prices))
        # Once more from the counts of that rule itself, with the calibration of all rows.
        best = self.best([best, *self._at_prices(best.state, prices)])
        # Tuned thresholds must be better on rows they were not tuned on: their own flatter them.
        if has_cuts(self.policy) and self.rank(self._cross_tuned()) < self.rank(best.counts):
            best = self._priced(self._tuned(self.limits, self.sample), prices)
        return best

    def _at_prices(self, state: State, prices: Prices) -> Iterator[JudgedRule]:
        """The rules at the counts of a state, at prices around the mean price."""
        for factor in FACTORS:
            repriced = state.copy()
            repriced.prices = prices.settled_at(factor * prices.settled)
            yield self._priced(self.policy.rule(repriced), prices)

    def _priced(self, rule: Rule, prices: Prices) -> JudgedRule:
        """A rule on the sample, with a state that continues at the prices of the online pass."""
        judged = self.judge(rule)
        judged.state.prices = prices.with_spread(prices.spread)  # a copy
        judged.state.prices.settle(judged.state.limited.cells)
        return judged

    def _cross_tuned(self) -> Counts:
        """Counts of tuned thresholds on rows they were not tuned on: each half on the other."""
        order = np.random.default_rng(self.seed).permutation(self.sample.n)
        total = Counts.zeros(self.sample.m)
        if len(order) < 2:
            return total
        # In a random order, as rows may come sorted by class or by time.
        halves = [self.sample.take(rows) for rows in np.split(order, [len(order) // 2])]
        limits = tuple(replace(limit, margin=0.0) for limit in self.limits)
        for tuned_on, judged_on in (halves, halves[::-1]):
            decisions = self._tuned(limits, tuned_on).predict(judged_on.values)
            total += counts_of_rows(self.policy.objective, judged_on, decisions)
        return total

    def _tuned(self, limits: tuple[Limit, ...], sample: Batch) -> Rule:
        return TunedThresholds(self.policy.objective, limits).fit(sample).decision
