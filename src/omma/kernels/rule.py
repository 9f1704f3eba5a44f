"""The rule at the present counts: slope and offset of every label.

It takes three steps, so that an objective compiles once for all kinds of feedback: the counts that
decisions look at, the gradient there, and what prices of limits add.
"""

from omma.kernels.counts import Labels, see
from omma.kernels.decay import counted_unit
from omma.kernels.gains import fill_extras, point_at, prepare, weigh
from omma.kernels.jit import entry, helper
from omma.kernels.layout import SEEN_TOTALS
from omma.kernels.limits import price
from omma.kernels.row import extras_at, look


@entry
def see_all(spec, memory, cells, totals):
    """Write the counts of every label that decisions look at, shape (3, m), and their totals."""
    point, _ = look(spec, memory)
    for j in range(cells.shape[1]):
        cells[0, j], cells[1, j], cells[2, j] = see(point.feedback, memory.table, point.rows, j)
    for i in range(totals.shape[0]):
        totals[i] = memory.work[SEEN_TOTALS, i]


@entry
def gradient(objective, prior, cells, totals, work, slope, offset):
    """Write slope and offset of every label at counts (3, m): the rule of an objective."""
    m = cells.shape[1]
    point = point_at(totals, prior, m, Labels(0), cells)
    ready = prepare(objective, point)
    extras = fill_extras(objective, point, cells, work, None, 0, m)
    write_rule(objective, ready, point, cells, work, extras, slope, offset)


@helper
def write_rule(objective, ready, point, cells, work, extras, slope, offset):
    for j in range(slope.shape[0]):
        counts = cells[0, j], cells[1, j], cells[2, j]
        own_slope, own_offset = weigh(objective, ready, point, *counts)
        more_slope, more_offset = extras_at(extras, work, j)
        slope[j], offset[j] = own_slope + more_slope, own_offset + more_offset


@entry
def add_prices(spec, memory, slope, offset):
    """Add what prices of limits make of slope and offset of every label."""
    work, width = memory.work, memory.work.shape[1]
    unit = counted_unit(memory.pace, memory.window)
    shared = price(
        memory.limits, None, spec.feedback, unit, memory.columns, memory.table, memory.totals, work,
        None, None, width, spec.m,
    )  # fmt: skip
    for j in range(slope.shape[0]):
        more_slope, more_offset = extras_at(shared, work, j)
        slope[j] += more_slope
        offset[j] += more_offset
