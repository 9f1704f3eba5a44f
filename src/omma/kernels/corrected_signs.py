"""Calibrated and corrected rows without a budget, decided by signs.

What ``omma.kernels.signs`` is to counts of labels, this is to what ``omma.kernels.corrected`` looks
at: the usual metrics are numbers to one loop, and a row that is near a tie is left to the gains.
"""

from __future__ import annotations

from omma.kernels.corrected import (
    FLAGS,
    VALUES,
    Strengths,
    count_and_learn,
    keep_true,
    look_at_sums,
    see_eight,
    take_row,
)
from omma.kernels.eights import any_of
from omma.kernels.jit import entry, helper
from omma.kernels.lanes import LANES, eight_at, larger, spread, times_plus
from omma.kernels.layout import N
from omma.kernels.signs import AT_MEAN, CLAMPED, NEAR, forms_now, judge


@helper
def gain_of_eight(slopes, offsets, clamped, seen, value):
    """A number with the sign of what eight labels gain."""
    tp, predicted, positive = seen
    slope = times_plus(slopes[2], positive, slopes[3])
    slope = times_plus(slopes[0], tp, times_plus(slopes[1], predicted, slope))
    offset = times_plus(offsets[2], positive, offsets[3])
    offset = times_plus(offsets[0], tp, times_plus(offsets[1], predicted, offset))
    # Corrected counts may leave less than no true negatives, of which gains make none.
    slope = larger(slope, -offset) if clamped else slope
    return times_plus(slope, value, offset)


@entry("the dense replay")
def replay_corrected_by_sign(
    eta, rows, true, true_rows, numbers, strengths, level, shared, own, labels, seen, places, kept,
    kept_rows, space, out,
):  # fmt: skip
    """Replay rows of every label; returns how many, with a minus and one less where one is unsure.

    A row that turns out wrong or unsure has changed nothing.
    """
    m, taken, near = eta.shape[1], 0, numbers[NEAR]
    hits, positives, _, lucky, eager = strengths
    by = Strengths(hits, positives, hits, lucky, eager)  # the same also where none was ever hit
    alike, clamped = numbers[AT_MEAN] != 0.0, numbers[CLAMPED] != 0.0
    for t in range(rows.shape[0]):
        look_at_sums(by, own, labels, level, seen)
        fine, s0, s1, s2, s3, f0, f1, f2, f3 = forms_now(numbers, seen, m)
        if not fine:
            return -1 - t
        if not take_row(eta, rows[t], true, true_rows[t], m, shared, space):
            return t
        slopes, offsets = (s0, s1, s2, s3), (f0, f1, f2, f3)
        least = larger(s3, -f3) if clamped else s3
        unsure = spread(0.0)
        for at in range(0, space.shape[1], LANES):
            value = eight_at(space[VALUES], at)
            gain = times_plus(least, value, f3)
            if not alike:
                gain = gain_of_eight(slopes, offsets, clamped, see_eight(by, space, at), value)
            unsure = judge(gain, value, near, space[FLAGS], at, unsure)
        if any_of(unsure):
            return -1 - t
        count_and_learn(space, shared, own, labels, level, m, out, rows[t])
        if taken < places.shape[0] and places[taken] == t + 1:
            keep_true(space, kept[taken])
            kept_rows[taken] = labels[N]
            taken += 1
    return rows.shape[0]
