"""Counting one row: what was predicted for it, and what is present in it.

A decision is ``flags``, one at the chosen labels; of a sparse row, whose loops touch nothing else,
also the list of ``chosen`` ones. Labels are present to a degree: one for a true label, its
probability where that is counted. So labels and estimates are counted by the same loops.

Sums over labels, which only some metrics ask for, are kept by functions called by address: the
loops over rows are compiled without them.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba.core import types

from omma.kernels.eights import lane_of, plus_in
from omma.kernels.jit import helper, pointed
from omma.kernels.lanes import LANES, eight_to, spread, total
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
from omma.kernels.pointer import CELLS, COUNT, IDS, NUMBERS, address_of, called


class Sums(NamedTuple):
    """Which sums over labels are kept, zero being none, and the address of what keeps them."""

    level: int
    add: Any


NO_SUMS = Sums(0, 0)


@helper
def add_product(j, flag, added, weight, cells, totals):
    """Add what label j changes of the sums of products, before it is counted."""
    predicted, positive, more = cells[PREDICTED, j], cells[POSITIVE, j], weight * flag
    totals[SUM_CROSS] += more * positive + added * (predicted + more)
    totals[SUM_PREDICTED_SQUARED] += more * (2.0 * predicted + more)
    totals[SUM_POSITIVE_SQUARED] += added * (2.0 * positive + added)


@pointed("sums over labels")
def add_sums(level, found, present, flags, weight, cells, totals):
    """Add a dense row to the sums over labels, before it is counted."""
    hits, everywhere, m = spread(0.0), spread(0.0), flags.shape[0]
    for at in range(0, m, LANES):
        here = eight_to(present, at, m - at)
        hits, everywhere = hits + here * eight_to(flags, at, m - at), everywhere + here
    totals[SUM_TP] += weight * total(hits)
    totals[SUM_PREDICTED] += weight * found
    totals[SUM_POSITIVE] += weight * total(everywhere)
    if level >= SUMS_AND_PRODUCTS:
        for j in range(flags.shape[0]):
            add_product(j, flags[j], weight * present[j], weight, cells, totals)
    return 0


@pointed("sums over labels of sparse rows")
def add_sums_stored(level, chosen, found, labels, present, flags, weight, cells, totals):
    """The same for a row of which ``labels`` are present: of others only the chosen ones count."""
    hits, everywhere = spread(0.0), spread(0.0)
    for i in range(labels.shape[0]):
        here = lane_of(labels[i])
        hits = plus_in(hits, here, present[i] * flags[labels[i]])
        everywhere = plus_in(everywhere, here, present[i])
    totals[SUM_TP] += weight * total(hits)
    totals[SUM_PREDICTED] += weight * found
    totals[SUM_POSITIVE] += weight * total(everywhere)
    if level >= SUMS_AND_PRODUCTS:
        i = 0
        for c in range(found + 1):  # both rise: one walk over both, by label, as in a dense row
            stop = chosen[c] if c < found else cells.shape[1]
            while i < labels.shape[0] and labels[i] < stop:
                add_product(labels[i], 0.0, weight * present[i], weight, cells, totals)
                i += 1
            if c < found:
                added = 0.0
                if i < labels.shape[0] and labels[i] == stop:
                    added = weight * present[i]
                    i += 1
                add_product(stop, 1.0, added, weight, cells, totals)
    return 0


@helper
def count_row(found, present, flags, weight, sums, cells, totals):
    """Count a dense row, without a branch."""
    if sums.level > 0:
        row = (np.int64(found), present, flags, np.float64(weight), cells, totals)
        called(sums.add, (sums.level, *row))
    totals[N] += weight
    for j in range(flags.shape[0]):
        added = weight * present[j]
        cells[PREDICTED, j] += weight * flags[j]
        cells[POSITIVE, j] += added
        cells[TP, j] += added * flags[j]


@helper
def count_stored(chosen, found, labels, present, flags, weight, sums, cells, totals):
    """Count a sparse row of which ``labels`` are present: only these and the chosen are touched."""
    if sums.level > 0:
        row = (chosen, np.int64(found), labels, present, flags, np.float64(weight), cells, totals)
        called(sums.add, (sums.level, *row))
    totals[N] += weight
    for i in range(found):
        cells[PREDICTED, chosen[i]] += weight
    for i in range(labels.shape[0]):
        j = labels[i]
        added = weight * present[i]
        cells[POSITIVE, j] += added
        cells[TP, j] += added * flags[j]


@cache
def summing(level: int, stored: bool) -> Sums:
    """What keeps the sums over labels that a metric asks for, of sparse or of dense rows."""
    if level == 0:
        return NO_SUMS
    counts = (NUMBERS, types.float64, CELLS, NUMBERS)
    if stored:
        return Sums(level, address_of(add_sums_stored, COUNT, IDS, COUNT, IDS, NUMBERS, *counts))
    return Sums(level, address_of(add_sums, COUNT, COUNT, NUMBERS, *counts))
