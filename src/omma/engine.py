"""The engine: a plan for m labels with its state. It decides, learns, replays and returns its rule.

Single rows and whole sequences run the same compiled ``decide`` and ``learn``, so their results are
equal to the last bit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._pool import Progress
from omma.kernels import replay as kernels, rule as rules, single
from omma.kernels.calibrate import Learning, Settled
from omma.kernels.counts import Both, Estimates, PartialLabels
from omma.kernels.layout import FIELDS, OFFSET, PRESENT, SLOPE, SUM_TP, VALUES, WORK
from omma.kernels.limits import Limits
from omma.kernels.row import Gaps, Memory, Spec
from omma.plan import Plan
from omma.rows.arrays import (
    NO_IDS,
    NO_NUMBERS,
    NO_ROWS,
    DenseProbabilities,
    Rows,
    blocks,
    csr,
    entries_of,
)
from omma.rows.batch import Batch
from omma.rows.row import PartlyKnown, Row, refuse_indicators, refuse_row
from omma.state import State, aligned, padded

INDICATORS = np.dtype(np.int8)
WINDOW_ENTRIES = 20_000  # a window makes room for so many entries of rows at once
Vector = NDArray[np.float64]
# Consecutive rows: the first, the end, and for each row which of several rules decides it.
Stretch = tuple[int, int, NDArray[np.int32]]
# Called at checkpoints with counts of true labels, shape (3, m), and the number of rows.
Look = Callable[[Vector, float], None]


class UnsortedError(ValueError):
    """Label ids of a sparse row that do not rise, or that no label has."""


class Engine:
    """Decides and learns rows with one state, by one plan.

    A dense row is float64 probabilities, float64 labels and an int8 prediction, each over all
    labels. A sparse row is a pair (label ids, probabilities), with the ids of true and of predicted
    labels. ``omma.rows.row`` checks rows; the engine does not check them again. ``decide`` writes
    to scratch space of the calling thread only.

    >>> import numpy as np, omma
    >>> policy = omma.Auto("macro_f1")
    >>> engine = Engine(policy.plan(2), policy.init(2))
    >>> row, labels = np.array([0.9, 0.2]), np.array([1.0, 0.0])
    >>> decision = engine.decide(row)
    >>> engine.learn(row, labels, decision, 1.0)
    >>> decision, engine.decide(row)
    (array([1, 0], dtype=int8), array([1, 1], dtype=int8))
    """

    def __init__(self, plan: Plan, state: State) -> None:
        self.state, self.m = state, state.m
        self.bind(plan)

    @classmethod
    def start(cls, plan: Plan, m: int) -> Engine:
        """An engine with an empty state."""
        return Engine(plan, State.start(plan, m))

    def bind(self, plan: Plan) -> None:
        """Use a plan from now on, with the arrays that the state has at present."""
        state = self.state
        self.plan, self._columns = plan, state.columns
        if not plan.sums:  # sums that the state may have are not kept up to date from here on
            state.set_totals[:, SUM_TP:] = 0.0
        # Algorithm 1 of the paper counts labels, Algorithm 2 estimates; Auto uses both.
        feedback: Any
        if state.labels is None:
            feedback = None if state.missed is None else PartialLabels()
        elif state.known is None or plan.shrinkage is None:
            feedback = Estimates()
        else:
            feedback = Both(*plan.shrinkage)
        select, objective = plan.decision
        self.spec = Spec(
            objective,
            float(plan.prior),
            plan.budget,
            0 if plan.matrix is None else self.m,
            select,
            feedback,
            plan.sums,
            self.m,
        )
        # Learning does not depend on the objective: without it, kernels are compiled once for all.
        self.learning = self.spec._replace(objective=None)
        # Scratch space of each thread, so that several threads can decide at once.
        self._scratch = threading.local()

    # The arrays that kernels read and write.

    def _memory(self, columns: Any, table: Any) -> Memory:
        """All arrays that a kernel uses, for rows whose numbers are in ``columns``."""
        state, plan = self.state, self.plan
        # What a policy does not use is None, and kernels are compiled without it.
        calibrator = Learning if plan.settled is None else Settled
        window = state.window
        return Memory(
            columns,
            table,
            state.set_totals,
            aligned(WORK, columns.shape[1]),
            None if state.shared is None else calibrator(state.shared),
            state.pace,
            self._limits(),
            None if window is None else window.kernel(state.m),
        )

    def _limits(self, mu: Vector | None = None) -> Limits | None:
        """The limits, at the prices ``mu`` or at those of the state."""
        prices = self.state.prices
        if self.plan.limits is None or prices is None:
            return None
        # Where decisions use estimates only, limits are held on estimates, too.
        degrees = VALUES if isinstance(self.spec.feedback, Estimates) else PRESENT
        mu = prices.mu if mu is None else mu
        return Limits(*self.plan.limits, mu, prices.mean, prices.spread, prices.rates, degrees)

    def dense(self) -> Any:
        """What kernels of dense rows take, for this thread: ``memory``, or arguments one by one."""
        # Loading a state, and the first row with partial labels, replace the arrays of the state.
        if self.state.columns is not self._columns:
            self.bind(self.plan)
        space = self._scratch
        if not hasattr(space, "memory"):
            memory = self._memory(self._columns, self._columns)
            # One by one, because passing a tuple takes half of the time of a call. There is no
            # table: for dense rows it is the same array as the columns.
            columns, _, *others = memory
            space.deciding = (*self.spec, columns, *others)
            space.learning = (*self.learning, columns, *others)
            space.memory = memory
        return space

    def sparse_memory(self, longest: int, table: Any = None) -> tuple[Memory, kernels.Sparse]:
        """What kernels of sparse rows take, for rows of at most ``longest`` labels.

        ``table`` has the numbers of all labels, by default the columns of the state.
        """
        if self.state.columns is not self._columns:
            self.bind(self.plan)
        width = padded(longest + 1)
        scratch = kernels.Sparse(np.zeros(width, dtype=np.int32), np.zeros(self.m, dtype=np.int32))
        table = self._columns if table is None else table
        return self._memory(aligned(FIELDS, width), table), scratch

    def _single_sparse(self, longest: int) -> tuple[Memory, kernels.Sparse]:
        """What kernels of a single sparse row take; it is kept for the next row."""
        space = self._scratch if self.state.columns is self._columns else None
        ready = getattr(space, "sparse", None)
        if ready is None or len(ready[1].ids) < longest:
            # With spare room, as the rows of a stream have different lengths.
            ready = self.sparse_memory(2 * longest)
            self._scratch.sparse = ready
        return ready

    def _make_room(self, rows: int, longest: int) -> None:
        """Make room in the window for more rows of at most ``longest`` labels."""
        # A row lists predicted and true labels and candidates; twice, if its labels are partial.
        window, entries = self.state.window, 2 * rows * longest
        if window is not None and window.make_room(2 * rows, 3 * entries, entries):
            self.bind(self.plan)

    # Single rows.

    def decide(self, eta: Row, pick: int = 0, spec: Spec | None = None) -> NDArray[Any]:
        """Decide one row: int8 indicators, or for a sparse row the int32 ids of chosen labels.

        ``pick`` chooses among several fixed rules, which ``spec`` may replace. The ids of a sparse
        row are checked before they are used.
        """
        if isinstance(eta, tuple):
            return self._decide_sparse(eta, pick, spec)
        arguments = self.dense().deciding
        if spec is not None:
            arguments = (*spec, *arguments[len(spec) :])
        out = np.empty(self.m, INDICATORS)
        # The kernel checks each probability as it reads it. Python only explains what is wrong.
        if not single.decide_dense(eta, pick, out, *arguments):
            refuse_row("predict", eta)
        return out

    def _decide_sparse(self, eta: Any, pick: int, spec: Spec | None) -> NDArray[np.int32]:
        labels, values = eta
        if self.plan.needs_every_label:
            dense = np.zeros(self.m)
            dense[labels] = values
            return np.flatnonzero(self.decide(dense, pick, spec)).astype(np.int32)
        longest = len(labels) + abs(self.plan.budget)
        memory, scratch = self._single_sparse(longest)
        out = np.empty(longest, dtype=np.int32)
        by = spec or self.spec
        count = single.decide_sparse(labels, values, pick, out, *scratch, *by, *memory)
        if count < 0:
            refuse_row("predict", values)
            raise UnsortedError("label ids of a sparse row must rise, and be those of labels")
        return out[:count]

    def drew(self) -> None:
        """Called after a decision whose labels come later: draw the rule of the next row."""

    def learn(
        self,
        eta: Row | None,
        y: NDArray[Any] | PartlyKnown | None,
        prediction: NDArray[Any],
        weight: float,
        *,
        late: bool = False,
        audit: float = 0.0,
    ) -> None:
        """Count one decided row; ``y`` is None if its labels are unknown.

        ``eta`` is used only by policies that count probabilities. A ``late`` row was counted
        without its labels when it was decided. ``audit`` is not zero if labels were seen because of
        the decision (``omma.kernels.row.Gaps``).
        """
        state = self.state
        true: Any = y
        gaps: Gaps | None = None
        if isinstance(y, PartlyKnown):
            true = y.true
            gaps = Gaps(y.unknown, float(audit))
            state.allow_partial_labels()
        if audit:
            gaps = gaps or Gaps(NO_IDS, float(audit))
            state.allow_unseen()
        # A policy that counts labels only has counted nothing yet: its late rows are like others.
        late = late and state.labels is not None
        options = (float(weight), y is not None, late, gaps)
        if prediction.itemsize == 4:  # label ids, not int8 indicators
            labels, values = eta if isinstance(eta, tuple) else (NO_IDS, NO_NUMBERS)
            ids: Any = NO_IDS if true is None else true
            longest = len(labels) + len(ids) + len(prediction)
            self._make_room(1, longest)
            memory, scratch = self._single_sparse(longest)
            row = (labels, np.asarray(values, np.float64), ids, prediction)
            single.learn_sparse(*row, *options, *scratch, *self.learning, *memory)
            return
        self._make_room(1, self.m)
        values = NO_NUMBERS
        if eta is not None and not isinstance(eta, tuple):
            values = np.asarray(eta, np.float64)
        indicators = NO_NUMBERS if true is None else true
        arguments = self.dense().learning
        if not single.learn_dense(values, indicators, prediction, *options, *arguments):
            if true is not None:
                refuse_indicators("update", "y", true)
            refuse_indicators("update", "prediction", prediction)

    # Whole sequences.

    def replay(
        self,
        owner: str,
        batch: Batch,
        order: Rows | None = None,
        *,
        keep: bool = True,
        checkpoints: Rows = NO_ROWS,
        look: Look | None = None,
        progress: Progress | None = None,
        audited: NDArray[np.bool_] | None = None,
        stretches: Iterable[Stretch] | None = None,
    ) -> Run:
        """Decide and learn the rows of a batch, one after another.

        Parameters
        ----------
        owner : str
            The caller, as messages name it.
        order : ndarray, optional
            The rows to run, in this order; default all rows in their own order.
        keep : bool
            Whether to keep predictions.
        checkpoints : ndarray
            Numbers of rows after which to copy the counts of true labels.
        look : callable, optional
            Called with these counts at checkpoints; then they are not copied.
        progress : callable, optional
            Called with the number of rows that were run.
        audited : ndarray of bool, optional
            If labels are seen only where they were predicted: which rows were audited.
        stretches : iterable, optional
            Default ``self.stretches``. A generator may bind another plan between two stretches.
        """
        state, plan = self.state, self.plan
        if batch.labels is not None and batch.labels.missing is not None:
            state.allow_partial_labels()
        if audited is not None:
            state.allow_unseen()
        # If the gain of a label depends on all labels, sparse rows are run as dense ones.
        is_sparse = batch.is_sparse and not plan.needs_every_label
        # Kernels copy counts at checkpoints, unless there is a function to call instead.
        copied = checkpoints if look is None else NO_ROWS
        run = Run(batch, order, state, copied, keep=keep, is_sparse=is_sparse)
        records = gathered(state) if is_sparse else None
        step = batch.eta.rows_per_block
        if plan.window is not None:  # it needs room for all rows of a piece
            step = min(step, max(1, WINDOW_ENTRIES // self.m, plan.window // 8))
        for start, stop, picks in stretches or self.stretches(batch, order):
            cuts = {*range(start, stop, step), stop}
            if look is not None:
                inside = (checkpoints > start) & (checkpoints < stop)
                cuts.update(checkpoints[inside].tolist())
            for begin, end in pairwise(sorted(cuts)):
                rows = np.arange(begin, end, dtype=np.int64) if order is None else order[begin:end]
                picked = picks[begin - start : end - start]
                audits = None
                if audited is not None and state.unseen is not None:
                    weights = batch.weights[rows] if len(batch.weights) else None
                    audits = state.unseen.audit_weights(audited[rows], weights)
                self._replay_piece(owner, run, rows, picked, audits, records)
                if look is not None and run.done in checkpoints:
                    begun = time.perf_counter()
                    if records is not None:
                        put_back(records, state)
                    look(state.reported, state.truth.rows)
                    run.paused += time.perf_counter() - begun
                if progress is not None:
                    progress(len(rows))
        if records is not None:
            put_back(records, state)
        run.seconds = time.perf_counter() - run.started - run.paused
        if state.window is not None:
            state.window.trim()
            self.bind(plan)  # the window has other arrays now
        return run

    def stretches(self, batch: Batch, order: Rows | None) -> Iterable[Stretch]:
        """Parts of the sequence; overridden by policies whose rows are decided by several rules."""
        return [(0, batch.n if order is None else len(order), NO_IDS)]

    def _replay_piece(
        self,
        owner: str,
        run: Run,
        rows: Rows,
        picks: NDArray[Any],
        audits: Vector | None,
        records: Vector | None,
    ) -> None:
        """Run rows by one call of a kernel."""
        batch = run.batch
        longest = batch.longest + abs(self.plan.budget) if run.is_sparse else self.m
        self._make_room(len(rows), longest)
        block = batch.block(rows, is_sparse=run.is_sparse)
        extras, marks = batch.extras(rows, picks, audits), run.marks()
        listed = NO_IDS
        arguments: tuple[Any, ...]
        if run.is_sparse:
            kernel, (memory, scratch) = kernels.replay_sparse, self.sparse_memory(longest, records)
            if run.keep:
                starts, ends = block[2:4]
                room = int((ends - starts).sum()) + max(self.plan.budget, 0) * len(rows)
                listed = np.empty(room, dtype=np.int32)
            arguments = (extras, scratch, self.spec, memory, marks, listed, run.out, rows)
        else:
            kernel, memory = kernels.replay_dense, self.dense().memory
            arguments = (extras, self.spec, memory, marks, run.out, rows)
        if not run.done:
            # A call without rows compiles, or loads from disk, before the clock starts.
            kernel(*[array[:0] for array in block], *arguments)
            run.started = time.perf_counter()
        good, filled = kernel(*block, *arguments)
        # Rows before the wrong one were counted, but their state is dropped with the error.
        if good < len(rows):
            wrong = batch.eta.explain(int(rows[good]))
            raise ValueError(f"eta of {owner} must hold {wrong}")
        if len(listed):
            run.lists.append(listed[: int(run.out[rows, 0].sum())].copy())
        run.done += len(rows)
        run.filled += filled

    def learn_rows(self, batch: Batch, decided: Any, *, late: bool = False) -> None:
        """Count rows that were decided: ``decided`` are indicators, or a CSR matrix."""
        if batch.labels is not None and batch.labels.missing is not None:
            self.state.allow_partial_labels()
        is_sparse = batch.is_sparse
        if is_sparse:
            longest = batch.longest + int(np.diff(decided.indptr).max(initial=0))
            memory, scratch = self.sparse_memory(longest)
            chosen, ends = decided.indices.astype(np.int32), decided.indptr.astype(np.int64)
        else:
            memory = self.dense().memory
        for _, rows in blocks(batch.n, batch.eta.rows_per_block, None):
            block, extras = batch.block(rows, is_sparse=is_sparse), batch.extras(rows)
            if is_sparse:
                lists = (chosen, ends[rows], ends[rows + 1])
                kernels.learn_sparse(*block, *lists, extras, late, scratch, self.learning, memory)
            else:
                kernels.learn_dense(*block, decided[rows], extras, late, self.learning, memory)

    # The rule.

    def rule(self, *, settled: bool = False) -> tuple[Vector, Vector]:
        """Slope and offset of every label at the present counts: the rule of the next row.

        ``settled`` is for a rule that will be deployed: derivatives of the objective, at the mean
        price of each limit. Else these are the numbers that decide the next row.
        """
        plan, prices = self.plan, self.state.prices
        by_derivatives = settled or plan.matrix is not None
        mu = None
        if plan.limits is not None and prices is not None:
            mu = prices.settled if settled else prices.mu
        return self._weights(plan.gradient if by_derivatives else plan.objective, mu)

    def gradient(self) -> tuple[Vector, Vector]:
        """Derivatives of the objective by tp / n and by predicted / n of every label."""
        return self._weights(self.plan.gradient)

    def seen(self) -> tuple[Vector, Vector]:
        """The counts (3, m) that decisions use, corrected by observed labels, and their totals."""
        # Only these two kinds of feedback correct counts.
        cells, totals = np.array(self.state.cells), self.state.totals.copy()
        if isinstance(self.learning.feedback, Both | PartialLabels):
            memory = self.dense().memory._replace(limits=None, calibrator=None)
            rules.all_decision_counts(self.learning, memory, cells, totals)
        return cells, totals

    def _weights(self, objective: Any, mu: Vector | None = None) -> tuple[Vector, Vector]:
        """Slope and offset of every label by an objective, at prices ``mu`` of the limits."""
        cells, totals = self.seen()
        prior = float(self.plan.prior) * self.state.unit
        memory = self.dense().memory._replace(limits=None, calibrator=None)
        without_time = memory._replace(pace=None, window=None)
        rules.gradient(objective, prior, cells, totals, without_time)
        if mu is not None:
            rules.price(self.learning, memory._replace(limits=self._limits(mu)))
        return memory.work[SLOPE, : self.m].copy(), memory.work[OFFSET, : self.m].copy()


class Run:
    """A replay in progress: its rows, and its results so far.

    Attributes
    ----------
    state : State
    out : ndarray
        Decisions on dense rows, as indicators; for sparse rows, the number of labels predicted.
        Empty if predictions are not kept.
    lists : list of ndarray
        The labels predicted for sparse rows, piece by piece, in the order of decisions.
    snapshots : ndarray of shape (checkpoints, 3, m)
        Counts of true labels at checkpoints, and in ``snapshot_rows`` their number of rows.
    done, filled : int
        The number of rows that were run, and of those with fewer candidates than k.
    seconds : float
        The time of the replay, without compilation.
    """

    def __init__(
        self,
        batch: Batch,
        order: Rows | None,
        state: State,
        checkpoints: Rows,
        *,
        keep: bool,
        is_sparse: bool,
    ) -> None:
        self.batch, self.order, self.state, self.checkpoints = batch, order, state, checkpoints
        self.keep, self.is_sparse = keep, is_sparse
        rows, copies = (batch.n if keep else 0), len(checkpoints)
        shape, kind = ((rows, 1), np.int32) if is_sparse else ((rows, state.m), np.int8)
        self.out: NDArray[Any] = np.zeros(shape, dtype=kind)
        self.lists: list[NDArray[np.int32]] = []
        self.snapshots, self.snapshot_rows = np.empty((copies, 3, state.m)), np.empty(copies)
        self.done = self.filled = 0
        self.started, self.paused = time.perf_counter(), 0.0
        self.seconds = 0.0

    def marks(self) -> kernels.Marks:
        """The checkpoints to come, and where to copy the counts."""
        first = int(self.checkpoints.searchsorted(self.done, side="right"))
        copies = (self.snapshots[first:], self.snapshot_rows[first:])
        places = self.checkpoints[first:] - self.done
        return kernels.Marks(self.state.truth.place, places, *copies)

    @cached_property
    def predictions(self) -> Any:
        """All decisions in the layout of the probabilities; None if they were not kept."""
        eta: Any = self.batch.eta
        if not self.keep:
            return None
        if isinstance(eta, DenseProbabilities):
            return self.out[:, 0] if eta.vector else self.out
        if not self.is_sparse:
            return type(eta.matrix)(self.out)
        ids, lengths = np.concatenate([NO_IDS, *self.lists]), self.out[:, 0]
        if self.order is not None:  # labels are listed in the order of decisions
            starts = np.zeros(eta.n, dtype=np.int64)
            starts[self.order] = np.cumsum(lengths[self.order]) - lengths[self.order]
            ids = ids[entries_of(starts, starts + lengths)]
        # SciPy wants ids and ends of one type.
        kind = np.int32 if len(ids) < 2**31 else np.int64
        indptr = np.zeros(eta.n + 1, dtype=kind)
        np.cumsum(lengths, out=indptr[1:])
        parts = (np.ones(len(ids), dtype=np.int8), ids.astype(kind, copy=False), indptr)
        return csr(parts, (eta.n, eta.m), type(eta.matrix))


def gathered(state: State) -> Vector:
    """A copy of the columns of a state in which the numbers of each label lie side by side.

    A sparse row reads few labels. Processors fetch 64 bytes, eight numbers, at a time, so a label
    costs one or two fetches instead of one for each of its numbers.
    """
    fields = len(state.columns)
    size = 4 if fields <= 4 else -(-fields // 8) * 8
    records = np.zeros((state.m, size))
    records[:, :fields] = state.columns[:, : state.m].T
    return records.T  # shape (fields, m), a label's numbers side by side


def put_back(records: Vector, state: State) -> None:
    """Copy gathered numbers back to the columns of their state."""
    state.columns[:, : state.m] = records[: len(state.columns)]
