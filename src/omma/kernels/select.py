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

from omma.kernels.jit import NUMBERS, address_of, as_array, bits_of, by_address, helper
from omma.kernels.layout import FLAGS, OFFSET, RANKS, SLOPE, VALUES, WORK

HIGHEST: Final = np.int64(2**63 - 1)
LOWEST: Final = np.int64(np.float64(-np.inf).view(np.int64)) ^ HIGHEST  # the rank of −∞


@helper
def rank(gain):
    """A whole number that is larger for a larger float; zeros of both signs are one."""
    bits = np.int64(bits_of(gain + 0.0))
    return bits ^ ((bits >> np.int64(63)) & HIGHEST)


@helper
def next_below(ranks, last, width):
    """The largest rank below the last one."""
    best = LOWEST
    for i in range(width):
        below = ranks[i] if ranks[i] < last else LOWEST
        best = max(best, below)
    return best


@helper
def count_from(ranks, cut, width):
    """How many have the rank of the cut, or a higher one."""
    count = 0
    for i in range(width):
        count += ranks[i] >= cut
    return count


@helper
def cut_of(budget, ranks, width):
    """Rank and position of the last label that is chosen.

    The first round takes each rank for one label and counts at the end only; where there are ties,
    the second round counts at every rank.
    """
    k, least = abs(budget), np.int64(0) if budget < 0 else LOWEST + np.int64(1)
    count = 0
    for careful in range(2):
        cut, count = HIGHEST, 0
        while count < k:
            cut = next_below(ranks, cut, width)
            if cut < least and careful == 1:
                return least, width  # fewer than k candidates: all of them
            if cut < least:
                count = k + 1
                break
            if careful == 0 and count + 1 < k:
                count += 1
            else:
                count = count_from(ranks, cut, width)
        if count == k:
            return cut, width
    position = width
    while count > k:  # ties at the cut: the last positions are left out
        position -= 1
        count -= ranks[position] == cut
    return cut, position - 1


def flag_gaining(budget, always_candidates, work, stride, width):
    """Without a budget: flag every candidate that gains; there are never too few."""
    rows = as_array(work, (WORK, stride))
    values, slope, offset, flags = rows[VALUES], rows[SLOPE], rows[OFFSET], rows[FLAGS]
    for i in range(width):
        candidate = (values[i] > 0.0) | (i < always_candidates)
        flags[i] = 1.0 if candidate & (slope[i] * values[i] + offset[i] >= 0.0) else 0.0
    return np.intp(0)


def flag_best(budget, always_candidates, work, stride, width):
    """Flag the best of a row's labels; returns whether there are fewer than the budget."""
    rows = as_array(work, (WORK, stride))
    values, slope, offset = rows[VALUES], rows[SLOPE], rows[OFFSET]
    ranks = rows[RANKS].view(np.int64)
    for i in range(width):
        candidate = (values[i] > 0.0) | (i < always_candidates)
        ranks[i] = rank(slope[i] * values[i] + offset[i] if candidate else -np.inf)
    cut, position = cut_of(budget, ranks, width)
    flags = rows[FLAGS]
    for i in range(width):
        chosen = (ranks[i] > cut) | ((ranks[i] == cut) & (i <= position))
        flags[i] = 1.0 if chosen else 0.0
    return np.intp(cut == LOWEST + 1)


@cache
def selector(with_budget: bool) -> Any:
    """The function that flags labels, compiled once for all loops."""
    function = flag_best if with_budget else flag_gaining
    return by_address(function, types.intp, types.intp, NUMBERS, types.intp, types.intp)


def selector_address(budget: int) -> Any:
    """What a loop calls to flag the labels of a row."""
    return address_of(selector(budget != 0))
