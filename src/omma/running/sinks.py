"""Where decisions go: into arrays of the same kind as the probabilities."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.kernels.corrected import FIELDS, KEPT
from omma.kernels.corrected_ranks import replay_corrected_by_rank
from omma.kernels.corrected_signs import replay_corrected_by_sign
from omma.kernels.eights import laid, room, taken
from omma.kernels.layout import POSITIVE, PREDICTED, SCRATCH, TOTALS, TP
from omma.kernels.logistic import SERIES
from omma.kernels.ranks import replay_by_rank
from omma.kernels.replay import replay_dense, replay_sparse
from omma.kernels.signs import replay_by_sign, replay_stored_by_sign
from omma.rows.arrays import DenseProbabilities, Rows, SparseProbabilities, csr, entries_of
from omma.running.plan import Plan
from omma.state import State


class DenseSink:
    """Decisions on dense rows go into an int8 array of the same shape."""

    chosen: NDArray[np.int32] | None = None

    def __init__(self, eta: DenseProbabilities, plan: Plan, keep: bool) -> None:
        self.eta = eta
        self.keep = keep
        self.kind = (False, eta.array.dtype)
        self.out = np.zeros((eta.n if keep else 0, eta.m), dtype=np.int8)

    def replay(self, rows: Rows, arguments: tuple[Any, ...]) -> int:
        array, wanted = self.eta.block(rows)
        if not self.keep or wanted is rows:
            return int(replay_dense(array, wanted, *arguments, self.out))
        out = np.empty((len(rows), self.eta.m), dtype=np.int8)
        good = int(replay_dense(array, wanted, *arguments, out))
        self.out[rows] = out
        return good

    def replay_by_signs(
        self, rows: Rows, true: Any, by: tuple[Any, ...], state: State, marks: tuple[Any, ...]
    ) -> int:
        """The same up to the first row that is not sure; without a budget."""
        space = laid(*state.cells, more=1)  # and the decision
        given = (*by, state.totals, *marks, space)
        good = self._replayed(rows, true, replay_by_sign, given)
        taken(space, *state.cells)
        return good

    def replay_by_ranks(
        self,
        rows: Rows,
        true: Any,
        by: tuple[Any, ...],
        state: State,
        marks: tuple[Any, ...],
        filled: NDArray[np.int64],
    ) -> int:
        """The same with a budget: all rows are sure; to ``filled`` are added those filled up."""
        space = laid(*state.cells)
        given = (*by, state.cells, state.totals, *marks, space, *self._ranking, filled)
        good = self._replayed(rows, true, replay_by_rank, given)
        taken(space, *state.cells)
        return good

    @cached_property
    def _ranking(self) -> tuple[Any, ...]:
        """Space to rank gains in."""
        return room(SCRATCH, self.eta.m), np.empty((1, self.eta.m), dtype=np.int32)

    def replay_corrected(
        self, rows: Rows, true: Any, by: tuple[Any, ...], state: State, marks: tuple[Any, ...]
    ) -> int:
        """By signs, and by counts that labels correct, of which all rows so far had some."""

        def given(shared: Any, totals: Any, space: Any) -> tuple[Any, ...]:
            return (*by, SERIES, shared, *totals, *marks, space)

        return self._corrected(rows, true, replay_corrected_by_sign, given, state)

    def replay_corrected_by_ranks(
        self,
        rows: Rows,
        true: Any,
        by: tuple[Any, ...],
        state: State,
        marks: tuple[Any, ...],
        filled: NDArray[np.int64],
    ) -> int:
        """The same with a budget."""

        def given(shared: Any, totals: Any, space: Any) -> tuple[Any, ...]:
            return (
                *by,
                state.cells,
                SERIES,
                shared,
                *totals,
                *marks,
                space,
                *self._ranking,
                filled,
            )

        return self._corrected(rows, true, replay_corrected_by_rank, given, state)

    def _corrected(self, rows: Rows, true: Any, kernel: Any, given: Any, state: State) -> int:
        """Run a kernel over what is kept of calibrated and corrected rows."""
        labels, learned = state.labels, state.calibration
        assert labels is not None
        assert learned is not None
        counts = (*state.cells, labels.cells[TP], labels.cells[POSITIVE])
        kept = (*counts, learned.bias, learned.precision)
        space = laid(*kept, more=FIELDS - KEPT)
        totals = (state.totals, labels.totals, np.zeros(TOTALS))
        good = self._replayed(rows, true, kernel, given(learned.shared, totals, space))
        taken(space, *kept)
        labels.cells[PREDICTED] = state.cells[PREDICTED]
        state.take_known()
        return good

    def _replayed(self, rows: Rows, true: Any, kernel: Any, given: tuple[Any, ...]) -> int:
        """Run a kernel that decides by signs."""
        array, wanted = self.eta.block(rows)
        fits = not self.keep or wanted is rows
        out = self.out if fits else np.empty((len(rows), self.eta.m), dtype=np.int8)
        good = int(kernel(array, wanted, true.array, true.rows, *given, out))
        if not fits:
            self.out[rows] = out
        return good

    def predictions(self) -> Any:
        if not self.keep:
            return None
        return self.out[:, 0] if self.eta.vector else self.out


class SparseSink:
    """Decisions on sparse rows become a sparse matrix of the same kind.

    Its parts are written where they will stay: a second copy of all predictions would take memory
    that grows with the number of rows.
    """

    def __init__(self, eta: SparseProbabilities, plan: Plan, keep: bool) -> None:
        self.eta = eta
        self.k = None if plan.at_most is not None else plan.k
        self.keep = keep
        self.kind = (True, eta.matrix.dtype)
        rows = eta.n if keep else 0
        if plan.k is not None:
            self.out = np.zeros((rows, plan.k), dtype=np.int32)  # the labels of each row
        else:
            self.ends = np.zeros(rows + 1, dtype=np.int32)
            self.out = self.ends[1:].reshape(rows, 1)  # how many labels each row has
        self.ids = np.empty(0, dtype=np.int32)  # without a budget, the labels of all rows
        self.next = 0
        self.came: list[Rows] = []  # in which order rows came, once that is not their own

    @property
    def chosen(self) -> NDArray[np.int32] | None:
        return self.out if self.keep and self.k is not None else None

    def replay(self, rows: Rows, arguments: tuple[Any, ...]) -> int:
        indices, data, starts, ends = self.eta.block(rows)
        unbudgeted = self.keep and self.k is None
        room = int((ends - starts).sum()) if unbudgeted else 0
        listed = np.empty(room, dtype=np.int32) if self.k is None else None
        good = replay_sparse(indices, data, starts, ends, rows, *arguments, listed, self.out)
        if unbudgeted and listed is not None:
            self._take(rows, listed)
        return int(good)

    def replay_by_signs(
        self, rows: Rows, true: Any, by: tuple[Any, ...], state: State, marks: tuple[Any, ...]
    ) -> int:
        """The same up to the first row that is not sure; without a budget."""
        indices, data, starts, ends = self.eta.block(rows)
        listed = np.empty(int((ends - starts).sum()) if self.keep else 0, dtype=np.int32)
        labels, m = (true.starts, true.ends, true.ids), self.eta.m
        given = (indices, data, starts, ends, rows, *labels, *by, state.cells, state.totals)
        space = (np.zeros(m), np.empty(m, dtype=np.int32))
        good = int(replay_stored_by_sign(*given, *marks, *space, listed, self.out))
        if self.keep:
            self._take(rows[: good if good >= 0 else -1 - good], listed)
        return good

    def _take(self, rows: Rows, listed: NDArray[np.int32]) -> None:
        """Keep the labels that were listed for some rows."""
        found = int(self.out[rows, 0].sum())
        self.ids.resize(len(self.ids) + found, refcheck=False)  # grows in place
        self.ids[len(self.ids) - found :] = listed[:found]
        self._note(rows)

    def _note(self, rows: Rows) -> None:
        """Remember the order of rows only if it is not their own."""
        if self.came or not np.array_equal(rows, np.arange(self.next, self.next + len(rows))):
            self.came += [rows] if self.came else [np.arange(self.next), rows]
        self.next += len(rows)

    def predictions(self) -> Any:
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
