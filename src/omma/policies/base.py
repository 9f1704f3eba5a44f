"""What every policy can do, and what those share that maximize a metric."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
from scipy import sparse

from omma._types import Feedback
from omma._validate import check_budget, check_choice, check_number, check_positive_int
from omma.engine import Engine
from omma.kernels.calibrate import INTERCEPT
from omma.kernels.layout import EPSILON, SUMS
from omma.limits import Limit, check_limits, check_per_row, limited, read_limits
from omma.metrics import Metric, read_target
from omma.metrics.names import MetricName
from omma.metrics.target import Target
from omma.plan import Plan
from omma.replaying import Run, Sequence, replay
from omma.rows.arrays import HEAVIEST
from omma.rows.batch import Batch
from omma.rows.frames import Names
from omma.rows.row import label_rows, labels_of_row, one_row, refuse_row
from omma.rule import Rule
from omma.state import State


class Policy(ABC):
    """A way to decide rows one after another, learning in between.

    ``init(m)`` makes a state, ``predict(state, eta)`` decides a row and changes nothing,
    ``update(state, eta, y, prediction)`` counts it, ``rule(state)`` is the rule now. Rules are
    linear in the probabilities, at weights that follow the counts: a subclass says what its
    ``plan`` is, and steps and replays run the same compiled code, so they give the same bits.
    """

    feedback: Feedback = "labels"

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
        return self.feedback != "labels"

    @property
    @abstractmethod
    def budget(self) -> int | None:
        """How many labels a row gets exactly; None leaves that to the rule."""

    @abstractmethod
    def plan(self, m: int) -> Plan:
        """The policy as the kernels see it."""

    def init(self, m: int) -> Any:
        """The state before the first of rows with m labels."""
        self.check_labels(m)
        return self.plan(m).start(m)

    def engine(self, state: Any) -> Engine:
        """What decides and learns single rows of a state."""
        return Engine(self.plan(state.m), state)

    def predict(self, state: Any, eta: Any) -> Any:
        """Decide one row: indicators for an array, label ids for a sparse row."""
        row = one_row(f"predict of {self!r}", eta, state.m)
        return self.engine(state).decide(row)

    def decide_rows(self, state: State, eta: Any) -> Any:
        """Decide several rows on the present counts."""
        return self._rule(state).predict(eta)

    def update(self, state: Any, eta: Any, y: Any, prediction: Any, weight: float = 1.0) -> None:
        """Count one decided row in the state."""
        owner, m = f"update of {self!r}", state.m
        row = one_row(owner, eta, m)
        refuse_row(owner, row[1] if isinstance(row, tuple) else row)
        thin = isinstance(row, tuple)
        true = None if y is None else self._true(owner, y, thin, m)
        chosen = labels_of_row(owner, "prediction", prediction, thin, m)
        weight = check_number(owner, "weight", weight, low=0.0, high=HEAVIEST)
        self.engine(state).learn(row, true, chosen, weight)

    def _true(self, owner: str, y: Any, thin: bool, m: int) -> Any:
        """True labels of one row; NaN is unknown."""
        found = np.asarray(y.data if sparse.issparse(y) else y)
        if found.dtype.kind != "f" or not np.isnan(found).any():
            return labels_of_row(owner, "y", y, thin, m)
        rows = label_rows(owner, y, thin, m)
        if len(rows) != 1:
            raise ValueError(f"y of {owner} must be one row, got {len(rows)}")
        why = self.whole_rows(None) if rows[0] is not None else None
        if why is not None:
            raise ValueError(f"y of {owner} must have all labels of a row or none{why}")
        return rows[0]

    def rule(self, state: Any) -> Rule:
        """The rule by which the next row would be decided; under limits, at their mean prices."""
        return self._rule(state, settled=True).folded()

    def _rule(self, state: State, *, settled: bool = False) -> Rule:
        """The rule with its calibration beside it, which decides to the bit as the policy does.

        One that is to be deployed has ``settled`` prices.
        """
        plan = self.plan(state.m)
        slope, offset = Engine(plan, state).rule(settled=settled)
        found = state.calibration
        calibration = None
        if found is not None and found.rows > 0:
            calibration = (found.slope, float(found.shared[INTERCEPT]), found.bias.copy())
        return Rule(
            slope, offset, plan.k, plan.matrix, at_most=plan.at_most, calibration=calibration
        )

    def replay(self, sequence: Sequence) -> Run:
        """Run a whole sequence, whose number of labels was checked, from a fresh state."""
        return replay(f"replay of {type(self).__name__}", self.plan(sequence.eta.m), sequence)

    def to_json(self) -> dict[str, Any]:
        """The policy as JSON describes it."""
        content: dict[str, Any] = {"policy": type(self).__name__}
        for one in fields(self):  # type: ignore[arg-type]
            value = getattr(self, one.name)
            if isinstance(value, tuple):
                content[one.name] = [part.to_json() for part in value]
            else:
                content[one.name] = value.to_json() if hasattr(value, "to_json") else value
        return content

    @property
    def limits(self) -> tuple[Limit, ...]:
        """What must hold while the metric is maximized."""
        return ()

    def whole_rows(self, metric: Metric | None) -> str | None:
        """Why rows must be labelled in full or not at all; None where they need not."""
        return f" for {type(self).__name__}"

    def for_names(self, names: Names | None) -> Policy:
        """The same policy, where its limits are about labels by these names."""
        return self

    def check_labels(self, m: int) -> None:
        """Refuse a number of labels that the policy cannot decide."""
        k, metric = self.budget, self.objective
        if k is not None and k > m:  # only then a sentence is made
            check_budget(repr(self), k, m)
        if metric is not None:
            metric.check_labels(m)


LinearPolicy = Policy  # its name while there was another kind


class UnsupportedMetricError(ValueError):
    """A policy was asked for a metric that it cannot maximize."""


def whole_for(metric: Metric | None) -> str | None:
    """Why a metric needs all labels of a row or none; None where it does not."""
    if metric is None or not (metric.multiclass or metric.single_label or metric.needs_matrix):
        return None
    return f" for {metric.name}, which is about one class a row"


def check_task(
    owner: str,
    batch: Batch,
    k: int | None,
    metric: Metric | None,
    *,
    unknown: bool = False,
    whole: str | None = "",
) -> None:
    """Refuse labels that do not go with the budget or the metric; ``unknown`` lets some miss.

    ``whole`` is why no row may be labelled in part; None where rows may.
    """
    if batch.labels is not None:
        if whole is not None:
            batch.labels.refuse_halves(owner, whole)
        if not unknown:
            batch.labels.refuse_without(owner)
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


class Maximizer(Policy):
    """A policy that maximizes a metric, with or without a budget: what such policies share."""

    metric: MetricName | Metric | str
    k: int | None
    at_most: int | None = None
    subject_to: Any = None

    PARTS: ClassVar[bool] = False  # whether rows may be labelled in part

    def whole_rows(self, metric: Metric | None) -> str | None:
        if not self.PARTS:
            return super().whole_rows(metric)
        for one in self.limits:
            if one.needs_labels and (one.rate.over[3] or one.rate.under[3]):
                return f" for a limit on {one.of}, which counts all rows"
        return whole_for(self.objective) or whole_for(metric)

    def __repr__(self) -> str:
        """As a dataclass has it, without options that are not used."""
        shown_parts = [
            f"{one.name}={getattr(self, one.name)!r}"
            for one in fields(self)  # type: ignore[arg-type]
            if one.name in ("metric", "k", "feedback", "prior")
            or getattr(self, one.name) != one.default
        ]
        return f"{type(self).__name__}({', '.join(shown_parts)})"

    def __getstate__(self) -> dict[str, Any]:
        """The options; what was worked out of them may be compiled, and is so again."""
        return {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]

    def check_target(self) -> None:
        """Find the metric, and refuse budgets that it cannot have."""
        (found, k), owner = read_target(self.metric), type(self).__name__
        object.__setattr__(self, "metric", found)
        if k is not None:
            if self.k not in (None, k) or self.at_most is not None:
                raise ValueError(
                    f"{owner} has one budget, got {Target(found.name, k)} with k={self.k} and "
                    f"at_most={self.at_most}"
                )
            object.__setattr__(self, "k", k)
        object.__setattr__(self, "k", check_positive_int(owner, "k", self.k, optional=True))
        if found.single_label and not found.needs_matrix and self.k not in (None, 1):
            raise ValueError(
                f"k of {owner} must be 1 or None for {found.name}, which is defined for one "
                f"prediction a row, got {self.k}"
            )
        if found.binary and self.k is not None:
            raise ValueError(
                f"k of {owner} must be None for {found.name}, a metric of one label, got {self.k}: "
                f"{found.over_many()}"
            )
        if self.at_most is not None:
            at_most = check_at_most(owner, found, self.k, self.at_most)
            object.__setattr__(self, "at_most", at_most)

    def check_subject_to(self) -> None:
        """Read the limits, and refuse those that the budget contradicts, whatever the labels."""
        owner = type(self).__name__
        found = read_limits(owner, self.subject_to)
        object.__setattr__(self, "subject_to", found)
        check_per_row(owner, self.limits, *self._labels_per_row(None))

    @property
    def limits(self) -> tuple[Limit, ...]:
        return self.subject_to or ()

    def _labels_per_row(self, m: int | None) -> tuple[float, float]:
        """The fewest and the most labels that a row can get."""
        if self.budget is not None:
            return float(self.budget), float(self.budget)
        return 0.0, float(self.at_most or m or math.inf)

    def _found_limits(self, m: int, names: Names | None = None) -> tuple[Limit, ...]:
        owner = type(self).__name__
        return tuple(one.named(names, m, owner) for one in self.limits)

    def for_names(self, names: Names | None) -> Any:
        if names is None or not self.limits:
            return self
        return replace(self, subject_to=self._found_limits(len(names), names))  # type: ignore[type-var]

    def limited_plan(self, plan: Plan, m: int) -> Plan:
        """The plan with the policy's limits."""
        if not self.limits:
            return plan
        found = self._found_limits(m)
        return replace(
            plan, limits=limited(found, m, calibrated=plan.calibrated), sums=max(plan.sums, SUMS)
        )

    @cached_property
    def objective(self) -> Metric:
        return cast("Metric", self.metric)  # found by its name once, when the policy was made

    @cached_property
    def budget(self) -> int | None:
        return 1 if self.k is None and self.objective.multiclass else self.k

    @property
    def soft(self) -> bool:
        """Whether probabilities are counted, in place of labels or beside them."""
        return self.feedback != "labels"

    def check_labels(self, m: int) -> None:
        super().check_labels(m)
        if self.limits:
            check_limits(type(self).__name__, self._found_limits(m), m, *self._labels_per_row(m))
        if self.at_most is not None and self.at_most > m:
            raise ValueError(
                f"at_most of {self!r} must be at most the number of labels, which is {m}, got "
                f"{self.at_most}"
            )


@dataclass(frozen=True, repr=False)
class MetricPolicy(Maximizer):
    """A policy that maximizes a metric from labels or estimates, with a prior."""

    FEEDBACKS: ClassVar[tuple[str, ...]] = ("labels", "estimates")

    metric: MetricName | Metric | str
    k: int | None = None
    feedback: Feedback = "labels"
    prior: float = 1e-6
    epsilon: float = field(default=EPSILON, kw_only=True)

    def __post_init__(self) -> None:
        self.check_target()
        owner = type(self).__name__
        check_choice(owner, "feedback", self.feedback, self.FEEDBACKS)
        object.__setattr__(self, "prior", check_number(owner, "prior", self.prior, low=0.0))
        epsilon = check_number(owner, "epsilon", self.epsilon, low=0.0, strict=True)
        object.__setattr__(self, "epsilon", epsilon)

    @cached_property
    def metric_plan(self) -> Plan:
        """The metric's own plan, with the options of the policy."""
        return self.objective.plan(
            k=self.budget, prior=self.prior, soft=self.soft, epsilon=self.epsilon
        )


def check_at_most(owner: str, metric: Metric, k: int | None, at_most: int | None) -> int | None:
    """Refuse an upper bound on labels a row that contradicts an exact number of them."""
    found: int | None = check_positive_int(owner, "at_most", at_most, optional=True)
    if found is None:
        return None
    if k is not None:
        raise ValueError(
            f"{owner} takes k (exactly so many labels a row) or at_most (up to so many), got "
            f"k={k} and at_most={at_most}"
        )
    if metric.multiclass or metric.binary or metric.needs_matrix:
        kind = "one label" if metric.binary else "one class a row"
        raise ValueError(
            f"at_most of {owner} must be None for {metric.name}, a metric of {kind}, got {at_most}"
        )
    return found


def fit_first(policy: Any) -> str:
    """What to do with something that makes policies of data, where one was given for a policy."""
    return ": call .fit(eta, y) first" if hasattr(policy, "fit") else ""
