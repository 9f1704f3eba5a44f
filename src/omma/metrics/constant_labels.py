"""Labels that never or always occur, and those that may not have occurred yet.

By probabilities that are all 0 (or all 1) a label is settled: its metric is a function of how often
it is predicted alone, with the value of reports where a rate is 0/0. A prior would make such rates
look attainable. A label whose probabilities are only small is not settled, but until it has been
expected some times, a metric with a rate of 0/0 may count it as one that is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.kernels.layout import POSITIVE, N
from omma.metrics.averages import KINDS, Macro, Micro, OverClasses
from omma.metrics.base import Metric
from omma.metrics.binary import LabelMetric
from omma.metrics.sums import Sum
from omma.state import State

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Lines are taken at multiples of this, so that what is left of n is exactly zero where it should
# be, and not at 0 or 1 themselves, where some rates jump.
STEP = 2.0**-17
ONE_IS_ENOUGH = ("gmean", "hmean", "min_recall")  # of classes: zero where one recall is


def never_and_always(state: State) -> tuple[Mask, Mask]:
    """Which labels have had probabilities of 0 only, and which of 1 only."""
    positive = state.cells[POSITIVE]
    return positive <= 0.0, positive >= state.totals[N]


def line_of(label: LabelMetric, occurs: float, predicted: Any) -> tuple[Vector, Vector]:
    """Slope and intercept by the fraction predicted, of labels that occur never (0) or always (1).

    Those that always occur are there whenever they are predicted.
    """
    near = np.clip(STEP * np.round(predicted / STEP), 2.0 * STEP, 1.0 - 2.0 * STEP)
    here, back = np.unique(near, return_inverse=True)

    def value(fraction: Vector) -> Vector:
        always = np.full_like(fraction, occurs)
        return label.of_cells(occurs * fraction, fraction, always, np.ones_like(fraction))

    slope = (value(here + STEP) - value(here - STEP)) / (2.0 * STEP)
    return slope[back], (value(here) - slope * here)[back]


def divides_by_zero(label: LabelMetric) -> tuple[bool, bool]:
    """Whether a metric has a rate of 0/0 for labels that never, and that always, occur."""
    half, one = np.full(1, 0.5), np.ones(1)

    def differs(occurs: Vector) -> bool:
        as_zero, as_one = (
            label.of_cells(occurs * half, half, occurs, one, to) for to in (0.0, 1.0)
        )
        return bool(as_zero[0] != as_one[0])

    return differs(0.0 * one), differs(one)


def unseen(metric: Metric, state: State, effective: float) -> float:
    """About how much of the metric hangs on labels that may not have occurred yet, settled or not.

    A label that is expected E times has not occurred with a probability of at most exp(−E).
    ``effective`` is how many rows of equal weight the counts are worth.
    """
    rate = np.clip(state.cells[POSITIVE] / state.totals[N], 0.0, 1.0)
    return _hanging(metric, np.exp(-effective * rate), np.exp(-effective * (1.0 - rate)))


def settled(metric: Metric, state: State) -> float:
    """How much of it hangs on labels that are settled: there nothing is unsure."""
    never, always = never_and_always(state)
    return _hanging(metric, never.astype(np.float64), always.astype(np.float64))


def _hanging(metric: Metric, never: Vector, always: Vector) -> float:
    """How much of a metric hangs on labels that occur never, or always, with some probability."""
    if isinstance(metric, Sum):
        return sum(abs(weight) * _hanging(part, never, always) for weight, part in metric.terms)
    if isinstance(metric, OverClasses):
        if metric.kind in ONE_IS_ENOUGH:
            return float(min(never.sum(), 1.0))
        by_class = KINDS[metric.kind].average in ("macro", "classes") and not metric.single_label
        return float(never.mean() if by_class else never.prod())
    label = metric.of if isinstance(metric, (Macro, Micro)) else metric
    if not isinstance(label, LabelMetric):
        return 0.0
    if isinstance(metric, Micro):
        never, always = np.prod(never, keepdims=True), np.prod(always, keepdims=True)
    at_never, at_always = divides_by_zero(label)
    return float(at_never * never.mean() + at_always * always.mean())
