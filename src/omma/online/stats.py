"""What a learner tells of itself, as plain data for logs, pages and alarms."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omma.counts import Counts
from omma.held import Held
from omma.kernels.layout import POSITIVE, N
from omma.metrics import Metric
from omma.rule import Rule
from omma.state import State

if TYPE_CHECKING:
    from omma.online.learner import OnlineClassifier

MOST = 5  # thresholds that are told


class Seen(NamedTuple):
    """How things stood at some time."""

    counts: Counts
    rule: Rule


def stats_of(learner: OnlineClassifier, counts: Counts, rule: Rule, before: Seen) -> dict[str, Any]:
    """What ``OnlineClassifier.stats`` tells."""
    metric, state, pending = learner.metric, learner.state, learner.waiting
    return {
        "metric": None if metric is None else metric.name,
        "rows": state.rows,
        "labels": counts.n,
        "decided": pending.decided,
        "waiting": len(pending),
        "dropped": pending.forgotten,
        "refused": dict(learner._refusals.counts),
        "value": None if metric is None else learner.value,
        "recent_value": recent_value(metric, counts, before.counts),
        "window_value": window_value(metric, state),
        "moved": moved_most(rule, before.rule),
        "calibration_error": calibration_error(state),
        "limits": limits_now(learner.limits),
    }


def recent_value(metric: Metric | None, now: Counts, before: Counts) -> float | None:
    """The metric of what was counted in between; None where that is nothing."""
    if metric is None or now.n <= before.n:
        return None
    # Where shares of much have shrunk to little, rounding may leave less than nothing.
    parts = (getattr(now, name) - getattr(before, name) for name in ("tp", "predicted", "positive"))
    tp, predicted, positive = (np.maximum(part, 0.0) for part in parts)
    tp = np.minimum(tp, np.minimum(predicted, positive))
    made = Counts(tp, predicted, positive, now.n - before.n)
    if now.matrix is not None and before.matrix is not None:
        made.matrix = np.maximum(now.matrix - before.matrix, 0.0)
    return float(metric.value(made))


def moved_most(now: Rule, before: Rule) -> list[dict[str, Any]]:
    """The thresholds that moved most, the farthest first; none for rules with a budget.

    >>> moved_most(Rule([1, 1], [-0.5, -0.25]), Rule([1, 1], [-0.5, -0.5]))
    [{'label': 1, 'before': 0.5, 'now': 0.25}]
    """
    if now.k is not None or before.k is not None:
        return []
    first, second = _within(before.thresholds), _within(now.thresholds)
    way = np.abs(second - first)
    order = np.argsort(-way, kind="stable")[:MOST]
    return [
        {
            "label": int(j) if now.names is None else now.names[j],
            "before": float(first[j]),
            "now": float(second[j]),
        }
        for j in order
        if way[j] > 0
    ]


def _within(thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
    """As far as probabilities go: a threshold above 1 says never, and one that is none as well."""
    return np.clip(np.nan_to_num(thresholds, nan=1.0), 0.0, 1.0)


def window_value(metric: Metric | None, state: State) -> float | None:
    """The metric of the true labels that decisions look at; None where these are all there are."""
    if metric is None or metric.needs_matrix or state.judged is None:
        return None
    recent = state.now()
    labels = recent if recent.labels is None else recent.labels
    rows = float(labels.totals[N])
    if rows <= 0.0:
        return None
    if labels.missed is None and state.truth.missed is not None:
        return None  # which of the labels were unknown in these rows is not kept
    tp, predicted, positive = np.ascontiguousarray(labels.in_proportion)
    return float(metric.value(Counts(tp, predicted, positive, rows)))


def calibration_error(state: State) -> float | None:
    """How far the mean probability of a label is from its frequency, over labels.

    Known where probabilities are counted, of the rows whose labels came; with estimates alone, it
    is not known which these are, and so all must have come.
    """
    found = state.labels
    expected = state if state.known is None else state.known
    if found is None or not found.totals[N] > 0.0:
        return None
    if state.known is None and not math.isclose(state.totals[N], found.totals[N]):
        return None
    apart = np.abs(expected.cells[POSITIVE] - found.cells[POSITIVE])
    return float(apart.mean() / found.totals[N])


def limits_now(limits: Iterable[Held]) -> list[dict[str, Any]]:
    """How limits stand, as plain data; a value of 0/0 is None."""
    return [
        {
            "name": one.name,
            "bound": one.bound,
            "value": None if math.isnan(one.value) else one.value,
            "price": one.price,
            "holds": one.holds,
        }
        for one in limits
    ]
