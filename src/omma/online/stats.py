"""Statistics of a learner: plain data for logs, pages and alarms, and a notebook's table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from omma._html import html_table
from omma.counts import Counts
from omma.kernels.layout import POSITIVE, N
from omma.metrics import Metric
from omma.rule import Rule
from omma.state import State
from omma.unseen import EstimatedValue, needs_unseen

if TYPE_CHECKING:
    from omma.online.learner import OnlineClassifier

MOST_MOVED = 5  # thresholds in the statistics


def stats_of(
    learner: OnlineClassifier, now: tuple[Counts, Rule], before: tuple[Counts, Rule]
) -> dict[str, Any]:
    """The result of ``OnlineClassifier.stats``, from counts and rule now and before."""
    (counts, rule), (counts_before, rule_before) = now, before
    metric, state, waiting = learner.metric, learner.state, learner.waiting
    value = None if metric is None else learner.value
    return {
        "metric": None if metric is None else metric.name,
        "rows": state.rows,
        "labels": counts.n,
        "decided": waiting.decided,
        "waiting": len(waiting),
        "dropped": waiting.forgotten,
        "refused": dict(learner._refused),
        "value": value,
        "expected_value": None if metric is None else learner.expected_value,
        # Where the value is an estimate: of how many rows, and how many of them were audited.
        "estimated": {"rows": value.rows, "audited": value.audited}
        if isinstance(value, EstimatedValue)
        else None,
        "recent_value": recent_value(metric, counts, counts_before),
        "window_value": window_value(metric, state),
        "moved": most_moved(rule, rule_before),
        "calibration_error": calibration_error(state),
        "limits": [
            {
                "name": limit.name,
                "bound": limit.bound,
                "value": None if math.isnan(limit.value) else limit.value,  # 0/0
                "price": limit.price,
                "holds": limit.holds,
            }
            for limit in learner.limits
        ],
    }


def html_of(learner: OnlineClassifier) -> str:
    """What a notebook shows of a learner."""
    counts, metric = learner.counts, learner.metric
    rows: list[tuple[str, Any]] = [("labels", learner.n_labels), ("labelled rows", counts.n)]
    if metric is not None:
        value = metric.value(counts) if counts.n > 0 else "no labels yet"
        rows.insert(0, (metric.name, value))
        expected = learner.expected_value
        rows += [] if expected is None else [("expected by probabilities", expected)]
    rows += [("waiting for labels by id", len(learner.waiting))]
    for status in learner.limits:
        limit, _, standing = str(status).partition(": ")
        rows.append((limit, standing))
    title = f"OnlineClassifier of {learner.policy!r}"
    return html_table(title, ("", "value"), rows, len(rows), most=len(rows))


def recent_value(metric: Metric | None, now: Counts, before: Counts) -> float | None:
    """The metric of the rows counted since ``before``; None if there are none."""
    if metric is None or now.n <= before.n:
        return None
    recent = now - before
    # Rounding may leave less than nothing of a difference of large counts.
    np.maximum(recent.cells, 0.0, out=recent.cells)
    np.minimum(recent.tp, np.minimum(recent.predicted, recent.positive), out=recent.tp)
    if recent.matrix is not None:
        recent.matrix = np.maximum(recent.matrix, 0.0)
    return float(metric.value(recent))


def most_moved(now: Rule, before: Rule) -> list[dict[str, Any]]:
    """The thresholds that moved most, the farthest first; none for rules with a budget.

    >>> most_moved(Rule([1, 1], [-0.5, -0.25]), Rule([1, 1], [-0.5, -0.5]))
    [{'label': 1, 'before': 0.5, 'now': 0.25}]
    """
    if now.k is not None or before.k is not None:
        return []
    # Probabilities end at 1: a larger threshold means never, and so does NaN.
    old, new = (
        np.clip(np.nan_to_num(rule.thresholds, nan=1.0), 0.0, 1.0) for rule in (before, now)
    )
    distance = np.abs(new - old)
    order = np.argsort(-distance, kind="stable")[:MOST_MOVED]
    return [
        {
            "label": int(j) if now.names is None else now.names[j],
            "before": float(old[j]),
            "now": float(new[j]),
        }
        for j in order
        if distance[j] > 0
    ]


def window_value(metric: Metric | None, state: State) -> float | None:
    """The metric of the true labels that decisions depend on; None if these are all labels."""
    if metric is None or metric.needs_matrix or state.lifetime is None:
        return None
    if state.unseen is not None and needs_unseen(metric, state.m):
        return None  # a window does not know which labels of its rows were unseen
    recent = state.now()
    labels = recent.labels or recent.own
    rows = float(labels.totals[N])
    # A window does not know which labels of its rows were unknown.
    if rows <= 0.0 or (labels.missed is None and state.truth.missed is not None):
        return None
    tp, predicted, positive = labels.in_proportion
    return float(metric.value(Counts(tp, predicted, positive, rows)))


def calibration_error(state: State) -> float | None:
    """The distance between mean probability and frequency of a label, averaged over labels.

    It is over labelled rows, and None if probabilities are not counted. With estimates alone, it is
    unknown which rows are labelled, so all must be.
    """
    labels = state.labels
    expected = state if state.known is None else state.known
    if labels is None or not labels.totals[N] > 0.0:
        return None
    if state.known is None and not math.isclose(state.totals[N], labels.totals[N]):
        return None
    errors = np.abs(expected.cells[POSITIVE] - labels.cells[POSITIVE])
    return float(errors.mean() / labels.totals[N])
