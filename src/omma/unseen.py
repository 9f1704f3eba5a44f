"""Labels that are seen only where they were predicted.

A recommender sees clicks on the items that it showed; a fraud team checks alarms. Labels of
predicted entries are then known, all others are not: precision can be counted, recall and F1
cannot. They are estimated from calibrated probabilities, corrected by rows that were audited at
random. ``State.unseen`` has the numbers; the page "Labels seen only where predicted" explains them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import check_choice, shown
from omma.counts import Counts
from omma.kernels.layout import POSITIVE, PREDICTED, TP, N
from omma.limits import Limit
from omma.metrics import Metric
from omma.policies import Policy
from omma.policies.fixed import FixedPolicy
from omma.rows.arrays import DenseProbabilities, stored_in
from omma.rows.batch import Batch
from omma.state import State

PREDICTED_ONLY = "predicted"
PAGE = "the page 'Labels seen only where predicted' (docs/seen.md)"
# Labels look selected by decisions where at least the first share of predicted entries has labels,
# and at most the second share of all others; and if these unknown others are a third share of all.
KNOWN_IF_PREDICTED, KNOWN_IF_NOT, LEAST_UNKNOWN = 0.8, 0.1, 0.05
FEWEST_KNOWN = 20.0  # labels: with fewer of them there is no warning
RANKED = 0.95  # the chance that a label is known rather than one of a lower probability


class EstimatedValue(float):
    """A value that is estimated, not counted: a float that says how it was estimated.

    Attributes
    ----------
    rows : float
        The rows whose labels were seen only where predicted, by weight.
    audited : float
        Those of them that were audited.

    Examples
    --------
    >>> value = EstimatedValue(0.48, rows=2000, audited=100)
    >>> value
    0.48 (estimated: 100 of 2,000 rows audited)
    >>> round(100 * value, 1)
    48.0
    """

    rows: float
    audited: float

    def __new__(cls, value: float, rows: float, audited: float) -> EstimatedValue:
        number = super().__new__(cls, value)
        number.rows, number.audited = float(rows), float(audited)
        return number

    def __getnewargs__(self) -> tuple[float, float, float]:  # type: ignore[override]
        return float(self), self.rows, self.audited

    @property
    def rests_on(self) -> str:
        """How many rows were audited for the estimate, in words."""
        if self.audited:
            return f"{self.audited:,.10g} of {self.rows:,.10g} rows audited"
        return "from probabilities alone, no row was audited"

    def __repr__(self) -> str:
        return f"{float(self)!r} (estimated: {self.rests_on})"


def check_seen(owner: str, seen: Any, audited: Any) -> None:
    """Refuse values of ``seen`` and ``audited`` that do not go together."""
    check_choice(owner, "seen", seen, (None, PREDICTED_ONLY))
    if seen is None and audited is not None and np.any(audited):
        raise ValueError(
            f"audited of {owner} goes with seen='predicted', which says that other rows show their "
            "labels only where these were predicted"
        )


def read_audited(owner: str, audited: Any, n: int) -> NDArray[np.bool_]:
    """Which of n rows were audited: a flag for each, or one for all."""
    values = np.asarray(False if audited is None else audited)
    values = np.full(n, values[()]) if values.ndim == 0 else values
    is_flags = values.dtype.kind in "biuf" and np.isin(values, (0, 1)).all()
    if values.shape != (n,) or not is_flags:
        raise ValueError(
            f"audited of {owner} must be True or False for each of {n} rows, got {shown(audited)}"
        )
    return values.astype(np.bool_)


def check_policy(owner: str, policy: Policy, metric: Metric | None) -> None:
    """Refuse a policy that would learn wrong counts from labels seen only where predicted."""
    why = policy.whole_rows(metric)
    if why is not None:
        raise ValueError(f"seen='predicted' of {owner} needs labels one by one: not possible{why}")
    if policy.feedback == "labels" and not isinstance(policy, FixedPolicy):
        raise ValueError(
            f"seen='predicted' of {owner} needs a policy that looks at probabilities, as omma.Auto "
            f"does: {policy!r} would take the positives that it saw for all there are"
        )
    if policy.feedback != "estimates":  # else limits are held on estimates anyway
        for limit in policy.limits:
            if needs_unseen(limit, 1):
                raise ValueError(
                    f"{str(limit)!r} cannot be held with seen='predicted' of {owner}: it needs "
                    "positives that nobody saw. Limit precision or what is predicted, or pass "
                    "omma.OMMA(..., feedback='estimates'), which holds limits on estimates"
                )


def needs_unseen(measure: Metric | Limit, m: int) -> bool:
    """Whether a metric or limit over m labels depends on positives that were not predicted.

    >>> import omma
    >>> [needs_unseen(omma.metric(name), 3) for name in ("macro_precision", "macro_f1")]
    [False, True]
    """
    if isinstance(measure, Limit):
        return measure.needs_labels and bool(measure.rate.over[2] or measure.rate.under[2])
    if measure.needs_matrix:  # a wrong class does not tell which one is right
        return True
    # By the value itself, as metrics may be users' own: do more positives change it?
    few, many = (
        Counts(np.full(m, 2.0), np.full(m, 4.0), np.full(m, positive), 50.0)
        for positive in (5.0, 9.0)
    )
    return bool(measure.value(few) != measure.value(many))


def reported_value(
    owner: str, metric: Metric, policy: Policy, counts: Counts, state: State, stacklevel: int = 3
) -> float:
    """The value of counts, marked as an estimate if it depends on labels that nobody saw.

    Warns where labels seem to be missing because nothing was predicted, without ``seen``.
    """
    value = metric.value(counts)
    # Cheap checks first: a learner may be asked for its value after each row.
    if state.unseen is None and not is_selected(state):
        return value
    if not needs_unseen(metric, counts.m):
        return value
    if state.unseen is not None:
        return EstimatedValue(value, *state.unseen.rows)
    if not _predicts_everything(policy, state):
        warnings.warn(
            f"{owner}: labels are missing where nothing was predicted, so {metric.name} counts "
            "only the positives that were found and is too high; pass seen='predicted' for an "
            f"estimate, see {PAGE}",
            UserWarning,
            stacklevel=stacklevel,
        )
    return value


def is_selected(state: State) -> bool:
    """Whether labels are known where they were predicted, and hardly anywhere else."""
    labels = state.labels or state.own
    if float(labels.cells[PREDICTED].sum()) < FEWEST_KNOWN * state.unit:
        return False
    if state.known is not None:
        # Which part of the expected positives is known, of predicted entries and of others?
        known, expected = state.known.cells.sum(axis=1), state.cells.sum(axis=1)
        hits, predicted = known[TP], expected[TP]
        known_others, others = known[POSITIVE] - hits, expected[POSITIVE] - predicted
    else:
        # Decisions on rows without labels are counted if estimates are. Otherwise a row that is
        # labelled in part says how many of its labels are unknown: most were not predicted.
        truth = state.truth
        decided = truth if state.lifetime is not None else state.own
        missed = 0.0 if truth.missed is None else float(truth.missed.sum())
        hits, predicted = truth.cells[PREDICTED].sum(), decided.cells[PREDICTED].sum()
        known_others = truth.totals[N] * state.m - missed - hits
        others = decided.totals[N] * state.m - predicted
    return bool(
        hits >= KNOWN_IF_PREDICTED * predicted
        and known_others <= KNOWN_IF_NOT * others
        and others - known_others >= LEAST_UNKNOWN * (predicted + others)
    )


def _predicts_everything(policy: Policy, state: State) -> bool:
    """Whether to predict everything is allowed and best: then labels are missing by chance."""
    metric, counts = policy.objective, state.truth
    is_free = policy.budget is None and not policy.limits and not isinstance(policy, FixedPolicy)
    return (
        is_free
        and metric is not None
        and everything_is_best(metric, counts.cells[POSITIVE], float(counts.totals[N]))
    )


def everything_is_best(metric: Metric, positive: NDArray[np.float64], n: float) -> bool:
    """Whether no decision can be better than to predict every label in every row.

    >>> import omma
    >>> positive = np.array([3.0, 1.0])
    >>> [everything_is_best(omma.metric(f"macro_{of}"), positive, 10.0) for of in ("recall", "f1")]
    [True, False]
    """
    if (positive == n).all():  # then it is right, whatever the metric is
        return False
    # If all is predicted, no positive is missed, and all negatives are false alarms.
    everything = Counts(positive, np.full(len(positive), n), positive, n)
    exact = Counts(positive, positive, positive, n)
    return not metric.multiclass and metric.value(everything) >= metric.value(exact)


def check_logged_labels(
    owner: str, rows: Batch, measures: Sequence[Metric | Limit], seen: str | None
) -> None:
    """Refuse measures that need labels which nobody saw when the rows were logged.

    ``seen`` says why labels are unknown: "predicted", "random", or None to find out.
    """
    check_choice(owner, "seen", seen, (None, PREDICTED_ONLY, "random"))
    if seen == "random" or (seen is None and not labels_follow_scores(rows)):
        return
    for measure in measures:
        if needs_unseen(measure, rows.m):
            known = "only where something was predicted"
            if seen is None:
                known = "where probabilities are high and nowhere else, as of logged decisions"
            raise ValueError(
                f"{owner} cannot judge rules by {measure.name}, which needs positives that nobody "
                f"saw: labels are known {known}. Pass rows that were audited at random, a metric "
                f"such as precision, or seen='random' if labels are missing by chance; see {PAGE}"
            )
    if seen is None:
        warnings.warn(
            f"{owner}: labels are known where probabilities are high and nowhere else, so rules "
            f"are judged by what was predicted when the rows were logged; see {PAGE}",
            UserWarning,
            stacklevel=3,
        )


def labels_follow_scores(rows: Batch) -> bool:
    """Whether labels of logged rows are known where probabilities are high, and unknown elsewhere.

    So it is if labels were logged above a threshold, or for the k best of a row.
    """
    labels, m = rows.labels, rows.m
    if labels is None or (labels.missing is None and (labels.known is None or m > 1)):
        return False  # all are known, or whole rows are unknown, not single labels
    if isinstance(rows.eta, DenseProbabilities):
        row, label = np.divmod(np.arange(rows.n * m), m)
        probabilities = np.ravel(rows.eta.array).astype(np.float64)
        entries = sparse.coo_array((probabilities, (row, label)), shape=(rows.n, m))
    else:  # labels of probability zero are never predicted, and left out
        entries = rows.eta.matrix.tocoo()
    values, (row, label) = entries.data, entries.coords
    known = np.ones(len(values), dtype=np.bool_) if labels.known is None else labels.known[row]
    if labels.missing is not None:
        known = known & ~stored_in(labels.missing, entries)
    if min(known.sum(), len(known) - known.sum()) < FEWEST_KNOWN:
        return False
    return _rank_share(values, known, label) >= RANKED or _rank_share(values, known, row) >= RANKED


def _rank_share(
    values: NDArray[np.float64], known: NDArray[np.bool_], group: NDArray[np.int64]
) -> float:
    """How often a known entry has a higher probability than an unknown one of its group (AUC).

    Each group, a label or a row, weighs by its number of pairs. Equal probabilities count half.
    """
    from scipy import stats  # which takes long to load, and is seldom needed

    # Ranks by group, and by probability within it. Ties share their mean rank.
    level = stats.rankdata(values, "dense").astype(np.int64)
    rank = stats.rankdata(group.astype(np.int64) * (len(values) + 1) + level)
    sizes, known_sizes = np.bincount(group), np.bincount(group, known)
    rank_in_group = rank - (np.cumsum(sizes) - sizes)[group]
    # Mann and Whitney's U: the sum of the ranks of known entries, less its least possible value.
    wins = known @ rank_in_group - (known_sizes * (known_sizes + 1) / 2.0).sum()
    pairs = known_sizes @ (sizes - known_sizes)
    return float(wins / pairs) if pairs else 0.0
