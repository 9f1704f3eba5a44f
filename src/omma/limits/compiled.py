"""Limits as the kernels know them: linear forms, sizes, and what their prices start from."""

import math
from typing import Any

import numpy as np

from omma.counts import Counts
from omma.kernels.limits import (
    CAP,
    COUNTED,
    FORM,
    MARGIN,
    MEAN,
    NUMBERS,
    SIZE,
    STEADY,
    TRUST,
    UNDER,
    WEIGHT,
)
from omma.limits.limit import Limit
from omma.plan import Limited

# What prices start from, near what they were found to end at on distributions that are known. A
# floor on precision costs the more the fewer rows are as sure as that, and one that was missed is
# slow to make up for; one on specificity, a budget of false alarms, the more the fewer of these it
# leaves; one label that is predicted seldom costs little.
FLOOR, SUREST = 0.7, 0.98
ALARMS, FEWEST = 0.1, 1e-4
SELDOM = 0.3
ESTIMATE = 20.0  # draws that a calibrated estimate is worth, as the excess of a row


def limited(limits: tuple[Limit, ...], m: int, *, calibrated: bool = False) -> Limited:
    """Limits, their labels found, as the kernels know them.

    Where probabilities are ``calibrated``, prices first look at what these say of a row.
    """
    numbers = np.zeros((len(limits), NUMBERS))
    kinds, labels = np.empty(len(limits), dtype=np.int64), np.empty(len(limits), dtype=np.int64)
    for row, one, place in zip(numbers, limits, range(len(limits)), strict=True):
        labels[place] = -1 if one.over_all else one.index or 0
        kinds[place] = _fill(row, one, m)
    numbers[:, TRUST] = ESTIMATE if calibrated else 0.0
    return Limited(numbers, kinds, labels)


def _fill(row: Any, limit: Limit, m: int) -> int:
    """Write the numbers of one limit; returns its kind."""
    row[WEIGHT] = 1.0 if limit.over_all else 1.0 / math.sqrt(m)
    if limit.of == "macro_recall":
        row[FORM], row[FORM + 1] = limit.bound, limit.sign
        return MEAN
    over, under = (np.array(form, dtype=float) for form in (limit.rate.over, limit.rate.under))
    if limit.of.startswith("micro_"):  # each row has m cells
        over[3] *= m
        under[3] *= m
    kind, scale = (COUNTED, 1.0) if limit.needs_labels else (STEADY, 1.0 / limit.bound)
    row[FORM : FORM + 4] = scale * limit.sign * (over - limit.bound * under)
    row[UNDER : UNDER + 4] = scale * under
    row[SIZE : SIZE + 4] = under
    if not np.any(under[[0, 2, 3]]):  # precision: what is predicted alone
        row[SIZE : SIZE + 4] = 0.0, 0.5, 0.5, 0.0
        row[WEIGHT] *= _floor_price(limit)
    if limit.of.endswith("specificity") and limit.sign > 0:
        row[WEIGHT] *= max(ALARMS / max(1.0 - limit.bound, FEWEST), 1.0)
    if kind == STEADY and (m == 1 or not limit.over_all):
        row[WEIGHT] *= SELDOM
    row[MARGIN] = limit.margin * math.sqrt(limit.variance)
    row[CAP] = (1.0 - limit.bound if limit.sign > 0 and limit.needs_labels else limit.bound) / 2.0
    return kind


def _floor_price(limit: Limit) -> float:
    """What the price of a limit on precision starts from."""
    sure = min(limit.bound, SUREST)
    return max(FLOOR * sure / (1.0 - sure), 1.0) if limit.sign > 0 else 1.0


def price_unit(limit: Limit, counts: Counts) -> float:
    """How much of the metric one more of a limit costs, where its price in the kernels is one."""
    row = np.zeros(NUMBERS)
    kind = _fill(row, limit, counts.m)
    if kind == MEAN:
        return 1.0
    if kind == STEADY:
        return float(row[WEIGHT] / limit.bound)
    tp, predicted, positive, _ = limit.cells(counts)
    cells = np.array((tp, predicted, positive, counts.n))
    under, size = (max(float(row[at : at + 4] @ cells), 1.0) for at in (UNDER, SIZE))
    return float(row[WEIGHT]) * under / size
