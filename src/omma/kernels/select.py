"""Which labels a row gets: the tie rules of the library, once.

Gains come at positions of the row; that of a label which is no candidate (its probability is zero)
is minus infinity. Without a budget every gain of at least zero is chosen; with one, the k largest,
ties going to the lowest label, and where candidates are too few the lowest other labels fill up.
``labels`` is the row's label ids, or None where the row holds every label in order.
"""

from __future__ import annotations

import numpy as np

from omma.kernels.jit import helper, section

LANES = 8  # positions compared side by side
FEW = 32  # candidates that are ranked by counting


@helper
def label_at(labels, position):
    """The label at a position of the row."""
    return position if labels is None else labels[position]


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


@helper
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


@helper
def reach(gains, count, low, chosen):
    """The positions of candidates that gain at least ``low``, in rising order; how many."""
    found = 0
    for position in range(count):
        chosen[found] = position  # kept only if the next line moves on: no branch to mispredict
        found += (gains[position] >= low) & (gains[position] > -np.inf)
    return found


@helper
def keep_best_few(gains, found, k, chosen, chosen_gains):
    """Of a few positions keep the k best, in rising order: those with fewer than k ahead."""
    for i in range(found):
        chosen_gains[i] = gains[chosen[i]]
    kept = 0
    for i in range(found):
        ahead = 0
        for j in range(found):
            better = chosen_gains[j] > chosen_gains[i]
            ahead += better | ((chosen_gains[j] == chosen_gains[i]) & (j < i))
        chosen[kept] = chosen[i]
        kept += ahead < k
    return k


@section
def keep_best_many(gains, count, k, chosen, chosen_gains):
    """The positions of the k largest gains, in rising order; returns how many there are."""
    found = 0
    for position in range(count):
        gain = gains[position]
        # Positions rise, so an equal gain loses to the one already there.
        if gain > (chosen_gains[k - 1] if found == k else -np.inf):
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
def best(gains, count, k, chosen, chosen_gains):
    """Write the positions of the k largest gains, in rising order; returns how many there are.

    A lower bound leaves a few in reach, and ranking those by counting mispredicts no branch:
    for small budgets this halves the time of an insertion into a sorted list.
    """
    low = -np.inf
    if k <= LANES and count >= 2 * LANES:
        low = lower_bound(gains, count, k, chosen_gains)
    found = reach(gains, count, low, chosen)
    if found <= k:
        return found
    if found <= FEW:
        return keep_best_few(gains, found, k, chosen, chosen_gains)
    return keep_best_many(gains, count, k, chosen, chosen_gains)


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
def choose_k(gains, count, labels, k, chosen, chosen_gains):
    """The k labels of a row, in rising order."""
    found = best(gains, count, k, chosen, chosen_gains)
    for i in range(found):
        chosen[i] = label_at(labels, chosen[i])
    if found < k:
        fill_up(chosen, found, k)
    return k


@helper
def choose_nonnegative(gains, count, labels, chosen):
    """Every label whose gain is at least zero, in rising order; returns how many."""
    found = 0
    for position in range(count):
        if gains[position] >= 0.0:
            chosen[found] = label_at(labels, position)
            found += 1
    return found


@helper
def flag_nonnegative(gains, count, flags):
    """The same for a row that holds every label, as flags and without a branch."""
    found = 0
    for j in range(count):
        flags[j] = 1.0 if gains[j] >= 0.0 else 0.0
        found += gains[j] >= 0.0
    return found
