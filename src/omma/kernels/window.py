"""A sliding window: what a row added to the counts is kept, and taken off when the row leaves.

Rows are kept in the order they came, without gaps: ``ids`` has the labels predicted, those that
were true and those with a probability, one list after another, ``values`` the probabilities, and
``rows`` how many of each. Callers see to it that there is room.

Whole weights and labels are counted exactly, so taking them off leaves nothing behind. Sums of
probabilities are rounded; so that this never adds up, all is counted anew from what is kept each
time that the window has been renewed. Calibration and prices cannot be taken back: they decay.
"""

from typing import Any, Final, NamedTuple

import numpy as np

from omma.kernels.counts import Both, Estimates, fixed, unfixed
from omma.kernels.jit import by_kind, helper
from omma.kernels.layout import (
    FLAGS,
    KNOWN,
    OWN,
    POSITIVE,
    PREDICTED,
    PRESENT,
    SUM_POSITIVE,
    SUM_PREDICTED,
    SUM_TP,
    TP,
    TRUE,
    VALUES,
    N,
)
from omma.kernels.limits import add_recalls, limited_set, recount_recalls

# Columns of `rows`: how many labels were predicted, were true, have a probability; and the kind.
CHOSEN, OCCURRED, STORED, KIND, COLUMNS = range(5)

# Kinds, added up.
TIMED: Final = 1  # a row of the window; labels that come later are none
LABELLED: Final = 2  # its labels are counted

# `numbers`: where what is kept begins and ends, and the window.
FIRST, END, FIRST_ID, END_ID, FIRST_VALUE, END_VALUE = range(6)
HELD: Final = 6  # rows of the window, without labels that came later
LENGTH: Final = 7  # the most of them
SINCE: Final = 8  # rows since all was counted anew
NUMBERS: Final = 9

# Whether a row is of the window, or labels that come later: of one type (``layout.OWN``).
NOW, LATER = np.bool_(True), np.bool_(False)


class Recent(NamedTuple):
    """The rows of the window; ``marks``, shape (m,), is scratch space."""

    ids: Any
    values: Any
    rows: Any
    weights: Any
    numbers: Any
    marks: Any


@by_kind
def keeps_values(feedback, timed):
    """Whether the probabilities of a row are counted."""


@keeps_values.case()
def keeps_no_values(feedback, timed):
    return False


@keeps_values.case(Estimates)
def keeps_decided_values(feedback, timed):
    return timed


@keeps_values.case(Both)
def keeps_all_values(feedback, timed):
    return True


@helper
def append_ids(ids, end, flags, labels, width):
    """List the labels of a row that are flagged, rising; returns where the list ends.

    Labels that were appended to a sparse row are sorted in.
    """
    begin = end
    for i in range(width):
        if flags[i] > 0.0:
            j = i if labels is None else labels[i]
            at = end
            while at > begin and ids[at - 1] > j:
                ids[at] = ids[at - 1]
                at -= 1
            ids[at] = j
            end += 1
    return end


@helper
def remember(window, feedback, work, weight, timed, labelled, labels, width):
    """Keep a row that is counted."""
    if not weight > 0.0:
        return
    ids, rows, numbers = window.ids, window.rows, window.numbers
    begin = numbers[END_ID]
    end = append_ids(ids, begin, work[FLAGS], labels, width)
    chosen = end - begin
    if labelled:
        end = append_ids(ids, end, work[PRESENT], labels, width)
    occurred = end - begin - chosen
    stored = 0
    if keeps_values(feedback, timed):
        before = end
        end = append_ids(ids, end, work[VALUES], labels, width)
        for i in range(width):
            if work[VALUES, i] > 0.0:
                window.values[numbers[END_VALUE] + stored] = work[VALUES, i]
                stored += 1
        stored = end - before
    row = numbers[END]
    rows[row, CHOSEN], rows[row, OCCURRED], rows[row, STORED] = chosen, occurred, stored
    rows[row, KIND] = (TIMED if timed else 0) + (LABELLED if labelled else 0)
    window.weights[row] = weight
    numbers[END] += 1
    numbers[END_ID] = end
    numbers[END_VALUE] += stored


@helper
def count_ids(which, sums, chosen, ids, degrees, weight, marks, table, totals):
    """Add a row to a set of counts label by label; ``degrees`` is None where labels are true.

    ``marks`` is one at the chosen labels. A weight below zero takes the row off again.
    """
    first = 3 * which
    totals[which, N] += weight
    hits, present = np.int64(0), np.int64(0)
    for i in range(chosen.shape[0]):
        table[first + PREDICTED, chosen[i]] += weight
    for i in range(ids.shape[0]):
        j = ids[i]
        degree = 1.0 if degrees is None else degrees[i]
        table[first + POSITIVE, j] += weight * degree
        table[first + TP, j] += weight * degree * marks[j]
        hits += fixed(degree * marks[j])
        present += fixed(degree)
    if sums > 0:
        totals[which, SUM_TP] += weight * unfixed(hits)
        totals[which, SUM_PREDICTED] += weight * chosen.shape[0]
        totals[which, SUM_POSITIVE] += weight * unfixed(present)


@by_kind
def count_recent(feedback, sums, kind, chosen, true, stored, values, weight, marks, table, totals):
    """Count a row that was kept, or take it off."""


@count_recent.case()
def count_recent_labels(
    feedback, sums, kind, chosen, true, stored, values, weight, marks, table, totals
):
    count_ids(OWN, sums, chosen, true, None, weight, marks, table, totals)


@count_recent.case(Estimates)
def count_recent_estimates(
    feedback, sums, kind, chosen, true, stored, values, weight, marks, table, totals
):
    if kind & TIMED:
        count_ids(OWN, sums, chosen, stored, values, weight, marks, table, totals)
    if kind & LABELLED:
        count_ids(TRUE, 0, chosen, true, None, weight, marks, table, totals)


@count_recent.case(Both)
def count_recent_both(
    feedback, sums, kind, chosen, true, stored, values, weight, marks, table, totals
):
    if kind & TIMED:
        count_ids(OWN, sums, chosen, stored, values, weight, marks, table, totals)
    if kind & LABELLED:
        count_ids(TRUE, sums, chosen, true, None, weight, marks, table, totals)
        count_ids(KNOWN, sums, chosen, stored, values, weight, marks, table, totals)


@helper
def count_recent_row(
    window, feedback, sums, limits, table, totals, row, first_id, first_value, sign
):
    """Count the kept row whose lists begin there, or take it off; returns where the next begins."""
    rows, ids, marks = window.rows, window.ids, window.marks
    middle = first_id + rows[row, CHOSEN]
    last = middle + rows[row, OCCURRED]
    end, end_value = last + rows[row, STORED], first_value + rows[row, STORED]
    chosen, true, stored = ids[first_id:middle], ids[middle:last], ids[last:end]
    values, kind = window.values[first_value:end_value], rows[row, KIND]
    for i in range(first_id, end):
        marks[ids[i]] = 0.0
    for i in range(chosen.shape[0]):
        marks[chosen[i]] = 1.0
    weight = sign * window.weights[row]
    leaves = sign < 0.0
    present = true if limited_set(feedback) != OWN or stored.shape[0] == 0 else stored
    if leaves:
        add_recalls(limits, feedback, table, present, -1.0)
    count_recent(feedback, sums, kind, chosen, true, stored, values, weight, marks, table, totals)
    if leaves:
        for i in range(first_id, end):  # rounding may leave less than nothing of a count
            for field in range(3 * KNOWN + 3):
                table[field, ids[i]] = max(table[field, ids[i]], 0.0)
        add_recalls(limits, feedback, table, present, 1.0)
    return end, end_value


@helper
def leave(window, feedback, sums, limits, table, totals):
    """Take the first row off the counts, and let it go."""
    numbers = window.numbers
    row, first_id, first_value = numbers[FIRST], numbers[FIRST_ID], numbers[FIRST_VALUE]
    numbers[FIRST_ID], numbers[FIRST_VALUE] = count_recent_row(
        window, feedback, sums, limits, table, totals, row, first_id, first_value, -1.0
    )
    numbers[FIRST] += 1


@helper
def count_anew(window, feedback, sums, limits, table, totals):
    """Count all that is kept from nothing, so that no rounding stays for longer than a window."""
    for field in range(3 * KNOWN + 3):
        for j in range(table.shape[1]):
            table[field, j] = 0.0
    for which in range(KNOWN + 1):
        for i in range(totals.shape[1]):
            totals[which, i] = 0.0
    numbers = window.numbers
    first_id, first_value = numbers[FIRST_ID], numbers[FIRST_VALUE]
    for row in range(numbers[FIRST], numbers[END]):
        first_id, first_value = count_recent_row(
            window, feedback, sums, limits, table, totals, row, first_id, first_value, 1.0
        )
    recount_recalls(limits, feedback, table)


@helper
def slide(window, feedback, sums, limits, table, totals):
    """After a row was kept: the one that is too many leaves."""
    numbers = window.numbers
    numbers[HELD] += 1
    if numbers[HELD] > numbers[LENGTH]:
        numbers[HELD] -= 1
        leave(window, feedback, sums, limits, table, totals)
        # Labels that came after it, and before the next row, go with it.
        while (window.rows[numbers[FIRST], KIND] & TIMED) == 0:
            leave(window, feedback, sums, limits, table, totals)
    numbers[SINCE] += 1
    if numbers[SINCE] >= numbers[LENGTH]:
        numbers[SINCE] = 0
        count_anew(window, feedback, sums, limits, table, totals)
