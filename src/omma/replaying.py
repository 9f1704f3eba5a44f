"""What goes into a replay, and what comes out of it; ``omma.engine`` runs the rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._pool import Progress
from omma.kernels.replay import BlockGaps, Extras, Marks
from omma.rows.arrays import (
    NO_FLAGS,
    NO_IDS,
    NO_NUMBERS,
    NO_ROWS,
    DenseProbabilities,
    Rows,
    csr,
    entries_of,
)
from omma.rows.batch import Batch
from omma.state import State

Look = Callable[[NDArray[np.float64], float], None]  # counts (3, m) of true labels, and their rows


@dataclass(frozen=True)
class Sequence:
    """Rows that a policy is to run over.

    ``order`` says in which order which rows come (None: all, in theirs), ``keep`` whether to keep
    predictions; ``progress`` hears of rows done. After as many rows as ``checkpoints`` say, the
    counts of true labels are copied, or where there is a ``look`` it is called with them instead.
    Where labels are seen only where they were predicted, ``audited`` says which rows were audited.
    """

    batch: Batch
    order: Rows | None = None
    checkpoints: Rows = field(default_factory=lambda: NO_ROWS)
    keep: bool = True
    progress: Progress | None = None
    look: Look | None = None
    audited: NDArray[np.bool_] | None = None

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.batch.n if self.order is None else len(self.order)

    def rows(self, start: int, stop: int) -> Rows:
        """A part of the rows, in the order in which they come."""
        if self.order is not None:
            return self.order[start:stop]
        return np.arange(start, stop, dtype=np.int64)

    def pieces(self, start: int, stop: int, step: int) -> list[tuple[int, int]]:
        """Where to cut a part of the rows: after each step, and where somebody wants to look."""
        ends = [*range(start + step, stop, step), stop] if stop > start else []
        if self.look is not None:
            places = self.checkpoints[(self.checkpoints > start) & (self.checkpoints < stop)]
            ends = sorted({*ends, *places.tolist()})
        return list(zip([start, *ends], ends, strict=False))


class Run:
    """What a replay has collected so far: decisions, copies of counts, and its time.

    Attributes
    ----------
    state : State
    out : ndarray
        Decisions on dense rows, as indicators; of sparse rows, how many labels each has. Empty
        where predictions are not kept.
    lists : list of ndarray
        The labels of sparse rows, piece by piece, in the order in which rows came.
    snapshots : ndarray of shape (checkpoints, 3, m)
        Counts of true labels at checkpoints, and in ``snapshot_rows`` their number of rows.
    done, filled : int
        Rows that were run, and those of them with fewer candidates than k.
    seconds : float
        The time of the replay, without compilation.
    """

    def __init__(self, sequence: Sequence, state: State, *, is_sparse: bool) -> None:
        self.sequence, self.state, self.is_sparse = sequence, state, is_sparse
        rows, m = (sequence.batch.n if sequence.keep else 0), state.m
        shape, kind = ((rows, 1), np.int32) if is_sparse else ((rows, m), np.int8)
        self.out: NDArray[Any] = np.zeros(shape, dtype=kind)
        self.lists: list[NDArray[np.int32]] = []
        # Kernels copy counts at checkpoints on their way, unless somebody wants to look himself.
        copies = len(sequence.checkpoints) if sequence.look is None else 0
        self.snapshots, self.snapshot_rows = np.empty((copies, 3, m)), np.empty(copies)
        self.done = self.filled = 0
        self.started, self.paused = time.perf_counter(), 0.0
        self.seconds = 0.0

    def marks(self) -> Marks:
        """After which of the next rows to copy the counts, and where to."""
        checkpoints = self.sequence.checkpoints[: len(self.snapshots)]
        first = int(np.searchsorted(checkpoints, self.done, side="right"))
        copies = (self.snapshots[first:], self.snapshot_rows[first:])
        return Marks(self.state.truth.place, checkpoints[first:] - self.done, *copies)

    @cached_property
    def predictions(self) -> Any:
        """All decisions in the layout of the probabilities; None where they were not kept."""
        eta: Any = self.sequence.batch.eta
        if not self.sequence.keep:
            return None
        if isinstance(eta, DenseProbabilities):
            return self.out[:, 0] if eta.vector else self.out
        if not self.is_sparse:
            return type(eta.matrix)(self.out)
        ids, lengths = np.concatenate([NO_IDS, *self.lists]), self.out[:, 0]
        order = self.sequence.order
        if order is not None:  # labels were listed in the order in which rows came
            starts = np.zeros(eta.n, dtype=np.int64)
            starts[order] = np.cumsum(lengths[order]) - lengths[order]
            ids = ids[entries_of(starts, starts + lengths)]
        # SciPy wants ids and ends of one type.
        kind = np.int32 if len(ids) < 2**31 else np.int64
        indptr = np.zeros(eta.n + 1, dtype=kind)
        np.cumsum(lengths, out=indptr[1:])
        parts = (np.ones(len(ids), dtype=np.int8), ids.astype(kind, copy=False), indptr)
        return csr(parts, (eta.n, eta.m), type(eta.matrix))


def extras_of(
    batch: Batch,
    rows: Rows,
    picks: NDArray[Any] = NO_IDS,
    audits: NDArray[np.float64] | None = None,
) -> Extras:
    """What comes with some rows beside probabilities and labels."""
    labels, weights = batch.labels, batch.weights
    weights = weights[rows] if len(weights) else weights
    gaps = None  # then loops are compiled without what rows labelled in part need
    unknown = None if labels is None else labels.unknown_of(rows)
    if unknown is not None or audits is not None:
        lists = (NO_ROWS, NO_ROWS, NO_IDS) if unknown is None else unknown
        gaps = BlockGaps(*lists, NO_NUMBERS if audits is None else audits)
    known = NO_FLAGS if labels is None else labels.known_of(rows)
    return Extras(known, labels is not None, gaps, weights, picks)
