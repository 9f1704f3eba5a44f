"""What a rule that stands still does on dense rows, counted and nothing else.

Frank-Wolfe asks this of the same rows again and again, each time for another rule. What is present
in them does not depend on the rule, and is counted once, by ``tally_present``; for a rule only what
it predicts is, by ``tally_rule``. Counts are added in the order of the rows, as a replay adds them:
they are the same to the bit.
"""

import numpy as np

from omma.kernels.jit import entry, helper
from omma.kernels.layout import FLAGS, GAINS, POSITIVE, PREDICTED, PRESENT, TP, N
from omma.kernels.pointer import EVERYTHING, called


@helper
def counts_for(true, weights, soft, t):
    """The weight of a row, zero where its labels count and are not known."""
    weight = weights[t] if weights.shape[0] > 0 else 1.0
    known = true.rows.shape[0] > 0 and (true.known.shape[0] == 0 or true.known[t] != 0)
    return weight if soft or known else 0.0


@helper
def find_present(eta, true, soft, t, present):
    """To what degree labels are present in a row: their probabilities, or one where they are."""
    if soft:
        for j in range(present.shape[0]):
            present[j] = eta[j]
    else:
        y = true.array[true.rows[t]]
        for j in range(present.shape[0]):
            present[j] = 1.0 if y[j] != 0 else 0.0


@entry("counting what is present")
def tally_present(eta, rows, true, weights, soft, scratch, cells, totals):
    """Count labels and rows; returns the number of good rows before the first wrong one."""
    present, positive = scratch[PRESENT], cells[POSITIVE]
    m = positive.shape[0]
    for t in range(rows.shape[0]):
        row = eta[rows[t]]
        wrong = 0
        for j in range(m):
            wrong += not ((row[j] >= 0.0) & (row[j] <= 1.0))
        if wrong > 0:
            return t
        weight = counts_for(true, weights, soft, t)
        if weight > 0.0:
            find_present(row, true, soft, t, present)
            totals[N] += weight
            for j in range(m):
                positive[j] += weight * present[j]
    return rows.shape[0]


@entry("counting what a rule predicts")
def tally_rule(eta, rows, true, weights, soft, rule, budget, select, scratch, chosen, cells):
    """Count predictions and hits of a rule, on rows that were found good."""
    slope, offset = rule[0], rule[1]
    gains, flags, present = scratch[GAINS], scratch[FLAGS], scratch[PRESENT]
    tp, predicted = cells[TP], cells[PREDICTED]
    m = tp.shape[0]
    for t in range(rows.shape[0]):
        weight = counts_for(true, weights, soft, t)
        if weight <= 0.0:
            continue
        row = eta[rows[t]]
        for j in range(m):  # loops apart: in one the compiler would have to look what overlaps
            value = np.float64(row[j])
            found = slope[j] * value + offset[j]
            gains[j] = found if value > 0.0 else -np.inf
        if budget == 0:
            find_present(row, true, soft, t, present)
            for j in range(m):
                flags[j] = weight if gains[j] >= 0.0 else 0.0
            for j in range(m):
                predicted[j] += flags[j]
            for j in range(m):
                tp[j] += flags[j] * present[j]
            continue
        if budget == 1:
            best, count = gains[0], 1
            chosen[0] = 0
            for j in range(1, m):  # the lowest of equals, and the lowest where none is a candidate
                if gains[j] > best:
                    best = gains[j]
                    chosen[0] = j
        else:
            count = called(select, (np.int64(budget), scratch, np.int64(m), EVERYTHING, chosen))
        for i in range(count):
            j = chosen[i]
            predicted[j] += weight
            if soft:
                tp[j] += weight * row[j]
            elif true.array[true.rows[t], j] != 0:
                tp[j] += weight
    return 0
