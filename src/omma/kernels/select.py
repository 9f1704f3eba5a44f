"""Select the predicted labels of a row from their gains: Eq. (5) and (6), and the tie rules.

Without a budget, every candidate with gain ≥ 0 is predicted. With a budget of k, the k candidates
with the largest gains are predicted; ties go to the lowest position. A budget of −k means at most
k: the k largest gains among those ≥ 0. A label is a candidate if its probability is above zero.
With a cost matrix every label is a candidate: those before position ``always_candidates``. All
other labels get the rank LOWEST.

The top k are found as a cut: a rank, and a position up to which labels with that rank are chosen.
Gains are mapped to int64 ranks in the same order, because compilers vectorize the maximum of
integers but not of floats, which may be NaN. The largest rank is found, then the largest below it,
and so on. These loops have no branches to mispredict and need no lists.
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

# Parameters of a function that flags the labels of a row: three pointers to float64 (the numbers
# of a term, the counts (3, stride) of the labels, and ``work``), then four integers (stride: the
# length of the rows of ``work``; width of the row; budget; ``always_candidates``). It returns 1 if
# there are fewer candidates than the budget, else 0.
DECIDER: Final = (NUMBERS,) * 3 + (types.intp,) * 4


@helper
def rank(gain):
    """Map a gain to an int64 in the same order: a larger float has a larger rank.

    Adding 0.0 turns −0.0 into 0.0, so both zeros have the same rank.
    """
    bits = np.int64(bits_of(gain + 0.0))
    return bits ^ ((bits >> np.int64(63)) & HIGHEST)


@helper
def flag_gain(rows, i, gain, is_candidate):
    """Flag the label at position i if it is a candidate with gain ≥ 0; writes FLAGS."""
    rows[FLAGS, i] = 1.0 if is_candidate & (gain >= 0.0) else 0.0


@helper
def rank_gain(rows, i, gain, is_candidate):
    """Write the rank of the gain at position i to ``rows[RANKS, i]``."""
    rows[RANKS, i] = number_of(rank(gain if is_candidate else -np.inf))


@helper
def rank_at(ranks, i):
    """Read the rank of the label at position i: an int64 in the bits of a float64."""
    return np.int64(bits_of(ranks[i]))


@helper
def next_below(ranks, last, width):
    """Return the largest of the first ``width`` ranks below ``last``; LOWEST if there is none."""
    best = LOWEST
    for i in range(width):
        here = rank_at(ranks, i)
        best = max(best, here if here < last else LOWEST)
    return best


@helper
def flag_from(ranks, cut, flags, width):
    """Flag the labels with a rank of at least ``cut``; returns the number of flags."""
    count = 0
    for i in range(width):
        chosen = rank_at(ranks, i) >= cut
        flags[i] = 1.0 if chosen else 0.0
        count += chosen
    return count


@helper
def flag_best(budget, rows, width):
    """Flag the top k ranked labels; returns 1 if candidates are fewer than the budget, else 0.

    ``rows`` is ``work``, shape (WORK, stride); RANKS is read and FLAGS is written. The first pass
    assumes that no two labels have the same rank. With ties it may flag more than k labels. Then a
    careful pass counts labels at every rank and stops at k. Surplus labels with the rank of the cut
    are dropped from the highest positions.
    """
    ranks, flags = rows[RANKS], rows[FLAGS]
    # Of at most k, only gains ≥ 0 are taken: 0 is the rank of 0.0. Of exactly k, any candidate.
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
    """Compile the function that flags labels by SLOPE and OFFSET in ``work``.

    Its parameters are those of ``DECIDER``; ``numbers`` and ``cells`` are not used.
    """

    def select_row(numbers, cells, work, stride, width, budget, always_candidates):
        rows = as_array(work, (WORK, stride))
        for i in range(padded(width)):
            eta = rows[VALUES, i]
            is_candidate = (eta > 0.0) | (i < always_candidates)
            gain = rows[SLOPE, i] * eta + rows[OFFSET, i]
            if with_budget:  # a constant of the closure: only one branch is compiled
                rank_gain(rows, i, gain, is_candidate)
            else:
                flag_gain(rows, i, gain, is_candidate)
        if with_budget:
            return flag_best(budget, rows, padded(width))
        return np.intp(0)

    return by_address(select_row, *DECIDER)


def selector_address(budget: int) -> Any:
    """Return the address of the selector for a budget; loops over rows call it."""
    return address_of(selector(budget != 0))
