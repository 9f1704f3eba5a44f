"""The engine: a plan for m labels with its state, which decides and learns single rows.

``omma.replaying`` runs whole blocks of rows. Both call the same compiled ``decide`` and ``learn``,
so they give the same bits.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.kernels import rule as rules, single
from omma.kernels.calibrate import Learning, Settled
from omma.kernels.counts import Both, PartialLabels
from omma.kernels.gains import POINT
from omma.kernels.layout import FIELDS, OFFSET, SLOPE, SUM_TP, WORK
from omma.kernels.replay import Sparse
from omma.kernels.row import Gaps, Memory, Spec
from omma.plan import Plan
from omma.rows.row import PartlyKnown, Row, refuse_indicators, refuse_row
from omma.sliding_window import SlidingWindow
from omma.state import State, aligned, padded

NO_IDS = np.empty(0, dtype=np.int32)
NO_NUMBERS = np.empty(0)
INDICATORS = np.dtype(np.int8)


class UnsortedError(ValueError):
    """Label ids of a sparse row that do not rise, or that no label has."""


class Scratch(threading.local):
    """Scratch space, one for each thread: two that decide at once do not disturb each other."""

    version = 0  # of the engine's arrays that these are of
    dense: Memory | None = None
    # What kernels of single dense rows take behind the row: to hand it over is half of a call.
    deciding: tuple[Any, ...] = ()
    learning: tuple[Any, ...] = ()
    sparse: tuple[Memory, Sparse] | None = None


def work_space(width: int) -> NDArray[np.float64]:
    """Scratch space for rows of so many labels."""
    try:
        return aligned(WORK, width)
    except MemoryError:
        needed = 8 * WORK * width / 2**30
        raise MemoryError(
            f"{width:,} labels take {needed:,.0f} GiB of space to work in, more than there is"
        ) from None


class Engine:
    """Decides and learns rows of one state, by one plan.

    A dense row is float64 probabilities, float64 labels and an int8 prediction, each over all
    labels. A sparse row is a pair (label ids, probabilities), with the ids of true and of predicted
    labels. ``omma.rows.row`` lets rows in; here they are not looked at again. Deciding changes
    nothing but the calling thread's scratch space.

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
        self._scratch, self._version = Scratch(), 0
        self.bind(plan)

    def bind(self, plan: Plan) -> None:
        """Look where the numbers of the state lie, and decide by a plan from now on."""
        self.plan, self._columns = plan, self.state.columns
        if not plan.sums:  # nobody keeps them up to date: those of other states must not stay
            self.state.set_totals[:, SUM_TP:] = 0.0
        self.spec = plan.spec(self.state)
        # Learning is the same for all objectives and budgets, and is compiled once for them.
        self.learning = self.spec._replace(objective=None)
        self._version += 1

    def _space(self) -> Scratch:
        """The scratch space of this thread, emptied where the state has other arrays now."""
        # Loading a state, and the first row labelled in part, put other arrays in its place.
        if self.state.columns is not self._columns:
            self.bind(self.plan)
        space = self._scratch
        if space.version != self._version:
            space.dense = space.sparse = None
            space.deciding = space.learning = ()
            space.version = self._version
        return space

    def _memory(self, columns: Any, table: Any) -> Memory:
        """All arrays that kernels read and write, for rows of these columns."""
        state, plan = self.state, self.plan
        # What a policy does not use is None: kernels are compiled without it.
        calibrator = Learning if plan.settled is None else Settled
        return Memory(
            columns,
            table,
            state.set_totals,
            work_space(columns.shape[1]),
            np.zeros(POINT),
            None if state.shared is None else calibrator(state.shared),
            state.clock,
            plan.prices(state),
            None if state.window is None else state.window.kernel(state.m),
        )

    def memory(self) -> Memory:
        """The arrays of dense rows."""
        space = self._space()
        if space.dense is None:
            space.dense = self._memory(self._columns, self._columns)
        return space.dense

    def _dense_scratch(self) -> Scratch:
        """The scratch space of single dense rows."""
        space = self._space()
        if not space.deciding:
            # Without their table: that of all labels would be the columns again.
            columns, _, *others = self.memory()
            space.deciding = (*self.spec, columns, *others)
            space.learning = (*self.learning, columns, *others)
        return space

    def sparse_memory(self, longest: int, table: Any = None) -> tuple[Memory, Sparse]:
        """The arrays of sparse rows of so many labels at most, whose numbers ``table`` has."""
        width = padded(longest + 1)
        sparse = Sparse(np.zeros(width, dtype=np.int32), np.zeros(self.m, dtype=np.int32))
        table = self.state.columns if table is None else table
        return self._memory(aligned(FIELDS, width), table), sparse

    def _sparse_scratch(self, longest: int) -> tuple[Memory, Sparse]:
        """The arrays of single sparse rows of so many labels."""
        space = self._space()
        if space.sparse is None or len(space.sparse[1].ids) < longest:
            # With room to spare: rows of a stream have different lengths.
            space.sparse = self.sparse_memory(2 * longest)
        return space.sparse

    def decide(self, eta: Row, pick: int = 0, spec: Spec | None = None) -> NDArray[Any]:
        """Decide one row: int8 indicators, or for a sparse row the int32 ids of chosen labels.

        ``pick`` chooses among fixed rules, which another ``spec`` may bring. The ids of a sparse
        row are looked at before they are followed.
        """
        if isinstance(eta, tuple):
            return self._decide_sparse(eta, pick, spec)
        arguments = self._dense_scratch().deciding
        if spec is not None:
            arguments = (*spec, *arguments[len(spec) :])
        out = np.empty(self.m, INDICATORS)
        # The kernel looks at each probability while it reads it; only what it refuses is explained.
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
        memory, sparse = self._sparse_scratch(longest)
        out = np.empty(longest, dtype=np.int32)
        by = spec or self.spec
        count = single.decide_sparse(labels, values, pick, out, *sparse, *by, *memory)
        if count < 0:
            refuse_row("predict", values)
            raise UnsortedError("label ids of a sparse row must rise, and be those of labels")
        return out[:count]

    def drew(self) -> None:
        """Note that a row was decided whose labels will come later."""

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
        """Count one decided row; ``y`` is None where its labels are unknown.

        Only where decisions look at probabilities ``eta`` is looked at. A ``late`` row was counted
        without its labels when it was decided. ``audit`` is not zero where labels were seen because
        of the decision (``omma.kernels.row.Gaps``).
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
        # Where labels alone are counted, nothing was when the row was decided: late is as usual.
        late = late and "labels" in state.sets
        if state.window is not None:
            self._make_room(state.window, eta, true, prediction)
        options = (float(weight), y is not None, late, gaps)
        if prediction.itemsize == 4:  # label ids, not int8 indicators
            labels, values = eta if isinstance(eta, tuple) else (NO_IDS, NO_NUMBERS)
            ids: Any = NO_IDS if true is None else true
            memory, sparse = self._sparse_scratch(len(labels) + len(ids) + len(prediction))
            row: tuple[Any, ...] = (labels, float64(values), ids, prediction)
            single.learn_sparse(*row, *options, *sparse, *self.learning, *memory)
            return
        values = NO_NUMBERS if eta is None or isinstance(eta, tuple) else float64(eta)
        indicators = NO_NUMBERS if true is None else true
        arguments = self._dense_scratch().learning
        if not single.learn_dense(values, indicators, prediction, *options, *arguments):
            if true is not None:
                refuse_indicators("update", "y", true)
            refuse_indicators("update", "prediction", prediction)

    def _make_room(self, window: SlidingWindow, eta: Any, y: Any, prediction: Any) -> None:
        """See to it that a window can keep one more row, twice where it is known in part."""
        entries, stored = 3 * self.m, self.m
        if prediction.dtype == np.int32:
            stored = len(eta[0]) if isinstance(eta, tuple) else 0
            entries = stored + len(prediction) + (0 if y is None else len(y))
        if window.make_room(2, 2 * entries, 2 * stored):
            self._version += 1

    def rule(self, *, settled: bool = False) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Slope and offset of every label at the present counts: the rule that decides next.

        One that will stand still (``settled``) has the derivatives themselves, at the mean price
        of each limit; one that decides now has the very numbers that decide.
        """
        plan = self.plan
        by_derivatives = settled or plan.matrix is not None
        memory = self._weigh(plan.gradient if by_derivatives else plan.objective)
        prices = self.state.prices
        if plan.limits is not None and prices is not None:
            mu = prices.settled if settled else prices.mu
            limited = plan.prices(self.state, mu)
            priced = self.memory()._replace(limits=limited, calibrator=None)
            rules.price(self.learning, priced)
        return self._weights(memory)

    def gradient(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Derivatives of the objective by tp / n and by predicted / n of every label."""
        return self._weights(self._weigh(self.plan.gradient))

    def seen(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The counts (3, m) that decisions look at, corrected by labels that came; their totals."""
        # Labels and estimates are looked at as they were counted; only these two correct them.
        cells, totals = np.array(self.state.cells), self.state.totals.copy()
        if isinstance(self.learning.feedback, Both | PartialLabels):
            memory = self.memory()._replace(limits=None, calibrator=None)
            rules.see_all(self.learning, memory, cells, totals)
        return cells, totals

    def _weigh(self, objective: Any) -> Memory:
        """Work out slope and offset of every label by an objective, without prices."""
        cells, totals = self.seen()
        prior = float(self.plan.prior) * self.state.unit
        memory = self.memory()._replace(limits=None, calibrator=None, pace=None, window=None)
        rules.gradient(objective, prior, cells, totals, memory)
        return memory

    def _weights(self, memory: Memory) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Slope and offset of every label, as they were worked out."""
        return memory.work[SLOPE, : self.m].copy(), memory.work[OFFSET, : self.m].copy()


def float64(values: Any) -> NDArray[np.float64]:
    """Probabilities as 64-bit numbers: those of a file may have 32, and kernels do not look."""
    return np.asarray(values if values.itemsize == 8 else values.astype(np.float64))
