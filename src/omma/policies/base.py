"""What every policy can do, and what policies with a linear rule share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._rows import Labels, Probabilities, Rows
from omma._run import (
    NO_NUMBERS,
    NO_ROWS,
    Plan,
    Progress,
    Run,
    State,
    run,
    scratch_space,
    weights_now,
)
from omma._validate import check_budget
from omma.kernels import step
from omma.metrics import Metric
from omma.rule import Rule


class Policy(ABC):
    """A way to decide rows one after another, learning in between.

    ``init(m)`` makes a state, ``predict(state, eta)`` decides a row and changes nothing,
    ``update(state, eta, y, prediction)`` counts it, ``rule(state)`` is the rule now.
    """

    feedback: str = "labels"

    @property
    @abstractmethod
    def objective(self) -> Metric | None:
        """The metric that the policy maximizes; None where its rule is fixed."""

    @property
    @abstractmethod
    def budget(self) -> int | None:
        """How many labels a row gets exactly; None leaves that to the rule."""

    @abstractmethod
    def init(self, m: int) -> Any:
        """The state before the first of rows with m labels."""

    @abstractmethod
    def predict(self, state: Any, eta: Any) -> Any:
        """Decide one row: indicators for an array, label ids for a sparse row."""

    @abstractmethod
    def update(self, state: Any, eta: Any, y: Any, prediction: Any, weight: float = 1.0) -> None:
        """Count one decided row in the state."""

    @abstractmethod
    def rule(self, state: Any) -> Rule:
        """The rule by which the next row would be decided."""

    @abstractmethod
    def replay(
        self,
        eta: Probabilities,
        labels: Labels | None,
        *,
        order: Rows | None = None,
        weights: NDArray[Any] = NO_NUMBERS,
        checkpoints: NDArray[np.int64] = NO_ROWS,
        keep: bool = True,
        progress: Progress | None = None,
    ) -> Run:
        """Run a whole sequence from a fresh state."""

    def to_json(self) -> dict[str, Any]:
        """The policy as JSON describes it."""
        content: dict[str, Any] = {"policy": type(self).__name__}
        for one in fields(self):  # type: ignore[arg-type]
            value = getattr(self, one.name)
            content[one.name] = value.to_json() if isinstance(value, Metric) else value
        return content

    def check_labels(self, m: int) -> None:
        """Refuse a number of labels that the policy cannot decide."""
        check_budget(repr(self), self.budget, m)
        if self.objective is not None:
            self.objective.check_labels(m)


class LinearPolicy(Policy):
    """A policy whose rule is linear in the probabilities, at weights that follow its counts.

    A subclass says what its ``plan`` is; steps and replays run the same compiled code, and so give
    the same bits.
    """

    @abstractmethod
    def plan(self, m: int) -> Plan:
        """The policy as the kernels see it."""

    def init(self, m: int) -> State:
        self.check_labels(m)
        return State.zeros(m)

    def predict(self, state: State, eta: Any) -> Any:
        return Stepper(self, state.m).decide(state, eta)

    def update(self, state: State, eta: Any, y: Any, prediction: Any, weight: float = 1.0) -> None:
        Stepper(self, state.m).count(state, eta, y, prediction, weight)

    def rule(self, state: State) -> Rule:
        plan = self.plan(state.m)
        slope, offset = weights_now(plan, state)
        return Rule(slope, offset, plan.k, plan.matrix if len(plan.matrix) else None)

    def replay(
        self,
        eta: Probabilities,
        labels: Labels | None,
        *,
        order: Rows | None = None,
        weights: NDArray[Any] = NO_NUMBERS,
        checkpoints: NDArray[np.int64] = NO_ROWS,
        keep: bool = True,
        progress: Progress | None = None,
    ) -> Run:
        self.check_labels(eta.m)
        return run(
            f"replay of {self!r}",
            self.plan(eta.m),
            eta,
            labels,
            order=order,
            weights=weights,
            checkpoints=checkpoints,
            keep=keep,
            progress=progress,
        )


SparseRow = tuple[NDArray[np.int32], NDArray[np.float64]]


class Stepper:
    """Single steps of a linear policy, with all that need not be made anew each time.

    A dense row is float64 probabilities, float64 labels and an int8 prediction, each over all
    labels. A sparse row is a pair (label ids, probabilities), with the ids of true and of predicted
    labels.
    """

    def __init__(self, policy: LinearPolicy, m: int) -> None:
        plan = policy.plan(m)
        self.rule = plan.rule
        self.soft = plan.soft
        self.sums = plan.sums
        self.scratch, self.ids = scratch_space(m)
        self.decide_dense = plan.kernel(step.decide_dense)
        self.decide_sparse = plan.kernel(step.decide_sparse)

    def decide(self, state: State, eta: NDArray[np.float64] | SparseRow) -> NDArray[Any]:
        """Decide one row: int8 indicators, or for a sparse row the int32 ids of chosen labels."""
        if isinstance(eta, tuple):
            labels, values = eta
            count = self.decide_sparse(
                labels, values, *self.rule, state.cells, state.totals, self.scratch, self.ids
            )
            if count < 0:
                refuse_row(values)
            chosen: NDArray[np.int32] = self.ids[:count].copy()
            return chosen
        out = np.empty(len(eta), dtype=np.int8)
        if not self.decide_dense(
            eta, *self.rule, state.cells, state.totals, self.scratch, self.ids, out
        ):
            refuse_row(eta)
        return out

    def count(
        self,
        state: State,
        eta: NDArray[np.float64] | SparseRow,
        y: NDArray[Any],
        prediction: NDArray[Any],
        weight: float,
        soft: bool | None = None,
    ) -> None:
        """Count one row; ``soft`` overrides whether probabilities stand for labels."""
        soft = self.soft if soft is None else soft
        counts = (weight, soft, self.sums, state.cells, state.totals, self.scratch)
        if isinstance(eta, tuple):
            step.count_sparse(*eta, y, prediction, *counts)
        elif not step.count_dense(eta, y, prediction, *counts, self.ids):
            refuse_indicators("y", y)
            refuse_indicators("prediction", prediction)


def refuse_row(values: NDArray[np.float64]) -> None:
    """Say which value is no probability."""
    wrong = values[~((values >= 0) & (values <= 1))][0]
    raise ValueError(f"eta of predict must hold probabilities from 0 to 1, got {wrong:g}")


def refuse_indicators(parameter: str, values: NDArray[Any]) -> None:
    """Say which value is neither zero nor one, if one is."""
    wrong = values[(values != 0) & (values != 1)]
    if len(wrong):
        raise ValueError(f"{parameter} of update must hold only 0 and 1, got {wrong[0]:g}")


def sparse_row(matrix: Any) -> SparseRow:
    """The ids and values of a sparse matrix of one row."""
    row = sparse.csr_array(matrix)
    if not row.has_canonical_format:
        row.sum_duplicates()
    return row.indices.astype(np.int32), row.data.astype(np.float64)
