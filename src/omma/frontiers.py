"""The frontier: the best value of a metric for each bound of a limit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omma._validate import check_positive_int, shown
from omma.counts import Counts
from omma.evaluation import replay
from omma.limits import Limit, at_least, at_most
from omma.metrics import LabelMetric, Macro, Metric, metric as find_metric
from omma.policies import Auto, TunedThresholds
from omma.rows.batch import Batch

POINTS = 15
HARDEST = 0.97  # of the way from the value without a bound to 1: the strictest bound by default
MET = 1e-4  # a bound that is missed by less counts as met: a hundredth of a point
EXACT = "With hindsight on these rows: no threshold does better"
TUNED = "With hindsight on these rows, by thresholds tuned under each bound"
ONLINE = "By one pass of Auto over these rows for each bound, without hindsight"


@dataclass(frozen=True)
class Frontier:
    """The best metric under each bound; ``omma.plots.plot_frontier`` draws it.

    Attributes
    ----------
    metric : Metric
    limit : Limit
        The bounded rate, with the last bound that was tried.
    bounds, values, reached : ndarray
        The bounds, the metric under each, and the bounded rate under each.
    free : tuple (rate, metric)
        Both without a bound.
    how : str
        A sentence on how decisions were made.
    """

    metric: Metric
    limit: Limit
    bounds: NDArray[np.float64]
    values: NDArray[np.float64]
    reached: NDArray[np.float64]
    free: tuple[float, float]
    how: str = ""

    @property
    def met(self) -> NDArray[np.bool_]:
        """Whether each bound was met, to a hundredth of a point."""
        missed = self.limit.sign * (self.bounds - self.reached)
        return np.less_equal(missed, MET)


def frontier(
    eta: Any,
    y: Any,
    metric: str | Metric,
    limit: str,
    *,
    bounds: ArrayLike | None = None,
    k: int | None = None,
    weights: ArrayLike | None = None,
) -> Frontier:
    """Maximize a metric on a labelled sample under stricter and stricter bounds of a limit.

    Without a budget, a ``macro_`` metric or a metric of one label is maximized by thresholds tuned
    on the sample under the limit (see ``TunedThresholds``), so with hindsight. Every other metric
    is maximized by ``omma.Auto``, in one pass for each bound.

    Parameters
    ----------
    eta, y : as for ``omma.replay``
    metric : str or Metric
    limit : str
        What to bound: "micro_precision", "recall[3]", "labels_per_row", …; from below, but for
        "labels_per_row" and "predicted_rate".
    bounds : array-like, optional
        Default 15 from where nothing is bounded to where it is hard.
    k : int, optional
        Exactly k labels a row.
    weights : array-like of shape (n,), optional
        A row of weight w counts as w rows. Weights are not costs: see ``omma.metrics.RowCosts``.

    Returns
    -------
    Frontier

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=5, seed=0)
    >>> curve = omma.frontier(eta, y, "macro_recall", "micro_precision", bounds=[0.5, 0.7, 0.9])
    >>> bool((np.diff(curve.values) < 0).all()), curve.met.tolist()
    (True, [True, True, True])
    """
    objective = find_metric(metric)
    k = check_positive_int("frontier", "k", k, optional=True)
    if not isinstance(limit, str):
        raise TypeError(
            f"limit of frontier must be a name such as 'micro_precision', got {shown(limit)}"
        )
    from_above = limit.split("[")[0] in ("labels_per_row", "predicted_rate")
    bounded = at_most if from_above else at_least
    any_bound = bounded(limit, 1.0)  # which checks the name
    budget = 1 if k is None and objective.multiclass else k
    if any_bound.of == "labels_per_row" and budget is not None:
        raise ValueError(
            f"limit of frontier must not be labels_per_row where every row gets {budget}: pass no k"
        )
    if bounds is not None:
        bounds = np.atleast_1d(np.asarray(bounds, dtype=float))
        if bounds.ndim != 1 or not len(bounds):
            raise ValueError(
                f"bounds of frontier must be one or more numbers, got shape {bounds.shape}"
            )
        for bound in bounds:  # refuses what no rate can be, before anything is run
            bounded(limit, float(bound))
    # Thresholds can be tuned exactly where each label is decided by itself.
    is_tuned = k is None and isinstance(objective, Macro | LabelMetric)

    batch = Batch.read("frontier", eta, y, weights)
    named = any_bound.named(batch.names, batch.m, "frontier")

    def counts_under(subject_to: Limit | None) -> Counts:
        """True labels against decisions that maximize the metric under a limit."""
        if is_tuned:
            policy: Any = TunedThresholds(objective, subject_to).fit(batch)
        else:
            policy = Auto(objective, k, subject_to=subject_to)
        trace = replay(policy, batch, metric=objective, checkpoints=0)
        assert trace.counts is not None
        return trace.counts

    free = counts_under(None)
    start = named.value(free)
    if bounds is None:
        loosest = 0.0 if np.isnan(start) else start  # NaN: a rate of 0/0, nothing was predicted
        strictest = loosest / POINTS if from_above else loosest + HARDEST * (1.0 - loosest)
        bounds = np.linspace(loosest, strictest, POINTS)
    limits = [replace(bounded(limit, float(bound)), index=named.index) for bound in bounds]
    counts_by_bound = [counts_under(subject_to) for subject_to in limits]
    return Frontier(
        objective,
        limits[-1],
        bounds,
        np.array([objective.value(counts) for counts in counts_by_bound]),
        np.array([named.value(counts) for counts in counts_by_bound]),
        (start, objective.value(free)),
        (EXACT if free.m == 1 else TUNED) if is_tuned else ONLINE,
    )
