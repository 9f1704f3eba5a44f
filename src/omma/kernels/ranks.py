"""Dense rows with a budget, by counts of labels that all have: gains are ranked, and all is counted
eight labels at a time.

Gains and the choice among them are worked out by the functions that all other loops use, on eight
labels in place of one; so decisions are the same to the bit. What is special here is that nothing
else is kept of a row: no weights, no estimates, no prices. The metric is part of the compiled loop,
not called by its address: dividing and reading what comes next go on side by side.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from omma.kernels.decide import CHOSEN
from omma.kernels.eights import any_of, count_chosen, keep_counts
from omma.kernels.gradient import prepare, weigh
from omma.kernels.jit import entry, helper
from omma.kernels.kinds import (
    Arithmetic,
    Correlation,
    Geometric,
    Harmonic,
    Macro,
    Micro,
    Quadratic,
    Rate,
    Weighted,
)
from omma.kernels.lanes import (
    LANES,
    eight_at,
    eight_of,
    larger,
    put_eight,
    spread,
    where,
)
from omma.kernels.layout import GAINS, POSITIVE, PREDICTED, TP, N
from omma.kernels.point import point_at
from omma.kernels.select import choose, fill_up, reached_by
from omma.kernels.signs import doubt

# Metrics of a label that are arithmetic and nothing else, which eights take as well as numbers.
PLAIN: Final = (Arithmetic, Correlation, Geometric, Harmonic, Quadratic, Rate)


def ranked(term: Any) -> bool:
    """Whether gains of such a term are found for eight labels at once.

    >>> ranked(Macro(1.0, Geometric(1e-9))), ranked(None)
    (True, False)
    """
    if isinstance(term, Micro):
        return True  # of which the slopes are the same for all labels
    return isinstance(term, Macro | Weighted) and isinstance(term.of, PLAIN)


@helper
def find_gains(eta, row, m, term, point, cells, gains):
    """Write the gains of a row; returns whether all are probabilities, and each lane's best gain.

    Past the last label and where the probability is zero, gains are minus infinity.
    """
    ready = prepare(term, point, 0)
    wrong, best = spread(0.0), spread(-np.inf)
    for at in range(0, cells.shape[1], LANES):
        value = eight_of(eta, row, at, m - at)
        tp, predicted = eight_at(cells[TP], at), eight_at(cells[PREDICTED], at)
        slope, offset = weigh(term, ready, point, at, tp, predicted, eight_at(cells[POSITIVE], at))
        gain = where(value > 0.0, slope * value + offset, -np.inf)
        put_eight(gains, at, gain)
        wrong = doubt(value, wrong)
        best = larger(best, gain)
    return not any_of(wrong), best


@entry("the dense replay")
def replay_by_rank(
    eta, rows, true, true_rows, term, prior, budget, level, every, totals, places, kept, kept_rows,
    cells, scratch, ids, filled, out,
):  # fmt: skip
    """Replay rows of every label; returns the number of good rows before the first wrong one.

    ``cells`` and ``scratch`` have rows of whole eights; ``every`` has one for each label, and only
    says how many these are. How many rows had fewer candidates than wanted is added to ``filled``.
    """
    m, width, k, taken, chosen = eta.shape[1], cells.shape[1], abs(budget), 0, ids[CHOSEN]
    for t in range(rows.shape[0]):
        point = point_at(every, totals, prior)
        fine, best = find_gains(eta, rows[t], m, term, point, cells, scratch[GAINS])
        if not fine:
            return t
        low = reached_by(best, k) if k <= LANES else -np.inf
        found = choose(budget, scratch, width, low, chosen)
        if found < budget:
            fill_up(chosen, found, budget)
            found = budget
            filled[0] += 1
        count_chosen(cells, totals, level, chosen, found, true, true_rows[t], m, out, rows[t])
        if taken < places.shape[0] and places[taken] == t + 1:
            keep_counts(cells, kept[taken])
            kept_rows[taken] = totals[N]
            taken += 1
    return rows.shape[0]
