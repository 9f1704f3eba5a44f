"""Counting one row: only labels that are present or predicted are touched.

The row's decision comes as ``chosen[:count]``, its labels in rising order, and as ``flags``, an
array over all labels that is one at the chosen ones. ``sums`` says which sums over labels to keep;
None keeps none, and compiles to nothing.
"""

from __future__ import annotations

import numpy as np

from omma.kernels.jit import helper
from omma.kernels.layout import (
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


@helper
def count_predicted(chosen, count, weight, sums, cells, totals):
    """Count the row itself and the labels predicted for it."""
    totals[N] += weight
    if sums is not None:
        totals[SUM_PREDICTED] += weight * count
        if sums >= SUMS_AND_PRODUCTS:
            for i in range(count):
                j = chosen[i]
                totals[SUM_CROSS] += weight * cells[POSITIVE, j]
                totals[SUM_PREDICTED_SQUARED] += weight * (2.0 * cells[PREDICTED, j] + weight)
    for i in range(count):
        cells[PREDICTED, chosen[i]] += weight


@helper
def count_flagged(flags, count, weight, sums, cells, totals):
    """``count_predicted`` for a row whose decision is flags alone, without a branch."""
    totals[N] += weight
    if sums is not None:
        totals[SUM_PREDICTED] += weight * count
        if sums >= SUMS_AND_PRODUCTS:
            for j in range(cells.shape[1]):
                if flags[j] != 0.0:
                    totals[SUM_CROSS] += weight * cells[POSITIVE, j]
                    totals[SUM_PREDICTED_SQUARED] += weight * (2.0 * cells[PREDICTED, j] + weight)
    for j in range(cells.shape[1]):
        cells[PREDICTED, j] += weight * flags[j]


@helper
def count_products(j, weight, cells, totals):
    """Count a label that the row really has in the sums of products, before it is counted."""
    totals[SUM_CROSS] += weight * cells[PREDICTED, j]
    totals[SUM_POSITIVE_SQUARED] += weight * (2.0 * cells[POSITIVE, j] + weight)


@helper
def count_true(true, start, stop, flags, weight, sums, cells, totals):
    """Count the labels that the row really has, ``true[start:stop]``."""
    hits = 0.0
    for i in range(start, stop):
        j = true[i]
        if sums is not None and sums >= SUMS_AND_PRODUCTS:
            count_products(j, weight, cells, totals)
        cells[POSITIVE, j] += weight
        cells[TP, j] += weight * flags[j]
        hits += flags[j]
    if sums is not None:
        totals[SUM_TP] += weight * hits
        totals[SUM_POSITIVE] += weight * (stop - start)


@helper
def count_indicated(true, flags, weight, sums, cells, totals):
    """The same for a row of indicators, without a branch."""
    m = cells.shape[1]
    if sums is not None:
        hits = 0.0
        present = 0.0
        for j in range(m):
            if true[j] != 0:
                if sums >= SUMS_AND_PRODUCTS:
                    count_products(j, weight, cells, totals)
                hits += flags[j]
                present += 1.0
        totals[SUM_TP] += weight * hits
        totals[SUM_POSITIVE] += weight * present
    for j in range(m):
        added = weight * np.float64(true[j])
        cells[POSITIVE, j] += added
        cells[TP, j] += added * flags[j]


@helper
def count_expected(values, flags, weight, sums, cells, totals):
    """Count each label of a row that holds all as present to the degree of its probability."""
    for j in range(cells.shape[1]):
        cells[POSITIVE, j] += weight * values[j]
        cells[TP, j] += weight * values[j] * flags[j]
    if sums is not None:
        hits = 0.0
        present = 0.0
        for j in range(cells.shape[1]):
            hits += values[j] * flags[j]
            present += values[j]
            if sums >= SUMS_AND_PRODUCTS:
                added = weight * values[j]
                totals[SUM_CROSS] += added * cells[PREDICTED, j]
                totals[SUM_POSITIVE_SQUARED] += added * (2.0 * cells[POSITIVE, j] - added)
        totals[SUM_TP] += weight * hits
        totals[SUM_POSITIVE] += weight * present


@helper
def count_expected_stored(labels, values, flags, weight, sums, cells, totals):
    """The same for a row of stored labels."""
    hits = 0.0
    present = 0.0
    for position in range(labels.shape[0]):
        j = labels[position]
        value = values[position]
        cells[POSITIVE, j] += weight * value
        cells[TP, j] += weight * value * flags[j]
        if sums is not None:
            hits += value * flags[j]
            present += value
            if sums >= SUMS_AND_PRODUCTS:
                added = weight * value
                totals[SUM_CROSS] += added * cells[PREDICTED, j]
                totals[SUM_POSITIVE_SQUARED] += added * (2.0 * cells[POSITIVE, j] - added)
    if sums is not None:
        totals[SUM_TP] += weight * hits
        totals[SUM_POSITIVE] += weight * present
