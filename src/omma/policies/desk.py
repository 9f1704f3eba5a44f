"""Rows one after another on one state: all that a step needs lies ready."""

from collections.abc import Callable, Sequence
from functools import partial
from struct import Struct
from typing import Any

import numpy as np

from omma.kernels import steps
from omma.kernels.pointer import Address
from omma.kernels.signs import decide_by_sign
from omma.policies.stepper import Stepper
from omma.rows.row import refuse_row
from omma.state import State


def _call(kernel: Any, *given: Any, kept: Any) -> Callable[[], Any]:
    """A call that is ready to be made, and what lies at the addresses given: that goes with it.

    It is a function and no ``partial``: those who measure the memory of a model follow what it
    refers to, functions left out, and would walk through the whole compiler.
    """

    def call(_kept: Any = kept) -> Any:
        return kernel(*given)

    return call


class Desk:
    """Decides and counts dense rows of one state, whose arrays must stay those that they are.

    A row takes less than a microsecond to decide; to look whether a state still has the arrays that
    it had, and to make arrays for a row, takes several times as long. So what a row needs is made
    once and written over, and whoever gives a state other arrays makes another desk. Decisions
    and counts are those of the stepper, bit for bit. One thread at a time sits at a desk.

    >>> import omma
    >>> policy = omma.Auto("macro_f1")
    >>> desk = Desk(policy.stepper(2), policy.init(2))
    >>> desk.decide((0.9, 0.2))
    [1, 0]
    >>> desk.count([0], 1.0)
    >>> desk.decide((0.9, 0.2))
    [1, 1]
    """

    def __init__(self, stepper: Stepper, state: State) -> None:
        self.state = state
        self._eta = np.zeros(stepper.m)
        self._y = np.zeros(stepper.m)
        self._decided = np.zeros(stepper.m, dtype=np.int8)
        # A third of the time that numpy takes to read a tuple.
        self._write = partial(Struct(f"{stepper.m}d").pack_into, self._eta.data, 0)
        self._scratch, ids = stepper.space.scratch, stepper.space.ids
        work = (self._scratch, ids, self._decided)
        self._decide: Any
        self._learn: Any
        if stepper.simple:
            self._decide = self._by_gains(stepper, work)
            if stepper.signs is not None:
                self._decide = self._by_signs(stepper.signs, self._decide)
            self._learn = partial(stepper.count, state, self._eta, self._y, self._decided)
        else:
            by, to, _ = stepper.laid(state, thin=False)
            given = (by.function, by.at, self._eta, 0, *work)
            # What is laid out there has addresses in it, too, and the stepper does not stay.
            self._decide = _call(steps.decide_dense_at, *given, kept=(by, stepper.deciding))
            self._learn = partial(self._learn_at, to)

    def _by_gains(self, stepper: Stepper, work: tuple[Any, ...]) -> Callable[[], Any]:
        state, eta = self.state, self._eta

        def call() -> Any:
            counted = (*stepper.deciding.decider, 0, state.cells, state.totals)
            return steps.decide_dense(eta, *counted, *work)

        return call

    def _by_signs(self, signs: Any, by_gains: Callable[[], Any]) -> Callable[[], Any]:
        given = (self._eta, signs, self.state.cells, self.state.totals, self._decided)

        def call() -> Any:
            sure = decide_by_sign(*given)
            return sure if sure >= 0 else by_gains()

        return call

    def _learn_at(self, to: Address, weight: float) -> None:
        row = (self._eta, self._y, True, self._decided)
        steps.learn_dense_at(to.function, to.at, *row, weight, False, self._scratch)

    def decide(self, eta: Sequence[float]) -> list[int]:
        """Decide a row: zeros and ones, which are kept for `count`."""
        self._write(*eta)
        if not self._decide():
            refuse_row("predict", self._eta)
        return self._decided.tolist()  # type: ignore[no-any-return]

    def lay(self, eta: Sequence[float] | None, chosen: Sequence[int]) -> None:
        """Lay out a row that was decided earlier, to be counted: its probabilities, its labels."""
        if eta is not None:
            self._write(*eta)
        self._decided[:] = 0
        for label in chosen:
            self._decided[label] = 1

    def count(self, true: Sequence[int], weight: float) -> None:
        """Count the row that lies there: the labels it has against those it was given."""
        y = self._y
        for label in true:
            y[label] = 1.0
        try:
            self._learn(weight)
        finally:
            for label in true:
                y[label] = 0.0
