"""A sliding window: store what each row added to the counts, and subtract it when the row leaves.

Stored rows (records) are in order of arrival, without gaps. For each record, ``ids`` has three
lists, one after another: the predicted labels, the true labels, and the labels with a probability.
``values`` has the probabilities of the third list. ``rows`` has the lengths of the three lists.
Callers (``omma.sliding_window``) make sure that there is room for new records.

Integer weights and labels are counted exactly, so subtracting them leaves nothing behind. Sums of
probabilities are rounded. To keep rounding errors from accumulating, all counts are recomputed from
the stored rows each time that the window has been renewed. Calibration and prices cannot be
subtracted; they decay instead (``decay``).
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

# Columns of ``rows``: the numbers of predicted labels, true labels and probabilities; the kind.
CHOSEN, OCCURRED, STORED, KIND, COLUMNS = range(5)

# The kind of a record is a sum of these.
IN_WINDOW: Final = 1  # a row of the window; labels that arrive later are a record without it
LABELLED: Final = 2  # the record has labels that are counted

# Positions in ``numbers``: where the stored records begin and end in ``rows``, ``ids`` and
# ``values``; then the state of the window.
FIRST, END, FIRST_ID, END_ID, FIRST_VALUE, END_VALUE = range(6)
N_ROWS: Final = 6  # records IN_WINDOW
LENGTH: Final = 7  # the maximum of N_ROWS
ROWS_SINCE_RECOUNT: Final = 8  # rows since all counts were last recomputed
NUMBERS: Final = 9

# Values of ``timed``. NumPy booleans, so that a function is compiled once for both.
NOW, LATER = np.bool_(True), np.bool_(False)


class WindowArrays(NamedTuple):
    """The rows of the window; ``omma.sliding_window`` allocates the arrays."""

    ids: Any  # (room,) int32: label ids, three lists for each record
    values: Any  # (room,) float64: probabilities
    rows: Any  # (room, COLUMNS) int32: lengths of the lists and kind of each record
    weights: Any  # (room,) float64: weight of each record
    numbers: Any  # (NUMBERS,) int64
    marks: Any  # (m,) float64: scratch space


@by_kind
def keeps_values(feedback, timed):
    """Whether the probabilities of a row are stored.

    ``timed`` is True when the row is decided (NOW), and False when its labels arrive later (LATER).
    """


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
    """Append the label ids of a row whose ``flags`` (width,) are positive, in rising order.

    Returns where the list ends in ``ids``. Labels that were appended to a sparse row do not rise,
    so they are inserted by sorting. ``labels`` lists the ids of the row, and is None for a dense
    row.
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
def append_row(window, feedback, work, weight, timed, labelled, labels, width):
    """Store a row that is counted.

    ``work`` has VALUES, FLAGS and PRESENT of the row. ``timed`` is NOW for a row of the window, or
    LATER for labels that arrive after the decision. ``labelled`` says whether its labels are
    counted.
    """
    if not weight > 0.0:
        return
    ids, rows, numbers = window.ids, window.rows, window.numbers
    row, end, end_value = numbers[END], numbers[END_ID], numbers[END_VALUE]
    with_values = keeps_values(feedback, timed)
    lists = (CHOSEN, FLAGS, True), (OCCURRED, PRESENT, labelled), (STORED, VALUES, with_values)
    for part, column, is_stored in lists:
        begin = end
        if is_stored:
            end = append_ids(ids, end, work[column], labels, width)
        rows[row, part] = end - begin
    if with_values:
        for i in range(width):
            if work[VALUES, i] > 0.0:
                window.values[end_value] = work[VALUES, i]
                end_value += 1
    rows[row, KIND] = (IN_WINDOW if timed else 0) + (LABELLED if labelled else 0)
    window.weights[row] = weight
    numbers[END], numbers[END_ID], numbers[END_VALUE] = row + 1, end, end_value


@helper
def count_ids(which, sums, chosen, ids, degrees, weight, marks, table, totals):
    """Add a stored row to one set of counts, label by label.

    ``chosen`` lists the predicted labels and ``ids`` the labels that are present, with ``degrees``
    (None is 1 each). ``marks``, shape (m,), is 1 at the chosen labels. A negative weight subtracts
    the row. Writes ``table`` (fields, m) and ``totals`` (SETS, TOTALS).
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
    """Add a stored row to the sets of counts that its kind of feedback uses, or subtract it.

    ``kind`` is the sum of IN_WINDOW and LABELLED. ``chosen``, ``true`` and ``stored`` are the three
    lists of label ids, and ``values`` the probabilities of ``stored``.
    """


@count_recent.case()
def count_recent_labels(
    feedback, sums, kind, chosen, true, stored, values, weight, marks, table, totals
):
    count_ids(OWN, sums, chosen, true, None, weight, marks, table, totals)


@count_recent.case(Estimates)
def count_recent_estimates(
    feedback, sums, kind, chosen, true, stored, values, weight, marks, table, totals
):
    if kind & IN_WINDOW:
        count_ids(OWN, sums, chosen, stored, values, weight, marks, table, totals)
    if kind & LABELLED:
        count_ids(TRUE, 0, chosen, true, None, weight, marks, table, totals)


@count_recent.case(Both)
def count_recent_both(
    feedback, sums, kind, chosen, true, stored, values, weight, marks, table, totals
):
    if kind & IN_WINDOW:
        count_ids(OWN, sums, chosen, stored, values, weight, marks, table, totals)
    if kind & LABELLED:
        count_ids(TRUE, sums, chosen, true, None, weight, marks, table, totals)
        count_ids(KNOWN, sums, chosen, stored, values, weight, marks, table, totals)


@helper
def count_recent_row(
    window, feedback, sums, limits, table, totals, row, first_id, first_value, sign
):
    """Add (``sign`` 1) or subtract (−1) one stored row; returns where the next row's lists start.

    ``row`` is its position in ``rows``. Its lists start at ``first_id`` in ``ids`` and
    ``first_value`` in ``values``.
    """
    rows, ids, marks = window.rows, window.ids, window.marks
    middle = first_id + rows[row, CHOSEN]
    last = middle + rows[row, OCCURRED]
    end, end_value = last + rows[row, STORED], first_value + rows[row, STORED]
    chosen, true, stored = ids[first_id:middle], ids[middle:last], ids[last:end]
    values, kind = window.values[first_value:end_value], rows[row, KIND]
    # ``marks`` is not cleared between rows, so set it at every label of this row.
    for i in range(first_id, end):
        marks[ids[i]] = 0.0
    for i in range(chosen.shape[0]):
        marks[chosen[i]] = 1.0
    weight = sign * window.weights[row]
    leaves = sign < 0.0
    # The labels that are present in the counts that limits are held on: their recalls change.
    present = true if limited_set(feedback) != OWN or stored.shape[0] == 0 else stored
    if leaves:
        add_recalls(limits, feedback, table, present, -1.0)
    count_recent(feedback, sums, kind, chosen, true, stored, values, weight, marks, table, totals)
    if leaves:
        for i in range(first_id, end):  # rounding may leave a count slightly below zero
            for field in range(3 * KNOWN + 3):
                table[field, ids[i]] = max(table[field, ids[i]], 0.0)
        add_recalls(limits, feedback, table, present, 1.0)
    return end, end_value


@helper
def drop_oldest(window, feedback, sums, limits, table, totals):
    """Subtract the oldest stored row from the counts, and remove it from the window."""
    numbers = window.numbers
    row, first_id, first_value = numbers[FIRST], numbers[FIRST_ID], numbers[FIRST_VALUE]
    numbers[FIRST_ID], numbers[FIRST_VALUE] = count_recent_row(
        window, feedback, sums, limits, table, totals, row, first_id, first_value, -1.0
    )
    numbers[FIRST] += 1


@helper
def recount(window, feedback, sums, limits, table, totals):
    """Recompute all counts from the stored rows; rounding errors then last at most one window."""
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
def advance(window, feedback, sums, limits, table, totals):
    """After a row was stored: remove the oldest row if the window is longer than LENGTH.

    Recomputes all counts after every LENGTH rows.
    """
    numbers = window.numbers
    numbers[N_ROWS] += 1
    if numbers[N_ROWS] > numbers[LENGTH]:
        numbers[N_ROWS] -= 1
        # Late labels stored between the oldest row and the next row of the window leave with it.
        is_next = False
        while not is_next:
            drop_oldest(window, feedback, sums, limits, table, totals)
            is_next = (window.rows[numbers[FIRST], KIND] & IN_WINDOW) != 0
    numbers[ROWS_SINCE_RECOUNT] += 1
    if numbers[ROWS_SINCE_RECOUNT] >= numbers[LENGTH]:
        numbers[ROWS_SINCE_RECOUNT] = 0
        recount(window, feedback, sums, limits, table, totals)
