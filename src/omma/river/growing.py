"""The counts of a policy over labels that appear while the stream runs."""

import math
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.counts import Counts, counts_of
from omma.engine import Engine
from omma.limits import LimitStatus, check_limits, limit_statuses
from omma.online.codec import Decision
from omma.policies import OMMA, Auto, Policy
from omma.state import State
from omma.state_parts import Prices

NOISE = 1e-9  # a probability may exceed one by this much, from rounding


class GrowingCounts:
    """Decides and counts rows whose labels are names; memory grows with the number of labels.

    A new label was absent from the rows before it, and was not predicted in them. So it starts with
    counts of zero. Only the step sizes of the calibration of single labels depend on the number of
    labels, and so on when a label appeared.

    >>> counts = GrowingCounts(OMMA("macro_f1"))
    >>> decision = counts.decide({"cat": 0.9, "dog": 0.2})
    >>> decision.prediction
    array([1, 0], dtype=int8)
    >>> counts.count(decision, ["cat", "dog"], 1.0)
    >>> counts.decide({"cat": 0.9, "dog": 0.2, "owl": 0.0}).prediction
    array([1, 1, 0], dtype=int8)
    >>> counts.labels
    ('cat', 'dog', 'owl')
    """

    def __init__(self, policy: OMMA | Auto) -> None:
        self.policy = policy
        self.labels: tuple[Hashable, ...] = ()  # met so far, in the order of the counts
        self._ids: dict[Hashable, int] = {}
        # A plan with limits needs the number of labels: their prices are added below.
        self._state = State.start(replace(policy, subject_to=None).plan(0), 0)
        if policy.limits:
            means = any(limit.of == "macro_recall" for limit in policy.limits)
            self._state.prices = Prices.start(len(policy.limits), rates=means)
            self.meet(limit.label for limit in policy.limits if limit.label is not None)
            # Refuse limits that exclude each other, whatever labels come beside those they name.
            k, most = policy.budget, float(policy.at_most or math.inf)
            low, high = (0.0, most) if k is None else (float(k), float(k))
            limits = (self._named if self._ids else policy).limits
            check_limits(type(policy).__name__, limits, len(self._ids) + (k or 1), low, high)

    def __getstate__(self) -> dict[str, Any]:
        # The engine is made again for the next row.
        return {name: value for name, value in vars(self).items() if name != "_current_engine"}

    @property
    def counts(self) -> Counts | None:
        """True labels against decisions; None before the first label."""
        return counts_of(self._state) if self._ids else None

    @property
    def limits(self) -> tuple[LimitStatus, ...]:
        """The status of the limits of the policy; none before the first label."""
        return limit_statuses(self._named.limits, self._state) if self._ids else ()

    @property
    def _named(self) -> Policy:
        """The policy, with limits that refer to labels by their position."""
        named: Policy = self.policy.for_names(tuple(map(str, self._ids)))
        return named

    @cached_property
    def _current_engine(self) -> Engine:
        """The engine for the present labels."""
        return self._named.engine(self._state)

    def meet(self, labels: Iterable[Hashable]) -> None:
        """Make room for labels not seen before."""
        for label in labels:
            self._ids.setdefault(label, len(self._ids))
        if len(self._ids) > len(self.labels):
            self.labels = tuple(self._ids)
            self._state = self._state.widened(len(self._ids))
            # The engine is for a number of labels: the next row makes another.
            vars(self).pop("_current_engine", None)

    def decide(self, eta: Mapping[Any, float]) -> Decision:
        """Predict the labels that gain most, at the present counts."""
        if tuple(eta) != self.labels:  # most models keep the order of labels
            self.meet(eta)
            eta = {label: eta.get(label, 0.0) for label in self.labels}
        row = np.array(tuple(eta.values()), dtype=np.float64)
        # Models that normalize may exceed one by rounding; more than that the engine refuses.
        if row.max(initial=0.0) > 1.0:
            row[(row > 1.0) & (row < 1.0 + NOISE)] = 1.0
        budget = self.policy.budget
        if budget is not None and budget >= len(row):
            # All labels known so far fit in, and a budget is filled.
            prediction = np.ones(len(row), dtype=np.int8)
        else:
            prediction = self._current_engine.decide(row)
        return Decision(prediction, row if self.policy.needs_eta else None)

    def count(self, decision: Decision, true: Collection[Hashable], weight: float) -> None:
        """Count a row: the labels it has against those that were predicted."""
        labels = self.indicators(true).astype(np.float64)
        eta = None if decision.eta is None else self.widened(decision.eta)
        self._current_engine.learn(eta, labels, self.widened(decision.prediction), weight)

    def indicators(self, labels: Collection[Hashable]) -> NDArray[np.int8]:
        """An indicator for each label met so far, these included."""
        self.meet(labels)
        indicators = np.zeros(len(self._ids), dtype=np.int8)
        indicators[[self._ids[label] for label in labels]] = 1
        return indicators

    def widened(self, row: NDArray[Any]) -> NDArray[Any]:
        """A row that may have been decided before some of the labels were met."""
        missing = len(self._ids) - len(row)
        return np.concatenate((row, np.zeros(missing, dtype=row.dtype))) if missing else row
