"""What ``fit`` does: out-of-fold probabilities, and on them the search for the rule to keep.

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
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.parallel import Parallel, delayed

from omma.calibration.online import OnlineCalibrator
from omma.calibration.whole import calibration_of
from omma.counts import Counts, add_counts, counts_of
from omma.engine import Engine, Run
from omma.evaluation import replay
from omma.limits import Limit
from omma.metrics import Metric
from omma.metrics.scoring import value_with
from omma.policies import OMMA, Auto, TunedThresholds
from omma.policies.bagged_thresholds import bagged_rule, has_cuts
from omma.policies.fixed import simple_rule
from omma.rows.batch import Batch
from omma.rule import Rule
from omma.sklearn._problem import MULTILABEL, Problem
from omma.state import State
from omma.state_parts import Prices
from omma.trace import History

PASSES = 20  # with fixed rules, at most
FACTORS = np.geomspace(1 / 8, 8, 13)  # of the mean price: a grid from an eighth to eight times
ROUNDING = 1e-9  # by which a limit may be missed


@dataclass(frozen=True)
class JudgedRule:
    """A rule, its counts on rows, and the state of a policy that goes on from there."""

    rule: Rule
    counts: Counts
    state: State


def out_of_fold(
    model: Any, X: Any, y: Any, problem: Problem, routed: Any, weights: NDArray[Any] | None
) -> tuple[Any, Batch, int]:
    """The trained estimator, out-of-fold probabilities with labels, and how many rows trained it.

    A clone is trained on each training part, and gives its probabilities of the other part.
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
    n = labels.shape[0]
    folds = Parallel(n_jobs=model.n_jobs, verbose=model.verbose)(
        delayed(_fold)(clone(model.estimator), X, y, problem, train, test, params)
        for train, test in splits
    )
    estimators, etas = zip(*folds, strict=True)
    # A row may be in several test parts, or in none: it counts as often as it is predicted.
    rows = np.concatenate([np.arange(n)[test] for _, test in splits])  # by ids or by flags
    if any(map(sparse.issparse, etas)):
        eta = sparse.vstack([sparse.csr_array(part) for part in etas], format="csr")
    else:
        eta = np.concatenate(etas)
    batch = Batch.read(owner, eta, labels[rows], None if weights is None else weights[rows])
    sample = batch.check(owner).ready()
    if model.refit:
        return clone(model.estimator).fit(X, y, **params), sample, n
    return estimators[0], sample, len(np.arange(n)[splits[0][0]])


def _fold(
    model: Any, X: Any, y: Any, problem: Problem, train: Any, test: Any, fit_params: dict[str, Any]
) -> tuple[Any, Any]:
    """One split: the trained model, and its probabilities of the other part."""
    params = {}
    for name, value in fit_params.items():
        # What has a value for each row is split as the rows are; anything else is passed on.
        is_by_row = number_of_rows(value) == number_of_rows(y)
        params[name] = _safe_indexing(indexable(value)[0], train) if is_by_row else value
    model.fit(_safe_indexing(X, train), _safe_indexing(y, train), **params)
    return model, problem.eta(model, _safe_indexing(X, test))


def number_of_rows(values: Any) -> int | None:
    """How many rows a table, a list or what becomes an array has; None where it has none."""
    if isinstance(values, list | tuple):
        return len(values)
    if hasattr(values, "__array__") and not hasattr(values, "shape"):
        values = np.asarray(values)
    shape = getattr(values, "shape", None)
    return shape[0] if shape else None


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
    limited = bool(policy.limits)
    best = search.under_limits(trace.state) if limited else search.without_limits(trace.state)
    return best, trace.history


def counts_of_rows(metric: Metric, rows: Batch, decisions: Any) -> Counts:
    """The true labels of rows against decisions, in pairs of classes where a metric needs them."""
    assert rows.labels is not None
    options: Any = {"sample_weight": rows.row_weights, "n_labels": rows.m}
    return Counts.from_labels(rows.labels.values, decisions, matrix=metric.needs_matrix, **options)


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
            self.calibration = calibration_of(sample, classes=policy.objective.multiclass)
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

    def _decide(self, rule: Rule, sample: Batch) -> tuple[Run, Counts]:
        """Decide a sample by one rule, and count its labels against the decisions."""
        # One compiled pass decides and counts; omma.replay would check everything once more.
        plan = rule.plan
        engine = Engine.start(plan, sample.m)
        run = engine.replay("MetricClassifier", sample)
        metric = self.policy.objective
        if metric.needs_matrix:  # a table of costs looks at pairs, which no state counts
            return run, counts_of_rows(metric, sample, run.predictions)
        return run, counts_of(run.state)

    def judge(self, rule: Rule) -> JudgedRule:
        """Decide the whole sample by one rule."""
        policy, sample = self.policy, self.sample
        run, true = self._decide(rule, sample)
        state = policy.init(sample.m)
        counted: list[tuple[Any, Counts]] = [(state, true)]
        if policy.soft:
            options: Any = {"sample_weight": sample.row_weights, "n_labels": sample.m}
            estimates = Counts.from_labels(self.estimates, run.predictions, **options)
            # All labels came: where both are counted, they were on the same rows.
            counted = [(state, estimates), (state.labels, true), (state.known, estimates)]
        if self.calibration is not None:
            state.calibration.fill(self.calibration.arrays())
        for part, counts in counted:
            if part is not None:
                add_counts(part, counts)
        return JudgedRule(rule, true, state)

    def without_limits(self, state: State) -> JudgedRule:
        """The best of the usual rule, a rule that reproduces itself, and averaged cuts."""
        policy = self.policy
        usual = self.judge(simple_rule(policy.budget, self.sample.m, policy.at_most))
        tried: list[JudgedRule] = []
        rule = self.policy.rule(state)
        seen: set[str] = set()
        while len(seen) < PASSES and rule.to_json() not in seen:  # until rules repeat
            seen.add(rule.to_json())
            tried.append(self.judge(rule))
            rule = self.policy.rule(tried[-1].state)
        # Of equally good rules the latest: the first ones depend on the order of the online pass.
        candidates = [usual, *reversed(tried)]
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
        # In a random order, as rows may come sorted by class or by time.
        halves = [self.sample.take(rows) for rows in np.split(order, [len(order) // 2])]
        limits = tuple(replace(limit, margin=0.0) for limit in self.limits)
        total = Counts.zeros(self.sample.m)
        for tuned_on, judged_on in (halves, halves[::-1]):
            total += self._decide(self._tuned(limits, tuned_on), judged_on)[1]
        return total

    def _tuned(self, limits: tuple[Limit, ...], sample: Batch) -> Rule:
        return TunedThresholds(self.policy.objective, limits).fit(sample).decision
