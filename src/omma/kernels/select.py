"""Which labels a row gets: the tie rules of the library, once.

Gains come at positions of the row; that of a label which is no candidate (its probability is zero)
is minus infinity. Without a budget every gain of at least zero is chosen; with one, the k largest,
ties going to the lowest label, and where candidates are too few the lowest other labels fill up.
A budget of at most k takes those of the k largest that are at least zero. ``labels`` is the row's
label ids, none of them where the row holds every label in order.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from omma.kernels.jit import helper, pointed, section
from omma.kernels.lanes import (
    LANES,
    as_word,
    eight_of,
    first_of,
    lane,
    larger,
    ones_in,
    spread,
    zeros_below,
)
from omma.kernels.layout import CHOSEN_GAINS, EIGHTS, GAINS
from omma.kernels.pointer import COUNT, IDS, ROWS, address_of

LOWEST = float(np.finfo(np.float64).min)  # of a candidate: that of any other label is below it
FEW = 32  # candidates that are ranked by counting


@section
def sort_rising(chosen, count):
    """Insertion sort: budgets are small."""
    for i in range(1, count):
        label = chosen[i]
        place = i
        while place > 0 and chosen[place - 1] > label:
            chosen[place] = chosen[place - 1]
            place -= 1
        chosen[place] = label


@section
def keep_best_many(gains, count, k, low, chosen, chosen_gains):
    """The positions of the k largest gains, of at least ``low``; returns how many there are."""
    found = np.int64(0)  # not the constant, of which Numba would compile copies
    for position in range(count):
        gain = gains[position]
        # Positions rise, so an equal gain loses to the one already there.
        if gain >= low and gain > (chosen_gains[k - 1] if found == k else -np.inf):
            place = min(found, k - 1)
            while place > 0 and gain > chosen_gains[place - 1]:
                chosen_gains[place] = chosen_gains[place - 1]
                chosen[place] = chosen[place - 1]
                place -= 1
            chosen_gains[place] = gain
            chosen[place] = position
            found = min(found + 1, k)
    sort_rising(chosen, found)
    return found


@helper
def reached_by(best, k):
    """A gain that at least k reach, of which the best in each lane are given."""
    reached = -np.inf
    for at in range(LANES):
        gain = lane(best, at)
        reached = gain if (gain > reached) & (ones_in(as_word(best >= gain)) >= k) else reached
    return reached


@helper
def lower_bound(scratch, count, k):
    """The same of gains that lie in a row, found without a branch."""
    best = spread(-np.inf)
    for start in range(0, count - LANES + 1, LANES):
        best = larger(best, eight_of(scratch, GAINS, start, LANES))
    return reached_by(best, k)


@helper
def in_reach(scratch, count, low, chosen):
    """Candidates whose gain is at least ``low``, with their gains; returns how many there are.

    Eights that have any are listed first, so that there is one loop whose end the processor cannot
    foresee, not one for each.
    """
    gains, chosen_gains, eights = scratch[GAINS], scratch[CHOSEN_GAINS], scratch[EIGHTS]
    some, low = 0, max(low, LOWEST)
    for at in range(0, count, LANES):
        here = as_word(eight_of(scratch, GAINS, at, count - at) >= low)
        here &= (1 << min(count - at, LANES)) - 1
        eights[some] = np.float64((at << LANES) | here)
        some += here != 0
    found = np.int64(0)  # not the constant, of which Numba would compile copies
    for i in range(some):
        start, here = np.int64(eights[i]) >> LANES, np.int64(eights[i]) & ((1 << LANES) - 1)
        while here != 0:
            position = start + zeros_below(here)
            chosen[found] = position
            chosen_gains[found] = gains[position]
            found += 1
            here &= here - 1
    return found


@helper
def best_of_few(scratch, found, k, chosen):
    """Keep those of at most eight with fewer than k ahead of them, without a branch."""
    gains, kept = eight_of(scratch, CHOSEN_GAINS, 0, found), np.int64(0)
    some = first_of(found)
    for at in range(LANES):
        gain = lane(gains, at)
        before = as_word(gains >= gain) & ((np.int64(1) << at) - 1)
        ahead = ones_in(as_word((gains > gain) & some) | before)
        kept |= np.int64((ahead < k) & (at < found)) << at
    for i in range(k):
        chosen[i] = chosen[zeros_below(kept)]
        kept &= kept - 1


@section
def best_of_some(gains, found, k, chosen):
    """The same of more."""
    kept = 0
    for i in range(found):
        ahead = 0
        for j in range(found):
            better = gains[j] > gains[i]
            ahead += better | ((gains[j] == gains[i]) & (j < i))
        chosen[kept] = chosen[i]
        kept += ahead < k


@section
def fill_up(chosen, found, k):
    """Add the lowest labels that are not among the ``found`` sorted ones, up to k."""
    label = 0
    read = 0
    write = found
    while write < k:
        if read < found and chosen[read] == label:
            read += 1
        else:
            chosen[write] = label
            write += 1
        label += 1
    sort_rising(chosen, k)


@helper
def choose(budget, scratch, count, low, chosen):
    """Write the positions of a row's choice, of gains that are at least ``low``, which k reach.

    Few are in reach, and ranking those by counting mispredicts no branch: for small budgets this
    halves the time of an insertion into a sorted list.
    """
    chosen_gains, k = scratch[CHOSEN_GAINS], abs(budget)
    low = 0.0 if budget < 0 and low < 0.0 else low
    found = in_reach(scratch, count, low, chosen)
    if found <= k:
        return found
    if found > FEW:
        return keep_best_many(scratch[GAINS], count, k, low, chosen, chosen_gains)
    if found <= LANES:
        best_of_few(scratch, found, k, chosen)
    else:
        best_of_some(chosen_gains, found, k, chosen)
    return np.int64(k)


@pointed("the choice under a budget")
def select(budget, scratch, count, labels, chosen):
    """Write the labels of a row, in rising order; returns how many there are.

    A budget below zero is at most as many, taken of those that gain.
    """
    k, low = abs(budget), -np.inf
    if k <= LANES and count >= 2 * LANES:
        low = lower_bound(scratch, count, k)
    found = choose(budget, scratch, count, low, chosen)
    if labels.shape[0] > 0:
        for i in range(found):
            chosen[i] = labels[chosen[i]]
    if found < budget:
        fill_up(chosen, found, budget)
        found = budget
    return found


@helper
def choose_nonnegative(gains, count, labels, chosen):
    """The same without a budget."""
    found = 0
    for position in range(count):
        if gains[position] >= 0.0:
            chosen[found] = labels[position] if labels.shape[0] > 0 else position
            found += 1
    return found


@cache
def selector(wanted: bool) -> Any:
    """Where the function that chooses under a budget lies; 0 where there is none."""
    return address_of(select, COUNT, ROWS, COUNT, IDS, IDS) if wanted else 0
