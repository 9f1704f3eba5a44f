"""Calibrated and corrected rows with a budget, what ``omma.kernels.ranks`` is to labels."""

from __future__ import annotations

import numpy as np

from omma.kernels.corrected import (
    FLAGS,
    OFTEN,
    VALUES,
    Strengths,
    count_and_learn,
    keep_true,
    look_at_sums,
    mild,
    see_eight,
    take_row,
)
from omma.kernels.decide import CHOSEN
from omma.kernels.eights import flag_chosen
from omma.kernels.gradient import prepare, weigh
from omma.kernels.jit import entry, helper
from omma.kernels.lanes import LANES, eight_at, larger, put_eight, spread, where
from omma.kernels.layout import GAINS, N
from omma.kernels.logistic import series_of
from omma.kernels.point import point_at
from omma.kernels.select import choose, fill_up, reached_by


@helper
def find_gains(term, point, by, space, gains):
    """Write the gains of a row; returns each lane's best.

    Past the last label and where the probability is zero, gains are minus infinity.
    """
    ready = prepare(term, point, 0)
    best = spread(-np.inf)
    for at in range(0, space.shape[1], LANES):
        value = eight_at(space[VALUES], at)
        slope, offset = weigh(term, ready, point, at, *see_eight(by, space, at))
        gain = where(value > 0.0, slope * value + offset, -np.inf)
        put_eight(gains, at, gain)
        best = larger(best, gain)
    return best


@entry("the dense replay")
def replay_corrected_by_rank(
    eta, rows, true, true_rows, term, prior, budget, strengths, level, every, known, shared, own,
    labels, seen, places, kept, kept_rows, space, scratch, ids, filled, out,
):  # fmt: skip
    """Replay rows of every label; returns the number of good rows before the first wrong one.

    ``every`` has a column for each label, and only says how many these are. How many rows had fewer
    candidates than wanted is added to ``filled``.
    """
    m, width, k, taken, chosen = eta.shape[1], space.shape[1], abs(budget), 0, ids[CHOSEN]
    last, calm = rows.shape[0] - 1, False
    hits, positives, unhit, lucky, eager = strengths
    by = Strengths(hits, positives, unhit, lucky, eager)
    series = series_of(known)
    for t in range(rows.shape[0]):
        look_at_sums(by, own, labels, level, seen)
        point = point_at(every, seen, prior)
        if t % OFTEN == 0:
            calm = mild(space)
        if not take_row(eta, rows[t], rows[min(t + 1, last)], m, series, shared, calm, space):
            return t
        best = find_gains(term, point, by, space, scratch[GAINS])
        low = reached_by(best, k) if k <= LANES else -np.inf
        found = choose(budget, scratch, width, low, chosen)
        if found < budget:
            fill_up(chosen, found, budget)
            found = budget
            filled[0] += 1
        flag_chosen(chosen, found, space[FLAGS], m, out, rows[t])
        count_and_learn(space, shared, own, labels, level, true, true_rows[t], m)
        if taken < places.shape[0] and places[taken] == t + 1:
            keep_true(space, kept[taken])
            kept_rows[taken] = labels[N]
            taken += 1
    return rows.shape[0]
