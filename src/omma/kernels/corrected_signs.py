"""Calibrated and corrected rows without a budget, decided by signs.

What ``omma.kernels.signs`` is to counts of labels, this is to what ``omma.kernels.corrected`` looks
at: the usual metrics are numbers to one loop, and a row that is near a tie is left to the gains.

Counts are corrected by a ratio each. Both forms are linear in them, so that all is taken times both
denominators, and nothing is divided. Corrected counts keep to what ``bounded`` holds them to where
counts do: true positives are no more than predictions, nor than positives. And a form has the sign
of a derivative where neither are more than the rows. ``in_order`` looks once whether they are; what
is counted keeps it so.
"""

from __future__ import annotations

from typing import NamedTuple

from omma.kernels.corrected import (
    FLAGS,
    OFTEN,
    POSITIVE,
    PREDICTED,
    TP,
    TRUE_POSITIVE,
    TRUE_TP,
    VALUES,
    Strengths,
    count_and_learn,
    keep_true,
    look_at_sums,
    mild,
    take_row,
)
from omma.kernels.eights import any_of
from omma.kernels.jit import entry, helper
from omma.kernels.lanes import (
    LANES,
    as_word,
    eight_at,
    larger,
    put_bytes,
    put_eight,
    smaller,
    spread,
    times_plus,
    where,
)
from omma.kernels.layout import SUM_POSITIVE, SUM_PREDICTED, SUM_TP, N
from omma.kernels.logistic import series_of
from omma.kernels.signs import AT_MEAN, CLAMPED, NEAR, OFFSET, SLOPE, forms_now


class Way(NamedTuple):
    """What a metric needs of corrected counts; the rest is left out."""

    alike: bool  # the forms are the same for all labels
    simple: bool  # slopes leave out true positives, offsets have nothing else
    clamped: bool
    uneven: bool  # true positives could be more than positives, corrected more strongly
    eager: bool


@helper
def in_order(space, rows):
    """Whether counts are such as so many rows make that were decided without a budget."""
    wrong = spread(0.0)
    for at in range(0, space.shape[1], LANES):
        tp, predicted = eight_at(space[TP], at), eight_at(space[PREDICTED], at)
        true, positive = eight_at(space[TRUE_TP], at), eight_at(space[TRUE_POSITIVE], at)
        expected = eight_at(space[POSITIVE], at)
        fine = (tp >= 0.0) & (tp <= smaller(predicted, expected)) & ((tp > 0.0) | (true <= 0.0))
        fine = fine & (true >= 0.0) & (true <= smaller(predicted, positive))
        most = larger(predicted, larger(expected, positive))
        wrong = where(fine & (most <= rows), wrong, 1.0)
    return not any_of(wrong)


@helper
def sums_in_order(own, labels, m):
    """The same of sums over labels: forms have their signs where no count is more than the rows."""
    fine, most = True, m * own[N]
    for sums in (own, labels):
        fine = fine & (sums[SUM_TP] >= 0.0)
        fine = fine & (sums[SUM_PREDICTED] >= 0.0) & (sums[SUM_PREDICTED] <= most)
        fine = fine & (sums[SUM_POSITIVE] >= 0.0) & (sums[SUM_POSITIVE] <= most)
    return fine


@helper
def scaled_counts(by, way, space, at):
    """Corrected tp and positive of eight labels, and one, all times the same number above zero."""
    tp, positive = eight_at(space[TRUE_TP], at), eight_at(space[TRUE_POSITIVE], at)
    every_tp, every_positive = eight_at(space[TP], at), eight_at(space[POSITIVE], at)
    by_tp, by_positive = every_tp + by.hits, every_positive + by.positives
    scale = by_tp * by_positive
    t = (every_tp * by_positive) * (tp + by.hits)
    p = (every_positive * by_tp) * (positive + by.positives)
    p = where(every_positive > 0.0, p, positive * scale)
    if way.uneven:
        t = smaller(larger(t, by.lucky * tp * scale), p)
    if way.eager:
        predicted = eight_at(space[PREDICTED], at)
        if as_word(predicted <= 0.0) != 0:
            t = scaled_asked_for(by, t, predicted, p, scale)
    return t, p, scale


@helper
def scaled_asked_for(by, t, predicted, p, scale):
    """What ``asked_for`` makes of scaled counts."""
    waited = p * (2.0 / by.positives)
    asked = by.eager * scale * (scale - waited) / (scale + waited)
    return where((predicted <= 0.0) & (waited > scale), asked, t)


@helper
def simple_gain(slopes, offsets, counts, predicted, value):
    """A number with the sign of what eight labels gain, where forms are simple."""
    t, p, scale = counts
    rest = times_plus(value, times_plus(slopes[1], predicted, slopes[3]), offsets[3])
    return times_plus(offsets[0], t, times_plus(slopes[2] * value, p, rest * scale))


@helper
def gain_of_eight(slopes, offsets, clamped, counts, predicted, value):
    """The same of any forms."""
    t, p, scale = counts
    slope = times_plus(slopes[1], predicted, slopes[3]) * scale
    slope = times_plus(slopes[0], t, times_plus(slopes[2], p, slope))
    offset = times_plus(offsets[1], predicted, offsets[3]) * scale
    offset = times_plus(offsets[0], t, times_plus(offsets[2], p, offset))
    # Corrected counts may leave less than no true negatives, of which gains make none.
    slope = larger(slope, -offset) if clamped else slope
    return times_plus(slope, value, offset)


@helper
def judge(gain, value, near, space, at, unsure, m, out, row):
    """Flag those of eight labels that gain; returns ones where this or another eight is unsure.

    The decision is written where one is kept, of an unsure row too: gains will decide it again.
    """
    some = value > 0.0
    chosen = (gain >= 0.0) & some
    put_eight(space[FLAGS], at, where(chosen, 1.0, 0.0))
    if out.shape[0] > 0:
        put_bytes(out, row, at, m - at, chosen)
    return where((abs(gain) <= near) & some, 1.0, unsure)


@helper
def flag_alike(slope, offset, near, space, m, out, row):
    """Decide a row by forms that all labels share; returns whether it is unsure."""
    unsure = spread(0.0)
    for at in range(0, space.shape[1], LANES):
        value = eight_at(space[VALUES], at)
        gain = times_plus(slope, value, offset)
        unsure = judge(gain, value, near, space, at, unsure, m, out, row)
    return any_of(unsure)


@helper
def flag_each(slopes, offsets, by, way, near, space, m, out, row):
    """The same by forms of each label."""
    unsure = spread(0.0)
    for at in range(0, space.shape[1], LANES):
        value, predicted = eight_at(space[VALUES], at), eight_at(space[PREDICTED], at)
        counts = scaled_counts(by, way, space, at)
        if way.simple:
            gain = simple_gain(slopes, offsets, counts, predicted, value)
        else:
            gain = gain_of_eight(slopes, offsets, way.clamped, counts, predicted, value)
        unsure = judge(gain, value, near * counts[2], space, at, unsure, m, out, row)
    return any_of(unsure)


@helper
def flag_row(slopes, offsets, by, way, near, space, m, out, row):
    """The same by what a metric needs."""
    to = (near, space, m, out, row)
    if way.alike:
        slope, offset = slopes[3], offsets[3]
        return flag_alike(larger(slope, -offset) if way.clamped else slope, offset, *to)
    return flag_each(slopes, offsets, by, way, *to)


@entry("the dense replay")
def replay_corrected_by_sign(
    eta, rows, true, true_rows, numbers, strengths, level, known, shared, own, labels, seen, places,
    kept, kept_rows, space, out,
):  # fmt: skip
    """Replay rows of every label; returns how many, with a minus and one less where one is unsure.

    A row that turns out wrong or unsure has changed nothing.
    """
    m, taken, near, last, calm = eta.shape[1], 0, numbers[NEAR], rows.shape[0] - 1, False
    hits, positives, _, lucky, eager = strengths
    by = Strengths(hits, positives, hits, lucky, eager)  # the same also where none was ever hit
    clamped, uneven = numbers[CLAMPED] != 0.0, (hits != positives) | (lucky > 0.0)
    simple = (numbers[SLOPE] == 0.0) & (numbers[OFFSET + 1] == 0.0) & (numbers[OFFSET + 2] == 0.0)
    way = Way(numbers[AT_MEAN] != 0.0, simple & (not clamped), clamped, uneven, eager > 0.0)
    if not (sums_in_order(own, labels, m) if way.alike else in_order(space, own[N])):
        return -1
    series = series_of(known)
    for t in range(rows.shape[0]):
        look_at_sums(by, own, labels, level, seen)
        fine, s0, s1, s2, s3, f0, f1, f2, f3 = forms_now(numbers, seen, m)
        if not fine:
            return -1 - t
        if t % OFTEN == 0:
            calm = mild(space)
        if not take_row(eta, rows[t], rows[min(t + 1, last)], m, series, shared, calm, space):
            return t
        forms = (s0, s1, s2, s3), (f0, f1, f2, f3)
        if flag_row(*forms, by, way, near, space, m, out, rows[t]):
            return -1 - t
        count_and_learn(space, shared, own, labels, level, true, true_rows[t], m)
        if taken < places.shape[0] and places[taken] == t + 1:
            keep_true(space, kept[taken])
            kept_rows[taken] = labels[N]
            taken += 1
    return rows.shape[0]
