"""Rows of which some labels are known, and others not.

Such a row is counted as one without labels first. Then what is known of it is counted as labels
that come later are: the row again, less the labels that are unknown, with its true ones. So a
label's counts of labels, and of probabilities beside them, are of the rows in which it was known.
How much weight it missed is kept, for what decisions are worth and, with ``FromSome``, for what
they look at.
"""

from typing import Any, NamedTuple

from omma.kernels.calibrate import fit
from omma.kernels.fade import Fading
from omma.kernels.feedback import FromSome
from omma.kernels.jit import by_kind, helper
from omma.kernels.layout import FLAGS, PRESENT, UNIT, VALUES
from omma.kernels.learn import fit_stored, learn, learn_stored
from omma.kernels.pointer import EVERYTHING
from omma.kernels.price_steps import move, move_stored
from omma.kernels.slide import LATE, Sliding


class Parted(NamedTuple):
    """Labels that are unknown: of row t ``ids[starts[t]:ends[t]]``, none of them of most rows.

    ``feedback`` and ``prices`` are what known labels are counted in, and ``missed`` what their
    truth lacks of each label; it is empty where the feedback keeps that.
    """

    starts: Any
    ends: Any
    ids: Any
    feedback: Any
    prices: Any
    missed: Any


@by_kind
def count_late(feedback, late):
    """Say to a window that labels come of a row that it has (1), and that they came (0)."""


@count_late.case()
def count_late_anyway(feedback, late):
    pass


@count_late.case(Sliding)
def count_late_in_window(feedback, late):
    feedback.recent.numbers[LATE] = late


@by_kind
def miss(feedback, ids, weight):
    """Note labels that were unknown in a row, for who decides by labels alone."""


@miss.case()
def miss_not(feedback, ids, weight):
    pass


@miss.case(FromSome)
def miss_some(feedback, ids, weight):
    for i in range(ids.shape[0]):
        feedback.missed[ids[i]] += weight


@miss.case(Fading)
def miss_faded(feedback, ids, weight):
    miss(feedback.of, ids, weight * feedback.pace[UNIT])


@helper
def note_missed(part, start, end, weight):
    """Note labels that were unknown in a row."""
    if part.missed.shape[0] > 0:
        for i in range(start, end):
            part.missed[part.ids[i]] += weight
    miss(part.feedback, part.ids[start:end], weight)


@helper
def learn_part(part, true, t, found, weight, sums, calibrator, scratch):
    """Count what is known of a dense row; returns whether it is one of which a part is known."""
    start, end = part.starts[t], part.ends[t]
    if start == end:
        return False
    values, flags, present = scratch[VALUES], scratch[FLAGS], scratch[PRESENT]
    y, m = true.array[true.rows[t]], flags.shape[0]
    for j in range(m):
        present[j] = 1.0 if y[j] != 0 else 0.0
    for i in range(start, end):
        j = part.ids[i]
        found -= flags[j] != 0.0
        flags[j] = values[j] = present[j] = 0.0
    count_late(part.feedback, 1)
    learn(part.feedback, found, present, True, weight, sums, scratch)
    move(part.prices, present, True, found, weight, flags, values)
    fit(calibrator, EVERYTHING, m, scratch, present, weight)
    note_missed(part, start, end, weight)
    count_late(part.feedback, 0)
    return True


@helper
def learn_part_stored(part, true, t, labels, chosen, found, weight, sums, calibrator, scratch):
    """The same for a row of stored labels: of ``chosen`` the known ones are left, at its start."""
    start, end = part.starts[t], part.ends[t]
    if start == end:
        return False
    values, flags, present = scratch[VALUES], scratch[FLAGS], scratch[PRESENT]
    for i in range(start, end):
        present[part.ids[i]] = 1.0  # of what is unknown, for a moment
    for i in range(labels.shape[0]):
        values[i] = 0.0 if present[labels[i]] != 0.0 else values[i]
    kept = 0
    for i in range(found):
        if present[chosen[i]] != 0.0:
            flags[chosen[i]] = 0.0
        else:
            chosen[kept] = chosen[i]
            kept += 1
    for i in range(start, end):
        present[part.ids[i]] = 0.0
    begin, stop = true.starts[t], true.ends[t]
    actual = true.ids[begin:stop]
    count_late(part.feedback, 1)
    learn_stored(part.feedback, labels, chosen, kept, actual, True, weight, sums, scratch)
    move_stored(
        part.prices, labels, values, true.ids, begin, stop, True, kept, weight, flags, present
    )
    fit_stored(calibrator, labels, actual, weight, scratch)
    note_missed(part, start, end, weight)
    count_late(part.feedback, 0)
    return True
