"""The tangent of a metric at some counts: a linear function of tp, predicted and positive.

A label whose probabilities are all 0 (or all 1) is settled: its metric depends only on how often it
is predicted, with the reported value where a rate is 0/0. A prior would make such rates look
attainable. A label with small probabilities is not settled, but until its expected count is large
enough, a metric with a rate of 0/0 may treat it as settled.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.kernels import certificate as kernel
from omma.kernels.layout import POSITIVE, PREDICTED, TP, N
from omma.kernels.value import for_values
from omma.metrics.averages import Micro, OverClasses, is_minimum
from omma.metrics.base import Metric
from omma.metrics.binary import LabelMetric
from omma.metrics.catalog import value_at
from omma.state import State

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Lines are taken at multiples of this power of two, so that differences of counts that should be
# zero are exactly zero; and not at 0 or 1, where some rates jump.
STEP = 2.0**-17
ONE_IS_ENOUGH = ("gmean", "hmean", "min_recall")  # of classes: zero where one recall is


def tangent(metric: Metric, state: State, prior: float) -> tuple[NDArray[np.float64], float]:
    """Slope, offset and derivative by frequency of every label, and the intercept.

    At counts of fractions (tp, predicted, positive) the tangent is
    ``intercept + slope·tp + offset·predicted + by_positive·positive``. It is taken where the prior
    is added to the counts, except to those of labels that never or always occur: no prior may make
    a rate of 0/0 look attainable. For a concave metric it lies above the metric, as in Eq. (11).
    """
    weights, intercept = np.zeros((3, state.m)), 0.0
    never, always = never_and_always(state)
    for factor, part in metric.parts:
        if isinstance(part, OverClasses):
            of_part, start = _with_absent(part, state, prior, never)
        elif isinstance(part, Micro):  # all labels together are settled, or none is
            together = (np.full(state.m, labels.all()) for labels in (never, always))
            of_part, start = _with_settled(part, state, prior, *together)
        else:
            of_part, start = _with_settled(part, state, prior, never, always)
        weights += factor * of_part
        intercept += factor * start
    return weights, intercept


def plain(metric: Metric, state: State, prior: float) -> tuple[NDArray[np.float64], float]:
    """The tangent where the prior is added to every label."""
    slope, offset = metric.gradient_at(state, prior)
    weights = np.stack((slope, offset, by_positive(metric, state, prior)))
    if is_minimum(metric):  # it is as high as the mixture of the rates
        high = float(
            kernel.mixture_of(
                for_values(metric.term()), prior, np.ascontiguousarray(state.cells), state.totals
            )
        )
    else:
        high = value_at(metric, state, prior)
    return weights, high - float((weights * with_prior(state, prior)).sum())


def _with_settled(
    metric: Metric, state: State, prior: float, never: Mask, always: Mask
) -> tuple[NDArray[np.float64], float]:
    """The tangent of a metric of labels; it is exact in how often settled ones are predicted."""
    open_labels = ~(never | always)
    label = metric.per_label
    assert label is not None
    weights, intercept = np.zeros((3, state.m)), 0.0
    if open_labels.any():
        part = State(int(open_labels.sum()))
        part.cells[...], part.totals[...] = state.cells[:, open_labels], state.totals
        share, (of_part, start) = float(open_labels.mean()), plain(metric, part, prior)
        weights[:, open_labels], intercept = share * of_part, share * start
    predicted = state.cells[PREDICTED] / state.totals[N]
    if isinstance(metric, Micro):
        predicted = np.full_like(predicted, predicted.mean())
    for occurs, labels in ((0.0, never), (1.0, always)):
        slope, starts = line_of(label, occurs, predicted[labels])
        weights[1, labels] = slope / state.m
        intercept += float(starts.sum()) / state.m
    return weights, intercept


def _with_absent(
    metric: OverClasses, state: State, prior: float, never: Mask
) -> tuple[NDArray[np.float64], float]:
    """The tangent of a metric of classes; a class that never occurs has a recall of zero."""
    if never.all() or (metric.kind in ONE_IS_ENOUGH and never.any()):
        return np.zeros((3, state.m)), 0.0
    if not never.any() or metric.kind not in ("balanced_accuracy", "qmean"):
        return plain(metric, state, prior)
    missed = state.copy()
    missed.cells[TP, never] = -prior  # cancels the prior: no true positives
    weights, intercept = plain(metric, missed, prior)
    intercept += float((weights * with_prior(missed, prior))[:, never].sum())
    weights[:, never] = 0.0
    return weights, intercept


def with_prior(state: State, prior: float) -> NDArray[np.float64]:
    """Fractions of tp, predicted and positive, prior included."""
    added = prior * np.array([[1.0], [2.0], [2.0]])
    return (state.cells + added) / (state.totals[N] + 4.0 * prior)  # type: ignore[no-any-return]


def by_positive(metric: Metric, state: State, prior: float) -> Vector:
    """Derivatives by label frequencies; for classes, only their differences matter."""
    if not isinstance(metric, OverClasses) or metric.kind in ("accuracy", "balanced_accuracy"):
        out, cells = np.zeros(state.m), np.ascontiguousarray(state.cells)
        kernel.by_positive(for_values(metric.term()), prior, cells, state.totals, out)
        return out
    tp, predicted, positive = with_prior(state, prior)
    if not metric.single_label:  # a mean of recalls tp / positive
        slope, _ = metric.gradient_at(state, prior)
        return -slope * tp / np.maximum(positive, 1e-300)  # type: ignore[no-any-return]
    # kappa and mcc in shares of all rows with a class: right − chance over 1 − chance, or over a
    # root of 1 − Σ predicted² and 1 − Σ positive².
    total = positive.sum()
    right, predicted, positive = tp.sum() / total, predicted / total, positive / total
    chance = predicted @ positive
    if metric.kind == "kappa":
        return -(1.0 - right) / (1.0 - chance) ** 2 * predicted / total  # type: ignore[no-any-return]
    spread = 1.0 - positive @ positive
    root = np.sqrt((1.0 - predicted @ predicted) * spread)
    return ((right - chance) / spread * positive - predicted) / (root * total)  # type: ignore[no-any-return]


def never_and_always(state: State) -> tuple[Mask, Mask]:
    """Masks of labels that have had probabilities of 0 only, and of 1 only."""
    positive = state.cells[POSITIVE]
    return positive <= 0.0, positive >= state.totals[N]


def line_of(label: LabelMetric, occurs: float, predicted: Any) -> tuple[Vector, Vector]:
    """Slope and intercept by the fraction predicted, of labels that occur never (0) or always (1).

    Each prediction of a label that always occurs is a true positive.
    """
    points = np.clip(STEP * np.round(predicted / STEP), 2.0 * STEP, 1.0 - 2.0 * STEP)

    def value(fraction: Vector) -> Vector:
        always = np.full_like(fraction, occurs)
        return label.of_cells(occurs * fraction, fraction, always, np.ones_like(fraction))

    slope = (value(points + STEP) - value(points - STEP)) / (2.0 * STEP)
    return slope, value(points) - slope * points


def divides_by_zero(label: LabelMetric) -> tuple[bool, bool]:
    """Whether a metric has a rate of 0/0 for labels that never, and that always, occur."""
    half, ones = np.full(1, 0.5), np.ones(1)

    def differs(occurs: Vector) -> bool:
        as_zero, as_one = (
            label.of_cells(occurs * half, half, occurs, ones, to) for to in (0.0, 1.0)
        )
        return bool(as_zero[0] != as_one[0])

    return differs(0.0 * ones), differs(ones)


def unseen(metric: Metric, state: State, effective: float) -> float:
    """About how much of the metric depends on labels that may not have occurred yet.

    A label with the expected count E has not occurred with a probability of at most exp(−E).
    ``effective`` is the effective number of rows behind the counts.
    """
    rate = np.clip(state.cells[POSITIVE] / state.totals[N], 0.0, 1.0)
    return _hanging(metric, np.exp(-effective * rate), np.exp(-effective * (1.0 - rate)))


def settled(metric: Metric, state: State) -> float:
    """How much of the metric depends on settled labels, where nothing is uncertain."""
    never, always = never_and_always(state)
    return _hanging(metric, never.astype(np.float64), always.astype(np.float64))


def _hanging(metric: Metric, never: Vector, always: Vector) -> float:
    """How much of a metric depends on labels that never or always occur with a probability."""
    hanging = 0.0
    for weight, part in metric.parts:
        if isinstance(part, OverClasses):
            if part.kind in ONE_IS_ENOUGH:
                share = min(never.sum(), 1.0)
            else:
                by_class = part.kind != "accuracy" and not part.single_label
                share = never.mean() if by_class else never.prod()
        elif part.per_label is None:
            share = 0.0
        else:
            mean = np.prod if isinstance(part, Micro) else np.mean
            at_never, at_always = divides_by_zero(part.per_label)
            share = at_never * mean(never) + at_always * mean(always)
        hanging += abs(weight) * float(share)
    return hanging
