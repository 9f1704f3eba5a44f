"""The counts of a policy over labels that turn up while the stream runs."""

import math
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np

from omma.counts import Counts, counts_of
from omma.engine import Engine
from omma.held import Held, held
from omma.limits import check_limits
from omma.policies import OMMA, Auto
from omma.state import Prices

NOISE = 1e-9  # by how much a probability may exceed one, for rounding

Row = tuple[float, ...]


class GrowingCounts:
    """Decides and counts rows whose labels are names. Its size goes with the number of labels.

    A label that turns up late was absent from, and not predicted in, the rows before it: that is
    what zeros say, and so it joins with zeros. Only the steps by which calibration learns of single
    labels depend on how many there are, and so on when one joined.

    >>> counts = GrowingCounts(OMMA("macro_f1"))
    >>> counts.decide(counts.row_of({"cat": 0.9, "dog": 0.2}))
    ('cat',)
    >>> counts.count(None, ["cat", "dog"], ["cat"], 1.0)
    >>> counts.decide(counts.row_of({"cat": 0.9, "dog": 0.2, "owl": 0.0}))
    ('cat', 'dog')
    >>> counts.labels
    ('cat', 'dog', 'owl')
    """

    def __init__(self, policy: OMMA | Auto) -> None:
        self.policy = policy
        self._ids: dict[Hashable, int] = {}
        self._state = replace(policy, subject_to=None).plan(0).start(0)
        self._engine: Engine | None = None
        self._eta = self._decided = np.empty(0)  # the row that will be counted next
        self._laid: Row | None = None  # the same as it came, where it was decided last
        self.soft = policy.needs_eta
        self._budget = policy.budget
        self.labels: tuple[Hashable, ...] = ()  # all met so far, in the order of the counts
        if policy.limits:
            means = any(one.of == "macro_recall" for one in policy.limits)
            self._state.prices = Prices.start(len(policy.limits), rates=means)
            self.meet(one.label for one in policy.limits if one.label is not None)
            self._check_limits()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_engine": None, "_laid": None}  # made again where it is needed

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

    def _check_limits(self) -> None:
        """Refuse limits that exclude each other, whatever labels come beside those they name."""
        limits = (self._named if self._ids else self.policy).limits
        k = self._budget
        most = float(self.policy.at_most or math.inf)
        low, high = (0.0, most) if k is None else (float(k), float(k))
        check_limits(type(self.policy).__name__, limits, len(self._ids) + (k or 1), low, high)

    def meet(self, labels: Iterable[Hashable]) -> None:
        """Make room for labels not seen before."""
        new = [label for label in labels if label not in self._ids]
        if not new:
            return
        new = list(dict.fromkeys(new))
        self._ids.update(zip(new, range(len(self._ids), len(self._ids) + len(new)), strict=True))
        self.labels = tuple(self._ids)
        room = np.zeros((3, len(new)))
        self._engine = self._laid = None  # it is for another number of labels
        state = self._state
        for counted in (state, state.labels, state.known):
            if counted is not None:
                counted.cells = np.hstack((counted.cells, room))
        learned = state.calibration
        if learned is not None:
            learned.bias = np.append(learned.bias, room[0])
            learned.precision = np.append(learned.precision, room[0])

    def _running(self) -> Engine:
        """What runs single rows, kept as long as no new label turns up."""
        if self._engine is None:
            self._engine = self._named.engine(self._state)
            self._eta = self._decided = np.zeros(len(self._ids))
        return self._engine

    def decide(self, row: Row) -> tuple[Hashable, ...]:
        """The labels that gain most, at the present counts, for a row of ``row_of``."""
        budget, labels = self._budget, self.labels
        if budget is not None and budget >= len(labels):
            return labels  # all labels known fit in, and a budget is filled
        self._laid, engine = None, self._running()
        self._eta = np.array(row)
        self._decided = engine.decide(self._eta)
        self._laid = row
        return tuple(compress(labels, self._decided.tolist()))

    def count(
        self,
        row: Row | None,
        true: Collection[Hashable],
        chosen: Collection[Hashable],
        weight: float,
    ) -> None:
        """Count a row: the labels it has against those it was given.

        It may have been made by ``row_of`` before some of the labels were met, and is needed where
        the policy is ``soft``.
        """
        ids = self._ids
        for label in true:
            if label not in ids:
                self.meet(true)
        if row is None or row is not self._laid:  # not the one that was decided last
            self._lay(row, chosen)
        engine, y = self._running(), np.zeros(len(ids))
        y[[ids[label] for label in true]] = 1.0
        engine.learn(self._eta, y, self._decided, weight)

    def _lay(self, row: Row | None, chosen: Collection[Hashable]) -> None:
        """Lay out a row that was decided earlier."""
        ids, self._laid = self._ids, None
        self.meet(chosen)
        self._running()
        self._eta, self._decided = np.zeros(len(ids)), np.zeros(len(ids), dtype=np.int8)
        if row is not None:
            self._eta[: len(row)] = row
        self._decided[[ids[label] for label in chosen]] = 1

    def row_of(self, eta: Mapping[Any, float]) -> Row:
        """Probabilities in the order of the counts, with room for all labels."""
        if tuple(eta) == self.labels:  # the usual case, as models keep the order of labels
            row = tuple(eta.values())
        else:
            self.meet(eta)
            row = tuple([eta.get(label, 0.0) for label in self.labels])
        if row and max(row) > 1.0:
            row = tuple([1.0 if 1.0 < one < 1.0 + NOISE else one for one in row])
        return row
