"""Replays: whole sequences of rows, a block at a time, each row decided and then learned."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._pool import Progress
from omma.engine import NO_IDS, NO_NUMBERS, Engine
from omma.kernels import replay as kernel
from omma.plan import Plan, fixed_plan
from omma.rows.arrays import (
    DenseProbabilities,
    Rows,
    SparseProbabilities,
    blocks,
    csr,
    entries_of,
)
from omma.rows.batch import Batch
from omma.rows.labels import TrueLabels
from omma.state import State

NO_ROWS = np.empty(0, dtype=np.int64)
NO_FLAGS = np.empty(0, dtype=np.uint8)
NO_INDICATORS = np.empty((1, 0), dtype=np.uint8)
WINDOW_ENTRIES = 20_000  # of rows that a window makes room for at once
Vector = NDArray[np.float64]
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
    checkpoints: NDArray[np.int64] = field(default_factory=lambda: NO_ROWS)
    keep: bool = True
    progress: Progress | None = None
    look: Look | None = None
    audited: NDArray[np.bool_] | None = None

    @property
    def rows(self) -> Rows:
        """All rows in the order in which they come."""
        return np.arange(self.batch.n, dtype=np.int64) if self.order is None else self.order


@dataclass
class Run:
    """What is left when a sequence has been replayed."""

    state: State
    predictions: Any
    chosen: NDArray[np.int32] | None  # ids of the k labels of each row, of a sparse sequence
    snapshots: NDArray[np.float64]  # (checkpoints, 3, m): counts of true labels
    snapshot_rows: NDArray[np.float64]  # their number of rows
    seconds: float
    filled: int = 0  # rows with fewer candidates than k


def extras_of(
    labels: TrueLabels | None,
    rows: Rows,
    weights: NDArray[Any],
    picks: NDArray[Any] = NO_IDS,
    audits: NDArray[np.float64] = NO_NUMBERS,
) -> kernel.Extras:
    """What comes with some rows beside probabilities and labels."""
    unknown = None if labels is None else labels.unknown_of(rows)
    gaps = None  # then loops are compiled without what rows labelled in part need
    if unknown is not None or len(audits):
        gaps = kernel.BlockGaps(*(unknown or (NO_ROWS, NO_ROWS, NO_IDS)), audits)
    return kernel.Extras(
        NO_FLAGS if labels is None else labels.known_of(rows),
        labels is not None,
        gaps,
        weights[rows] if len(weights) else weights,
        picks,
    )


def indicators_of(labels: TrueLabels | None, rows: Rows) -> tuple[NDArray[np.uint8], Rows]:
    """True labels of some rows as indicators, and where each row is in them."""
    return (NO_INDICATORS, NO_ROWS) if labels is None else labels.indicators(rows)


def ids_of(labels: TrueLabels | None, rows: Rows) -> tuple[NDArray[np.int32], Rows, Rows]:
    """True labels of some rows as ids, and where the list of each begins and ends."""
    if labels is None:
        return NO_IDS, NO_ROWS, NO_ROWS
    starts, ends, ids = labels.block(rows)
    return ids, starts, ends


class Replay:
    """Feeds rows of a sequence to compiled loops, and collects what comes out of them.

    Sparse rows of an objective that looks at every label are replayed as dense ones.
    """

    def __init__(self, owner: str, engine: Engine, sequence: Sequence) -> None:
        self.owner, self.engine, self.sequence = owner, engine, sequence
        self.batch, self.eta, self.state = sequence.batch, sequence.batch.eta, engine.state
        if self.batch.labels is not None and self.batch.labels.missing is not None:
            self.state.allow_partial_labels()
            engine.bind(engine.plan)
        if sequence.audited is not None:
            self.state.allow_unseen()
            engine.bind(engine.plan)
        # Kernels copy counts at checkpoints on their way, unless somebody wants to look himself.
        copies = len(sequence.checkpoints) if sequence.look is None else 0
        self.snapshots, self.snapshot_rows = np.empty((copies, 3, self.eta.m)), np.empty(copies)
        self.fed = self.filled = 0
        self.started, self.paused = time.perf_counter(), 0.0
        self.is_sparse = self.batch.is_sparse and not engine.plan.needs_every_label
        if self.is_sparse:
            self.output = SparseOutput(self.eta, engine.plan, sequence.keep)
            self.longest = longest_row(self.eta) + longest_labels(self.batch.labels)
            self.longest += abs(engine.plan.budget)
            self.gather()
        else:
            self.out = np.zeros((self.eta.n if sequence.keep else 0, self.eta.m), dtype=np.int8)

    def gather(self) -> None:
        """Copy the state of sparse rows so that all numbers of a label lie together.

        A sparse row touches few labels: what a label has takes half a cache line, one, or two.
        """
        if not self.is_sparse:
            return
        columns = self.state.columns
        # Processors fetch 64 bytes at a time, eight numbers.
        fields = len(columns)
        size = 4 if fields <= 4 else -(-fields // 8) * 8
        records = np.zeros((self.eta.m, size))
        records[:, :fields] = columns[:, : self.eta.m].T
        self.records = records.T  # shape (fields, m), a label's numbers side by side

    def settle(self) -> None:
        """Put the numbers of sparse rows back into the state."""
        if self.is_sparse:
            columns = self.state.columns
            columns[:, : self.eta.m] = self.records[: len(columns)]

    def feed(self, rows: Rows, picks: NDArray[Any] = NO_IDS) -> None:
        """Replay some rows after those that came before; ``picks`` chooses among fixed rules."""
        look, checkpoints = self.sequence.look, self.sequence.checkpoints
        if look is None:
            self._feed(rows, picks)
            return
        # The rows are fed in pieces that end at checkpoints.
        ends = checkpoints - self.fed
        ends = ends[(ends > 0) & (ends <= len(rows))]
        for piece, picked in zip(np.split(rows, ends), np.split(picks, ends), strict=True):
            self._feed(piece, picked)
            if len(piece) and self.fed in checkpoints:
                begun = time.perf_counter()
                look(*self._truth())
                self.paused += time.perf_counter() - begun

    def _truth(self) -> tuple[NDArray[np.float64], float]:
        """Counts of true labels so far, as they are reported where some were unknown."""
        truth = self.state.truth
        is_counted = truth.missed is None and self.state.unseen is None
        if self.is_sparse and is_counted:  # where they lie: a copy would take longer
            first = 3 * self.state.truth_set
            return self.records[first : first + 3], truth.rows
        self.settle()
        return self.state.reported, truth.rows

    def _feed(self, rows: Rows, picks: NDArray[Any]) -> None:
        if self.state.window is not None:
            entries, stored = self._entries(rows)
            if self.state.window.make_room(2 * len(rows), 2 * entries, 2 * stored):
                self.engine.bind(self.engine.plan)
        labels, marks = self.batch.labels, self._marks(len(rows))
        extras = extras_of(labels, rows, self.batch.weights, picks, self._audits(rows))
        run = self._feed_sparse if self.is_sparse else self._feed_dense
        good, filled = run(rows, labels, extras, marks)
        # Rows before the wrong one are counted already, in a state that nobody will see.
        if good < len(rows):
            wrong = self.eta.explain(int(rows[good]))
            raise ValueError(f"eta of {self.owner} must hold {wrong}")
        self.fed += len(rows)
        self.filled += filled

    def _audits(self, rows: Rows) -> NDArray[np.float64]:
        """What audits weigh in some rows; nothing where labels do not depend on decisions."""
        audited, weights, unseen = self.sequence.audited, self.batch.weights, self.state.unseen
        if audited is None or unseen is None:
            return NO_NUMBERS
        return unseen.audit_weights(audited[rows], weights[rows] if len(weights) else None)

    def _marks(self, rows: int) -> kernel.Marks:
        """After which of the next rows to copy the counts, and where to."""
        counted = self.state.truth_set
        if not len(self.snapshots):
            return kernel.Marks(counted, NO_ROWS, self.snapshots, self.snapshot_rows)
        checkpoints, ends = self.sequence.checkpoints, (self.fed, self.fed + rows)
        first, last = np.searchsorted(checkpoints, ends, side="right").tolist()
        places = checkpoints[first:last] - self.fed
        cells, weights = self.snapshots[first:last], self.snapshot_rows[first:last]
        return kernel.Marks(counted, places, cells, weights)

    def _feed_dense(self, rows: Rows, labels: Any, extras: Any, marks: Any) -> Any:
        if isinstance(self.eta, DenseProbabilities):
            array, places = self.eta.block(rows)
        else:
            array = np.ascontiguousarray(self.eta.matrix[rows].toarray(), dtype=np.float64)
            places = np.arange(len(rows), dtype=np.int64)
        true, true_rows = indicators_of(labels, rows)
        memory = self.engine.memory()
        arguments = (extras, self.engine.spec, memory, marks, self.out, rows)
        if not self.fed:
            with self._outside_the_clock():
                kernel.replay_dense(array, places[:0], true, true_rows, *arguments)
        return kernel.replay_dense(array, places, true, true_rows, *arguments)

    def _feed_sparse(self, rows: Rows, labels: Any, extras: Any, marks: Any) -> Any:
        memory, sparse = self.engine.sparse_memory(self.longest, self.records)
        eta: Any = self.eta
        indices, data, starts, ends = eta.block(rows)
        listed = self.output.room(int((ends - starts).sum()))
        true = ids_of(labels, rows)
        arguments = (*true, extras, sparse, self.engine.spec, memory, marks, listed)
        if not self.fed:
            with self._outside_the_clock():
                none = starts[:0]
                kernel.replay_sparse(indices, data, none, none, *arguments, self.output.out, rows)
        result = kernel.replay_sparse(
            indices, data, starts, ends, *arguments, self.output.out, rows
        )
        self.output.take(rows, listed)
        return result

    @contextmanager
    def _outside_the_clock(self) -> Iterator[None]:
        """Compile, or load from disk, by replaying no rows: that is no time of the replay."""
        begun = time.perf_counter()
        yield
        self.paused += time.perf_counter() - begun

    def _entries(self, rows: Rows) -> tuple[int, int]:
        """How many labels and probabilities of rows a window has to keep at most."""
        if not self.is_sparse:
            return 3 * self.eta.m * len(rows), self.eta.m * len(rows)
        eta: Any = self.eta
        _, _, starts, ends = eta.block(rows)
        # A row lists its predicted labels, its true ones and its candidates.
        stored = int((ends - starts).sum())
        _, first, last = ids_of(self.batch.labels, rows)
        present = int((last - first).sum())
        budget = abs(self.engine.plan.budget)
        return 2 * stored + budget * len(rows) + present, stored

    def result(self) -> Run:
        """What is left at the end."""
        # Before the clock stops: writing the counts back is part of the work.
        self.settle()
        seconds = time.perf_counter() - self.started - self.paused
        if self.state.window is not None:
            self.state.window.trim()
        if self.is_sparse:
            predictions, chosen = self.output.matrix(), self.output.chosen
        else:
            predictions, chosen = self._dense_predictions(), None
        copies = (self.snapshots, self.snapshot_rows)
        return Run(self.state, predictions, chosen, *copies, seconds, self.filled)

    def _dense_predictions(self) -> Any:
        if self.eta.n and not len(self.out):
            return None
        if isinstance(self.eta, DenseProbabilities):
            return self.out[:, 0] if self.eta.vector else self.out
        return type(self.eta.matrix)(self.out)


class SparseOutput:
    """Decisions on sparse rows.

    With an exact budget ``out`` has the labels of each row; else it has how many there are, and
    ``lists`` the labels of the rows that came together.
    """

    def __init__(self, eta: Any, plan: Plan, keep: bool) -> None:
        self.eta, self.keep = eta, keep
        self.k = None if plan.at_most is not None else plan.k
        self.out = np.zeros((eta.n if keep else 0, self.k or 1), dtype=np.int32)
        self.lists: list[NDArray[np.int32]] = []
        self.orders: list[Rows] = []

    @property
    def chosen(self) -> NDArray[np.int32] | None:
        """The labels of each row, where each has k."""
        return self.out if self.keep and self.k is not None else None

    def room(self, entries: int) -> NDArray[np.int32]:
        """Room to list chosen labels of rows with so many entries; none with an exact budget."""
        return np.empty(entries + 1 if self.keep and self.k is None else 0, dtype=np.int32)

    def take(self, rows: Rows, listed: NDArray[np.int32]) -> None:
        """Keep the labels that were listed for some rows."""
        if len(listed):
            self.lists.append(listed[: int(self.out[rows, 0].sum())].copy())
            self.orders.append(rows)

    def matrix(self) -> Any:
        """All decisions as a sparse matrix of the kind of the probabilities."""
        if not self.keep:
            return None
        if self.k is not None:
            ids, lengths = self.out.ravel(), np.full(self.eta.n, self.k)
        else:
            ids = np.concatenate([NO_IDS, *self.lists])
            order, lengths = np.concatenate([NO_ROWS, *self.orders]), self.out[:, 0]
            starts = np.empty(self.eta.n, dtype=np.int64)
            starts[order] = np.cumsum(lengths[order]) - lengths[order]
            # Labels were listed in the order in which rows came.
            if (np.diff(order) < 0).any():
                ids = ids[entries_of(starts, starts + lengths)]
        # SciPy wants ids and ends of one type.
        kind = np.int32 if len(ids) < 2**31 else np.int64
        indptr = np.concatenate(([0], np.cumsum(lengths))).astype(kind)
        parts = (np.ones(len(ids), dtype=np.int8), ids.astype(kind, copy=False), indptr)
        return csr(parts, (self.eta.n, self.eta.m), type(self.eta.matrix))


def longest_row(eta: Any) -> int:
    """The most labels that a row stores."""
    return int(np.diff(eta.matrix.indptr).max()) if eta.n else 0


def longest_labels(labels: TrueLabels | None) -> int:
    """The most labels that a row has."""
    return 0 if labels is None else int(labels.counts.max(initial=0))


def replay(
    owner: str,
    plan: Plan,
    sequence: Sequence,
    picks: NDArray[np.int32] = NO_IDS,
    state: State | None = None,
) -> Run:
    """Replay a sequence by one plan; ``picks`` chooses among its fixed rules, row by row."""
    eta = sequence.batch.eta
    state = plan.start(eta.m) if state is None else state
    running = Replay(owner, Engine(plan, state), sequence)
    step = eta.rows_per_block
    # A window takes rows off one by one, as it is fed.
    if plan.window is not None:  # or there would have to be room for all of a block
        step = min(step, max(1, WINDOW_ENTRIES // eta.m, plan.window // 8))
    n = eta.n if sequence.order is None else len(sequence.order)
    for start, rows in blocks(n, step, sequence.order):
        running.feed(rows, picks[start : start + step])
        if sequence.progress is not None:
            sequence.progress(len(rows))
    return running.result()


def learn_decided(
    plan: Plan, state: State, batch: Batch, decided: Any, *, late: bool = False
) -> None:
    """Count rows of given decisions in a state: indicators, or a CSR matrix for sparse rows."""
    eta, labels = batch.eta, batch.labels
    if labels is not None and labels.missing is not None:
        state.allow_partial_labels()
    engine = Engine(plan, state)
    is_sparse = isinstance(eta, SparseProbabilities)
    if is_sparse:
        most = int(np.diff(decided.indptr).max()) if eta.n else 0
        longest = longest_row(eta) + longest_labels(labels) + most
        memory, sparse = engine.sparse_memory(longest)
        chosen, ends = decided.indices.astype(np.int32), decided.indptr.astype(np.int64)
    for _, rows in blocks(eta.n, eta.rows_per_block, None):
        extras = extras_of(labels, rows, batch.weights)
        if is_sparse:
            lists = (*ids_of(labels, rows), chosen, ends[rows], ends[rows + 1], extras, late)
            kernel.learn_sparse(*eta.block(rows), *lists, sparse, engine.learning, memory)
        else:
            flags = (*indicators_of(labels, rows), decided[rows], extras, late)
            kernel.learn_dense(*eta.block(rows), *flags, engine.learning, engine.memory())


def confusion_of(
    owner: str, batch: Batch, k: int | None, *, soft: bool, rows: Rows | None = None
) -> Callable[[Vector, Vector], State]:
    """What counts the decisions of a fixed rule, given its slope and offset, on some rows.

    Labels are counted, or with ``soft`` probabilities. Where some are unknown, counts are as if
    each label had been known in all rows.
    """
    sequence = Sequence(batch.ready(), rows, keep=False)

    def confusion(slope: Vector, offset: Vector) -> State:
        plan = fixed_plan(slope, offset, k, soft=soft)
        state = replay(owner, plan, sequence).state
        if state.missed is not None:
            # Frank-Wolfe compares counts of several rules, which must be of as many rows.
            state.cells[...] = state.own.in_proportion
        return state

    return confusion
