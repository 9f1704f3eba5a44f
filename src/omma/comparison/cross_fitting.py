"""``omma.choose``: rules are compared on rows that they were learned without (cross-fitting)."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._candidates import warn_of_rows
from omma._validate import check_positive_int, check_seed, shown
from omma.calibration.reliability import CalibrationCheck
from omma.comparison.choice import SIMPLE, Candidate, Choice, PerLabel
from omma.comparison.protocol import read_metrics
from omma.comparison.resampling import Resampler, estimates
from omma.counts import Counts
from omma.evaluation import replay
from omma.limits import Limit, LimitStatus, read_limits
from omma.metrics import Macro, Metric, OverClasses, metric as find_metric
from omma.policies import OMMA, Auto, FrankWolfe, Policy, TunedThresholds, UnsupportedMetricError
from omma.policies.base import check_task
from omma.policies.registry import REGISTRY
from omma.rows.arrays import SparseProbabilities
from omma.rows.batch import Batch, read_labelled
from omma.rule import Rule, simple_rule
from omma.unseen import check_logged_labels, everything_is_best

TUNED, TRUSTING = "tuned", "omma_eta"
FEW_ROWS = 20  # intervals of so few rows were never measured
Folds = list[NDArray[np.int64]]


class Maker(NamedTuple):
    """A candidate before it is judged: ``make`` learns its rule from rows.

    ``policy`` runs online, where the rule is the last rule of a policy.
    """

    name: str
    title: str
    make: Callable[[Batch], Rule]
    policy: Policy | None = None


def last_rule(policy: Policy, batch: Batch) -> Rule:
    """The rule of a policy after one pass."""
    return replay(policy, batch, predictions=False, checkpoints=0).rule


def choose(
    eta: Any,
    y: Any,
    metric: str | Metric,
    k: int | None = None,
    at_most: int | None = None,
    *,
    subject_to: Any = None,
    names: Sequence[str] | None = None,
    frank_wolfe: bool = False,
    folds: int = 5,
    draws: int = 400,
    seed: int = 0,
    seen: str | None = None,
) -> Choice:
    """Recommend a rule, and estimate its value on new rows.

    Candidates are the 0.5 threshold (or with ``k`` the k most probable labels), tuned thresholds,
    and the final rules of ``omma.Auto``, OMMA(η̂) and OMMA after one pass. Rows are split into
    folds, and each fold is decided by rules that were learned on the others (cross-fitting). The
    rule with the highest value over all folds is recommended.

    The highest of several values is too high for new rows. Values and intervals are therefore from
    a bootstrap over rows, corrected for choosing the best rule and for few rows. They are least
    reliable for macro precision with a budget; a note says so.

    Parameters
    ----------
    eta, y : as for ``omma.replay``
        Probabilities and labels. Labels may be unknown (NaN): each label is scored on the rows in
        which it is known, and rows without any known label are skipped. Weights of a ``Batch``
        count for learning and scoring.
    metric : str or Metric
        A name may include a budget: ``"macro_f1@3"``.
    k : int, optional
        Exactly k labels per row.
    at_most : int, optional
        At most this number of labels per row.
    subject_to : str, Limit, or list of these, optional
        Limits, as in ``omma.Auto``. A rule that violates a limit, or its margin, on unseen rows is
        recommended only if all rules do; then the one with the smallest violation. The 0.5
        threshold and the top k ignore limits.
    names : sequence of str, optional
        The names of the labels, in the order of eta's columns; y may then hold class names. Frames
        have their own names.
    frank_wolfe : bool
        Add the best rule of the offline Frank-Wolfe algorithm.
    folds : int
        At least two. With more folds, rules learn from more rows, and it takes longer.
    draws : int
        Number of resamples for values and intervals.
    seed : int
        Seed of the folds, of the order of rows in the online pass, and of the resamples.
    seen : {None, "predicted", "random"}
        Why some labels are unknown. "predicted": labels were seen only where something was
        predicted; metrics that need the other labels, such as F1, are refused. "random": labels are
        missing at random. None checks whether labels are known only where probabilities are high.

    Returns
    -------
    Choice
        Print it for a summary; see also ``.best``, ``.rule``, ``.table`` and ``.plot()``.

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
    >>> pets = [[0.7, 0.3], [0.2, 0.8], [0.6, 0.4], [0.4, 0.6]] * 10
    >>> y = ["cat", "dog", "dog", "dog"] * 10
    >>> omma.choose(pets, y, "multiclass_gmean", names=["cat", "dog"]).rule.names
    ('cat', 'dog')
    """
    owner = "choose"
    check_seed(owner, seed)
    check_positive_int(owner, "draws", draws, least=2)
    check_positive_int(owner, "k", k, optional=True)
    if not isinstance(metric, str | Metric):
        raise TypeError(f"metric of choose must be a name or a metric, got {shown(metric)}")
    rows = read_labelled(owner, eta, y, names=names).ready().check(owner)
    data, notes = _with_labels(rows)
    (target,) = read_metrics(owner, [metric if k is None else (metric, k)], data)
    check_task(owner, data, target.k or at_most, target.metric, whole=None)
    limits = read_limits(owner, subject_to) or ()
    limits = tuple(limit.named(data.names, data.m, owner) for limit in limits)
    check_logged_labels(owner, rows, (target.metric, *limits), seen)
    # All rules have the goal of this policy: its metric, budget and limits. It refuses budgets that
    # do not go with the metric, and limits that nothing can keep.
    goal = Auto(target.metric, target.k, at_most, subject_to=limits or None)
    goal.check_labels(data.m)
    warn_of_rows(owner, data.eta, goal.budget)
    split = _folds(data.n, folds, seed)

    makers, left_out = [], []
    assert data.labels is not None
    for maker in _makers(goal, data.m, frank_wolfe):
        why = None if maker.policy is None else maker.policy.whole_rows(goal.objective)
        if data.labels.missing is None or why is None:
            makers.append(maker)
        else:
            left_out.append(
                f"{maker.title} is left out: it needs all labels of a row or none{why}."
            )
    with warnings.catch_warnings():  # warned of above, once and not for every fold
        warnings.filterwarnings("ignore", ".*lowest other labels fill up", UserWarning)
        decisions = {maker.name: _out_of_fold(data, split, maker.make) for maker in makers}
        streams = {  # the value of a policy that learns as it decides
            maker.name: replay(
                maker.policy, data, seed=seed, predictions=False, checkpoints=0
            ).value
            for maker in makers
            if maker.policy is not None
        }
        calibration = _calibration(data, goal, split, decisions.get(TRUSTING))

    sample = Resampler(data, list(decisions.values()), goal.objective, seed)
    samples = [sample]
    for fold in split if limits else ():
        decided = [matrix[fold] for matrix in decisions.values()]
        samples.append(Resampler(data.take(fold), decided, goal.objective, seed))
    statuses = [
        tuple(_status(limit, rule, *samples) for limit in limits) for rule in range(len(makers))
    ]
    missed = np.array([sum(status.missed_by for status in of_rule) for of_rule in statuses])
    # Limits come first; of equal rules the first, which is the simplest, is the best.
    best = int(np.lexsort((-sample.values, missed))[0])
    judged = estimates(sample, draws, best, missed == missed[best])
    candidates = tuple(
        Candidate(
            maker.name,
            maker.title,
            *estimate,
            out_of_fold=float(raw),
            stream=streams.get(maker.name),
            limits=of_rule,
        )
        for maker, estimate, raw, of_rule in zip(
            makers, judged, sample.values, statuses, strict=True
        )
    )
    share = 1.0 - sample.missing.nnz / (data.n * data.m)
    known = f", {100 * share:.3g} % of their labels known" if share < 1.0 else ""
    return Choice(
        target.name if at_most is None else f"{target.name}, at most {at_most} a row",
        candidates,
        makers[best].name,
        makers[best].make(data.take(np.concatenate(split))).named(data.names),
        _per_label(sample, best),
        f"{folds} folds of {data.n:,} rows{known}",
        (*notes, *left_out, *_remarks(sample, goal, best)),
        calibration,
    )


def _with_labels(data: Batch) -> tuple[Batch, list[str]]:
    """Rows with a known label and a weight, and a note about rows without labels."""
    assert data.labels is not None
    known, usable, notes = data.labels.known, data.row_weights > 0, []
    if known is not None:
        notes.append(f"{(~known).sum():,} of {data.n:,} rows have no labels and were skipped.")
        usable = usable & known
    return (data if usable.all() else data.take(usable).ready()), notes


def _folds(n: int, folds: int, seed: int) -> Folds:
    """Split the rows at random into folds of equal size."""
    check_positive_int("choose", "folds", folds)
    if not 2 <= folds <= n:
        raise ValueError(
            "folds of choose must be from 2 to the number of rows that have labels and weight, "
            f"which is {n}, got {folds}"
        )
    # Every fold has its share of the rows, to one row.
    order = np.random.default_rng(seed).permutation(n)
    return [order[start::folds] for start in range(folds)]


def _makers(goal: Auto, m: int, frank_wolfe: bool) -> Iterator[Maker]:
    """All candidates for the metric, budget and limits of ``goal``, the simplest first."""
    metric, k, at_most, limits = goal.objective, goal.budget, goal.at_most, goal.limits or None
    simple = simple_rule(k, m, at_most)
    yield Maker(SIMPLE, "0.5 threshold" if k is None else f"top-{k} rule", lambda batch: simple)
    if k is None and at_most is None:
        with suppress(UnsupportedMetricError):  # no thresholds can be found one label at a time
            tuned = TunedThresholds(metric, limits)
            yield Maker(TUNED, "tuned thresholds", lambda batch: tuned.fit(batch).decision)
    for name, policy in (
        ("auto", goal),
        (TRUSTING, _omma(goal, feedback="estimates")),
        ("omma", _omma(goal)),
    ):
        yield Maker(name, REGISTRY[name].title, partial(last_rule, policy), policy)
    if not frank_wolfe:
        return
    if at_most is not None:
        raise ValueError("frank_wolfe of choose goes without at_most: it has no such rules")
    if limits:
        raise ValueError(
            "frank_wolfe of choose goes without subject_to: its mixture keeps a limit, and no rule "
            "of it alone does"
        )
    search = FrankWolfe(metric, k)
    yield Maker(
        "frank_wolfe",
        "Frank-Wolfe's best rule",
        lambda batch: search.fit(batch).deterministic().rules[0],
    )


def _omma(goal: Auto, **options: Any) -> OMMA:
    """OMMA with the metric, budget and limits of ``goal``."""
    limits = goal.limits or None
    return OMMA(goal.objective, goal.budget, at_most=goal.at_most, subject_to=limits, **options)


def _out_of_fold(data: Batch, folds: Folds, make: Callable[[Batch], Rule]) -> Any:
    """Decide each fold by a rule learned from the other folds; a CSR matrix of all rows."""
    # A matrix even of one label, whose probabilities may come as a vector.
    eta = data.eta.matrix if isinstance(data.eta, SparseProbabilities) else data.eta.array
    decisions = []
    for place, fold in enumerate(folds):
        others = np.concatenate(folds[:place] + folds[place + 1 :])
        rule = make(data.take(others))
        decisions.append(sparse.csr_array(rule.predict(eta[fold]), dtype=np.float64))
    order = np.argsort(np.concatenate(folds))  # from the order of folds to that of the rows
    return sparse.csr_array(sparse.vstack(decisions, format="csr")[order])


def _limit_counts(limit: Limit, sample: Resampler, rule: int) -> tuple[Counts, Counts]:
    """The counts that give the value of a limit, and those that give its standard error."""
    counts = sample.counts(rule)
    if limit.needs_labels:
        # The error of a rate is by the labels that were seen, not by counts in proportion.
        tp, predicted, positive, rows = sample.known(rule)
        n = float(rows.mean() if limit.over_all else rows[limit.index or 0])
        return counts, Counts(tp, predicted, positive, n)
    none = np.zeros(sample.m)
    counts = Counts(none, sample.everywhere[rule], none, counts.n)
    return counts, counts


def _status(limit: Limit, rule: int, whole: Resampler, *folds: Resampler) -> LimitStatus:
    """The status of a limit by the out-of-fold decisions of a rule.

    The rule to deploy is learned once more, from all rows, and will differ from the rules of the
    folds as these differ from each other. With F folds, the variance of its value is
    σ² + s² (1 + 1/F): σ is the standard error by all rows, and s² is the variance between folds
    beyond F σ², that of a fold by chance.
    """
    counts, seen = _limit_counts(limit, whole, rule)
    error, draws = limit.error(seen), limit.draws(seen)
    values = np.array([limit.value(_limit_counts(limit, fold, rule)[0]) for fold in folds])
    values = values[~np.isnan(values)]  # 0/0, as precision where nothing was predicted
    if len(values) > 1 and error > 0.0:
        of_rules = max(values.var(ddof=1) - len(folds) * error**2, 0.0)
        widened = np.sqrt(error**2 + of_rules * (1.0 + 1.0 / len(folds)))
        # Intervals are computed by the number of draws: a larger error stands for fewer.
        error, draws = float(widened), draws * (error / widened) ** 2
    return LimitStatus(limit, limit.value(counts), 0.0, error, draws)


def _per_label(sample: Resampler, best: int) -> PerLabel | None:
    """The metric of each label by the simple rule and by the best, if labels have a metric."""
    of: Any = sample.metric.per_label
    if isinstance(sample.metric, OverClasses):  # all of them are made of the recalls of classes
        of = find_metric("recall")
    if of is None:
        return None
    simple, chosen = (sample.known(rule) for rule in (0, best))  # the simple rule comes first
    return PerLabel(of.name, simple[2], of.of_cells(*simple), of.of_cells(*chosen))


def _remarks(sample: Resampler, goal: Auto, best: int) -> Iterator[str]:
    """Notes on data that is too thin for the report, and on metrics with a trivial maximum."""
    metric, n, m = sample.metric, sample.n, sample.m
    if n < FEW_ROWS:
        yield f"{n:,} rows are few: intervals may be too narrow."
    unknown = int((sample.missing.sum(axis=0) == n).sum())
    if unknown:
        yield (
            f"{unknown:,} of {m:,} labels are known in no row and count as labels that never occur."
        )
    absent = m - len(np.unique(sample.labels.indices))
    if isinstance(metric, OverClasses) and absent:
        yield f"{absent:,} of {m:,} classes never occur: their recall is 0, however decided."
    if not sample.labels.nnz:
        yield "No label occurs in these rows: they cannot tell a good rule from a bad one."
    is_macro_precision = isinstance(metric, Macro) and metric.of == find_metric("precision")
    if is_macro_precision and goal.budget is not None:
        # Each fold's rule fills spare slots with other labels: together they are like no rule.
        yield (
            "Macro precision with a budget: values and intervals can be off by many points; judge "
            "the rule on held-out rows."
        )
    is_free = goal.budget is None and goal.at_most is None and not goal.limits
    counts = sample.counts(best)
    if is_free and everything_is_best(metric, counts.positive, counts.n):
        how = "choose another metric, such as f1" if metric.binary else "pass k"
        yield f"{metric.name} is maximal when everything is predicted: {how}."


def _calibration(data: Batch, goal: Auto, folds: Folds, trusting: Any) -> CalibrationCheck | None:
    """Whether probabilities are calibrated; if not, what calibrating gains on the metric.

    ``trusting`` are the decisions of OMMA(η̂), which takes probabilities as they are.
    """
    if data.class_ids:  # bins of single classes say little about rows whose shares add up to one
        return None
    metric, check = goal.objective, CalibrationCheck.of(data)
    if not check.is_off or trusting is None or metric.needs_matrix:
        return check
    policy = _omma(goal, feedback="estimates", calibration="online")
    calibrated = _out_of_fold(data, folds, partial(last_rule, policy))
    before, after = Resampler(data, [trusting, calibrated], metric, 0).values
    return replace(check, metric=metric.name, gain=float(after - before))
