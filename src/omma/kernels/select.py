"""Which labels of a row are predicted: the tie rules of the library.

Without a budget every label whose gain is at least zero is predicted. With a budget of k, the k
largest gains are, ties going to the lowest position; a budget of −k means at most k, taken of those
that gain. A label is a candidate where its probability is above zero. With costs every label is:
those before the position ``always_candidates``. One that is no candidate has the rank LOWEST.

The k largest are found as a cut: a rank and a position up to which labels are chosen. Gains are
ranked by whole numbers in the same order: compilers find the largest of these by vector
instructions (of floats they do not, as one may be NaN). The largest is found, then the largest
below it, and so on: loops without a branch to mispredict, and no lists.
"""

from functools import cache
from typing import Any, Final

import numpy as np
from numba.core import types

from omma.kernels.jit import (
    NUMBERS,
    address_of,
    as_array,
    bits_of,
    by_address,
    helper,
    number_of,
)
from omma.kernels.layout import FLAGS, OFFSET, RANKS, SLOPE, VALUES, WORK, padded

HIGHEST: Final = np.int64(2**63 - 1)
LOWEST: Final = np.int64(np.float64(-np.inf).view(np.int64)) ^ HIGHEST  # the rank of −∞

# What a function takes that flags labels: the numbers of a term and the counts (3, stride) of the
# labels, which it may not need; ``work``, and how far its rows are apart; the width of the row, the
# budget, and ``always_candidates``. It returns whether there are fewer candidates than the budget.
DECIDER: Final = (NUMBERS,) * 3 + (types.intp,) * 4


@helper
def rank(gain):
    """A whole number that is larger for a larger float; zeros of both signs are one."""
    bits = np.int64(bits_of(gain + 0.0))
    return bits ^ ((bits >> np.int64(63)) & HIGHEST)


@helper
def flag_gain(rows, i, gain, is_candidate):
    """Flag a label that gains."""
    rows[FLAGS, i] = 1.0 if is_candidate & (gain >= 0.0) else 0.0


@helper
def rank_gain(rows, i, gain, is_candidate):
    """Rank a label by its gain."""
    rows[RANKS, i] = number_of(rank(gain if is_candidate else -np.inf))


@helper
def rank_at(ranks, i):
    """The rank of a label, a whole number in the bits of a float."""
    return np.int64(bits_of(ranks[i]))


@helper
def next_below(ranks, last, width):
    """The largest rank below the last one."""
    best = LOWEST
    for i in range(width):
        here = rank_at(ranks, i)
        best = max(best, here if here < last else LOWEST)
    return best


@helper
def flag_from(ranks, cut, flags, width):
    """Flag labels of the rank of the cut, or a higher one; returns how many there are."""
    count = 0
    for i in range(width):
        chosen = rank_at(ranks, i) >= cut
        flags[i] = 1.0 if chosen else 0.0
        count += chosen
    return count


@helper
def flag_best(budget, rows, width):
    """Flag the best of the labels ranked; returns whether there are fewer than the budget.

    At first each rank is taken for one label. Where there are ties, this flags too many: then
    labels are counted at every rank, and of those at the cut the last positions are left out.
    """
    ranks, flags = rows[RANKS], rows[FLAGS]
    k, least = abs(budget), np.int64(0) if budget < 0 else LOWEST + np.int64(1)
    cut, count, is_careful = HIGHEST, 0, False
    while True:
        for place in range(k):
            if (cut >= least) & (count < k):
                cut = next_below(ranks, cut, width)
            if is_careful | (place == k - 1):
                count = flag_from(ranks, max(cut, least), flags, width)
        if is_careful | (count <= k):
            break
        cut, count, is_careful = HIGHEST, 0, True
    position = width
    while count > k:
        position -= 1
        if rank_at(ranks, position) == cut:
            flags[position] = 0.0
            count -= 1
    return np.intp(count < budget)


@cache
def selector(with_budget: bool) -> Any:
    """The function that flags labels by slopes and offsets in ``work``."""

    def select_row(numbers, cells, work, stride, width, budget, always_candidates):
        rows = as_array(work, (WORK, stride))
        for i in range(padded(width)):
            eta = rows[VALUES, i]
            is_candidate = (eta > 0.0) | (i < always_candidates)
            gain = rows[SLOPE, i] * eta + rows[OFFSET, i]
            if with_budget:  # the same for all rows: one of both is compiled
                rank_gain(rows, i, gain, is_candidate)
            else:
                flag_gain(rows, i, gain, is_candidate)
        if with_budget:
            return flag_best(budget, rows, padded(width))
        return np.intp(0)

    return by_address(select_row, *DECIDER)


def selector_address(budget: int) -> Any:
    """What a loop calls to flag the labels of a row."""
    return address_of(selector(budget != 0))
