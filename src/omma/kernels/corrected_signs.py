"""Dense rows without a budget that all have labels, calibrated and corrected, decided by signs.

What ``omma.kernels.signs`` is to counts of labels, this is to counts of probabilities corrected by
labels, behind calibration: the usual metrics are numbers to one loop, all that is kept of a label
lies in a tile, and a row that is near a tie is left to the gains. Values, counts and calibration
are worked out by the same functions as there, so all bits are the same.

Several short loops are faster than one: there are too few registers for what is the same for all
labels, and a processor looks some hundred instructions ahead only.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omma.kernels.calibrate import (
    CURVE_BOTH,
    CURVE_INTERCEPT,
    CURVE_SLOPE,
    INTERCEPT,
    LABELLED,
    SLOPE,
    START_CURVE,
    START_PRECISION,
    follow,
    held,
)
from omma.kernels.feedback import ask_for_less, shrunk_counts_of_all
from omma.kernels.jit import entry, helper
from omma.kernels.lanes import times_plus
from omma.kernels.layout import SUM_POSITIVE, SUM_PREDICTED, SUM_TP, N
from omma.kernels.logistic import logit, sigmoid
from omma.kernels.signs import AT_MEAN, CLAMPED, NEAR, forms_now

TILE: Final = 64
LANES: Final = 16

# What is kept of a label, in a tile: counts of probabilities, of labels, and calibration.
PREDICTED: Final = TILE  # after tp
POSITIVE: Final = 2 * TILE
TRUE_TP: Final = 3 * TILE
TRUE_POSITIVE: Final = 4 * TILE
BIAS: Final = 5 * TILE
PRECISION: Final = 6 * TILE
# What is worked out of a row; values are calibrated in their place.
PRESENT: Final = 7 * TILE
LOGITS: Final = 8 * TILE
VALUES: Final = 9 * TILE
FLAGS: Final = 10 * TILE
SEEN_TP: Final = 11 * TILE
SEEN_POSITIVE: Final = 12 * TILE
ERRORS: Final = 11 * TILE  # when decisions are made
CURVES: Final = 12 * TILE
FIELDS: Final = 13


class Strengths(NamedTuple):
    """How much labels correct counts; see ``omma.kernels.feedback.FromBoth``."""

    hits: float
    positives: float
    unhit: float
    lucky: float
    eager: float


def packed(*kept: NDArray[np.float64]) -> NDArray[np.float64]:
    """Space to work in, with what is kept of every label in it."""
    m = len(kept[0])
    space = np.zeros((-(-m // TILE), FIELDS, TILE))
    for field, of_labels in enumerate(kept):
        for tile, start in enumerate(range(0, m, TILE)):
            part = of_labels[start : start + TILE]
            space[tile, field, : len(part)] = part
    return space.ravel()


def unpacked(space: NDArray[np.float64], *kept: NDArray[np.float64]) -> None:
    """Write what is kept out of the space to work in."""
    tiles = space.reshape(-1, FIELDS, TILE)
    for field, of_labels in enumerate(kept):
        of_labels[:] = tiles[:, field].ravel()[: len(of_labels)]


@helper
def lanes_in(m, start):
    """How many labels of a tile there are, and the same in whole lanes."""
    left = m - start if m - start < TILE else TILE
    return left, (left + LANES - 1) // LANES * LANES


@helper
def find_logit(space, at):
    """Find the logit of a label; returns whether its probability is none."""
    value = space[at + VALUES]
    space[at + LOGITS] = logit(value)
    return not ((value >= 0.0) & (value <= 1.0))


@helper
def calibrate_label(space, at, a, b):
    """Calibrate a label's probability."""
    value = sigmoid((a * space[at + LOGITS] + b) + space[at + BIAS])
    space[at + VALUES] = value if space[at + VALUES] > 0.0 else 0.0


@helper
def correct(space, at, by):
    """Find the counts of a label that decisions look at."""
    true, every = (
        (space[at + TRUE_TP], space[at + TRUE_POSITIVE]),
        (space[at], space[at + POSITIVE]),
    )
    tp, positive = shrunk_counts_of_all(by, *true, *every, space[at + PREDICTED])
    space[at + SEEN_TP] = tp
    space[at + SEEN_POSITIVE] = positive


@helper
def decide(space, at, slopes, offsets, clamped, near):
    """Decide a label; returns whether that is not sure."""
    tp, predicted = space[at + SEEN_TP], space[at + PREDICTED]
    positive, value = space[at + SEEN_POSITIVE], space[at + VALUES]
    slope = times_plus(slopes[2], positive, slopes[3])
    slope = times_plus(slopes[0], tp, times_plus(slopes[1], predicted, slope))
    offset = times_plus(offsets[2], positive, offsets[3])
    offset = times_plus(offsets[0], tp, times_plus(offsets[1], predicted, offset))
    # Corrected counts may leave less than no true negatives, of which gains make none.
    least = -clamped * offset
    gain = times_plus(slope if slope > least else least, value, offset)
    space[at + FLAGS] = 1.0 if (gain >= 0.0) & (value > 0.0) else 0.0
    return (abs(gain) <= near) & (value > 0.0)


@helper
def count(space, at):
    """Count a label."""
    flag, present, value = space[at + FLAGS], space[at + PRESENT], space[at + VALUES]
    space[at] += value * flag
    space[at + PREDICTED] += flag
    space[at + POSITIVE] += value
    space[at + TRUE_TP] += present * flag
    space[at + TRUE_POSITIVE] += present


@helper
def learn(space, at, share):
    """Learn a label's calibration."""
    present, value = space[at + PRESENT], space[at + VALUES]
    stored = 1.0 if value > 0.0 else 0.0
    error = value - present
    curve = stored * max(value * (1.0 - value), error * error)
    space[at + ERRORS] = error * stored
    space[at + CURVES] = curve
    precision = space[at + PRECISION] + curve
    space[at + PRECISION] = precision
    space[at + BIAS] -= share * (error * stored) / (START_PRECISION + precision)


@helper
def look_at_sums(strengths, own, labels, level, seen):
    """Sums over labels that decisions look at."""
    seen[N] = own[N]
    if level > 0:
        true, every = (labels[SUM_TP], labels[SUM_POSITIVE]), (own[SUM_TP], own[SUM_POSITIVE])
        found = shrunk_counts_of_all(strengths, *true, *every, own[SUM_PREDICTED])
        seen[SUM_TP], seen[SUM_POSITIVE] = found
        seen[SUM_PREDICTED] = own[SUM_PREDICTED]


@helper
def add_up(space, m, own, labels):
    """Add a row to the sums over labels; those of probabilities in the order of labels."""
    hits = total = 0.0
    found = true_hits = all_true = 0
    for tile in range(space.shape[0] // (FIELDS * TILE)):
        base, left = tile * FIELDS * TILE, lanes_in(m, tile * TILE)[0]
        for i in range(left):
            at = base + i
            hits += space[at + VALUES] * space[at + FLAGS]
            total += space[at + VALUES]
        for i in range(left):
            at = base + i
            flag, present = space[at + FLAGS], space[at + PRESENT]
            found += flag != 0.0
            true_hits += present * flag != 0.0
            all_true += present != 0.0
    own[SUM_TP] += hits
    own[SUM_POSITIVE] += total
    own[SUM_PREDICTED] += found
    labels[SUM_TP] += true_hits
    labels[SUM_POSITIVE] += all_true
    labels[SUM_PREDICTED] += found


@helper
def keep(space, m, kept):
    """Keep the counts of true labels where the caller wants to look back."""
    for j in range(m):
        at = j // TILE * FIELDS * TILE + j % TILE
        kept[0, j] = space[at + TRUE_TP]
        kept[1, j] = space[at + PREDICTED]
        kept[2, j] = space[at + TRUE_POSITIVE]


@entry("the dense replay")
def replay_corrected_by_sign(
    eta, rows, true, true_rows, numbers, strengths, level, shared, own, labels, seen, places, kept,
    kept_rows, space, out,
):  # fmt: skip
    """Replay rows of every label; returns how many, with a minus and one less where one is unsure.

    A row that turns out wrong or unsure has changed nothing.
    """
    m, taken, near = eta.shape[1], 0, numbers[NEAR]
    tiles = space.shape[0] // (FIELDS * TILE)
    hits, positives, _, lucky, eager = strengths
    by = Strengths(hits, positives, hits, lucky, eager)  # the same also where none was ever hit
    at_mean, clamped, share = numbers[AT_MEAN] != 0.0, numbers[CLAMPED], 1.0 - 1.0 / m
    for t in range(rows.shape[0]):
        row, true_row = rows[t], true_rows[t]
        look_at_sums(by, own, labels, level, seen)
        fine, s0, s1, s2, s3, f0, f1, f2, f3 = forms_now(numbers, seen, m)
        if not fine:
            return -1 - t
        a, b = held(shared[SLOPE]), shared[INTERCEPT]
        learned = shared[LABELLED] > 0.0
        slopes, offsets = (s0, s1, s2, s3), (f0, f1, f2, f3)
        wrong = unsure = 0
        for tile in range(tiles):
            base, start = tile * FIELDS * TILE, tile * TILE
            left, whole = lanes_in(m, start)
            for i in range(left):
                space[base + i + VALUES] = eta[row, start + i]
                space[base + i + PRESENT] = true[true_row, start + i]
            for i in range(whole):
                wrong += find_logit(space, base + i)
            for i in range(whole if learned else 0):
                calibrate_label(space, base + i, a, b)
            for i in range(0 if at_mean else whole):
                correct(space, base + i, by)
            if eager > 0.0:
                ask_for_less(
                    by,
                    space[base + SEEN_TP :],
                    space[base + PREDICTED :],
                    space[base + SEEN_POSITIVE :],
                    left,
                )
            for i in range(whole):
                unsure += decide(space, base + i, slopes, offsets, clamped, near)
        if wrong > 0:
            return t
        if unsure > 0:
            return -1 - t
        own[N] += 1.0
        labels[N] += 1.0
        by_slope, by_intercept = 0.0, 0.0
        curve_slope, curve_both, curve_intercept = 0.0, 0.0, 0.0
        for tile in range(tiles):
            base, start = tile * FIELDS * TILE, tile * TILE
            left, whole = lanes_in(m, start)
            for i in range(whole):
                count(space, base + i)
            for i in range(whole):
                learn(space, base + i, share)
            for i in range(left):
                at = base + i
                z, error, curve = space[at + LOGITS], space[at + ERRORS], space[at + CURVES]
                by_slope += error * z
                by_intercept += error
                curve_both += curve * z
                curve_slope += curve * z * z
                curve_intercept += curve
            if out.shape[0] > 0:
                for i in range(left):
                    out[row, start + i] = np.int8(space[base + i + FLAGS])
        if level > 0:
            add_up(space, m, own, labels)
        shared[CURVE_SLOPE] += curve_slope
        shared[CURVE_BOTH] += curve_both
        shared[CURVE_INTERCEPT] += curve_intercept
        shared[LABELLED] += 1.0
        follow(shared, START_CURVE, by_slope, by_intercept)
        if taken < places.shape[0] and places[taken] == t + 1:
            keep(space, m, kept[taken])
            kept_rows[taken] = labels[N]
            taken += 1
    return rows.shape[0]
