"""The tangent of a metric at some counts: a linear function of tp, predicted and positive."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from omma.kernels import frequencies, utility
from omma.kernels.layout import POSITIVE, PREDICTED, TP, N
from omma.metrics.averages import KINDS, Macro, Micro, OverClasses
from omma.metrics.base import Metric
from omma.metrics.binary import LabelMetric
from omma.metrics.constant_labels import ONE_IS_ENOUGH, Mask, line_of, never_and_always
from omma.metrics.minimum import Minimum
from omma.metrics.sums import Sum
from omma.running.weights import weights_now
from omma.state import State

Vector = NDArray[np.float64]


def tangent(metric: Metric, state: State, prior: float) -> tuple[NDArray[np.float64], float]:
    """Slope, offset and derivative by frequency of every label, and the intercept.

    At counts of fractions (tp, predicted, positive) the tangent is
    ``intercept + slope·tp + offset·predicted + by_positive·positive``. It is taken where the prior
    is added to the counts, except to those of labels that never or always occur: no prior may make
    a rate of 0/0 look attainable.
    """
    if isinstance(metric, Sum):
        parts = [tangent(part, state, prior) for _, part in metric.terms]
        factors = [weight for weight, _ in metric.terms]
        weights = sum(factor * part for factor, (part, _) in zip(factors, parts, strict=True))
        intercept = sum(factor * start for factor, (_, start) in zip(factors, parts, strict=True))
        return np.asarray(weights), float(intercept)
    never, always = never_and_always(state)
    if isinstance(metric, OverClasses):
        return _with_absent(metric, state, prior, never)
    if isinstance(metric, Micro):
        never, always = (np.full(state.m, which.all()) for which in (never, always))
    if not (never | always).any():
        return plain(metric, state, prior)
    return _with_settled(metric, state, prior, never, always)


def plain(metric: Metric, state: State, prior: float) -> tuple[NDArray[np.float64], float]:
    """The tangent where the prior is added to every label."""
    here = with_prior(state, prior)
    slope, offset = weights_now(metric.scaled_plan(prior), state)
    weights = np.stack((slope, offset, by_positive(metric, state, prior)))
    return weights, height(metric, state, prior) - float((weights * here).sum())


def _with_settled(
    metric: Metric, state: State, prior: float, never: Mask, always: Mask
) -> tuple[NDArray[np.float64], float]:
    """Of a metric of labels: settled ones are a line in how often they are predicted."""
    label = metric.of if isinstance(metric, (Macro, Micro)) else metric
    assert isinstance(label, LabelMetric)
    weights, intercept = np.zeros((3, state.m)), 0.0
    others = ~(never | always)
    if others.any():
        some = State(np.ascontiguousarray(state.cells[:, others]), state.totals)
        part, start = plain(metric, some, prior)
        weights[:, others] = others.mean() * part
        intercept = float(others.mean()) * start
    predicted = state.cells[PREDICTED] / state.totals[N]
    if isinstance(metric, Micro):
        predicted = np.full_like(predicted, predicted.mean())
    for occurs, which in ((0.0, never), (1.0, always)):
        slope, start_at = line_of(label, occurs, predicted[which])
        weights[1, which] = slope / state.m
        intercept += float(start_at.sum()) / state.m
    return weights, intercept


def _with_absent(
    metric: OverClasses, state: State, prior: float, never: Mask
) -> tuple[NDArray[np.float64], float]:
    """Of a metric of classes: the recall of a class that never occurs is zero."""
    if never.all() or (metric.kind in ONE_IS_ENOUGH and never.any()):
        return np.zeros((3, state.m)), 0.0
    if not never.any() or metric.kind not in ("balanced_accuracy", "qmean"):
        return plain(metric, state, prior)
    missed = state.copy()
    missed.cells[TP, never] = -prior  # what the prior adds, so that nothing of it is found
    weights, intercept = plain(metric, missed, prior)
    here = with_prior(missed, prior)
    intercept += float((weights * here)[:, never].sum())
    weights[:, never] = 0.0
    return weights, intercept


def height(metric: Metric, state: State, prior: float) -> float:
    """How high the tangent is where it is taken: at the metric, or at a minimum's mixture."""
    if is_minimum(metric):
        return float(frequencies.mixture_of(metric.term(), prior, state.side_by_side, state.totals))
    return value_at(metric, state, prior)


def is_minimum(metric: Metric) -> bool:
    """Whether a metric is a minimum of rates, smoothed or not."""
    if isinstance(metric, OverClasses):
        return metric.kind == "min_recall"
    label = metric.of if isinstance(metric, (Macro, Micro)) else metric
    return isinstance(label, Minimum)


def with_prior(state: State, prior: float) -> NDArray[np.float64]:
    """Fractions of tp, predicted and positive, prior included."""
    added = prior * np.array([[1.0], [2.0], [2.0]])
    return (state.cells + added) / (state.totals[N] + 4.0 * prior)  # type: ignore[no-any-return]


def value_at(metric: Metric, state: State, prior: float) -> float:
    """The metric with its smoothing, prior and ε."""
    term = metric.term()
    evaluate = utility.evaluate
    return float(evaluate(term, prior, state.side_by_side, state.totals.copy()))


def by_positive(metric: Metric, state: State, prior: float) -> Vector:
    """The derivative by each label's frequency, of which only differences matter for classes."""
    if isinstance(metric, OverClasses) and KINDS[metric.kind].average == "classes":
        return _of_classes(metric, state, prior)
    from omma.kernels import frequencies

    out = np.zeros(state.m)
    term = metric.term()
    kernel = frequencies.by_positive
    kernel(term, prior, state.side_by_side, state.totals, out)
    return out


def _of_classes(metric: OverClasses, state: State, prior: float) -> Vector:
    here = with_prior(state, prior)
    tp, predicted, positive = here[TP], here[PREDICTED], here[POSITIVE]
    if not metric.single_label:  # a mean of recalls tp / positive
        slope, _ = weights_now(metric.scaled_plan(prior), state)
        return -slope * tp / np.maximum(positive, 1e-300)  # type: ignore[no-any-return]
    total = positive.sum()
    right, predicted, positive = tp.sum() / total, predicted / total, positive / total
    chance = predicted @ positive
    if metric.kind == "kappa":
        return -(1.0 - right) / (1.0 - chance) ** 2 * predicted / total  # type: ignore[no-any-return]
    spread = 1.0 - positive @ positive
    root = np.sqrt((1.0 - predicted @ predicted) * spread)
    return ((right - chance) / spread * positive - predicted) / (root * total)  # type: ignore[no-any-return]
