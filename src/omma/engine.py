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
from omma.kernels.layout import (
    FIELDS,
    LIFETIME,
    OFFSET,
    PRESENT,
    SLOPE,
    SUM_TP,
    TRUE,
    VALUES,
    WORK,
)
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
        # Algorithm 1 of the paper counts labels, Algorithm 2 estimates; Auto uses both.
        feedback: Any = Estimates()
        if state.labels is None:
            feedback = None if state.missed is None else PartialLabels()
        elif state.known is not None and plan.shrinkage is not None:
            feedback = plan.shrinkage
        # Sums over labels that decisions do not look at are not kept up to date from here on:
        # those of OWN are if the plan needs any, those of TRUE and KNOWN only if it corrects by
        # them, those of LIFETIME never.
        summed = 0 if not plan.sums else LIFETIME if isinstance(feedback, Both) else TRUE
        state.set_totals[summed:, SUM_TP:] = 0.0
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

    def _limits(self, *, settled: bool = False) -> Limits | None:
        """The limits, at the prices of the state, or ``settled`` at their mean prices."""
        prices = self.state.prices
        if self.plan.limits is None or prices is None:
            return None
        # Where decisions use estimates only, limits are held on estimates, too.
        degrees = VALUES if isinstance(self.spec.feedback, Estimates) else PRESENT
        mu = prices.settled if settled else prices.mu
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

    def sparse(self, longest: int, table: Any = None) -> tuple[Memory, kernels.Sparse]:
        """What kernels of sparse rows take, for this thread; rows have at most ``longest`` labels.

        ``table`` has the numbers of all labels, by default the columns of the state.
        """
        if self.state.columns is not self._columns:
            self.bind(self.plan)
        table = self._columns if table is None else table
        ready = getattr(self._scratch, "sparse", None)
        if ready is None or ready[0].table is not table or len(ready[1].ids) <= longest:
            # With spare room, as the rows of a stream have different lengths.
            width = padded(2 * longest + 1)
            ids, place = np.zeros(width, dtype=np.int32), np.zeros(self.m, dtype=np.int32)
            ready = self._memory(aligned(FIELDS, width), table), kernels.Sparse(ids, place)
            self._scratch.sparse = ready
        return ready

    def make_room(self, rows: int, longest: int) -> None:
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
        memory, scratch = self.sparse(longest)
        out = np.empty(longest, dtype=np.int32)
        options = (*scratch, *(spec or self.spec), *memory)
        count = single.decide_sparse(labels, values, pick, out, *options)
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
            self.make_room(1, longest)
            memory, scratch = self.sparse(longest)
            row = (labels, np.asarray(values, np.float64), ids, prediction)
            single.learn_sparse(*row, *options, *scratch, *self.learning, *memory)
            return
        self.make_room(1, self.m)
        is_dense = eta is not None and not isinstance(eta, tuple)
        values = np.asarray(eta, np.float64) if is_dense else NO_NUMBERS
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
        audits = NO_NUMBERS
        if audited is not None:
            state.allow_unseen()
            assert state.unseen is not None
            in_order = slice(None) if order is None else order
            audits = state.unseen.audit_weights(audited[in_order], batch.row_weights[in_order])
        # Kernels copy counts at checkpoints, unless there is a function to call instead.
        run = Run(self, owner, batch, order, checkpoints if look is None else NO_ROWS, keep=keep)
        step = batch.eta.rows_per_block
        if plan.window is not None:  # it needs room for all rows of a piece
            step = min(step, max(1, WINDOW_ENTRIES // self.m, plan.window // 8))
        for start, stop, picks in stretches or self.stretches(batch, order):
            cuts = {*range(start, stop, step), stop}
            if look is not None:
                cuts |= {place for place in checkpoints.tolist() if start < place < stop}
            for begin, end in pairwise(sorted(cuts)):
                rows = np.arange(begin, end, dtype=np.int64) if order is None else order[begin:end]
                run.advance(rows, picks[begin - start : end - start], audits[begin:end])
                if look is not None and run.done in checkpoints:
                    begun = time.perf_counter()
                    run.put_back()
                    look(state.reported, state.truth.rows)
                    run.started += time.perf_counter() - begun  # the clock stands still
                if progress is not None:
                    progress(len(rows))
        run.put_back()
        run.seconds = time.perf_counter() - run.started
        if state.window is not None:
            state.window.trim()
            self.bind(plan)  # the window has other arrays now
        return run

    def stretches(self, batch: Batch, order: Rows | None) -> Iterable[Stretch]:
        """Parts of the sequence; overridden by policies whose rows are decided by several rules."""
        return [(0, batch.n if order is None else len(order), NO_IDS)]

    def learn_rows(self, batch: Batch, decided: Any, *, late: bool = False) -> None:
        """Count rows that were decided: ``decided`` are indicators, or a CSR matrix."""
        if batch.labels is not None and batch.labels.missing is not None:
            self.state.allow_partial_labels()
        is_sparse = batch.is_sparse
        if is_sparse:
            longest = batch.longest + int(np.diff(decided.indptr).max(initial=0))
            memory, scratch = self.sparse(longest)
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

        ``settled`` is for a rule that will be deployed: derivatives of the objective by tp / n and
        by predicted / n, and the mean price of each limit. Else these are the numbers that decide
        the next row.
        """
        plan, limits = self.plan, self._limits(settled=settled)
        objective = plan.gradient if settled or plan.matrix is not None else plan.objective
        cells, totals = self.seen()
        prior = float(plan.prior) * self.state.unit
        memory = self.dense().memory._replace(limits=limits, calibrator=None)
        # Only prices depend on time: without it, the kernel is compiled once for all policies.
        without_time = memory._replace(limits=None, pace=None, window=None)
        rules.gradient(objective, prior, cells, totals, without_time)
        if limits is not None:
            rules.price(self.learning, memory)
        return memory.work[SLOPE, : self.m].copy(), memory.work[OFFSET, : self.m].copy()

    def seen(self) -> tuple[Vector, Vector]:
        """The counts (3, m) that decisions use, corrected by observed labels, and their totals."""
        # Only these two kinds of feedback correct counts.
        cells, totals = np.array(self.state.cells), self.state.totals.copy()
        if isinstance(self.learning.feedback, Both | PartialLabels):
            memory = self.dense().memory._replace(limits=None, calibrator=None)
            rules.all_decision_counts(self.learning, memory, cells, totals)
        return cells, totals


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
        engine: Engine,
        owner: str,
        batch: Batch,
        order: Rows | None,
        checkpoints: Rows,
        *,
        keep: bool,
    ) -> None:
        self.engine, self.state, self.owner = engine, engine.state, owner
        self.batch, self.order, self.checkpoints, self.keep = batch, order, checkpoints, keep
        # If the gain of a label depends on all labels, sparse rows are run as dense ones.
        self.is_sparse = batch.is_sparse and not engine.plan.needs_every_label
        self._table = gathered(self.state) if self.is_sparse else None
        rows, copies = (batch.n if keep else 0), len(checkpoints)
        shape, kind = ((rows, 1), np.int32) if self.is_sparse else ((rows, batch.m), np.int8)
        self.out: NDArray[Any] = np.zeros(shape, dtype=kind)
        self.lists: list[NDArray[np.int32]] = []
        self.snapshots, self.snapshot_rows = np.empty((copies, 3, batch.m)), np.empty(copies)
        self.done = self.filled = 0
        self.started, self.seconds = time.perf_counter(), 0.0

    def advance(self, rows: Rows, picks: NDArray[Any], audits: Vector) -> None:
        """Decide and learn the next rows by one call of a kernel."""
        engine, batch, budget = self.engine, self.batch, self.engine.plan.budget
        longest = batch.longest + abs(budget) if self.is_sparse else batch.m
        engine.make_room(len(rows), longest)
        block = batch.block(rows, is_sparse=self.is_sparse)
        extras = batch.extras(rows, picks, audits)
        # The checkpoints to come, and where to copy the counts.
        first = int(self.checkpoints.searchsorted(self.done, side="right"))
        marks = kernels.Marks(
            self.state.truth.place,
            self.checkpoints[first:] - self.done,
            self.snapshots[first:],
            self.snapshot_rows[first:],
        )
        listed = NO_IDS
        arguments: tuple[Any, ...]
        if self.is_sparse:
            kernel, (memory, scratch) = kernels.replay_sparse, engine.sparse(longest, self._table)
            if self.keep:
                starts, ends = block[2:4]
                room = int((ends - starts).sum()) + max(budget, 0) * len(rows)
                listed = np.empty(room, dtype=np.int32)
            arguments = (extras, scratch, engine.spec, memory, marks, listed, self.out, rows)
        else:
            kernel, memory = kernels.replay_dense, engine.dense().memory
            arguments = (extras, engine.spec, memory, marks, self.out, rows)
        if not self.done:
            # A call without rows compiles, or loads from disk, before the clock starts.
            kernel(*[array[:0] for array in block], *arguments)
            self.started = time.perf_counter()
        good, filled = kernel(*block, *arguments)
        # Rows before the wrong one were counted, but their state is dropped with the error.
        if good < len(rows):
            raise ValueError(f"eta of {self.owner} must hold {batch.eta.explain(int(rows[good]))}")
        if len(listed):
            self.lists.append(listed[: int(self.out[rows, 0].sum())].copy())
        self.done += len(rows)
        self.filled += filled

    def put_back(self) -> None:
        """Copy gathered numbers back to the columns of their state."""
        if self._table is not None:
            self.state.columns[:, : self.batch.m] = self._table[: len(self.state.columns)]

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
