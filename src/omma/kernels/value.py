"""The value of an objective at given counts, and the line search between two sets of counts."""

from collections.abc import Callable
from typing import Any, Final

import numba
import numpy as np
from numba.core import types

from omma.kernels.classes import agreement, mean_from, smallest_value, sum_of_classes
from omma.kernels.gains import label_fractions, mean_fractions, point_at
from omma.kernels.jit import by_kind, config, entry, helper
from omma.kernels.layout import (
    POSITIVE,
    PREDICTED,
    SUM_POSITIVE,
    SUM_PREDICTED,
    SUM_TP,
    TP,
)
from omma.kernels.objectives import (
    ClassCorrelation,
    Classes,
    Kappa,
    MacroTerm,
    MicroTerm,
    Nothing,
    Own,
    OwnValue,
    Smallest,
    SumOfTerms,
    WeighedClasses,
    WeightedTerm,
    value,
)

GRID: Final = 16  # intervals of the grid before golden sections, as a metric may be non-concave
GOLDEN: Final = 0.6180339887498949  # (√5 − 1) / 2
SHRINKS: Final = 24  # golden-section steps, each of two values


@by_kind
def objective_value(objective, point):
    """The value of an objective at a point, including the weight and ε."""


@objective_value.case(MacroTerm)
def value_of_macro(objective, point):
    total = 0.0
    for j in range(point.m):
        total += value(objective.of, point.rows, *label_fractions(point, j), point.whole)
    return objective.weight * (total / point.m)


@objective_value.case(WeightedTerm)
def value_of_weighted(objective, point):
    total, occurrences = 0.0, 0.0
    for j in range(point.m):
        tp, predicted, positive = label_fractions(point, j)
        total += positive * value(objective.of, point.rows, tp, predicted, positive, point.whole)
        occurrences += positive
    return objective.weight * (total / occurrences) if occurrences > 0.0 else 0.0


@objective_value.case(MicroTerm)
def value_of_micro(objective, point):
    return objective.weight * value(objective.of, point.rows, *mean_fractions(point), point.whole)


@objective_value.case(Classes)
@objective_value.case(WeighedClasses)
def value_of_classes(objective, point):
    return objective.weight * mean_from(objective.of, sum_of_classes(objective, point), point.m)


@objective_value.case(Smallest)
def value_of_smallest(objective, point):
    return objective.weight * smallest_value(objective, point, True)


@objective_value.case(Kappa)
def value_of_kappa(objective, point):
    _, _, right, chance, _, _ = agreement(point)
    return objective.weight * ((right - chance) / (1.0 - chance + objective.epsilon))


@objective_value.case(ClassCorrelation)
def value_of_correlation(objective, point):
    _, _, right, chance, predicted, positive = agreement(point)
    root = np.sqrt(max((1.0 - predicted) * (1.0 - positive), 0.0))
    return objective.weight * ((right - chance) / (root + objective.epsilon))


@objective_value.case(Nothing)
def value_of_nothing(objective, point):
    return 0.0


@objective_value.case(SumOfTerms)
def value_of_sum(objective, point):
    return objective_value(objective.of, point) + objective_value(objective.rest, point)


@helper
def value_at(objective, prior, cells, totals):
    """Return the value of an objective at counts ``cells`` (3, m), plus the prior λ in each cell.

    ``totals``, shape (TOTALS,), gives the number of rows in ``totals[N]``; its sums are
    overwritten.
    """
    totals[SUM_TP] = totals[SUM_PREDICTED] = totals[SUM_POSITIVE] = 0.0
    for j in range(cells.shape[1]):
        totals[SUM_TP] += cells[TP, j]
        totals[SUM_PREDICTED] += cells[PREDICTED, j]
        totals[SUM_POSITIVE] += cells[POSITIVE, j]
    return objective_value(objective, point_at(totals, prior, cells.shape[1], cells))


@entry
def evaluate(objective, prior, cells, totals):
    """Return the value of an objective at counts ``cells`` (3, m).

    ``totals[N]`` is the number of rows; the sums in ``totals`` (TOTALS,) are overwritten.
    """
    return value_at(objective, prior, cells, totals)


@entry
def best_share(objective, prior, start, end, totals, mixed):
    """Line search: return the share of ``end`` with the best value, and that value.

    The mixture is start + share (end − start), for counts of shape (3, m) and a share in [0, 1].
    The search takes the best point of a grid, then golden-section steps around it. ``mixed`` (3, m)
    is scratch space, and the sums in ``totals`` are overwritten. The value is computed in one place
    in the loop, so that it is compiled (inlined) once.
    """
    best, best_value = 0.0, -np.inf
    low, high = 0.0, 1.0
    left, right, left_value = 0.0, 0.0, 0.0
    for step in range(GRID + 1 + 2 * SHRINKS):
        is_left = step > GRID and (step - GRID) % 2 == 1
        if step <= GRID:
            share = step / GRID
        elif is_left:
            if step == GRID + 1:
                low, high = max(best - 1.0 / GRID, 0.0), min(best + 1.0 / GRID, 1.0)
            left = high - GOLDEN * (high - low)
            right = low + GOLDEN * (high - low)
            share = left
        else:
            share = right
        for cell in range(start.shape[0]):
            for j in range(start.shape[1]):
                mixed[cell, j] = start[cell, j] + share * (end[cell, j] - start[cell, j])
        reached = value_at(objective, prior, mixed, totals)
        if step > GRID and not is_left:
            if left_value >= reached:
                high = right
                share, reached = left, left_value
            else:
                low = left
        if is_left:
            left_value = reached
        elif reached > best_value:
            best_value = reached
            best = share
    return best, best_value


# The functions above see a user's metric only as a function type, so they are compiled once for all
# metrics and cached on disk. ``cfunc`` makes such a first-class function.


_FIRST_CLASS: dict[Any, Any] = {}


def first_class(value: Callable[..., float]) -> Any:
    """Return the value of a user's metric as a first-class function, made once per function.

    Arguments are the fractions (tp, predicted, positive, whole).
    """
    if config.DISABLE_JIT:
        return value
    if value not in _FIRST_CLASS:

        def call(tp, predicted, positive, whole):
            return value(tp, predicted, positive, whole)

        signature = types.float64(*(types.float64,) * 4)
        _FIRST_CLASS[value] = numba.cfunc(signature, error_model="numpy")(call)
    return _FIRST_CLASS[value]


def for_values(term: Any) -> Any:
    """Convert an objective for the kernels here: ``Own`` becomes ``OwnValue``."""
    if isinstance(term, Own):
        return OwnValue(None if term.value is None else first_class(term.value))
    if hasattr(term, "_fields"):
        return type(term)(*map(for_values, term))
    return term
