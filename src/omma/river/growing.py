"""The counts of a policy over labels that turn up while the stream runs."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.counts import Counts, counts_of
from omma.held import Held, held
from omma.policies import OMMA, Auto
from omma.policies.stepper import Stepper
from omma.state import Prices

NOISE = 1e-9  # by how much a probability may exceed one, for rounding


class GrowingCounts:
    """Decides and counts rows whose labels are names. Its size goes with the number of labels.

    A label that turns up late was absent from, and not predicted in, the rows before it: that is
    what zeros say, and so it joins with zeros.

    >>> counts = GrowingCounts(OMMA("macro_f1"))
    >>> counts.decide({"cat": 0.9, "dog": 0.2})
    ('cat',)
    >>> counts.count(None, ["cat", "dog"], ["cat"], 1.0)
    >>> counts.decide({"cat": 0.9, "dog": 0.2, "owl": 0.0})
    ('cat', 'dog')
    >>> counts.labels
    ('cat', 'dog', 'owl')
    """

    def __init__(self, policy: OMMA | Auto) -> None:
        self.policy = policy
        self._ids: dict[Hashable, int] = {}
        self._state = replace(policy, subject_to=None).plan(0).start(0)
        self._stepper: Stepper | None = None
        self.soft = policy.needs_eta
        self._budget = policy.budget
        self.labels: tuple[Hashable, ...] = ()  # all met so far, in the order of the counts
        if policy.limits:
            means = any(one.of == "macro_recall" for one in policy.limits)
            self._state.prices = Prices.start(len(policy.limits), rates=means)
            self.meet(one.label for one in policy.limits if one.label is not None)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_stepper": None}  # made again where it is needed

    @property
    def counts(self) -> Counts | None:
        """True labels against decisions; None before the first label."""
        return counts_of(self._state) if self._ids else None

    @property
    def limits(self) -> tuple[Held, ...]:
        """How the limits of the policy stand; none before the first label."""
        return held(self._named, self._state) if self._ids else ()

    @property
    def _named(self) -> OMMA | Auto:
        """The policy, where its limits are about labels at their places."""
        named: Any = self.policy.for_names(tuple(map(str, self._ids)))
        return named  # type: ignore[no-any-return]

    def meet(self, labels: Iterable[Hashable]) -> None:
        """Make room for labels not seen before."""
        new = [label for label in labels if label not in self._ids]
        if not new:
            return
        new = list(dict.fromkeys(new))
        self._ids.update(zip(new, range(len(self._ids), len(self._ids) + len(new)), strict=True))
        self.labels = tuple(self._ids)
        room = np.zeros((3, len(new)))
        self._stepper = None  # it is for another number of labels
        state = self._state
        for counted in (state, state.labels, state.known):
            if counted is not None:
                counted.cells = np.hstack((counted.cells, room))
        learned = state.calibration
        if learned is not None:
            learned.bias = np.append(learned.bias, room[0])
            learned.precision = np.append(learned.precision, room[0])

    def _steps(self) -> Stepper:
        """What runs single steps, kept as long as no new label turns up."""
        self._stepper = self._named.stepper(len(self._ids))
        return self._stepper

    def decide(self, eta: Mapping[Any, float]) -> tuple[Hashable, ...]:
        """The labels that gain most, at the present counts."""
        return self.decide_row(self.row_of(eta))

    def decide_row(self, row: NDArray[np.float64]) -> tuple[Hashable, ...]:
        """The same for a row of ``row_of``."""
        budget, labels = self._budget, self.labels
        if budget is not None and budget >= len(labels):
            return labels  # all labels known fit in, and a budget is filled
        flags = (self._stepper or self._steps()).decide(self._state, row).tolist()
        return tuple([label for label, flag in zip(labels, flags, strict=True) if flag])

    def count(
        self,
        eta: Mapping[Any, float] | None,
        true: Collection[Hashable],
        chosen: Collection[Hashable],
        weight: float,
    ) -> None:
        """Count a row: the labels it has against those it was given."""
        row = self.row_of(eta or {}) if self.soft else None
        self.count_row(row, true, chosen, weight)

    def count_row(
        self,
        row: NDArray[np.float64] | None,
        true: Collection[Hashable],
        chosen: Collection[Hashable],
        weight: float,
    ) -> None:
        """The same for a row of ``row_of``, made before some of the labels were met."""
        ids = self._ids
        for label in (*true, *chosen):
            if label not in ids:
                self.meet((*true, *chosen))
                break
        m = len(ids)
        if row is not None and len(row) < m:
            row = np.append(row, np.zeros(m - len(row)))
        y, prediction = np.zeros(m), np.zeros(m, dtype=np.int8)
        for label in true:
            y[ids[label]] = 1.0
        for label in chosen:
            prediction[ids[label]] = 1
        (self._stepper or self._steps()).count(self._state, row, y, prediction, weight)

    def row_of(self, eta: Mapping[Any, float]) -> NDArray[np.float64]:
        """Probabilities in the order of the counts, with room for all labels."""
        if tuple(eta) == self.labels:  # the usual case, as models keep the order of labels
            row = np.array(list(eta.values()), dtype=np.float64)
        else:
            self.meet(eta)
            row = np.zeros(len(self._ids))
            for label, probability in eta.items():
                row[self._ids[label]] = probability
        if eta and max(eta.values()) > 1.0:
            row[(row > 1) & (row < 1 + NOISE)] = 1.0
        return row
