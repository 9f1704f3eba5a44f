"""A window: what a row added to the counts is kept, and taken off again when the row leaves.

Rows are kept in the order they came, in arrays without gaps: ``ids`` has the labels chosen, those
that were true and those with a probability, one list after another, ``values`` the probabilities,
and ``rows`` how many of each. Nothing is made here: the caller sees to it that there is room.

Whole weights and labels are counted exactly, so taking them off leaves nothing behind. Sums of
probabilities are rounded; so that this never adds up, all is counted anew from what is kept each
time that the window has been renewed, which is as much work again as to count the rows once.
"""

from typing import Any, Final, NamedTuple

from omma.kernels.count import NO_SUMS, count_stored
from omma.kernels.fade import divide_calibrator, fade
from omma.kernels.feedback import Counted, FromBoth, FromEstimates, FromLabels, gather, look, truth
from omma.kernels.jit import by_kind, helper, section
from omma.kernels.layout import (
    ERAS,
    FLAGS,
    GATHERED,
    GROWTH,
    LARGEST_UNIT,
    ONES,
    POSITIVE,
    PREDICTED,
    TP,
    UNIT,
    VALUES,
)
from omma.kernels.price_steps import fade_spread, follow_leaving, settle_rates

# Columns of `rows`.
CHOSEN, TRUE, STORED, KIND, COLUMNS = range(5)

# Kinds: bits that are added.
TIMED: Final = 1  # a row of the window; labels that come later are none
KNOWN: Final = 2  # its labels are counted

# `numbers`: where what is kept begins and ends, and the window.
FIRST: Final = 0
END: Final = 1
FIRST_ID: Final = 2
END_ID: Final = 3
FIRST_VALUE: Final = 4
END_VALUE: Final = 5
HELD: Final = 6  # rows of the window, without labels that came later
LENGTH: Final = 7  # the most of them
SINCE: Final = 8  # rows since all was counted anew
LATE: Final = 9  # one while labels of a row are counted that has had its time
NUMBERS: Final = 10


class Recent(NamedTuple):
    """The rows of the window."""

    ids: Any
    values: Any
    rows: Any
    weights: Any
    numbers: Any


class Sliding(NamedTuple):
    """Feedback of the last rows, and beside it the counts of true labels of all."""

    of: Any  # FromLabels, FromEstimates or FromBoth
    judged: Counted
    recent: Recent
    pace: Any  # of calibration and prices, which cannot be taken off: they fade
    sums: Any  # what keeps sums over labels of rows as they are kept


@look.case(Sliding)
def look_at_window(feedback, sums):
    return look(feedback.of, sums)


@gather.case(Sliding)
def gather_window(feedback, labels, sums, scratch):
    return gather(feedback.of, labels, sums, scratch)


@truth.case(Sliding)
def truth_of_all(feedback):
    return feedback.judged


@by_kind
def keeps_values(feedback, timed):
    """Whether the probabilities of a row are counted."""


@keeps_values.case(FromLabels)
def keeps_none(feedback, timed):
    return False


@keeps_values.case(FromEstimates)
def keeps_those_decided(feedback, timed):
    return timed


@keeps_values.case(FromBoth)
def keeps_all(feedback, timed):
    return True


@by_kind
def counts_row(feedback, known):
    """Whether a row is counted at all."""


@counts_row.case()
def counts_every(feedback, known):
    return True


@counts_row.case(FromLabels)
def counts_labelled(feedback, known):
    return known


@helper
def end_row(recent, chosen, true, stored, known, weight):
    """Note the row whose ids and values were put at the end."""
    numbers, rows = recent.numbers, recent.rows
    row = numbers[END]
    rows[row, CHOSEN] = chosen
    rows[row, TRUE] = true
    rows[row, STORED] = stored
    rows[row, KIND] = (0 if numbers[LATE] else TIMED) + (KNOWN if known else 0)
    recent.weights[row] = weight
    numbers[END] += 1
    numbers[END_ID] += chosen + true + stored
    numbers[END_VALUE] += stored


@helper
def remember(feedback, present, known, weight, scratch):
    """Keep a dense row that was counted."""
    recent = feedback.recent
    ids, numbers, flags, values = recent.ids, recent.numbers, scratch[FLAGS], scratch[VALUES]
    if weight <= 0.0 or not counts_row(feedback.of, known):
        return
    m, place = flags.shape[0], numbers[END_ID]
    for j in range(m):
        if flags[j] != 0.0:
            ids[place] = j
            place += 1
    chosen = place - numbers[END_ID]
    if known:
        for j in range(m):
            if present[j] != 0.0:
                ids[place] = j
                place += 1
    occurred = place - numbers[END_ID] - chosen
    stored = numbers[END_VALUE]
    if keeps_values(feedback.of, numbers[LATE] == 0):
        for j in range(m):
            if values[j] > 0.0:
                ids[place] = j
                recent.values[stored] = values[j]
                place += 1
                stored += 1
    end_row(recent, chosen, occurred, stored - numbers[END_VALUE], known, weight)


@helper
def remember_stored(feedback, labels, chosen, found, true, known, weight, scratch):
    """Keep a row of stored labels that was counted."""
    recent = feedback.recent
    ids, numbers, values = recent.ids, recent.numbers, scratch[VALUES]
    if weight <= 0.0 or not counts_row(feedback.of, known):
        return
    place = numbers[END_ID]
    for i in range(found):
        ids[place] = chosen[i]
        place += 1
    occurred = true.shape[0] if known else 0
    for i in range(occurred):
        ids[place] = true[i]
        place += 1
    stored = numbers[END_VALUE]
    if keeps_values(feedback.of, numbers[LATE] == 0):
        for position in range(labels.shape[0]):
            if values[position] > 0.0:
                ids[place] = labels[position]
                recent.values[stored] = values[position]
                place += 1
                stored += 1
    end_row(recent, found, occurred, stored - numbers[END_VALUE], known, weight)


@by_kind
def count_kept(feedback, kind, labels, values, chosen, true, weight, sums, scratch):
    """Count a row that was kept; with its weight below zero it is taken off."""


@count_kept.case(FromLabels)
def count_kept_labels(feedback, kind, labels, values, chosen, true, weight, sums, scratch):
    own, found, flags, ones = feedback.own, chosen.shape[0], scratch[GATHERED], scratch[ONES]
    count_stored(chosen, found, true, ones, flags, weight, sums, own.cells, own.totals)


@count_kept.case(FromEstimates)
def count_kept_estimates(feedback, kind, labels, values, chosen, true, weight, sums, scratch):
    own, beside, found = feedback.own, feedback.labels, chosen.shape[0]
    flags, ones = scratch[GATHERED], scratch[ONES]
    if kind & TIMED:
        count_stored(chosen, found, labels, values, flags, weight, sums, own.cells, own.totals)
    if kind & KNOWN:
        counts = beside.cells, beside.totals
        count_stored(chosen, found, true, ones, flags, weight, NO_SUMS, *counts)


@count_kept.case(FromBoth)
def count_kept_both(feedback, kind, labels, values, chosen, true, weight, sums, scratch):
    own, beside, both, found = feedback.own, feedback.labels, feedback.known, chosen.shape[0]
    flags, ones = scratch[GATHERED], scratch[ONES]
    if kind & TIMED:
        count_stored(chosen, found, labels, values, flags, weight, sums, own.cells, own.totals)
    if kind & KNOWN:
        counts = beside.cells, beside.totals
        count_stored(chosen, found, true, ones, flags, weight, sums, *counts)
        count_stored(chosen, found, labels, values, flags, weight, sums, both.cells, both.totals)


@helper
def raise_flags(labels, chosen, true, flags):
    """Flags of a row that was kept, at its own labels; the room is free until the next row."""
    for i in range(labels.shape[0]):
        flags[labels[i]] = 0.0
    for i in range(true.shape[0]):
        flags[true[i]] = 0.0
    for i in range(chosen.shape[0]):
        flags[chosen[i]] = 1.0


@helper
def hold_above(counted, labels):
    """Where rounding left less than nothing of a count, it is nothing."""
    cells = counted.cells
    for i in range(labels.shape[0]):
        j = labels[i]
        for cell in (TP, PREDICTED, POSITIVE):
            cells[cell, j] = max(cells[cell, j], 0.0)


@by_kind
def hold(feedback, labels):
    """The same for all counts of probabilities."""


@hold.case(FromLabels)
def hold_labels(feedback, labels):
    hold_above(feedback.own, labels)


@hold.case(FromEstimates)
def hold_estimates(feedback, labels):
    hold_above(feedback.own, labels)
    hold_above(feedback.labels, labels)


@hold.case(FromBoth)
def hold_both(feedback, labels):
    hold_above(feedback.own, labels)
    hold_above(feedback.labels, labels)
    hold_above(feedback.known, labels)


@section
def leave(feedback, recent, prices, sums, scratch):
    """Take the first row off the counts, and let it go."""
    numbers, rows, ids = recent.numbers, recent.rows, recent.ids
    row, first, value = numbers[FIRST], numbers[FIRST_ID], numbers[FIRST_VALUE]
    middle = first + rows[row, CHOSEN]
    last = middle + rows[row, TRUE]
    end, end_value = last + rows[row, STORED], value + rows[row, STORED]
    chosen, true, labels = ids[first:middle], ids[middle:last], ids[last:end]
    values, kind, weight = recent.values[value:end_value], rows[row, KIND], recent.weights[row]
    raise_flags(labels, chosen, true, scratch[GATHERED])
    follow_leaving(prices, kind & TIMED, kind & KNOWN, labels, true, -1.0)
    count_kept(feedback, kind, labels, values, chosen, true, -weight, sums, scratch)
    hold(feedback, ids[first:end])
    follow_leaving(prices, kind & TIMED, kind & KNOWN, labels, true, 1.0)
    numbers[FIRST] += 1
    numbers[FIRST_ID] = end
    numbers[FIRST_VALUE] = end_value


@helper
def clear(counted):
    """No counts."""
    cells, totals = counted.cells, counted.totals
    for cell in range(cells.shape[0]):
        for j in range(cells.shape[1]):
            cells[cell, j] = 0.0
    for total in range(totals.shape[0]):
        totals[total] = 0.0


@by_kind
def clear_all(feedback):
    """No counts of any kind."""


@clear_all.case(FromLabels)
def clear_labels(feedback):
    clear(feedback.own)


@clear_all.case(FromEstimates)
def clear_estimates(feedback):
    clear(feedback.own)
    clear(feedback.labels)


@clear_all.case(FromBoth)
def clear_both(feedback):
    clear(feedback.own)
    clear(feedback.labels)
    clear(feedback.known)


@section
def count_anew(feedback, recent, prices, sums, scratch):
    """Count all that is kept from nothing, so that no rounding stays for longer than a window."""
    numbers, rows, ids = recent.numbers, recent.rows, recent.ids
    clear_all(feedback)
    first, value = numbers[FIRST_ID], numbers[FIRST_VALUE]
    for row in range(numbers[FIRST], numbers[END]):
        middle = first + rows[row, CHOSEN]
        last = middle + rows[row, TRUE]
        end, end_value = last + rows[row, STORED], value + rows[row, STORED]
        chosen, true, labels = ids[first:middle], ids[middle:last], ids[last:end]
        raise_flags(labels, chosen, true, scratch[GATHERED])
        values, weight, kind = recent.values[value:end_value], recent.weights[row], rows[row, KIND]
        count_kept(feedback, kind, labels, values, chosen, true, weight, sums, scratch)
        first, value = end, end_value
    settle_rates(prices)


@fade.case(Sliding)
def slide(feedback, calibrator, prices, known, weight, scratch):
    """After a row: those that are too many leave; what cannot be taken off fades."""
    recent, pace, sums = feedback.recent, feedback.pace, feedback.sums
    numbers = recent.numbers
    if weight <= 0.0 or numbers[LATE] != 0 or not counts_row(feedback.of, known):
        return
    numbers[HELD] += 1
    if numbers[HELD] > numbers[LENGTH]:
        numbers[HELD] -= 1
        leave(feedback.of, recent, prices, sums, scratch)
        # Labels that came after it, and before the next one, go with it.
        while (recent.rows[numbers[FIRST], KIND] & TIMED) == 0:
            leave(feedback.of, recent, prices, sums, scratch)
    numbers[SINCE] += 1
    if numbers[SINCE] >= numbers[LENGTH]:
        numbers[SINCE] = 0
        count_anew(feedback.of, recent, prices, sums, scratch)
    fade_spread(prices, pace[GROWTH])
    pace[UNIT] *= pace[GROWTH]
    while pace[UNIT] >= LARGEST_UNIT:
        pace[UNIT] /= LARGEST_UNIT
        pace[ERAS] += 1.0
        divide_calibrator(calibrator)
