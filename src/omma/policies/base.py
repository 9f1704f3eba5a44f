"""The interface of all policies, and the base of those that maximize a metric."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from functools import cached_property, lru_cache
from typing import Any, ClassVar, cast

import numpy as np

from omma._types import Feedback
from omma._validate import check_budget, check_choice, check_number, check_positive_int, shown
from omma.engine import Engine
from omma.kernels.calibrate import STRAIGHT
from omma.kernels.layout import EPSILON, N
from omma.kernels.objectives import with_epsilon
from omma.limits import Limit
from omma.metrics import Metric, MetricName, read_target
from omma.metrics.target import Target
from omma.plan import Plan
from omma.rows.arrays import HEAVIEST
from omma.rows.batch import Batch
from omma.rows.frames import Names
from omma.rows.row import PartlyKnown, labels_of_row, one_row, refuse_row
from omma.rule import Rule
from omma.state import State


class Policy(ABC):
    """Decides rows one after another, and learns in between.

    ``init(m)`` returns a state, ``predict(state, eta)`` decides a row and changes nothing,
    ``update(state, eta, y, prediction)`` counts the row, ``rule(state)`` returns the present rule.
    A subclass defines its ``plan``, which compiled code reads. Single steps and replays run the
    same compiled code, so they return the same decisions, bit for bit. A plan is one for all rows:
    a policy whose rule depends on more than counts, as ``OnlineFrankWolfe`` does, also overrides
    ``engine`` and ``_rule``.
    """

    feedback: Feedback = "labels"

    @property
    def owner(self) -> str:
        """The name of the policy in error messages."""
        return type(self).__name__

    def _set(self, **options: Any) -> None:
        """Set options of a frozen policy to their checked values, in its ``__post_init__``."""
        for name, value in options.items():
            object.__setattr__(self, name, value)

    @property
    def names(self) -> Names | None:
        """The names of the labels, where the policy was made with them."""
        return None

    @property
    def objective(self) -> Metric | None:
        """The metric that the policy maximizes; None where its rule is fixed."""
        return None

    @property
    def needs_labels(self) -> bool:
        """Whether the policy cannot run without true labels."""
        return self.feedback == "labels"

    @property
    def needs_eta(self) -> bool:
        """Whether an update needs the probabilities of the row that it counts."""
        return self.feedback != "labels"

    @property
    def budget(self) -> int | None:
        """How many labels a row gets exactly; None leaves that to the rule."""
        return None

    @abstractmethod
    def plan(self, m: int) -> Plan:
        """The policy in the form that kernels read."""

    def init(self, m: int) -> Any:
        """The state before the first of rows with m labels."""
        self._check_once(m)
        return State.start(self.cached_plan(m), m)

    # Engines and states are made again and again: both results are cached for the last m.

    @cached_property
    def cached_plan(self) -> Callable[[int], Plan]:
        """``plan``, made once."""
        return lru_cache(maxsize=1)(self.plan)

    @cached_property
    def _check_once(self) -> Callable[[int], None]:
        """``check_labels``, run once."""
        return lru_cache(maxsize=1)(self.check_labels)

    def engine(self, state: Any) -> Engine:
        """An engine that decides, learns and replays rows on a state."""
        return Engine(self.cached_plan(state.m), state)

    def predict(self, state: Any, eta: Any) -> Any:
        """Decide one row: indicators for an array, label ids for a sparse row."""
        row = one_row(f"predict of {self!r}", eta, state.m)
        return self.engine(state).decide(row)

    def decide_rows(self, state: State, eta: Any) -> Any:
        """Decide several rows on the present counts."""
        # A frozen rule decides as Eq. (6) of the paper does at these counts.
        return self._rule(state).predict(eta)

    def update(self, state: Any, eta: Any, y: Any, prediction: Any, weight: float = 1.0) -> None:
        """Count one decided row in the state; labels that are NaN are unknown."""
        owner, m = f"update of {self!r}", state.m
        # Everything is read and checked first, so that bad input leaves the state unchanged.
        row = one_row(owner, eta, m)
        is_sparse = isinstance(row, tuple)
        refuse_row(owner, row[1] if isinstance(row, tuple) else row)
        true = None if y is None else labels_of_row(owner, "y", y, is_sparse, m)
        why = self.whole_rows(None) if isinstance(true, PartlyKnown) else None
        if why is not None:
            raise ValueError(f"y of {owner} must have all labels of a row or none{why}")
        chosen = labels_of_row(owner, "prediction", prediction, is_sparse, m)
        weight = check_number(owner, "weight", weight, low=0.0, high=HEAVIEST)
        self.engine(state).learn(row, true, chosen, weight)

    def rule(self, state: Any) -> Rule:
        """The rule that decides the next row; under limits, at their mean prices.

        Without a budget its thresholds contain the calibration. A policy with ``k`` or ``at_most``
        keeps slope, offset and calibration apart, which explains a decision.

        >>> import omma
        >>> eta, y = omma.datasets.long_tail(n=200, m=5, seed=0)
        >>> state = omma.replay(omma.Auto("macro_f1"), eta, y).state
        >>> rules = [omma.Auto("macro_f1", at_most=n).rule(state) for n in (None, 5)]
        >>> [rule.calibration is None for rule in rules]
        [True, False]
        >>> bool((rules[0].predict(eta) == rules[1].predict(eta)).all())
        True
        """
        return self._rule(state, settled=True).folded()

    def expected_value(self, state: Any, metric: Metric | None = None) -> float | None:
        """Estimate the metric from probabilities, over the rows that decisions look at.

        The estimate is as good as the probabilities; ``Auto`` calibrates them and corrects the
        estimate by the labels that came. None where the policy counts labels only, and for metrics
        of pairs of classes.

        >>> import omma
        >>> eta, y = omma.datasets.long_tail(n=2000, m=20, seed=0)
        >>> policy = omma.Auto("macro_f1")
        >>> trace = omma.replay(policy, eta)  # no labels
        >>> expected = policy.expected_value(trace.state)
        >>> true = trace.metric.value(omma.Counts.from_labels(y, trace.predictions))
        >>> abs(expected - true) < 0.03
        True
        """
        metric = self.objective if metric is None else metric
        if metric is None or metric.needs_matrix:
            return None
        if state.labels is None or not state.totals[N] > 0.0:
            return None
        cells, totals = self.engine(state).seen()
        tp, predicted, positive = cells / totals[N]  # where the past fades, in its unit
        return float(metric.values(tp, predicted, positive, np.ones(())))

    def _rule(self, state: State, *, settled: bool = False) -> Rule:
        """The rule with its calibration beside it, which decides to the bit as the policy does.

        One that is to be deployed has ``settled`` prices.
        """
        plan = self.cached_plan(state.m)
        # α and −β of each label, Eq. (6) of the paper.
        slope, offset = Engine(plan, state).rule(settled=settled)
        # Before the first label there is no curve: probabilities pass as they are.
        curve: Any = None
        if state.calibration is not None and state.calibration.rows > 0:
            curve = state.calibration.curve
            curve = curve if curve[3] < STRAIGHT else curve[:3]
        return Rule(slope, offset, plan.k, plan.matrix, at_most=plan.at_most, calibration=curve)

    def to_json(self) -> dict[str, Any]:
        """The policy as JSON describes it."""
        content: dict[str, Any] = {"policy": type(self).__name__}
        for option in chosen_options(self):
            value = getattr(self, option.name)
            if isinstance(value, tuple):  # of limits
                value = [part.to_json() for part in value]
            # The policy inside of a wrapper is "of", as "policy" is the wrapper itself.
            name = "of" if option.name == "policy" else option.name
            content[name] = value.to_json() if hasattr(value, "to_json") else value
        return content

    def __getstate__(self) -> dict[str, Any]:
        """The options alone: cached properties may hold compiled code, which is not pickled."""
        kind = type(self)
        return {
            name: value
            for name, value in vars(self).items()
            if not isinstance(getattr(kind, name, None), cached_property)
        }

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Limits that must hold while the metric is maximized."""
        return ()

    def whole_rows(self, metric: Metric | None) -> str | None:
        """Why rows must be labelled in full or not at all, for a message; None if they need not."""
        return whole_for(self.objective) or whole_for(metric)

    def for_names(self, names: Names | None) -> Policy:
        """The same policy with limits on labels found by these names."""
        return self

    def check_labels(self, m: int) -> None:
        """Refuse a number of labels that the policy cannot decide."""
        k, metric = self.budget, self.objective
        if k is not None and k > m:  # only then is repr needed, which takes a while
            check_budget(repr(self), k, m)
        if metric is not None:
            metric.check_labels(m)


def chosen_options(policy: Any) -> list[Field[Any]]:
    """The options that a policy is made with."""
    return [option for option in fields(policy) if option.init]


class UnsupportedMetricError(ValueError):
    """The policy cannot maximize this metric."""


def whole_for(metric: Metric | None) -> str | None:
    """Why a metric needs all labels of a row or none, for a message; None where it does not."""
    if metric is None or not metric.multiclass:
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
    """Refuse labels that contradict the budget or the metric; ``unknown`` allows unknown labels.

    ``whole`` is the reason why no row may be labelled in part, for the message; None where rows
    may.
    """
    if batch.labels is not None:
        if whole is not None:
            batch.labels.refuse_partly_known(owner, whole)
        if not unknown:
            batch.labels.refuse_unknown_rows(owner)
    if batch.class_ids and k is None:
        raise ValueError(
            f"y of {owner} has class ids, and there is no budget: pass k=1 to predict one class "
            "a row, or y as indicators"
        )
    if metric is not None and metric.single_label and batch.odd_row is not None:
        row, labels = batch.odd_row
        raise ValueError(
            f"y of {owner} must have exactly one label a row for {metric.name}, got {labels} in "
            f"row {row}"
        )


def check_learns(owner: str, policy: Policy, batch: Batch, metric: Metric | None) -> None:
    """Refuse labels that a policy cannot learn from, or by which a metric cannot be judged."""
    labels = batch.labels
    partly = labels is not None and labels.missing is not None
    whole = policy.whole_rows(metric) if partly else None
    check_task(owner, batch, policy.budget, metric, unknown=not policy.needs_labels, whole=whole)


@dataclass(frozen=True, repr=False)
class MetricPolicy(Policy):
    """A policy that maximizes a metric from labels or estimates, with a prior."""

    FEEDBACKS: ClassVar[tuple[str, ...]] = ("labels", "estimates")

    metric: MetricName | Metric | str
    k: int | None = None
    feedback: Feedback = "labels"
    prior: float = 1e-6
    epsilon: float = field(default=EPSILON, kw_only=True)

    def __post_init__(self) -> None:
        owner = self.owner
        metric, k = read_target(self.metric)
        # "macro_f1@3" has its budget in the name; no other may contradict it.
        if k is None:
            k = check_positive_int(owner, "k", self.k, optional=True)
        elif self.k not in (None, k):
            raise ValueError(
                f"{owner} has one budget, got {Target(metric.name, k)} with k={self.k}"
            )
        if metric.single_label and not metric.needs_matrix and k not in (None, 1):
            raise ValueError(
                f"k of {owner} must be 1 or None for {metric.name}, which is defined for one "
                f"prediction a row, got {k}"
            )
        if metric.binary and k is not None:
            raise ValueError(
                f"k of {owner} must be None for {metric.name}, a metric of one label, got {k}: "
                f"{metric.over_many()}"
            )
        check_choice(owner, "feedback", self.feedback, self.FEEDBACKS)
        self._set(
            metric=metric,
            k=k,
            prior=check_number(owner, "prior", self.prior, low=0.0),
            epsilon=check_number(owner, "epsilon", self.epsilon, low=0.0, strict=True),
        )

    @cached_property
    def objective(self) -> Metric:
        return cast("Metric", self.metric)  # found by its name once, when the policy was made

    @cached_property
    def budget(self) -> int | None:
        # Metrics over classes are for one class a row (Section 2 of the paper): k = 1.
        return 1 if self.k is None and self.objective.multiclass else self.k

    @property
    def soft(self) -> bool:
        """Whether probabilities are counted, in place of labels or beside them."""
        return self.feedback != "labels"

    @cached_property
    def metric_plan(self) -> Plan:
        """The metric's own plan, with the options of the policy."""
        metric = self.objective
        # A matrix of costs gives gains η @ matrix; the rest of the metric is its term.
        term = with_epsilon(self.term(), self.epsilon)
        return Plan(self.budget, term, metric.matrix, self.prior, self.soft, metric.sums)

    def term(self) -> Any:
        """The objective in the form that kernels read.

        Where only decisions matter, it may leave out positive factors of the derivatives.
        """
        return self.objective.term()

    def __repr__(self) -> str:
        """The representation of a dataclass, without options that have their defaults."""
        options = [
            f"{option.name}={getattr(self, option.name)!r}"
            for option in chosen_options(self)
            if option.name in ("metric", "k", "feedback", "prior")
            or getattr(self, option.name) != option.default
        ]
        return f"{self.owner}({', '.join(options)})"


def check_is_policy(owner: str, policy: Any, example: str = "omma.OMMA('macro_f1')") -> None:
    """Refuse anything but a policy; the message for an object with ``fit`` says to call it."""
    if not isinstance(policy, Policy):
        hint = ": call .fit(eta, y) first" if hasattr(policy, "fit") else ""
        raise TypeError(
            f"policy of {owner} must be a policy, such as {example}, got {shown(policy)}{hint}"
        )
