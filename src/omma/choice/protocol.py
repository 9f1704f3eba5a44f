"""Cross-fitting: every row is decided by a rule that was made without it."""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._candidates import warn_of_rows
from omma._validate import check_positive_int, check_seed, shown
from omma.choice.makers import SIMPLE, Make, Maker, Task, makers
from omma.choice.report import Candidate, Choice, PerLabel, Range, missed
from omma.choice.truth import Resampler, Truth
from omma.comparison.arguments import check_whole, read_rows, read_targets
from omma.counts import Counts
from omma.evaluation import replay
from omma.held import Held
from omma.limits import Limit, read_limits
from omma.metrics import Binary, LabelMetric, Metric, OverClasses, metric as find_metric
from omma.policies import Auto
from omma.policies.base import check_task
from omma.rows.arrays import SparseProbabilities
from omma.rows.batch import Batch

FEW = 20  # rows: with fewer, a normal interval is far too narrow
NORMAL = 1.96  # standard errors on either side of 95 %


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
    """Which rule to deploy, and what it will be worth on rows that it has not seen.

    Candidates are the 0.5 threshold (or with ``k`` the k most probable labels), thresholds tuned on
    the rows, and the last rules of ``omma.Auto``, OMMA(η̂) and OMMA after one pass. Rows are dealt
    into folds; the rows of each fold are decided by rules made of the others, so that no rule
    judges a row it has learned from. All decisions are counted together. Where a label occurs only
    a handful of times, that is still a little optimistic: a hit in one fold moves the thresholds of
    the others, and the metric is no mean over rows.

    Parameters
    ----------
    eta, y : as for ``omma.replay``
        Probabilities, and labels. Labels may be unknown (NaN): decisions are judged by those that
        are known, a label in proportion to its known rows, and rows of which nothing is known are
        left out. Weights of a ``Batch`` count for rules and judgement alike.
    metric : str or Metric
        A name may have its budget with it, as in ``"macro_f1@3"``.
    k : int, optional
        Exactly k labels a row.
    at_most : int, optional
        Up to so many labels a row.
    subject_to : str, Limit, or list of these, optional
        Limits, as of ``omma.Auto``: rules are made under them, and recommended only where these
        hold on the rows not seen, with their margins, or are missed by less than a standard error.
        Where none does, the rule that misses them least is. The simple rule knows nothing of
        limits.
    frank_wolfe : bool
        Let the offline Frank-Wolfe algorithm compete too, with the best of its rules.
    folds : int
        At least two. More folds judge rules that were made of more rows, and take longer.
    draws : int
        How often rows are drawn again for the intervals.
    seed : int
        Of the folds, of the order in which rows are streamed, and of the draws.

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
    >>> few.best.limits[0].value < 1.05, few["baseline"].holds  # that of 0.5 predicts more
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
    data, notes = _judged(read_rows(owner, eta, y).check(owner))
    (target,) = read_targets([metric if k is None else (metric, k)], data, owner)
    check_whole(owner, target.metric, data)
    check_task(owner, data, target.k or at_most, target.metric, whole=None)
    limits = read_limits(owner, subject_to) or ()
    limits = tuple(one.named(data.names, data.m, owner) for one in limits)
    # Refuses budgets that do not go with the metric, and limits that nothing can keep.
    Auto(target.metric, target.k, at_most, subject_to=limits or None).check_labels(data.m)
    task = Task(target.metric, target.k, at_most, data.m, limits)
    if target.metric.multiclass and at_most is None:
        task = replace(task, k=1)
    warn_of_rows(owner, data.eta, task.k)
    dealt = _folds(data.n, folds, seed)
    every, more = _able(makers(task, frank_wolfe), data, task)
    with warnings.catch_warnings():  # said once, not by every fold
        warnings.filterwarnings("ignore", ".*lowest other labels fill up", UserWarning)
        decided = {one.name: _unseen(data, dealt, one.make) for one in every}
        streams = {  # what a policy is worth that goes on learning
            one.name: replay(one.policy, data, seed=seed, predictions=False, checkpoints=0).value
            for one in every
            if one.policy is not None
        }
    truth = Truth.of(data)
    resampler = Resampler(truth, task.metric, draws, seed)
    values = {name: resampler.values(made) for name, made in decided.items()}
    held = {name: _held(limits, truth, made) for name, made in decided.items()}
    # Limits come first; of equals the simplest is the best, which is first.
    best = min(every, key=lambda one: (missed(held[one.name]), -values[one.name][0]))
    known = "" if truth.missing is None else f", {100 * truth.share:.3g} % of their labels known"
    return Choice(
        target.name if at_most is None else f"{target.name}, at most {at_most} a row",
        tuple(
            Candidate(
                one.name,
                one.title,
                *_judgement(values[one.name], values[best.name], possible(task.metric)),
                streams.get(one.name),
                held[one.name],
            )
            for one in every
        ),
        best.make(data.take(np.concatenate(dealt))).named(data.names),
        _labels(task.metric, truth, decided[SIMPLE], decided[best.name]),
        f"{folds} folds of {data.n:,} rows{known}",
        (*notes, *more, *_remarks(truth, task.metric)),
    )


def _unseen(data: Batch, folds: list[NDArray[np.int64]], make: Make) -> Any:
    """Decisions on every row, by rules that were made of the rows of other folds."""
    # A column for each label, be it one.
    eta = data.eta.matrix if isinstance(data.eta, SparseProbabilities) else data.eta.array
    made = []
    for place, fold in enumerate(folds):
        others = np.concatenate(folds[:place] + folds[place + 1 :])
        rule = make(data.take(others))
        made.append(sparse.csr_array(rule.predict(eta[fold]), dtype=np.float64))
    back = np.argsort(np.concatenate(folds))
    return sparse.csr_array(sparse.vstack(made, format="csr")[back])


def _judged(data: Batch) -> tuple[Batch, list[str]]:
    """Rows to judge by: something is known of each, and it counts; and what is said of others."""
    assert data.labels is not None
    kept, notes = np.ones(data.n, dtype=np.bool_), []
    if data.labels.known is not None:
        kept = data.labels.known
        left = data.n - int(kept.sum())
        notes.append(f"{left:,} of {data.n:,} rows are left out: no label of them is known.")
    if len(data.weights):
        if not data.weights[kept].any():
            raise ValueError("weights of choose must not all be 0")
        kept = kept & (data.weights > 0)
    return (data if kept.all() else data.take(kept).ready()), notes


def _remarks(truth: Truth, metric: Metric) -> Iterator[str]:
    """What is said of labels that these rows say nothing about, and of few rows."""
    if truth.n < FEW:
        yield f"{truth.n:,} rows are few: intervals from so few say less than they promise."
    unknown = int((truth.rows_known <= 0.0).sum())
    if unknown:
        known = f"{unknown:,} of {truth.m:,} labels are known in no row"
        yield f"{known}: they count as labels that never occur."
    absent = truth.m - len(np.unique(truth.labels.indices))
    if isinstance(metric, OverClasses) and absent:
        yield f"{absent:,} of {truth.m:,} classes never occur: their recall is 0, however decided."
    if not truth.labels.nnz:
        yield "No label occurs in these rows: they cannot tell a good rule from a bad one."


def _able(every: Iterator[Maker], data: Batch, task: Task) -> tuple[list[Maker], list[str]]:
    """Those who can learn from such rows, and a sentence about each of the others."""
    assert data.labels is not None
    if data.labels.missing is None:
        return list(every), []
    able, notes = [], []
    for one in every:
        why = None if one.policy is None else one.policy.whole_rows(task.metric)
        if why is None:
            able.append(one)
        else:
            notes.append(f"{one.title} is left out: it needs all labels of a row or none{why}.")
    return able, notes


def _held(limits: tuple[Limit, ...], truth: Truth, made: Any) -> tuple[Held, ...]:
    """How limits stand by some decisions, at no price."""
    if not limits:
        return ()
    known, everywhere = truth.counts(made), truth.predicted(made)
    seen, rows = truth.seen(made), truth.rows_known
    found = []
    for one in limits:
        # What is sure about a rate comes of the labels that were seen, and not in proportion.
        n = float(rows.mean() if one.over_all else rows[one.index or 0])
        value, error = (known, Counts(*seen, n)) if one.needs_labels else (everywhere, everywhere)
        found.append(Held(one, one.value(value), 0.0, one.error(error), one.draws(error)))
    return tuple(found)


def _judgement(
    mine: NDArray[np.float64], best: NDArray[np.float64], bounds: Range
) -> tuple[float, Range, float, Range]:
    """A value and how far it is behind the best, each with the interval that its draws give."""
    value, half = float(mine[0]), NORMAL * float(np.std(mine[1:], ddof=1))
    behind, spread = float(mine[0] - best[0]), NORMAL * float(np.std(mine[1:] - best[1:], ddof=1))
    interval = (max(value - half, bounds[0]), min(value + half, bounds[1]))
    return value, interval, behind, (behind - spread, behind + spread)


def possible(metric: Metric) -> tuple[float, float]:
    """Between what ends a metric lies, as far as that is known.

    >>> possible(find_metric("macro_f1")), possible(find_metric("micro_mcc"))
    ((0.0, 1.0), (-1.0, 1.0))
    """
    of = getattr(metric, "of", metric)
    if isinstance(of, Binary):
        return (-1.0 if of.mean == "correlation" else 0.0), 1.0
    if isinstance(of, OverClasses):
        return (-1.0 if of.kind in ("mcc", "kappa") else 0.0), 1.0
    return -np.inf, np.inf


def _folds(n: int, folds: int, seed: int) -> list[NDArray[np.int64]]:
    """Rows dealt out at random."""
    check_positive_int("choose", "folds", folds)
    if not 2 <= folds <= n:
        raise ValueError(
            "folds of choose must be from 2 to the number of rows that have labels and weight, "
            f"which is {n}, got {folds}"
        )
    order = np.random.default_rng(seed).permutation(n)
    return [order[start::folds] for start in range(folds)]


def _labels(metric: Metric, truth: Truth, simple: Any, best: Any) -> PerLabel | None:
    """The metric of each label by the simple rule and by the best, where there is such a thing."""
    of = metric if isinstance(metric, LabelMetric) else getattr(metric, "of", None)
    if isinstance(metric, OverClasses):
        of = find_metric("recall")
    if not isinstance(of, LabelMetric):
        return None
    every, rows = [truth.seen(made) for made in (simple, best)], truth.rows_known
    rows = np.where(rows > 0.0, rows, truth.weight.sum())  # never known is as never there
    before, after = (of.of_cells(*one, rows) for one in every)
    return PerLabel(of.name, every[0][2], before, after)
