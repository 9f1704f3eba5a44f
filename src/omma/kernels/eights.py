"""Counts of dense rows that are decided eight labels at a time; see ``omma.kernels.lanes``.

Counts lie in rows that end with whole eights, on the borders that vector instructions like. Past
the last label they are zeros and remain so. A decision is ``marked``: a word for each eight labels,
with a bit for each that is chosen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from omma.kernels.jit import helper
from omma.kernels.lanes import (
    LANES,
    as_which,
    as_word,
    eight_at,
    nonzero_of,
    ones_in,
    put_eight,
    put_which,
    where,
)
from omma.kernels.layout import POSITIVE, PREDICTED, SUM_POSITIVE, SUM_PREDICTED, SUM_TP, TP, N

BORDER = 64  # bytes


def eights(m: int) -> int:
    """How many eights hold so many labels."""
    return -(-m // LANES)


def room(rows: int, m: int) -> NDArray[np.float64]:
    """Zeros for so many rows of whole eights.

    >>> room(2, 9).shape
    (2, 16)
    """
    width = LANES * eights(m)
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


def unmarked(m: int) -> NDArray[np.int64]:
    """Room for a decision."""
    return np.zeros(eights(m), dtype=np.int64)


@helper
def plus_one(numbers, chosen):
    """One more in some lanes; the others remain, to the bit."""
    return where(chosen, numbers + 1.0, numbers)


@helper
def count_marked(cells, totals, level, marked, true, true_row, m, out, row):
    """Count a decided row, and write the decision where one is wanted."""
    tp, predicted, positive = cells[TP], cells[PREDICTED], cells[POSITIVE]
    hits = found = all_true = 0
    for group in range(marked.shape[0]):
        at = LANES * group
        present, chosen = nonzero_of(true, true_row, at, m - at), as_which(marked[group])
        both = present & chosen
        put_eight(tp, at, plus_one(eight_at(tp, at), both))
        put_eight(predicted, at, plus_one(eight_at(predicted, at), chosen))
        put_eight(positive, at, plus_one(eight_at(positive, at), present))
        if level > 0:
            hits += ones_in(as_word(both))
            found += ones_in(marked[group])
            all_true += ones_in(as_word(present))
        if out.shape[0] > 0:
            put_which(out, row, at, m - at, chosen)
    totals[N] += 1.0
    if level > 0:
        totals[SUM_TP] += hits
        totals[SUM_PREDICTED] += found
        totals[SUM_POSITIVE] += all_true


@helper
def count_chosen(cells, totals, level, chosen, found, true, true_row, m, out, row):
    """The same of a decision that lists the few labels it chose."""
    tp, predicted, positive = cells[TP], cells[PREDICTED], cells[POSITIVE]
    hits = all_true = 0
    for at in range(0, cells.shape[1], LANES):
        present = nonzero_of(true, true_row, at, m - at)
        put_eight(positive, at, plus_one(eight_at(positive, at), present))
        if level > 0:
            all_true += ones_in(as_word(present))
        if out.shape[0] > 0:
            put_which(out, row, at, m - at, as_which(0))
    for i in range(found):
        # Eights at a time, too: reading what was written in smaller parts makes processors wait.
        label = np.int64(chosen[i])
        at, bit = label // LANES * LANES, np.int64(1) << (label % LANES)
        hit = bit if true[true_row, label] != 0 else np.int64(0)
        put_eight(tp, at, plus_one(eight_at(tp, at), as_which(hit)))
        put_eight(predicted, at, plus_one(eight_at(predicted, at), as_which(bit)))
        hits += hit != 0
        if out.shape[0] > 0:
            out[row, label] = 1
    totals[N] += 1.0
    if level > 0:
        totals[SUM_TP] += hits
        totals[SUM_PREDICTED] += found
        totals[SUM_POSITIVE] += all_true


@helper
def keep_counts(cells, kept):
    """Keep the counts where the caller wants to look back."""
    for cell in range(3):
        for j in range(kept.shape[1]):
            kept[cell, j] = cells[cell, j]
