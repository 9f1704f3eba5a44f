"""Counting one row: only labels that are present or predicted are touched.

The row's decision comes as ``chosen[:count]``, its labels in rising order, and as ``flags``, an
array over all labels that is one at the chosen ones. ``sums`` says which sums over labels to keep.
"""

from __future__ import annotations

from omma.kernels.jit import helper
from omma.kernels.layout import (
    NO_SUMS,
    POSITIVE,
    PREDICTED,
    SUM_CROSS,
    SUM_POSITIVE,
    SUM_POSITIVE_SQUARED,
    SUM_PREDICTED,
    SUM_PREDICTED_SQUARED,
    SUM_TP,
    SUMS_AND_PRODUCTS,
    TP,
    N,
)
from omma.kernels.select import label_at


@helper
def count_predicted(chosen, count, weight, sums, cells, totals):
    """Count the row itself and the labels predicted for it."""
    totals[N] += weight
    if sums >= SUMS_AND_PRODUCTS:
        for i in range(count):
            j = chosen[i]
            totals[SUM_CROSS] += weight * cells[POSITIVE, j]
            totals[SUM_PREDICTED_SQUARED] += weight * (2.0 * cells[PREDICTED, j] + weight)
            cells[PREDICTED, j] += weight
    else:
        for i in range(count):
            cells[PREDICTED, chosen[i]] += weight
    if sums > NO_SUMS:
        totals[SUM_PREDICTED] += weight * count


@helper
def count_true(true, start, stop, flags, weight, sums, cells, totals):
    """Count the labels that the row really has, ``true[start:stop]``."""
    hits = 0.0
    for i in range(start, stop):
        j = true[i]
        if sums >= SUMS_AND_PRODUCTS:
            totals[SUM_CROSS] += weight * cells[PREDICTED, j]
            totals[SUM_POSITIVE_SQUARED] += weight * (2.0 * cells[POSITIVE, j] + weight)
        cells[POSITIVE, j] += weight
        cells[TP, j] += weight * flags[j]
        hits += flags[j]
    if sums > NO_SUMS:
        totals[SUM_TP] += weight * hits
        totals[SUM_POSITIVE] += weight * (stop - start)


@helper
def count_expected(labels, values, count, flags, weight, sums, cells, totals):
    """Count each label as present to the degree of its probability."""
    for position in range(count):
        j = label_at(labels, position)
        cells[POSITIVE, j] += weight * values[position]
        cells[TP, j] += weight * values[position] * flags[j]
    if sums > NO_SUMS:
        hits = 0.0
        present = 0.0
        for position in range(count):
            j = label_at(labels, position)
            hits += values[position] * flags[j]
            present += values[position]
            if sums >= SUMS_AND_PRODUCTS:
                added = weight * values[position]
                totals[SUM_CROSS] += added * cells[PREDICTED, j]
                totals[SUM_POSITIVE_SQUARED] += added * (2.0 * cells[POSITIVE, j] - added)
        totals[SUM_TP] += weight * hits
        totals[SUM_POSITIVE] += weight * present


@helper
def count_flagged(flags, count, weight, sums, cells, totals):
    """``count_predicted`` for a row whose decision is flags alone, without a branch."""
    totals[N] += weight
    for j in range(flags.shape[0]):
        cells[PREDICTED, j] += weight * flags[j]
    if sums > NO_SUMS:
        totals[SUM_PREDICTED] += weight * count
