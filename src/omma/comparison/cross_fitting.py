"""``omma.choose``: rules compete, and each row is decided by rules that were made without it."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._candidates import warn_of_rows
from omma._validate import check_positive_int, check_seed, shown
from omma.comparison.calibration_check import CalibrationCheck
from omma.comparison.choice import SIMPLE, Candidate, Choice, PerLabel, shortfall
from omma.comparison.entrants import check_whole, read_rows, read_targets
from omma.comparison.intervals import estimates
from omma.comparison.resampling import Resampler, Truth
from omma.counts import Counts
from omma.evaluation import replay
from omma.held import Held
from omma.limits import Limit, read_limits
from omma.metrics import LabelMetric, Macro, Metric, OverClasses, metric as find_metric
from omma.policies import OMMA, Auto, FrankWolfe, Policy, TunedThresholds, UnsupportedMetricError
from omma.policies.base import check_task
from omma.policies.best_mixture import top
from omma.rows.arrays import SparseProbabilities
from omma.rows.batch import Batch
from omma.rule import Rule
from omma.tables import HAT_ETA

TUNED, AUTO, TRUSTING = "tuned", "auto", "omma_eta"
Make = Callable[[Batch], Rule]
FEW_ROWS = 20  # intervals of so few rows were never measured
Folds = list[NDArray[np.int64]]


@dataclass(frozen=True)
class Maker:
    """A way to make a rule; ``policy`` is what would run online, for rules that are learned so."""

    name: str
    title: str
    make: Make
    policy: Policy | None = None


@dataclass(frozen=True)
class Goal:
    """What rules are to maximize, and how many labels a row they may predict."""

    metric: Metric
    k: int | None
    at_most: int | None
    m: int
    limits: tuple[Limit, ...] = ()


def choose(
    eta: Any,
    y: Any,
    metric: str | Metric,
    k: int | None = None,
    at_most: int | None = None,
    *,
    subject_to: Any = None,
    frank_wolfe: bool = False,
    folds: int = 5,
    draws: int = 400,
    seed: int = 0,
) -> Choice:
    """Recommend a rule, and estimate its value on new rows.

    Candidates are the 0.5 threshold (or with ``k`` the k most probable labels), thresholds tuned on
    the rows, and the last rules of ``omma.Auto``, OMMA(η̂) and OMMA after one pass. Rows are split
    into folds, and each fold is decided by rules made of the others (cross-fitting). The rule with
    the highest value over all folds is recommended.

    That value is too high for new rows, because the luckiest of several rules was picked. Values
    and intervals are from a bootstrap over rows, corrected for the choice and for few rows. They
    are least sure for macro precision with a budget; a note says so.

    Parameters
    ----------
    eta, y : as for ``omma.replay``
        Probabilities, and labels. Labels may be unknown (NaN): decisions are judged by those that
        are known, a label in proportion to its known rows, and rows of which nothing is known are
        left out. Weights of a ``Batch`` count for rules and for judging them.
    metric : str or Metric
        A name may have its budget with it, as in ``"macro_f1@3"``.
    k : int, optional
        Exactly k labels a row.
    at_most : int, optional
        At most so many labels a row.
    subject_to : str, Limit, or list of these, optional
        Limits, as of ``omma.Auto``: rules are made under them. A rule that misses a limit on unseen
        rows, or its margin, is recommended only if all others do; then the one that misses the
        limits least. The simple rule is made without limits.
    frank_wolfe : bool
        Add the best rule of the offline Frank-Wolfe algorithm.
    folds : int
        At least two. More folds judge rules that were made of more rows, and take longer.
    draws : int
        Number of resamples for values and intervals.
    seed : int
        Seed of the folds, of the order in which rows are streamed, and of the resamples.

    Returns
    -------
    Choice
        ``print`` it; ``.best``, ``.rule``, ``.table`` and ``.plot()`` have the rest.

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=10, seed=0)
    >>> choice = omma.choose(eta ** 2, y, "macro_f1")  # probabilities that are too low
    >>> choice.best.value > choice["baseline"].value
    True
    >>> choice.rule.thresholds.shape
    (10,)
    >>> few = omma.choose(eta, y, "macro_f1", subject_to="labels_per_row <= 1")
    >>> few.best.limits[0].value <= 1.0, few["baseline"].holds  # the 0.5 threshold predicts more
    (True, False)
    """
    owner = "choose"
    check_seed(owner, seed)
    check_positive_int(owner, "draws", draws)
    if draws < 2:
        raise ValueError(f"draws of choose must be at least 2, got {draws}")
    check_positive_int(owner, "k", k, optional=True)
    if not isinstance(metric, str | Metric):
        raise TypeError(f"metric of choose must be a name or a metric, got {shown(metric)}")
    data, notes = _with_labels(read_rows(owner, eta, y).check(owner))
    goal, name = _goal(data, metric, k, at_most, subject_to)
    split = _folds(data.n, folds, seed)
    able, left_out = _able(makers(goal, frank_wolfe), data, goal)
    with warnings.catch_warnings():  # said once, not by every fold
        warnings.filterwarnings("ignore", ".*lowest other labels fill up", UserWarning)
        decisions = {maker.name: _out_of_fold(data, split, maker.make) for maker in able}
        streams = {  # the value of a policy that goes on learning
            maker.name: replay(
                maker.policy, data, seed=seed, predictions=False, checkpoints=0
            ).value
            for maker in able
            if maker.policy is not None
        }
    truth = Truth.of(data)
    sample = Resampler(truth, list(decisions.values()), goal.metric, seed)
    limits = [
        _limits(goal.limits, sample, rule, truth.weight @ decided)
        for rule, decided in enumerate(decisions.values())
    ]
    missed = np.array([shortfall(one) for one in limits])
    # Limits come first; of equal rules the simplest, which is first, is the best.
    best = int(np.lexsort((np.arange(len(able)), -sample.values, missed))[0])
    judged = estimates(sample, draws, best, missed == missed[best])
    candidates = tuple(
        Candidate(
            maker.name,
            maker.title,
            *value,
            *behind,
            out_of_fold=float(raw),
            stream=streams.get(maker.name),
            limits=held,
        )
        for maker, (value, behind), raw, held in zip(
            able, judged, sample.values, limits, strict=True
        )
    )
    share = truth.known_share
    known = "" if share == 1.0 else f", {100 * share:.3g} % of their labels known"
    return Choice(
        name,
        candidates,
        able[best].name,
        able[best].make(data.take(np.concatenate(split))).named(data.names),
        _per_label(sample, best),
        f"{folds} folds of {data.n:,} rows{known}",
        (*notes, *left_out, *_remarks(truth, goal, sample.counts(best))),
        _calibration(data, goal, split, truth, decisions.get(TRUSTING)),
    )


def _goal(data: Batch, metric: Any, k: Any, at_most: Any, subject_to: Any) -> tuple[Goal, str]:
    """The metric, budget and limits, checked against the data, and what to call them."""
    owner = "choose"
    (target,) = read_targets([metric if k is None else (metric, k)], data, owner)
    check_whole(owner, target.metric, data)
    check_task(owner, data, target.k or at_most, target.metric, whole=None)
    limits = read_limits(owner, subject_to) or ()
    limits = tuple(limit.named(data.names, data.m, owner) for limit in limits)
    # Refuses budgets that do not go with the metric, and limits that nothing can keep.
    Auto(target.metric, target.k, at_most, subject_to=limits or None).check_labels(data.m)
    goal = Goal(target.metric, target.k, at_most, data.m, limits)
    if target.metric.multiclass and at_most is None:
        goal = replace(goal, k=1)
    warn_of_rows(owner, data.eta, goal.k)
    return goal, target.name if at_most is None else f"{target.name}, at most {at_most} a row"


def _out_of_fold(data: Batch, folds: Folds, make: Make) -> Any:
    """Decisions on every row, by rules that were made of the rows of other folds."""
    # A matrix even of one label, whose probabilities may come as a vector.
    eta = data.eta.matrix if isinstance(data.eta, SparseProbabilities) else data.eta.array
    decisions = []
    for place, fold in enumerate(folds):
        others = np.concatenate(folds[:place] + folds[place + 1 :])
        rule = make(data.take(others))
        decisions.append(sparse.csr_array(rule.predict(eta[fold]), dtype=np.float64))
    back = np.argsort(np.concatenate(folds))
    return sparse.csr_array(sparse.vstack(decisions, format="csr")[back])


def _with_labels(data: Batch) -> tuple[Batch, list[str]]:
    """Rows that have a known label and a weight, and a note about those that have no label."""
    assert data.labels is not None
    kept, notes = np.ones(data.n, dtype=np.bool_), []
    if data.labels.known is not None:
        kept = data.labels.known
        left = data.n - int(kept.sum())
        notes.append(f"{left:,} of {data.n:,} rows have no labels and were skipped.")
    if len(data.weights):
        if not data.weights[kept].any():
            raise ValueError("weights of choose must not all be 0")
        kept = kept & (data.weights > 0)
    return (data if kept.all() else data.take(kept).ready()), notes


def _remarks(truth: Truth, goal: Goal, counts: Counts) -> Iterator[str]:
    """Where the data is too thin for what is reported, or the metric rewards the wrong thing."""
    if truth.n < FEW_ROWS:
        yield f"{truth.n:,} rows are few: intervals may be too narrow."
    missing = truth.missing
    unknown = 0 if missing is None else int((missing.sum(axis=0) == truth.n).sum())
    if unknown:
        yield (
            f"{unknown:,} of {truth.m:,} labels are known in no row and count as labels that never "
            "occur."
        )
    absent = truth.m - len(np.unique(truth.labels.indices))
    if isinstance(goal.metric, OverClasses) and absent:
        yield f"{absent:,} of {truth.m:,} classes never occur: their recall is 0, however decided."
    if not truth.labels.nnz:
        yield "No label occurs in these rows: they cannot tell a good rule from a bad one."
    metric = goal.metric
    if isinstance(metric, Macro) and metric.of == find_metric("precision") and goal.k is not None:
        # Spare slots go to other labels in every fold, so that out-of-fold counts are of no rule.
        yield (
            "Macro precision with a budget: values and intervals can be off by many points; judge "
            "the rule on held-out rows."
        )
    free = goal.k is None and goal.at_most is None and not goal.limits
    if free and everything_is_best(metric, counts.positive, counts.n):
        how = "choose another metric, such as f1" if metric.binary else "pass k"
        yield f"{metric.name} is maximal when everything is predicted: {how}."


def everything_is_best(metric: Metric, positive: NDArray[np.float64], n: float) -> bool:
    """Whether no decision can be better than to predict every label in every row.

    >>> positive = np.array([3.0, 1.0])
    >>> [everything_is_best(find_metric(f"macro_{of}"), positive, 10.0) for of in ("recall", "f1")]
    [True, False]
    """
    if (positive == n).all():  # then it is right, and no fault of the metric
        return False
    everything = Counts(positive, np.full(len(positive), n), positive, n)
    exact = Counts(positive, positive, positive, n)
    return not metric.multiclass and metric.value(everything) >= metric.value(exact)


def _able(every: Iterator[Maker], data: Batch, goal: Goal) -> tuple[list[Maker], list[str]]:
    """Makers that can learn from such rows, and a sentence about each of the others."""
    assert data.labels is not None
    if data.labels.missing is None:
        return list(every), []
    able, notes = [], []
    for maker in every:
        why = None if maker.policy is None else maker.policy.whole_rows(goal.metric)
        if why is None:
            able.append(maker)
        else:
            notes.append(f"{maker.title} is left out: it needs all labels of a row or none{why}.")
    return able, notes


def _limits(
    limits: tuple[Limit, ...], sample: Resampler, rule: int, predicted: NDArray[np.float64]
) -> tuple[Held, ...]:
    """How limits stand by the decisions of a rule; ``predicted`` counts them on all labels."""
    counts = sample.counts(rule)
    tp, chosen, positive, rows = sample.known(rule)
    none = np.zeros(len(predicted))
    everywhere = Counts(none, predicted, none, counts.n)
    held = []
    for limit in limits:
        # The error of a rate is by the labels that were seen, not by counts in proportion.
        n = float(rows.mean() if limit.over_all else rows[limit.index or 0])
        value = error = everywhere
        if limit.needs_labels:
            value, error = counts, Counts(tp, chosen, positive, n)
        held.append(Held(limit, limit.value(value), 0.0, limit.error(error), limit.draws(error)))
    return tuple(held)


def _folds(n: int, folds: int, seed: int) -> Folds:
    """Rows split at random."""
    check_positive_int("choose", "folds", folds)
    if not 2 <= folds <= n:
        raise ValueError(
            "folds of choose must be from 2 to the number of rows that have labels and weight, "
            f"which is {n}, got {folds}"
        )
    order = np.random.default_rng(seed).permutation(n)
    return [order[start::folds] for start in range(folds)]


def _per_label(sample: Resampler, best: int) -> PerLabel | None:
    """The metric of each label by the simple rule and by the best, if labels have a metric."""
    metric = sample.metric
    of = metric if isinstance(metric, LabelMetric) else getattr(metric, "of", None)
    if isinstance(metric, OverClasses):
        of = find_metric("recall")
    if not isinstance(of, LabelMetric):
        return None
    simple, chosen = (sample.known(rule) for rule in (0, best))  # the simple rule comes first
    return PerLabel(of.name, simple[2], of.of_cells(*simple), of.of_cells(*chosen))


def _calibration(
    data: Batch, goal: Goal, folds: Folds, truth: Truth, trusting: Any
) -> CalibrationCheck | None:
    """Whether probabilities are calibrated; if not, what calibrating gains on the metric.

    ``trusting`` are the decisions of OMMA(η̂), which takes probabilities as they are.
    """
    if data.class_ids:
        return None
    check = CalibrationCheck.of(data)
    if check.looks_calibrated or trusting is None or goal.metric.needs_matrix:
        return check
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*lowest other labels fill up", UserWarning)
        after = _out_of_fold(data, folds, calibrated(goal).make)
    before, now = Resampler(truth, [trusting, after], goal.metric, 0).values
    return replace(check, metric=goal.metric.name, gain=float(now - before))


def makers(goal: Goal, frank_wolfe: bool) -> Iterator[Maker]:
    """All rules that a goal has, the simplest first: of equal rules the first is the best."""
    simple = simple_rule(goal)
    title = "0.5 threshold" if goal.k is None else f"top-{goal.k} rule"
    yield Maker(SIMPLE, title, lambda batch: simple)
    metric, k, most, limits = goal.metric, goal.k, goal.at_most, goal.limits or None
    if k is None and most is None:
        with suppress(UnsupportedMetricError):  # no thresholds can be found one label at a time
            tuned = TunedThresholds(metric, limits)
            yield Maker(TUNED, "tuned thresholds", lambda batch: tuned.fit(batch).decision)
    options: dict[str, Any] = {"at_most": most, "subject_to": limits}
    yield _online(AUTO, "Auto", Auto(metric, k, **options))
    trusting = OMMA(metric, k, feedback="estimates", **options)
    yield _online(TRUSTING, f"OMMA({HAT_ETA})", trusting)
    yield _online("omma", "OMMA", OMMA(metric, k, **options))
    if frank_wolfe:
        yield Maker("frank_wolfe", "Frank-Wolfe's best rule", _offline(goal))


def calibrated(goal: Goal) -> Maker:
    """OMMA(η̂) on calibrated probabilities: what calibration gains for rules that trust them."""
    options: dict[str, Any] = {"at_most": goal.at_most, "subject_to": goal.limits or None}
    policy = OMMA(goal.metric, goal.k, feedback="estimates", calibration="online", **options)
    return _online("calibrated", f"OMMA({HAT_ETA}), calibrated", policy)


def simple_rule(goal: Goal) -> Rule:
    """The threshold 0.5, or the k most probable labels."""
    return Rule(*top(goal.k, goal.m), goal.k, at_most=goal.at_most)


def _online(name: str, title: str, policy: Policy) -> Maker:
    return Maker(name, title, partial(_last_rule, policy), policy)


def _last_rule(policy: Policy, batch: Batch) -> Rule:
    return replay(policy, batch, predictions=False, checkpoints=0).rule


def _offline(goal: Goal) -> Make:
    if goal.at_most is not None:
        raise ValueError("frank_wolfe of choose goes without at_most: it has no such rules")
    if goal.limits:
        raise ValueError(
            "frank_wolfe of choose goes without subject_to: its mixture keeps a limit, and no rule "
            "of it alone does"
        )
    search = FrankWolfe(goal.metric, goal.k)
    return lambda batch: search.fit(batch).deterministic().rules[0]
