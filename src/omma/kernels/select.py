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
from omma.kernels.layout import CHOSEN_GAINS, GAINS
from omma.kernels.pointer import COUNT, IDS, ROWS, address_of

LANES = 8  # positions compared side by side
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


@section
def lower_bound(gains, count, k, lanes):
    """A gain that at least k reach, found without a branch: the best of the k-th best lane."""
    for lane in range(LANES):
        lanes[lane] = -np.inf
    for start in range(0, count - LANES + 1, LANES):
        for lane in range(LANES):
            gain = gains[start + lane]
            lanes[lane] = gain if gain > lanes[lane] else lanes[lane]
    for i in range(1, LANES):
        gain = lanes[i]
        place = i
        while place > 0 and gain > lanes[place - 1]:
            lanes[place] = lanes[place - 1]
            place -= 1
        lanes[place] = gain
    return lanes[k - 1]


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


@pointed("the choice under a budget")
def select(budget, scratch, count, labels, chosen):
    """Write the labels of a row, in rising order; returns how many there are.

    A budget below zero is at most as many, taken of those that gain. A lower bound leaves a few in
    reach, and ranking those by counting mispredicts no branch: for small budgets this halves the
    time of an insertion into a sorted list.
    """
    gains, chosen_gains, k = scratch[GAINS], scratch[CHOSEN_GAINS], abs(budget)
    low = -np.inf if budget > 0 else 0.0
    if k <= LANES and count >= 2 * LANES:
        bound = lower_bound(gains, count, k, chosen_gains)
        low = bound if bound > low else low
    found = np.int64(0)  # not the constant, of which Numba would compile copies
    for position in range(count):
        chosen[found] = position  # kept only if the next line moves on: no branch to mispredict
        found += (gains[position] >= low) & (gains[position] > -np.inf)
    if found > FEW and found > k:
        found = keep_best_many(gains, count, k, low, chosen, chosen_gains)
    elif found > k:
        for i in range(found):
            chosen_gains[i] = gains[chosen[i]]
        kept = 0
        for i in range(found):  # those with fewer than k ahead of them
            ahead = 0
            for j in range(found):
                better = chosen_gains[j] > chosen_gains[i]
                ahead += better | ((chosen_gains[j] == chosen_gains[i]) & (j < i))
            chosen[kept] = chosen[i]
            kept += ahead < k
        found = k
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
