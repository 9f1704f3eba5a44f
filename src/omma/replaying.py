"""Replays: whole sequences of rows, a block at a time, each row decided and then learned."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._pool import Progress
from omma.engine import NO_IDS, memory_of, sparse_memory, work_space
from omma.kernels import replay as kernel
from omma.kernels.layout import JUDGED, OWN, TRUE, N
from omma.plan import Plan, fixed_plan
from omma.rows.arrays import (
    DenseProbabilities,
    Probabilities,
    Rows,
    SparseProbabilities,
    blocks,
    csr,
    entries_of,
)
from omma.rows.batch import Batch
from omma.rows.labels import Labels
from omma.state import State, padded
from omma.window_state import WindowState

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
    """

    batch: Batch
    order: Rows | None = None
    checkpoints: NDArray[np.int64] = field(default_factory=lambda: NO_ROWS)
    keep: bool = True
    progress: Progress | None = None
    look: Look | None = None

    @property
    def eta(self) -> Probabilities:
        """The probabilities of the batch."""
        return self.batch.eta

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
    labels: Labels | None, rows: Rows, weights: NDArray[Any], picks: NDArray[Any] = NO_IDS
) -> kernel.Extras:
    """What comes with some rows beside probabilities and labels."""
    unknown = None if labels is None else labels.unknown_of(rows)
    return kernel.Extras(
        NO_FLAGS if labels is None else labels.known_of(rows),
        labels is not None,
        *((NO_ROWS, NO_ROWS, NO_IDS) if unknown is None else unknown),
        weights[rows] if len(weights) else weights,
        picks,
    )


def indicators_of(labels: Labels | None, rows: Rows) -> tuple[NDArray[np.uint8], Rows]:
    """True labels of some rows as indicators, and where each row is in them."""
    return (NO_INDICATORS, NO_ROWS) if labels is None else labels.indicators(rows)


def ids_of(labels: Labels | None, rows: Rows) -> tuple[NDArray[np.int32], Rows, Rows]:
    """True labels of some rows as ids, and where the list of each begins and ends."""
    if labels is None:
        return NO_IDS, NO_ROWS, NO_ROWS
    starts, ends, ids = labels.block(rows)
    return ids, starts, ends


class Replay:
    """Feeds rows of a batch to compiled loops, and collects what comes out of them.

    ``plan`` may be exchanged between feeds for another with the same budget. Rows with a matrix of
    costs are replayed as dense ones: there every label is a candidate.
    """

    def __init__(
        self,
        owner: str,
        plan: Plan,
        batch: Batch,
        *,
        checkpoints: NDArray[np.int64] = NO_ROWS,
        keep: bool = True,
        state: State | None = None,
        look: Look | None = None,
    ) -> None:
        self.owner, self.plan, self.batch, self.eta = owner, plan, batch, batch.eta
        self.look, self.looking = look, 0.0  # seconds spent looking
        self.state = plan.start(self.eta.m) if state is None else state
        if batch.labels is not None and batch.labels.missing is not None:
            self.state.take_parts()
        self.checkpoints = checkpoints
        copied = len(checkpoints) if look is None else 0
        self.snapshots, self.snapshot_rows = np.empty((copied, 3, self.eta.m)), np.empty(copied)
        self.fed = self.filled = 0
        self.is_sparse = batch.thin and plan.matrix is None
        self.predictions: Any = None
        if self.is_sparse:
            self.predictions = SparsePredictions(self.eta, plan, keep)
            self.gather()
        else:
            self.out = np.zeros((self.eta.n if keep else 0, self.eta.m), dtype=np.int8)
            self._work = work_space(padded(self.eta.m))

    def gather(self) -> None:
        """Copy the state of sparse rows so that all numbers of a label lie together.

        A sparse row touches few labels: what a label has takes half a cache line, one, or two.
        """
        if not self.is_sparse:
            return
        columns, self._totals = self.plan.columns(self.state)
        fields = len(columns)
        size = 4 if fields <= 4 else -(-fields // 8) * 8
        records = np.zeros((self.eta.m, size))
        records[:, :fields] = columns[:, : self.eta.m].T
        self._records = records.T  # shape (fields, m), a label's numbers side by side
        self._longest = longest_row(self.eta) + longest_labels(self.batch.labels)
        self._longest += abs(self.plan.budget or 0)

    def settle(self) -> None:
        """Put the numbers of sparse rows back into the state."""
        if self.is_sparse:
            columns, _ = self.state.lay_out()
            columns[:, : self.eta.m] = self._records[: len(columns)]

    def feed(self, rows: Rows, picks: NDArray[Any] = NO_IDS) -> None:
        """Replay some rows after those that came before; ``picks`` chooses among fixed rules."""
        if self.look is None:
            self._feed(rows, picks)
            return
        ends = self.checkpoints - self.fed
        ends = ends[(ends > 0) & (ends <= len(rows))]
        for piece, picked in zip(np.split(rows, ends), np.split(picks, ends), strict=True):
            self._feed(piece, picked)
            if len(ends) and self.fed in self.checkpoints:
                started = time.perf_counter()
                self.look(*self._truth())
                self.looking += time.perf_counter() - started

    def _truth(self) -> tuple[NDArray[np.float64], float]:
        """Counts of true labels so far, each as if it had been known in all rows."""
        state, truth = self.state, self.state.truth
        n = float(truth.totals[N])
        if self.is_sparse and truth.missed is None:  # where they lie: a copy would take longer
            which = JUDGED if state.judged is not None else OWN if state.labels is None else TRUE
            return self._records[3 * which : 3 * which + 3], n
        self.settle()
        return truth.in_proportion, n

    def _feed(self, rows: Rows, picks: NDArray[Any]) -> None:
        if isinstance(self.state, WindowState):
            entries, stored = self._entries(rows)
            self.state.window.make_room(2 * len(rows), 2 * entries, 2 * stored)
        labels = self.batch.labels
        extras = extras_of(labels, rows, self.batch.weights, picks)
        marks = self._marks(rows)
        good, filled = (self._feed_sparse if self.is_sparse else self._feed_dense)(
            rows, labels, extras, marks
        )
        if good < len(rows):
            wrong = self.eta.explain(int(rows[good]))
            raise ValueError(f"eta of {self.owner} must hold {wrong}")
        self.fed += len(rows)
        self.filled += filled

    def _marks(self, rows: Rows) -> kernel.Marks:
        """After which of these rows to copy the counts, and where to."""
        if self.look is not None:
            return kernel.Marks(NO_ROWS, self.snapshots, self.snapshot_rows)
        ends = (self.fed, self.fed + len(rows))
        first, last = np.searchsorted(self.checkpoints, ends, side="right").tolist()
        part = slice(first, last)
        places = self.checkpoints[part] - self.fed
        return kernel.Marks(places, self.snapshots[part], self.snapshot_rows[part])

    def _feed_dense(self, rows: Rows, labels: Any, extras: Any, marks: Any) -> Any:
        columns, totals = self.plan.columns(self.state)
        memory = memory_of(self.plan, self.state, columns, columns, totals, self._work)
        if isinstance(self.eta, DenseProbabilities):
            array, places = self.eta.block(rows)
        else:
            array = np.ascontiguousarray(self.eta.matrix[rows].toarray(), dtype=np.float64)
            places = np.arange(len(rows), dtype=np.int64)
        spec = self.plan.spec(self.state)
        true = indicators_of(labels, rows)
        return kernel.replay_dense(
            array, places, *true, extras, spec, memory, marks, self.out, rows
        )

    def _feed_sparse(self, rows: Rows, labels: Any, extras: Any, marks: Any) -> Any:
        longest, table = self._longest, self._records
        memory, sparse = sparse_memory(self.plan, self.state, table, self._totals, longest)
        eta: Any = self.eta
        indices, data, starts, ends = eta.block(rows)
        spec, out = self.plan.spec(self.state), self.predictions
        listed = out.room(int((ends - starts).sum()))
        result = kernel.replay_sparse(
            indices, data, starts, ends, *ids_of(labels, rows), extras, sparse, spec, memory,
            marks, listed, out.out, rows,
        )  # fmt: skip
        out.take(rows, listed)
        return result

    def _entries(self, rows: Rows) -> tuple[int, int]:
        """How many labels and probabilities of rows a window has to keep at most."""
        if not self.is_sparse:
            return 3 * self.eta.m * len(rows), self.eta.m * len(rows)
        eta: Any = self.eta
        _, _, starts, ends = eta.block(rows)
        stored = int((ends - starts).sum())
        _, first, last = ids_of(self.batch.labels, rows)
        present = int((last - first).sum())
        return 2 * stored + abs(self.plan.budget or 0) * len(rows) + present, stored

    def result(self, seconds: float) -> Run:
        """What is left at the end of so many seconds."""
        self.settle()
        if isinstance(self.state, WindowState):
            self.state.window.trim()
        predictions, chosen = self._predicted()
        snapshots = (self.snapshots, self.snapshot_rows)
        seconds -= self.looking
        return Run(self.state, predictions, chosen, *snapshots, seconds, self.filled)

    def _predicted(self) -> tuple[Any, Any]:
        if self.is_sparse:
            return self.predictions.matrix(), self.predictions.chosen
        if not len(self.out):
            return None, None
        if isinstance(self.eta, DenseProbabilities):
            return (self.out[:, 0] if self.eta.vector else self.out), None
        return type(self.eta.matrix)(self.out), None


class SparsePredictions:
    """Decisions on sparse rows, written where they will stay: no second copy is made of them."""

    def __init__(self, eta: Any, plan: Plan, keep: bool) -> None:
        self.eta, self.keep = eta, keep
        self.k = None if plan.at_most is not None else plan.k
        rows = eta.n if keep else 0
        if self.k is not None:
            self.out = np.zeros((rows, self.k), dtype=np.int32)  # the labels of each row
        else:
            self.ends = np.zeros(rows + 1, dtype=np.int32)
            self.out = self.ends[1:].reshape(rows, 1)  # how many labels each row has
        self.ids = np.empty(0, dtype=np.int32)  # without an exact budget, the labels of all rows
        self.next = 0
        self.came: list[Rows] = []  # in which order rows came, once that is not their own

    @property
    def chosen(self) -> NDArray[np.int32] | None:
        """The labels of each row, where each has k."""
        return self.out if self.keep and self.k is not None else None

    def room(self, entries: int) -> NDArray[np.int32]:
        """Room to list chosen labels of rows with so many entries; none with an exact budget."""
        return np.empty(entries + 1 if self.keep and self.k is None else 0, dtype=np.int32)

    def take(self, rows: Rows, listed: NDArray[np.int32]) -> None:
        """Keep the labels that were listed for some rows."""
        if not self.keep or self.k is not None:
            return
        count = int(self.out[rows, 0].sum())
        self.ids.resize(len(self.ids) + count, refcheck=False)  # grows in place
        self.ids[len(self.ids) - count :] = listed[:count]
        # The order of rows is remembered only if it is not their own.
        if self.came or not np.array_equal(rows, np.arange(self.next, self.next + len(rows))):
            self.came += [rows] if self.came else [np.arange(self.next), rows]
        self.next += len(rows)

    def matrix(self) -> Any:
        """All decisions as a sparse matrix of the kind of the probabilities."""
        if not self.keep:
            return None
        if self.k is not None:
            ids = self.out.ravel()
            kind = np.int32 if len(ids) < 2**31 else np.int64
            indptr = np.arange(0, len(ids) + 1, self.k, dtype=kind)
        else:
            kind = np.int32 if len(self.ids) < 2**31 else np.int64
            ids = self._in_order()
            indptr = np.cumsum(self.ends, dtype=kind, out=self.ends if kind is np.int32 else None)
        parts = (np.ones(len(ids), dtype=np.int8), ids.astype(kind, copy=False), indptr)
        return csr(parts, (self.eta.n, self.eta.m), type(self.eta.matrix))

    def _in_order(self) -> NDArray[np.int32]:
        """The labels of all rows, in the order of the rows."""
        if not self.came:
            return self.ids
        came = np.concatenate(self.came)
        lengths = self.out[came, 0].astype(np.int64)
        starts = np.empty(self.eta.n, dtype=np.int64)
        starts[came] = np.cumsum(lengths) - lengths
        return self.ids[entries_of(starts, starts + self.out[:, 0])]


def longest_row(eta: Any) -> int:
    """The most labels that a row stores."""
    return int(np.diff(eta.matrix.indptr).max()) if eta.n else 0


def longest_labels(labels: Labels | None) -> int:
    """The most labels that a row has."""
    if labels is None:
        return 0
    if labels.class_ids:
        return 1
    counts = np.diff(labels.given.indptr) if hasattr(labels.given, "indptr") else None
    if counts is None:
        counts = np.asarray(labels.given).astype(bool).sum(axis=1)
    return int(counts.max()) if len(counts) else 0


def replay(
    owner: str,
    plan: Plan,
    sequence: Sequence,
    picks: NDArray[np.int32] = NO_IDS,
    state: State | None = None,
    *,
    timed: bool = True,
) -> Run:
    """Replay a sequence by one plan; ``picks`` chooses among its fixed rules, row by row.

    Where nobody wants to know how long it takes, it need not be ``timed``.
    """
    batch, eta = sequence.batch, sequence.eta
    running = Replay(
        owner,
        plan,
        batch,
        checkpoints=sequence.checkpoints,
        keep=sequence.keep,
        state=state,
        look=sequence.look,
    )
    if timed:
        running.feed(NO_ROWS)  # compiles, or loads from disk, outside the clock
    started = time.perf_counter()
    step = eta.rows_per_run
    if plan.window is not None:  # or there would have to be room for all of a block
        step = min(step, max(1, WINDOW_ENTRIES // eta.m, plan.window // 8))
    n = eta.n if sequence.order is None else len(sequence.order)
    for _, rows in blocks(n, step, sequence.order):
        running.feed(rows, picks[running.fed : running.fed + len(rows)])
        if sequence.progress is not None:
            sequence.progress(len(rows))
    return running.result(time.perf_counter() - started)


def learn_decided(
    plan: Plan, state: State, batch: Batch, decided: Any, *, late: bool = False
) -> None:
    """Count rows of given decisions in a state: indicators, or a CSR matrix for sparse rows."""
    eta, labels = batch.eta, batch.labels
    if labels is not None and labels.missing is not None:
        state.take_parts()
    columns, totals = plan.columns(state)
    spec = plan.spec(state)._replace(objective=None, budget=None)  # compiled once for all of them
    is_sparse = isinstance(eta, SparseProbabilities)
    if is_sparse:
        most = int(np.diff(decided.indptr).max()) if eta.n else 0
        longest = longest_row(eta) + longest_labels(labels) + most
        memory, sparse = sparse_memory(plan, state, columns, totals, longest)
        chosen = decided.indices.astype(np.int32)
    else:
        work = work_space(columns.shape[1])
        memory = memory_of(plan, state, columns, columns, totals, work)
    for _, rows in blocks(eta.n, eta.rows_per_block, None):
        extras = extras_of(labels, rows, batch.weights)
        if is_sparse:
            ends = decided.indptr.astype(np.int64)
            lists = (*ids_of(labels, rows), chosen, ends[rows], ends[rows + 1])
            kernel.learn_sparse(*eta.block(rows), *lists, extras, late, sparse, spec, memory)
        else:
            flags = (*indicators_of(labels, rows), decided[rows])
            kernel.learn_dense(*eta.block(rows), *flags, extras, late, spec, memory)


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
        state = replay(owner, plan, sequence, timed=False).state
        return state if state.missed is None else State(state.in_proportion, state.totals)

    return confusion
