"""The rule at the current counts: slope and offset of every label, as used in Eq. (5) and (6).

It takes three steps: the counts that decisions use (``all_decision_counts``), the gradient at these
counts (``gradient``), and the prices of limits on top (``price``).
"""

from omma.kernels.counts import decision_counts
from omma.kernels.decay import counted_unit
from omma.kernels.gains import LABELS, PRIOR, write_slopes
from omma.kernels.jit import entry
from omma.kernels.layout import DECISION_COUNTS, POINT, TOTALS, N, padded
from omma.kernels.limits import add_prices
from omma.kernels.row import set_point


@entry
def all_decision_counts(spec, memory, cells, totals):
    """Write the counts that decisions use to ``cells`` (3, m), and their ``totals``.

    The rows of ``cells`` are tp, predicted and positive; ``totals`` has shape (TOTALS,).
    """
    feedback, _ = set_point(spec, memory)
    work, columns = memory.work, memory.columns
    for i in range(TOTALS):
        totals[i] = work[POINT, i]
    room = work[DECISION_COUNTS : DECISION_COUNTS + 3]
    counts = decision_counts(feedback, columns, room, totals[N], padded(work.shape[1]))
    for cell in range(3):
        for j in range(cells.shape[1]):
            cells[cell, j] = counts[cell, j]


@entry
def gradient(objective, prior, cells, totals, memory):
    """Write slope and offset of every label, at the counts ``cells`` (3, m), to ``memory.work``.

    ``totals``, shape (TOTALS,), belongs to ``cells``. ``prior`` is λ in the unit of these counts.
    """
    work, m = memory.work, cells.shape[1]
    point, seen = work[POINT], work[DECISION_COUNTS : DECISION_COUNTS + 3]
    for i in range(TOTALS):
        point[i] = totals[i]
    point[PRIOR] = prior
    point[LABELS] = m
    for cell in range(3):
        for j in range(m):
            seen[cell, j] = cells[cell, j]
    write_slopes(objective, seen, memory, None, 0, padded(work.shape[1]))


@entry
def price(spec, memory):
    """Add the prices of limits to slope and offset of every label in ``memory.work``."""
    unit = counted_unit(memory.pace, memory.window)
    add_prices(
        memory.limits, spec.feedback, unit, memory.columns, memory.table, memory.totals,
        memory.work, None, None, memory.work.shape[1], spec.m,
    )  # fmt: skip
