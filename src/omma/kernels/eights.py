"""Counts of dense rows that are decided eight labels at a time; see ``omma.kernels.lanes``.

Counts lie in rows that end with whole eights, on the borders that vector instructions like. Past
the last label they are zeros and remain so. A decision is a row of flags beside them, one at each
label that is chosen.

Sums over labels of numbers that are not whole are kept in eight lanes, and added up at the end. A
sparse row adds what it stores to the lanes of its labels; so both have the same bits.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from omma.kernels.jit import helper
from omma.kernels.lanes import (
    LANES,
    as_which,
    as_word,
    eight_at,
    eight_of,
    put_bytes,
    put_eight,
    spread,
    total,
    where,
)
from omma.kernels.layout import POSITIVE, PREDICTED, SUM_POSITIVE, SUM_PREDICTED, SUM_TP, TP, N

BORDER = 64  # bytes
FLAGS: Final = 3  # after the rows of counts


def room(rows: int, m: int) -> NDArray[np.float64]:
    """Zeros for so many rows of whole eights.

    >>> room(2, 9).shape
    (2, 16)
    """
    width = -(-m // LANES) * LANES
    space = np.zeros(rows * width + LANES)
    start = -space.ctypes.data % BORDER // space.itemsize
    return space[start : start + rows * width].reshape(rows, width)


def laid(*kept: NDArray[np.float64], more: int = 0) -> NDArray[np.float64]:
    """What is kept of every label in rows of whole eights, and some rows ``more``."""
    m = len(kept[0])
    space = room(len(kept) + more, m)
    for row, numbers in zip(space, kept, strict=False):
        row[:m] = numbers
    return space


def taken(space: NDArray[np.float64], *kept: NDArray[np.float64]) -> None:
    """Write it back."""
    for row, numbers in zip(space, kept, strict=False):
        numbers[:] = row[: len(numbers)]


@helper
def any_of(ones):
    """Whether there is a one in any lane."""
    return as_word(ones > 0.0) != 0


@helper
def lane_of(label):
    """The lane to which a label adds."""
    return as_which(np.int64(1) << (np.int64(label) & (LANES - 1)))


@helper
def start_of(label):
    """Where the eight of a label begins."""
    return np.int64(label) & -LANES


@helper
def plus_in(numbers, chosen, more):
    """More in some lanes; the others remain, to the bit."""
    return where(chosen, numbers + more, numbers)


@helper
def count_flags(cells, totals, level, true, true_row, m, out, row):
    """Count a row whose decision lies beside the counts, and write it where it is wanted."""
    tp, predicted, positive, flags = cells[TP], cells[PREDICTED], cells[POSITIVE], cells[FLAGS]
    hits = found = all_true = spread(0.0)
    for at in range(0, flags.shape[0], LANES):
        present, flag = eight_of(true, true_row, at, m - at), eight_at(flags, at)
        both = present * flag
        put_eight(tp, at, eight_at(tp, at) + both)
        put_eight(predicted, at, eight_at(predicted, at) + flag)
        put_eight(positive, at, eight_at(positive, at) + present)
        if level > 0:
            hits, found, all_true = hits + both, found + flag, all_true + present
        if out.shape[0] > 0:
            put_bytes(out, row, at, m - at, flag)
    totals[N] += 1.0
    if level > 0:
        totals[SUM_TP] += total(hits)
        totals[SUM_PREDICTED] += total(found)
        totals[SUM_POSITIVE] += total(all_true)


@helper
def count_chosen(cells, totals, level, chosen, found, true, true_row, m, out, row):
    """The same of a decision that lists the few labels it chose."""
    tp, predicted, positive = cells[TP], cells[PREDICTED], cells[POSITIVE]
    hits, all_true, nothing = 0.0, spread(0.0), spread(0.0)
    for at in range(0, cells.shape[1], LANES):
        present = eight_of(true, true_row, at, m - at)
        put_eight(positive, at, eight_at(positive, at) + present)
        if level > 0:
            all_true = all_true + present
        if out.shape[0] > 0:
            put_bytes(out, row, at, m - at, nothing)
    for i in range(found):
        # Eights at a time, too: reading what was written in smaller parts makes processors wait.
        label, hit = np.int64(chosen[i]), np.float64(true[true_row, chosen[i]])
        at, here = start_of(label), lane_of(label)
        put_eight(tp, at, plus_in(eight_at(tp, at), here, hit))
        put_eight(predicted, at, plus_in(eight_at(predicted, at), here, 1.0))
        hits += hit
        if out.shape[0] > 0:
            out[row, label] = 1
    totals[N] += 1.0
    if level > 0:
        totals[SUM_TP] += hits
        totals[SUM_PREDICTED] += found
        totals[SUM_POSITIVE] += total(all_true)


@helper
def flag_chosen(chosen, found, flags, m, out, row):
    """Write the flags of a decision that lists the labels it chose, and itself where it is kept."""
    nothing = spread(0.0)
    for at in range(0, flags.shape[0], LANES):
        put_eight(flags, at, nothing)
        if out.shape[0] > 0:
            put_bytes(out, row, at, m - at, nothing)
    for i in range(found):
        at = start_of(chosen[i])
        put_eight(flags, at, plus_in(eight_at(flags, at), lane_of(chosen[i]), 1.0))
        if out.shape[0] > 0:
            out[row, chosen[i]] = 1


@helper
def keep_counts(cells, kept):
    """Keep the counts where the caller wants to look back."""
    for cell in range(3):
        for j in range(kept.shape[1]):
            kept[cell, j] = cells[cell, j]
