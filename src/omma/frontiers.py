"""The frontier: how much of a metric each bound of a limit leaves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omma._validate import check_positive_int, shown
from omma.evaluation import replay
from omma.limits import Limit, at_least, at_most
from omma.metrics import LabelMetric, Macro, Metric, metric as find_metric
from omma.policies import Auto, TunedThresholds
from omma.trace import Trace

POINTS = 15
EXACT = "With hindsight on these rows: no threshold does better"
TUNED = "With hindsight on these rows, by thresholds tuned under each bound"
ONLINE = "By one pass of Auto over these rows for each bound, without hindsight"


@dataclass(frozen=True)
class Frontier:
    """What each bound leaves of a metric; ``omma.plots.plot_frontier`` draws it.

    Attributes
    ----------
    metric : Metric
    limit : Limit
        What was bounded; its own bound is the last that was tried.
    bounds, values, reached : ndarray
        The bounds asked for, the metric at each, and the value of the limit at each.
    free : tuple (limit, metric)
        Both where nothing is bounded.
    how : str
        In words, what decided, and what that says.
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
        """Where the bound was met, to a hundredth of a point."""
        found: NDArray[np.bool_] = self.limit.sign * (self.bounds - self.reached) <= 1e-4
        return found


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
    """How much of a metric is left as a limit gets stricter, on a labelled sample.

    Without a budget, a ``macro_`` metric or one of one label is maximized by thresholds tuned on
    the sample under the limit (see ``TunedThresholds``): what could have been reached with
    hindsight. Every other metric is run by ``omma.Auto``, a pass for each bound.

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

    Returns
    -------
    Frontier

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=5, seed=0)
    >>> found = omma.frontier(eta, y, "macro_recall", "micro_precision", bounds=[0.5, 0.7, 0.9])
    >>> bool((np.diff(found.values) < 0).all()), found.met.tolist()
    (True, [True, True, True])
    """
    judged_by = find_metric(metric)
    k = check_positive_int("frontier", "k", k, optional=True)
    if not isinstance(limit, str):
        raise TypeError(
            f"limit of frontier must be a name such as 'micro_precision', got {shown(limit)}"
        )
    from_above = limit.split("[")[0] in ("labels_per_row", "predicted_rate")
    make = at_most if from_above else at_least
    first = make(limit, 1.0)
    budget = 1 if k is None and judged_by.multiclass else k
    if first.of == "labels_per_row" and budget is not None:
        raise ValueError(
            f"limit of frontier must not be labels_per_row where every row gets {budget}: pass no k"
        )
    asked = None if bounds is None else _asked(bounds, limit, make)

    tuned = k is None and isinstance(judged_by, Macro | LabelMetric)

    def at(given: Limit | None) -> Trace:
        if tuned:
            policy: Any = TunedThresholds(judged_by, given).fit(eta, y, weights=weights)
        else:
            policy = Auto(judged_by, k, subject_to=given)
        return replay(policy, eta, y, metric=judged_by, weights=weights, checkpoints=0)

    free = at(None)
    counts = free.counts
    assert counts is not None
    names = free.names
    found = first.named(names, counts.m, "frontier")
    start = found.value(counts)
    tried = _spaced(0.0 if np.isnan(start) else start, from_above) if asked is None else asked
    values, reached = [], []
    for bound in tried:
        trace = at(replace(make(limit, float(bound)), index=found.index))
        assert trace.counts is not None
        values.append(judged_by.value(trace.counts))
        reached.append(found.value(trace.counts))
    return Frontier(
        judged_by,
        replace(found, bound=float(tried[-1])),
        tried,
        np.array(values),
        np.array(reached),
        (start, judged_by.value(counts)),
        (EXACT if counts.m == 1 else TUNED) if tuned else ONLINE,
    )


def _asked(bounds: ArrayLike, limit: str, make: Any) -> NDArray[np.float64]:
    """Bounds that were given, all of them possible."""
    found: NDArray[np.float64] = np.atleast_1d(np.asarray(bounds, dtype=float))
    if found.ndim != 1 or not len(found):
        raise ValueError(
            f"bounds of frontier must be one or more numbers, got shape {np.shape(bounds)}"
        )
    for one in found:
        make(limit, float(one))
    return found


def _spaced(start: float, from_above: bool) -> NDArray[np.float64]:
    """Bounds that tighten, from where nothing is bounded."""
    if from_above:
        return np.linspace(start, start / POINTS, POINTS)
    return np.linspace(start, start + 0.97 * (1.0 - start), POINTS)
