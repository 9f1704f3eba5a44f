"""Batches that are decided in parts, elsewhere: what each part adds, and the state after all.

All rows of a batch are decided on one state and count alike, so that nothing depends on how they
were spread over workers, or in which order they came back. Where the past fades, it fades between
batches, by as many rows as were counted. Limits alone are different: a price has to follow every
row, so that each worker decides its rows one after another, and their prices are averaged.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from omma.kernels.layout import GROWTH, N
from omma.policies import Policy
from omma.prices import Prices
from omma.rows.batch import Batch
from omma.running.runner import run
from omma.running.sequence import Sequence
from omma.state import State
from omma.stepping import as_rows, count_batch, step


def handed_out(state: State) -> State:
    """The state as those see it who decide a part of a batch: no row of it makes another older.

    >>> import omma
    >>> policy = omma.Forgetting(omma.OMMA("f1"), half_life=10)
    >>> handed_out(policy.init(1)).pace
    array([1., 1., 0.])
    """
    made = state.now()
    if made.pace is not None:
        made.pace[GROWTH] = 1.0
    return made


class Part:
    """A worker's part of a batch, decided on a state that was ``handed_out``.

    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=100, m=5, seed=0)
    >>> policy = omma.OMMA("macro_f1", prior=1.0)
    >>> part = Part(policy, policy.init(5))
    >>> part.decide(eta[:60], y[:60]).shape, part.decide(eta[60:], y[60:]).shape
    ((60, 5), (40, 5))
    >>> part.delta.rows
    100.0
    """

    def __init__(self, policy: Policy, state: State) -> None:
        self._policy, self._start = policy, state
        self._turn = state.copy() if policy.limits else None
        self._delta: State | None = None

    @property
    def delta(self) -> State | None:
        """What its rows add to the state; None before the first."""
        return self._delta

    def decide(self, eta: Any, y: Any = None, known: Any = None) -> Any:
        """Decide some rows, and count them; ``known`` says which rows have labels."""
        if self._turn is not None:
            return self._decide_in_turn(Batch.of(eta, y, known=known))
        predictions, delta = self._step(eta, y, known)
        self._delta = delta if self._delta is None else self._delta + delta
        return predictions

    def _step(self, eta: Any, y: Any, known: Any) -> tuple[Any, State]:
        policy, state = self._policy, self._start
        if y is None or (known is not None and not known.any()):
            return step(policy, state, eta)
        if known is None or known.all():
            return step(policy, state, eta, y)
        if policy.needs_labels:  # it learns from the others alone
            predictions, _ = step(policy, state, eta)
            return predictions, step(policy, state, eta[known], y[known])[1]
        return step(policy, state, Batch.of(eta, y, known=known))

    def _decide_in_turn(self, batch: Batch) -> Any:
        plan, owner = self._policy.plan(batch.m), f"a batch of {type(self._policy).__name__}"
        done = run(owner, plan, Sequence(batch), state=self._turn)
        self._turn = done.state
        self._delta = done.state - self._start
        return done.predictions


def settled(policy: Policy, state: State, eta: Any, y: Any, predictions: Any) -> State:
    """What labels add that come later than their rows were decided.

    What is learned without labels was counted when these were decided, and is not counted again.
    ``state`` is the present one, ``handed_out``; ``predictions`` are what was decided then, as
    indicators of the shape of ``eta``.

    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=100, m=5, seed=0)
    >>> policy = omma.Auto("macro_f1")
    >>> predictions, delta = omma.step(policy, policy.init(5), eta)
    >>> state = merged(policy.init(5), [delta])
    >>> after = merged(state, [settled(policy, state, eta, y, predictions)])
    >>> state.rows, state.truth.rows, after.rows, after.truth.rows
    (100.0, 0.0, 100.0, 100.0)
    """
    batch = Batch.read("labels that come later", eta, y)
    plan, weights = policy.plan(state.m), batch.weights
    delta = count_batch(plan, state, batch.eta, batch.labels, as_rows(predictions), weights)
    if delta.labels is not None:
        delta.cells[...] = 0.0
        delta.totals[...] = 0.0
    return delta


def merged(state: State, deltas: Iterable[State]) -> State:
    """The state after a batch, from what its parts add to the one that was ``handed_out``.

    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=1000, m=5, seed=0)
    >>> policy = omma.Forgetting(omma.OMMA("macro_f1", prior=1.0), half_life=500)
    >>> state = policy.init(5)
    >>> parts = [omma.step(policy, handed_out(state), eta[i::4], y[i::4])[1] for i in range(4)]
    >>> after = merged(state, parts)
    >>> after == merged(state, parts[::-1]), after.rows
    (True, 250.0)
    """
    parts = list(deltas)
    if not parts:
        return state.now()
    total = reduce(add, parts)
    after, rows = handed_out(state) + total, total.totals[N]
    if state.prices is not None and after.prices is not None:
        after.prices = averaged(state.prices, [one.prices for one in parts if one.prices])
        after.prices.settle(after.limited.cells)
    if state.pace is None or after.pace is None:
        return after
    after.pace[GROWTH] = state.pace[GROWTH]
    return after.faded(rows)


def averaged(before: Prices, parts: list[Prices]) -> Prices:
    """The prices that workers came to, each weighed by how much it has moved them."""
    moved = np.array([one.spread for one in parts])
    mu, mean = (
        (np.array(every) * moved).sum(axis=0) / moved.sum(axis=0)
        for every in ([one.mu for one in parts], [one.mean for one in parts])
    )
    return Prices(mu, before.spread + moved.mean(axis=0), before.rates.copy(), mean)
