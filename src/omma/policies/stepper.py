"""Single steps of a policy, with all that need not be made anew each time."""

import threading
from contextlib import nullcontext
from functools import cached_property
from operator import is_
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omma.kernels import steps
from omma.kernels.count import NO_SUMS, Sums, summing
from omma.kernels.decide import CHOSEN, Deciding
from omma.kernels.feedback import Counted
from omma.kernels.replay import Indicated, Listed
from omma.kernels.signs import decide_by_sign
from omma.recent import WindowState
from omma.rows.row import Partly, Row, alone, refuse_indicators, refuse_row
from omma.running.empty import NO_LABELS, NO_NUMBERS
from omma.running.plan import Plan, calibrator_of
from omma.running.scratch import scratch_space
from omma.state import State


class Laid(NamedTuple):
    """Where all that a policy keeps lies, and the arrays of the state that this is true of."""

    arrays: list[Any]
    where: steps.Keeping


class Space(threading.local):
    """Scratch space, one for each thread: two that decide at once do not disturb each other."""

    def __init__(self, m: int) -> None:
        self.scratch, self.ids = scratch_space(m)
        self.kept: dict[bool, Laid] = {}  # of sparse rows, and of dense ones


class UnsortedError(ValueError):
    """Label ids of a sparse row that do not rise, or that no label has."""


class Stepper:
    """Decides and counts rows that ``omma.rows.row`` let in.

    A dense row is float64 probabilities, float64 labels and an int8 prediction, each over all
    labels. A sparse row is a pair (label ids, probabilities), with the ids of true and of predicted
    labels. Deciding changes nothing but the calling thread's scratch space.
    """

    def __init__(self, policy: Any, m: int) -> None:
        plan: Plan = policy.plan(m)
        self.policy = policy
        self.m = m
        self.plan = plan
        self._sums: dict[bool, Sums] = {}
        # Counts of labels, or of estimates beside them, are looked at and counted by kernels that
        # take arrays alone.
        self.simple = (
            plan.shrinkage is None
            and not plan.calibrated
            and plan.growth is None
            and plan.limits is None
            and plan.window is None
        )
        self.signs = plan.signs
        self.space = Space(m)

    @cached_property
    def deciding(self) -> Deciding:
        """How rows are decided by their gains; compiled when first needed."""
        return self.plan.deciding

    def sums(self, thin: bool) -> Sums:
        """What keeps sums over labels, of sparse or of dense rows; compiled when first needed."""
        if thin not in self._sums:
            self._sums[thin] = summing(self.plan.sums, thin)
        return self._sums[thin]

    def decide(self, state: State, eta: Row, pick: int = 0) -> NDArray[Any]:
        """Decide one row: int8 indicators, or for a sparse row the int32 ids of chosen labels.

        The ids of a sparse row are looked at before they are followed.
        """
        if self.signs is not None and state.missed is None and not isinstance(eta, tuple):
            out = np.empty(self.m, dtype=np.int8)
            sure = decide_by_sign(eta, self.signs, state.cells, state.totals, out)
            if sure == 0:
                refuse_row("predict", eta)
            if sure > 0:
                return out
        return self.decide_by(self.deciding, state, eta, pick)

    def decide_by(self, deciding: Deciding, state: State, eta: Row, pick: int) -> NDArray[Any]:
        """The same by another rule."""
        space, decider = self.space, deciding.decider
        simple = self.simple and state.missed is None
        if isinstance(eta, tuple):
            if simple:
                counted: tuple[Any, ...] = (*decider, pick, state.cells, state.totals)
                count = steps.decide_sparse(*eta, *counted, space.scratch, space.ids)
            else:
                by = self.laid(state, thin=True).decide
                count = steps.decide_sparse_at(
                    by.function, by.at, *eta, pick, space.scratch, space.ids
                )
            if count < 0:
                refuse_row("predict", eta[1])
                raise UnsortedError("label ids of a sparse row must rise, and be those of labels")
            chosen: NDArray[np.int32] = space.ids[CHOSEN, :count].copy()
            return chosen
        out = np.empty(self.m, dtype=np.int8)
        work = (space.scratch, space.ids, out)
        if simple:
            fine = steps.decide_dense(eta, *decider, pick, state.cells, state.totals, *work)
        else:
            by = self.laid(state, thin=False).decide
            fine = steps.decide_dense_at(by.function, by.at, eta, pick, *work)
        if not fine:
            refuse_row("predict", eta)
        return out

    def laid(self, state: State, thin: bool) -> steps.Keeping:
        """Where all that is kept lies; laid out anew where the state has other arrays now."""
        arrays, space = arrays_of(state), self.space
        found = space.kept.get(thin)
        if found is None or not same(found.arrays, arrays):
            found = space.kept[thin] = Laid(arrays, self._lay_out(state, thin))
        return found.where

    def _lay_out(self, state: State, thin: bool) -> steps.Keeping:
        plan = self.plan
        calibrator = calibrator_of(state, plan.settled is not None)
        others = (self.sums(thin), calibrator)
        # The probabilities of a late row were counted before: this time they go nowhere.
        nowhere = Counted(np.zeros_like(state.cells), np.zeros_like(state.totals))
        row, late = (
            steps.Kept(self.deciding.decider, plan.feedback(state, own), *others, prices)
            for own, prices in (
                (None, plan.prices(state)),
                (nowhere, plan.prices(state, late=True)),
            )
        )
        return steps.keeping(row, late, thin)

    def drew(self, state: Any) -> None:
        """Note that a row was decided whose labels will come later."""

    def count(
        self,
        state: State,
        eta: Row | None,
        y: NDArray[Any] | Partly | None,
        prediction: NDArray[Any],
        weight: float,
        *,
        late: bool = False,
    ) -> None:
        """Count one row in all parts of a state; ``y`` is None where labels are unknown.

        Only where decisions look at probabilities ``eta`` is looked at. A ``late`` row was noted
        when it was decided: by ``drew``, or its probabilities by ``count`` without labels.
        """
        if isinstance(y, Partly):
            self._count_part(state, eta, y, prediction, weight, late)
            return
        if not self.simple:
            late = late and state.labels is not None
            if not isinstance(state, WindowState):
                self._learn(state, eta, y, prediction, weight, late)
                return
            state.window.make_room(1, *_entries(self.m, eta, y, prediction))
            with state.window.late() if late else nullcontext():
                self._learn(state, eta, y, prediction, weight, late)
            return
        thin, scratch = prediction.itemsize == 4, self.space.scratch
        sums = self.sums(thin)
        fine = True
        if y is not None:
            truth = state.truth
            kept = sums if truth is state else NO_SUMS
            counts = (prediction, weight, *kept, truth.cells, truth.totals, scratch)
            if thin:
                steps.count_sparse(y, NO_NUMBERS, *counts)
            else:
                fine = steps.count_dense(y, True, *counts)
        if fine and state.labels is not None and not late:
            counts = (prediction, weight, *sums, state.cells, state.totals, scratch)
            if isinstance(eta, tuple):
                steps.count_sparse(*eta, *counts)
            else:
                fine = steps.count_dense(eta, False, *counts)
        if not fine:
            self._refuse(y, prediction)

    def _count_part(
        self,
        state: State,
        eta: Row | None,
        y: Partly,
        prediction: NDArray[Any],
        weight: float,
        late: bool,
    ) -> None:
        """Count a row of which some labels are known: as one without labels, then by these."""
        plan, thin, scratch = self.plan, prediction.dtype == np.int32, self.space.scratch
        if isinstance(state, WindowState):
            entries = _entries(self.m, eta, y.true, prediction)
            state.window.make_room(2, *(2 * one for one in entries))
        part = plan.parted(state, (*alone(y.unknown), y.unknown))
        calibrator = calibrator_of(state, plan.settled is not None)
        timed = not late or state.labels is None
        kept = (plan.feedback(state), self.sums(thin), calibrator, plan.prices(state), part, timed)
        weights, none = np.array([float(weight)]), np.zeros(1, dtype=np.uint8)
        if thin:
            ids, values = eta if isinstance(eta, tuple) else (NO_LABELS, NO_NUMBERS)
            listed = Listed(*alone(y.true), y.true, none)
            chosen = steps.Chosen(*alone(prediction), prediction.copy())
            row = (ids, float64(values), *alone(ids), listed, chosen, weights)
            steps.count_rows_sparse(*row, *kept, scratch)
            return
        refuse_indicators("update", "prediction", prediction)
        first = np.zeros(1, dtype=np.int64)
        whole = np.zeros(self.m) if eta is None or isinstance(eta, tuple) else float64(eta)
        true = Indicated(y.true.astype(np.uint8)[np.newaxis], first, none)
        rows = (whole[np.newaxis], first, true, prediction.astype(np.int8)[np.newaxis], weights)
        steps.count_rows_dense(*rows, *kept, scratch)

    def _learn(
        self,
        state: State,
        eta: Row | None,
        y: NDArray[Any] | None,
        prediction: NDArray[Any],
        weight: float,
        late: bool,
    ) -> None:
        """Count a row where labels correct or calibrate estimates, prices move, or counts fade."""
        thin = prediction.dtype == np.int32
        laid = self.laid(state, thin)
        function, at, _ = laid.late if late else laid.learn
        counted = (y is not None, prediction, weight, late, self.space.scratch)
        if thin:
            row = eta if isinstance(eta, tuple) else (NO_LABELS, NO_NUMBERS)
            true = NO_LABELS if y is None else y
            steps.learn_sparse_at(function, at, row[0], float64(row[1]), true, *counted)
        else:
            values = NO_NUMBERS if eta is None else float64(eta)
            true = NO_NUMBERS if y is None else y
            fine = steps.learn_dense_at(function, at, values, true, *counted)
            if not fine:
                self._refuse(y, prediction)

    def _refuse(self, y: NDArray[Any] | None, prediction: NDArray[Any]) -> None:
        """Say which of the indicators is none."""
        if y is not None:
            refuse_indicators("update", "y", y)
        refuse_indicators("update", "prediction", prediction)


def arrays_of(state: State) -> list[Any]:
    """The arrays that a state has now: each may be exchanged for another."""
    found = [state.cells, state.totals, state.pace, state.missed]
    for part in (state.labels, state.known, state.judged):
        if part is not None:
            found += (part.cells, part.totals)
    if state.calibration is not None:
        learned = state.calibration
        found += (learned.shared, learned.bias, learned.precision)
    if state.prices is not None:
        found += (*state.prices.arrays().values(),)
    if isinstance(state, WindowState):
        found += (*state.window.kernel(), state.window.pace)
    return found


def float64(values: Any) -> NDArray[np.float64]:
    """Probabilities as 64-bit numbers: those of a file may have 32, and kernels do not look."""
    found: NDArray[np.float64] = values if values.itemsize == 8 else values.astype(np.float64)
    return found


def same(first: list[Any], second: list[Any]) -> bool:
    """Whether two lists hold the very same arrays."""
    return len(first) == len(second) and all(map(is_, first, second))


def _entries(m: int, eta: Row | None, y: Any, prediction: NDArray[Any]) -> tuple[int, int]:
    """How many labels and probabilities of one row a window has to keep at most."""
    if prediction.dtype != np.int32:
        return 3 * m, m
    stored = len(eta[0]) if isinstance(eta, tuple) else 0
    return stored + len(prediction) + (0 if y is None else len(y)), stored
