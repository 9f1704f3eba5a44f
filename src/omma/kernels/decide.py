"""Which labels a row gets: gains are found, then chosen from, both by functions called by address.

A dense row holds every label in order. Of a sparse one the stored ``labels`` are given, and it runs
the same arithmetic on counts gathered for them, so both give the same bits. A dense decision is
flags over all labels, and with a budget the chosen labels beside them; a sparse one is a list of
chosen labels, and flags at these, which must be cleared before the next row.
"""

from typing import Any, NamedTuple

import numpy as np

from omma.kernels.feedback import gather, look
from omma.kernels.find import finder
from omma.kernels.jit import helper
from omma.kernels.kinds import Costs, Priced
from omma.kernels.layout import FLAGS, GAINS, GATHERED, PRICED, SINGLE, VALUES
from omma.kernels.pointer import EVERYTHING, called
from omma.kernels.prices import prepare_prices, priced
from omma.kernels.select import choose_nonnegative, selector

# Rows of int32 scratch space.
CHOSEN = 0
EVERY = 1  # all labels in their order


class Decider(NamedTuple):
    """How rows are decided, by two functions called by address."""

    find: Any
    term: Any  # where its numbers lie
    select: Any
    budget: int
    whole: int  # one where all labels are candidates, not only those that a row stores
    prior: float


class Deciding:
    """A decider, and what must stay in memory as long as it is used: it is no value to copy."""

    __slots__ = ("_kept", "decider")

    def __init__(self, decider: Decider, *kept: Any) -> None:
        self.decider = decider
        self._kept = kept

    def __reduce__(self) -> Any:
        raise TypeError("addresses are of this process: make them again by deciding()")


def deciding(term: Any, prior: float, budget: int, priced: bool = False) -> Deciding:
    """How rows are decided by a term under a budget; ``priced`` says that limits have prices.

    A budget is k labels a row, -k at most k, or 0 where there is none.
    """
    costs = isinstance(term, Costs)
    find = finder(Priced(term) if priced and not costs else term)
    decider = Decider(find.function, find.at, selector(budget != 0), budget, int(costs), prior)
    return Deciding(decider, find)


@helper
def widen(given, values):
    """Copy a row's probabilities as float64; returns whether each lies in [0, 1]."""
    wrong = 0
    for position in range(given.shape[0]):
        value = np.float64(given[position])
        values[position] = value
        wrong += not ((value >= 0.0) & (value <= 1.0))
    return wrong == 0


@helper
def price(prices, labels, count, scratch):
    """Work out what prices of limits add to slope and offset of each label in question."""
    slopes, offsets = scratch[SINGLE], scratch[SINGLE + 1]
    more, further = scratch[PRICED], scratch[PRICED + 1]
    added = prepare_prices(prices, slopes, offsets)
    for i in range(count):
        j = labels[i] if labels.shape[0] > 0 else i
        more[i], further[i] = priced(prices, added, slopes, offsets, j, 0.0, 0.0)


@helper
def decide_row(decider, prior, pick, feedback, sums, prices, scratch, ids):
    """Decide a dense row: flags at its labels; returns how many these are."""
    gains, flags, m = scratch[GAINS], scratch[FLAGS], scratch.shape[1]
    chosen = ids[CHOSEN]
    counted = look(feedback, sums)
    if prices is not None:
        price(prices, EVERYTHING, m, scratch)
    seen = (counted.cells, counted.totals, counted.cells, EVERYTHING, m, scratch)
    called(decider.find, (decider.term, np.float64(prior), np.int64(pick), *seen))
    found = 0
    if decider.select == 0:
        for j in range(m):
            flags[j] = 1.0 if gains[j] >= 0.0 else 0.0
            found += gains[j] >= 0.0
    else:
        found = called(decider.select, (decider.budget, scratch, m, EVERYTHING, chosen))
        for i in range(found):
            flags[chosen[i]] = 1.0
    return found


@helper
def spread(labels, scratch):
    """Spread the probabilities of stored labels over all labels, and keep them aside."""
    values, kept = scratch[VALUES], scratch[FLAGS]
    count = labels.shape[0]
    for i in range(count):
        kept[i] = values[i]
    for j in range(values.shape[0]):
        values[j] = 0.0
    for i in range(count):
        values[labels[i]] = kept[i]


@helper
def unspread(labels, scratch):
    """Put the probabilities of stored labels side by side again."""
    values, kept = scratch[VALUES], scratch[FLAGS]
    for i in range(labels.shape[0]):
        values[i] = kept[i]
        kept[i] = 0.0


@helper
def decide_stored(decider, labels, prior, pick, feedback, sums, prices, scratch, ids):
    """Decide a row of stored labels: the chosen ones and flags at them; returns how many."""
    chosen, wanted = ids[CHOSEN], labels
    if decider.whole != 0:
        spread(labels, scratch)
        wanted = ids[EVERY]
    count = wanted.shape[0]
    own = scratch[GATHERED : GATHERED + 3]
    # Gathered first, so that the loop with the divisions becomes vector instructions.
    counted = gather(feedback, wanted, sums, scratch)
    if prices is not None:
        price(prices, wanted, count, scratch)
    seen = (counted.cells, counted.totals, own, wanted, count, scratch)
    called(decider.find, (decider.term, np.float64(prior), np.int64(pick), *seen))
    if decider.whole != 0:
        unspread(labels, scratch)
    if decider.select == 0:
        found = choose_nonnegative(scratch[GAINS], count, wanted, chosen)
    else:
        found = called(decider.select, (decider.budget, scratch, count, wanted, chosen))
    for i in range(found):
        scratch[FLAGS, chosen[i]] = 1.0
    return found
