"""The rule at the present counts: slope and offset of every label.

It takes three steps: the counts that decisions look at, the gradient there, and what prices of
limits add.
"""

from omma.kernels.counts import see
from omma.kernels.decay import counted_unit
from omma.kernels.gains import LABELS, PRIOR, weigh_labels
from omma.kernels.jit import entry
from omma.kernels.layout import POINT, POSITIVE, PREDICTED, SEEN, TOTALS, TP, N, padded
from omma.kernels.limits import add_prices
from omma.kernels.row import set_point


@entry
def see_all(spec, memory, cells, totals):
    """Write the counts of every label that decisions look at, shape (3, m), and their totals."""
    feedback, _ = set_point(spec, memory)
    for i in range(TOTALS):
        totals[i] = memory.work[POINT, i]
    for j in range(cells.shape[1]):
        tp, predicted, positive = see(feedback, memory.table, totals[N], j)
        cells[TP, j], cells[PREDICTED, j], cells[POSITIVE, j] = tp, predicted, positive


@entry
def gradient(objective, prior, cells, totals, memory):
    """Write slope and offset of every label at counts (3, m) into ``work``."""
    work, m = memory.work, cells.shape[1]
    point, seen = work[POINT], work[SEEN : SEEN + 3]
    for i in range(TOTALS):
        point[i] = totals[i]
    point[PRIOR] = prior
    point[LABELS] = m
    for cell in range(3):
        for j in range(m):
            seen[cell, j] = cells[cell, j]
    weigh_labels(objective, seen, memory, None, 0, padded(work.shape[1]))


@entry
def price(spec, memory):
    """Add what prices of limits make of slope and offset of every label."""
    unit = counted_unit(memory.pace, memory.window)
    add_prices(
        memory.limits, spec.feedback, unit, memory.columns, memory.table, memory.totals,
        memory.work, None, None, memory.work.shape[1], spec.m,
    )  # fmt: skip
