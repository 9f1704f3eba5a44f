"""What every policy can do, and what policies with a linear rule share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, cast

from omma._run import Plan, Run, Sequence, run, weights_now
from omma._validate import check_budget, check_choice, check_number, check_positive_int
from omma.metrics import Metric, metric as find_metric
from omma.policies.stepper import Stepper
from omma.rows.batch import Batch
from omma.rows.frames import Names
from omma.rows.row import labels_of_row, one_row, refuse_row
from omma.rule import Rule
from omma.state import State


class Policy(ABC):
    """A way to decide rows one after another, learning in between.

    ``init(m)`` makes a state, ``predict(state, eta)`` decides a row and changes nothing,
    ``update(state, eta, y, prediction)`` counts it, ``rule(state)`` is the rule now.
    """

    feedback: str = "labels"

    @property
    def names(self) -> Names | None:
        """The names of the labels, where the policy was made with them."""
        return None

    @property
    @abstractmethod
    def objective(self) -> Metric | None:
        """The metric that the policy maximizes; None where its rule is fixed."""

    @property
    def needs_labels(self) -> bool:
        """Whether the policy cannot run without true labels."""
        return self.feedback == "labels"

    @property
    def needs_eta(self) -> bool:
        """Whether an update has to be told the probabilities of the row it counts."""
        return self.feedback == "estimates"

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
    def replay(self, given: Sequence) -> Run:
        """Run a whole sequence, whose number of labels was checked, from a fresh state."""

    def to_json(self) -> dict[str, Any]:
        """The policy as JSON describes it."""
        content: dict[str, Any] = {"policy": type(self).__name__}
        for one in fields(self):  # type: ignore[arg-type]
            value = getattr(self, one.name)
            content[one.name] = value.to_json() if hasattr(value, "to_json") else value
        return content

    def check_labels(self, m: int) -> None:
        """Refuse a number of labels that the policy cannot decide."""
        k, metric = self.budget, self.objective
        if k is not None and k > m:  # only then a sentence is made
            check_budget(repr(self), k, m)
        if metric is not None:
            metric.check_labels(m)


class UnsupportedMetricError(ValueError):
    """A policy was asked for a metric that it cannot maximize."""


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
        return State.zeros(m, soft=self.plan(m).soft)

    def stepper(self, m: int) -> Stepper:
        """What runs single steps of the policy."""
        return Stepper(self, m)

    def predict(self, state: State, eta: Any) -> Any:
        row = one_row(f"predict of {self!r}", eta, state.m)
        return self.stepper(state.m).decide(state, row)

    def decide_rows(self, state: State, eta: Any) -> Any:
        """Decide several rows on the present counts."""
        return self.rule(state).predict(eta)

    def update(self, state: State, eta: Any, y: Any, prediction: Any, weight: float = 1.0) -> None:
        owner, m = f"update of {self!r}", state.m
        row = one_row(owner, eta, m)
        refuse_row(owner, row[1] if isinstance(row, tuple) else row)
        thin = isinstance(row, tuple)
        true = None if y is None else labels_of_row(owner, "y", y, thin, m)
        chosen = labels_of_row(owner, "prediction", prediction, thin, m)
        weight = check_number(owner, "weight", weight, low=0.0)
        self.stepper(m).count(state, row, true, chosen, weight)

    def rule(self, state: State) -> Rule:
        plan = self.plan(state.m)
        slope, offset = weights_now(plan, state)
        return Rule(slope, offset, plan.k, plan.matrix)

    def replay(self, given: Sequence) -> Run:
        return run(f"replay of {type(self).__name__}", self.plan(given.eta.m), given)


def check_task(owner: str, batch: Batch, k: int | None, metric: Metric | None) -> None:
    """Refuse labels that do not go with the budget or the metric."""
    if batch.labels is not None:
        batch.labels.refuse_unknown(owner)
    if batch.class_ids and k is None:
        raise ValueError(
            f"y of {owner} has class ids, and there is no budget: pass k=1 to predict one class "
            "a row, or y as indicators"
        )
    if metric is None or not metric.single_label or batch.odd_row is None:
        return
    row, found = batch.odd_row
    raise ValueError(
        f"y of {owner} must have exactly one label a row for {metric.name}, got {found} in row "
        f"{row}"
    )


@dataclass(frozen=True)
class MetricPolicy(LinearPolicy):
    """A policy that maximizes a metric, with or without a budget, from labels or estimates."""

    metric: Metric | str
    k: int | None = None
    feedback: str = "labels"
    prior: float = 1e-6

    def __post_init__(self) -> None:
        found = find_metric(self.metric)
        owner = type(self).__name__
        object.__setattr__(self, "metric", found)
        object.__setattr__(self, "k", check_positive_int(owner, "k", self.k, optional=True))
        check_choice(owner, "feedback", self.feedback, ("labels", "estimates"))
        object.__setattr__(self, "prior", check_number(owner, "prior", self.prior, low=0.0))
        if found.single_label and not found.needs_matrix and self.k not in (None, 1):
            raise ValueError(
                f"k of {owner} must be 1 or None for {found.name}, which is defined for one "
                f"prediction a row, got {self.k}"
            )
        if found.binary and self.k is not None:
            raise ValueError(
                f"k of {owner} must be None for {found.name}, a metric of one label, got {self.k}"
            )

    @property
    def objective(self) -> Metric:
        return cast("Metric", self.metric)  # found by its name once, when the policy was made

    @property
    def budget(self) -> int | None:
        return 1 if self.k is None and self.objective.multiclass else self.k

    @property
    def soft(self) -> bool:
        """Whether probabilities are counted in place of labels."""
        return self.feedback == "estimates"
