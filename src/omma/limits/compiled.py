"""Limits as the kernels read them: linear forms, sizes, and weights of prices."""

import math
from typing import Any

import numpy as np

from omma.counts import Counts
from omma.kernels.limits import (
    CAP,
    FORM,
    MARGIN,
    MEAN,
    NUMBERS,
    PER_ROW,
    RATE,
    SIZE,
    TRUST,
    UNDER,
    WEIGHT,
)
from omma.limits.limit import Limit
from omma.plan import Limited

# Weights of prices, chosen so that prices start near where they ended on known distributions.
# A floor on precision costs more the higher it is: fewer rows are that sure, and a row that missed
# it takes many others to make up for.
FLOOR, SUREST = 0.7, 0.98
# A floor on specificity is a budget of false alarms: the smaller the budget, the higher the price.
ALARMS, FEWEST = 0.1, 1e-4
SELDOM = 0.3  # a limit on how often one label is predicted costs little
ESTIMATE = 20.0  # a calibrated estimate of a row's excess counts as this many draws


def limited(limits: tuple[Limit, ...], m: int, *, calibrated: bool = False) -> Limited:
    """Limits whose labels are known by place, as the kernels read them.

    Where probabilities are ``calibrated``, prices first use the expected excess of a row.
    """
    numbers = np.zeros((len(limits), NUMBERS))
    kinds = [_fill(row, limit, m) for row, limit in zip(numbers, limits, strict=True)]
    labels = [-1 if limit.over_all else limit.index or 0 for limit in limits]
    numbers[:, TRUST] = ESTIMATE if calibrated else 0.0
    return Limited(numbers, np.array(kinds, dtype=np.int64), np.array(labels, dtype=np.int64))


def _fill(row: Any, limit: Limit, m: int) -> int:
    """Write the numbers of one limit; returns its kind."""
    row[WEIGHT] = 1.0 if limit.over_all else 1.0 / math.sqrt(m)
    if limit.of == "macro_recall":
        row[FORM], row[FORM + 1] = limit.bound, limit.sign
        return MEAN
    # A rate over all labels together has m cells a row.
    each = np.array((1.0, 1.0, 1.0, m if limit.of.startswith("micro_") else 1.0))
    form, under = each * limit.form, each * limit.rate.under
    kind, scale = (RATE, 1.0) if limit.needs_labels else (PER_ROW, 1.0 / limit.bound)
    row[FORM : FORM + 4] = scale * form
    row[UNDER : UNDER + 4] = scale * under
    row[SIZE : SIZE + 4] = under
    if not np.any(under[[0, 2, 3]]):  # precision: its denominator is predictions alone
        row[SIZE : SIZE + 4] = 0.0, 0.5, 0.5, 0.0
        if limit.sign > 0:
            sure = min(limit.bound, SUREST)
            row[WEIGHT] *= max(FLOOR * sure / (1.0 - sure), 1.0)
    if limit.of.endswith("specificity") and limit.sign > 0:
        row[WEIGHT] *= max(ALARMS / max(1.0 - limit.bound, FEWEST), 1.0)
    if kind == PER_ROW and (m == 1 or not limit.over_all):
        row[WEIGHT] *= SELDOM
    row[MARGIN] = limit.margin * math.sqrt(limit.variance_at(limit.bound))
    # A margin tightens the bound by at most half of the room that the bound leaves.
    row[CAP] = (1.0 - limit.bound if limit.sign > 0 and limit.needs_labels else limit.bound) / 2.0
    return kind


def price_unit(limit: Limit, counts: Counts) -> float:
    """How much of the metric a unit of the limit costs at a price of 1 in the kernels."""
    row = np.zeros(NUMBERS)
    kind = _fill(row, limit, counts.m)
    if kind == MEAN:
        return 1.0
    if kind == PER_ROW:
        return float(row[WEIGHT] / limit.bound)
    tp, predicted, positive, _ = limit.cells(counts)
    cells = np.array((tp, predicted, positive, counts.n))
    under, size = (max(float(row[at : at + 4] @ cells), 1.0) for at in (UNDER, SIZE))
    return float(row[WEIGHT]) * under / size
