"""Single steps of a policy, with all that need not be made anew each time."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._row import Row, refuse_indicators, refuse_row
from omma._run import NO_LABELS, NO_NUMBERS, Plan, calibrator_of, scratch_space
from omma.kernels import step
from omma.state import State


class Space(threading.local):
    """Scratch space, one for each thread: two that decide at once do not disturb each other."""

    def __init__(self, m: int) -> None:
        self.scratch, self.ids = scratch_space(m)


class Stepper:
    """Decides and counts rows that ``omma._row`` let in.

    A dense row is float64 probabilities, float64 labels and an int8 prediction, each over all
    labels. A sparse row is a pair (label ids, probabilities), with the ids of true and of predicted
    labels. Deciding changes nothing but the calling thread's scratch space.
    """

    def __init__(self, policy: Any, m: int) -> None:
        plan: Plan = policy.plan(m)
        self.policy = policy
        self.m = m
        self.decider = plan.decider
        self.plan = plan
        self.sums = plan.sums
        # Counts of labels, or of estimates beside them, are counted by kernels of arrays alone.
        self.simple = plan.shrinkage is None and not plan.calibrated and plan.growth is None
        self.space = Space(m)
        self.decide_dense = plan.kernel(step.decide_dense)
        self.decide_sparse = plan.kernel(step.decide_sparse)

    def decide(self, state: State, eta: Row, pick: int = 0) -> NDArray[Any]:
        """Decide one row: int8 indicators, or for a sparse row the int32 ids of chosen labels."""
        space = self.space
        counted = (
            self.plan.feedback(state),
            self.sums,
            calibrator_of(state),
            space.scratch,
            space.ids,
        )
        if isinstance(eta, tuple):
            count = self.decide_sparse(*eta, self.decider, pick, *counted)
            if count < 0:
                refuse_row("predict", eta[1])
            chosen: NDArray[np.int32] = space.ids[:count].copy()
            return chosen
        out = np.empty(self.m, dtype=np.int8)
        if not self.decide_dense(eta, self.decider, pick, *counted, out):
            refuse_row("predict", eta)
        return out

    def count(
        self,
        state: State,
        eta: Row | None,
        y: NDArray[Any] | None,
        prediction: NDArray[Any],
        weight: float,
    ) -> None:
        """Count one row in all parts of a state; ``y`` is None where labels are unknown.

        Only where decisions look at probabilities ``eta`` is looked at.
        """
        if not self.simple:
            self._learn(state, eta, y, prediction, weight)
            return
        thin, scratch = prediction.dtype == np.int32, self.space.scratch
        counted = (prediction, weight, self.sums)
        fine = True
        if y is not None:
            truth = state.truth
            kernel = step.count_sparse if thin else step.count_dense
            sums = self.sums if truth is state else None
            fine = kernel(y, prediction, weight, sums, truth.cells, truth.totals, scratch)
        if fine is not False and state.labels is not None:
            if isinstance(eta, tuple):
                step.expect_sparse(*eta, *counted, state.cells, state.totals, scratch)
            else:
                fine = step.expect_dense(eta, *counted, state.cells, state.totals, scratch)
        if fine is False:
            if y is not None:
                refuse_indicators("update", "y", y)
            refuse_indicators("update", "prediction", prediction)

    def _learn(
        self,
        state: State,
        eta: Row | None,
        y: NDArray[Any] | None,
        prediction: NDArray[Any],
        weight: float,
    ) -> None:
        """Count a row where labels correct estimates, or calibrate them, or the past fades."""
        kept = (weight, self.plan.feedback(state), self.sums, calibrator_of(state))
        known = y is not None
        if prediction.dtype == np.int32:
            true = NO_LABELS if y is None else y
            row = eta if isinstance(eta, tuple) else (NO_LABELS, NO_NUMBERS)
            step.learn_sparse(*row, true, known, prediction, *kept, self.space.scratch)
            return
        refuse_indicators("update", "prediction", prediction)
        if y is not None:
            refuse_indicators("update", "y", y)
        true = NO_NUMBERS if y is None else y
        step.learn_dense(
            NO_NUMBERS if eta is None else eta, true, known, prediction, *kept, self.space.scratch
        )
