"""Feedback behind addresses, so that one compiled loop over dense rows serves all kinds of it.

Labels, estimates and both differ in how a row is counted and what decisions look at. As functions
called by address (``pointer``) these are a few lines each to compile, and the loop, which takes
longest, is compiled once: it sees two addresses, and the counts that come out.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.core import types

from omma.kernels.calibrate import SHARED as SHARED_NUMBERS, Calibrator
from omma.kernels.count import Sums, count_row
from omma.kernels.feedback import (
    Counted,
    FromAll,
    FromBoth,
    FromEstimates,
    FromLabels,
    FromSome,
    look,
)
from omma.kernels.jit import pointed
from omma.kernels.layout import FLAGS, PRESENT
from omma.kernels.learn import learn
from omma.kernels.pointer import COUNT, Address, called, held_as, read

NOWHERE = Address(0, 0, None)
SHARED = (FromLabels, FromSome, FromEstimates, FromBoth, FromAll)


class Work(NamedTuple):
    """What is held for both functions: an argument of a call takes longer than one that lies."""

    feedback: Any
    sums: Sums
    scratch: Any


class Shared(NamedTuple):
    """Two functions and where their work lies; the counts that are looked at, and the true ones."""

    look: Any  # 0: what is counted is looked at as it is
    learn: Any  # 0: true labels are counted, which is so common that it is part of the loop
    at: Any
    seen: Counted
    labels: Counted


@pointed("what decisions look at")
def look_by(held):
    """Work out what decisions look at; returns nothing of use."""
    work = read(held)
    look(work.feedback, work.sums)
    return 0


@pointed("counting")
def learn_by(held, found, known, weight):
    """Count a decided row; returns nothing of use."""
    work = read(held)
    present = work.scratch[PRESENT]
    learn(work.feedback, found, present, known != 0, weight, work.sums, work.scratch)
    return 0


@look.case(Shared)
def look_at_shared(feedback, sums):
    if feedback.look != 0:
        called(feedback.look, (feedback.at,))
    return feedback.seen


@learn.case(Shared)
def learn_shared(feedback, found, present, known, weight, sums, scratch):
    true = feedback.labels
    if feedback.learn != 0:
        row = (np.int64(found), np.int64(known), np.float64(weight))
        called(feedback.learn, (feedback.at, *row))
    elif known:
        count_row(found, present, scratch[FLAGS], weight, sums, true.cells, true.totals)


def shared(feedback: Any, sums: Sums, scratch: Any) -> tuple[Any, Address]:
    """Feedback behind addresses, and what must stay in memory as long as it is used.

    Feedback of which the past fades, or leaves a window, has loops of its own.
    """
    if not isinstance(feedback, SHARED):
        return feedback, NOWHERE
    work = Work(feedback, sums, scratch)
    learning = looking = NOWHERE
    seen = truth = feedback.own
    if isinstance(feedback, FromEstimates | FromBoth | FromAll):
        learning, truth = held_as(learn_by, work, COUNT, COUNT, types.float64), feedback.labels
    if isinstance(feedback, FromBoth | FromAll | FromSome):
        looking, seen = held_as(look_by, work), feedback.seen
    kept = looking if learning is NOWHERE else learning  # both hold the same
    return Shared(looking.function, learning.function, kept.at, seen, truth), kept


# Nothing is calibrated by it, but what fades divides its numbers too: they must be there.
NOT_CALIBRATED = Calibrator(np.zeros(SHARED_NUMBERS), np.empty(0), np.empty(0), np.empty(0), 0, 0)
