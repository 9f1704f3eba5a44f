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
from omma.kernels.layout import FIELDS, TOTALS, WORK
from omma.kernels.replay import Sparse
from omma.kernels.row import Memory, Spec
from omma.plan import Plan
from omma.rows.row import Partly, Row, refuse_indicators, refuse_row
from omma.state import Columns, State, aligned, padded
from omma.window_state import WindowState

NO_IDS = np.empty(0, dtype=np.int32)
NO_NUMBERS = np.empty(0)


class UnsortedError(ValueError):
    """Label ids of a sparse row that do not rise, or that no label has."""


class Space(threading.local):
    """Scratch space, one for each thread: two that decide at once do not disturb each other."""

    def __init__(self) -> None:
        self.dense: Memory | None = None
        self.sparse: tuple[Memory, Sparse] | None = None
        self.version = 0  # of the arrays that these are of


def work_space(width: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Scratch space for rows of so many labels: totals seen, columns, and ranks."""
    try:
        return np.zeros(TOTALS), aligned(WORK, width), np.zeros(width, dtype=np.int64)
    except MemoryError:
        needed = 8 * WORK * width / 2**30
        raise MemoryError(
            f"{width:,} labels take {needed:,.0f} GiB of space to work in, more than there is"
        ) from None


class Engine:
    """Decides and learns single rows of one state, by one plan.

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
        self.plan, self.state, self.m = plan, state, state.m
        self._space, self._version = Space(), 0
        self._bind()

    def _bind(self) -> None:
        """Look where the numbers of the state lie; again wherever it has other arrays."""
        self._laid: Columns = self.plan.columns(self.state)
        self._spec = self.plan.spec(self.state)
        # Learning is the same for all objectives and budgets, and is compiled once for them.
        self._learning = self._spec._replace(objective=None, budget=None)
        self._version += 1

    def _scratch(self) -> Space:
        """The scratch space of this thread, emptied where the state has other arrays now."""
        space = self._space
        if self.state._laid is not self._laid:
            self._bind()
        if space.version != self._version:
            space.dense = space.sparse = None
            space.version = self._version
        return space

    def _memory(self) -> Memory:
        """The arrays of dense rows."""
        space = self._scratch()
        if space.dense is None:
            columns, totals = self._laid
            work = work_space(columns.shape[1])
            space.dense = memory_of(self.plan, self.state, columns, columns, totals, work)
        return space.dense

    def _sparse_memory(self, longest: int) -> tuple[Memory, Sparse]:
        """The arrays of sparse rows, with room for so many labels."""
        space = self._scratch()
        if space.sparse is None or len(space.sparse[1].ids) < longest:
            table, totals = self._laid
            space.sparse = sparse_memory(self.plan, self.state, table, totals, 2 * longest)
        return space.sparse

    def decide(self, eta: Row, pick: int = 0, spec: Spec | None = None) -> NDArray[Any]:
        """Decide one row: int8 indicators, or for a sparse row the int32 ids of chosen labels.

        ``pick`` chooses among fixed rules, which another ``spec`` may bring. The ids of a sparse
        row are looked at before they are followed.
        """
        if isinstance(eta, tuple):
            return self._decide_sparse(eta, pick, spec)
        memory = self._memory()
        out = np.empty(self.m, dtype=np.int8)
        by = self._spec if spec is None else spec
        if not single.decide_dense(eta, pick, out, *by, *memory):
            refuse_row("predict", eta)
        return out

    def _decide_sparse(self, eta: Any, pick: int, spec: Spec | None) -> NDArray[np.int32]:
        labels, values = eta
        if self.plan.matrix is not None:  # with costs every label is a candidate
            dense = np.zeros(self.m)
            dense[labels] = values
            return np.flatnonzero(self.decide(dense, pick, spec)).astype(np.int32)
        budget = abs(self.plan.budget or 0)
        memory, sparse = self._sparse_memory(len(labels) + budget)
        out = np.empty(len(labels) + budget, dtype=np.int32)
        by = self._spec if spec is None else spec
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
        y: NDArray[Any] | Partly | None,
        prediction: NDArray[Any],
        weight: float,
        *,
        late: bool = False,
    ) -> None:
        """Count one decided row; ``y`` is None where its labels are unknown.

        Only where decisions look at probabilities ``eta`` is looked at. A ``late`` row was counted
        without its labels when it was decided.
        """
        state, unknown = self.state, NO_IDS
        labelled, true = y is not None, y.true if isinstance(y, Partly) else y
        if isinstance(y, Partly):
            unknown = y.unknown
            if state.truth.missed is None:
                state.take_parts()
                self._bind()
        late = late and state.labels is not None
        if isinstance(state, WindowState):
            self._make_room(state, eta, true, prediction)
        options = (unknown, float(weight), labelled, late)
        if prediction.dtype == np.int32:
            labels, values = eta if isinstance(eta, tuple) else (NO_IDS, NO_NUMBERS)
            ids = NO_IDS if true is None else true
            memory, sparse = self._sparse_memory(len(labels) + len(ids) + len(prediction))
            row: tuple[Any, ...] = (labels, float64(values), ids, prediction)
            single.learn_sparse(*row, *options, *sparse, *self._learning, *memory)
            return
        memory = self._memory()
        values = NO_NUMBERS if eta is None or isinstance(eta, tuple) else float64(eta)
        present = NO_NUMBERS if true is None else true
        row = (values, present, prediction)
        if not single.learn_dense(*row, *options, *self._learning, *memory):
            if true is not None:
                refuse_indicators("update", "y", true)
            refuse_indicators("update", "prediction", prediction)

    def _make_room(self, state: WindowState, eta: Any, y: Any, prediction: NDArray[Any]) -> None:
        """See to it that a window can keep one more row, twice where it is known in part."""
        entries, stored = 3 * self.m, self.m
        if prediction.dtype == np.int32:
            stored = len(eta[0]) if isinstance(eta, tuple) else 0
            entries = stored + len(prediction) + (0 if y is None else len(y))
        if state.window.make_room(2, 2 * entries, 2 * stored):
            self._version += 1

    def rule(self, *, settled: bool = False) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Slope and offset of every label at the present counts: the rule that decides next.

        One that will stand still (``settled``) has the derivatives themselves, at the mean price
        of each limit; one that decides now has the very numbers that decide.
        """
        plan = self.plan
        slope, offset = self._weights(
            plan.term if settled or plan.matrix is not None else plan.objective
        )
        prices = self.state.prices
        if plan.limits is not None and prices is not None:
            mu = prices.settled if settled else prices.mu
            limited = plan.prices(self.state, mu)
            memory = self._memory()._replace(limits=limited, calibrator=None)
            rules.add_prices(self._learning, memory, slope, offset)
        return slope, offset

    def gradient(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Derivatives of the objective by tp / n and by predicted / n of every label."""
        return self._weights(self.plan.term)

    def _weights(self, objective: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Slope and offset of every label by an objective, without prices."""
        state, memory = self.state, self._memory()
        cells, totals = np.ascontiguousarray(state.cells), state.totals.copy()
        if isinstance(self._learning.feedback, Both | PartialLabels):
            seen = memory._replace(limits=None, calibrator=None)
            rules.see_all(self._learning, seen, cells, totals)
        slope, offset = np.empty(self.m), np.empty(self.m)
        prior = float(self.plan.prior) * state.unit
        rules.gradient(objective, prior, cells, totals, memory.work, slope, offset)
        return slope, offset


def memory_of(
    plan: Plan, state: State, columns: Any, table: Any, totals: Any, work: tuple[Any, Any, Any]
) -> Memory:
    """All arrays of a state, as the kernels know them."""
    seen, scratch, ranks = work
    calibration, calibrator = state.calibration, None
    if calibration is not None:
        calibrator = (Learning if plan.settled is None else Settled)(calibration.shared)
    window = state.window.kernel(state.m) if isinstance(state, WindowState) else None
    return Memory(
        columns,
        table,
        totals,
        seen,
        scratch,
        ranks,
        calibrator,
        state.clock,
        plan.prices(state),
        window,
    )


def sparse_memory(
    plan: Plan, state: State, table: Any, totals: Any, longest: int
) -> tuple[Memory, Sparse]:
    """The arrays of sparse rows of so many labels at most; ``kept`` has those of all labels."""
    width = padded(longest + 1)
    columns, work = aligned(FIELDS, width), work_space(width)
    sparse = Sparse(np.zeros(width, dtype=np.int32), np.zeros(state.m, dtype=np.int32))
    return memory_of(plan, state, columns, table, totals, work), sparse


def float64(values: Any) -> NDArray[np.float64]:
    """Probabilities as 64-bit numbers: those of a file may have 32, and kernels do not look."""
    found: NDArray[np.float64] = values if values.itemsize == 8 else values.astype(np.float64)
    return found
