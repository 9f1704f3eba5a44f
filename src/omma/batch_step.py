"""Batches of rows: each decided on one state, and what it adds to that state.

``step`` changes nothing: the caller adds the returned state to its own. So several machines can
decide on the same state, and what they return may be added in any order.

Rows of a batch that is decided in parts are decided on one state and count alike, however they are
spread over workers, and in whatever order the parts return. Where the past fades, it fades between
batches, by as many rows as were counted. Limits are different: a price must follow every row, so
each worker decides its rows one after another, and prices are averaged.
"""

import warnings
from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from scipy import sparse

from omma._validate import shown
from omma.engine import Engine
from omma.kernels.layout import GROWTH, N
from omma.plan import Plan
from omma.policies import Policy
from omma.policies.base import check_is_policy, check_learns
from omma.rows.batch import Batch
from omma.state import State
from omma.state_parts import Prices


def step(
    policy: Policy, state: State, eta: Any, y: Any = None, weights: Any = None
) -> tuple[Any, State]:
    """Decide a batch of rows on one state; return predictions and what to add to the state. Pure.

    All rows are decided on ``state`` as it is; ``state + delta`` is the state after counting them.
    What several batches add may be added up in any order: exactly for true labels, to rounding for
    probabilities, and the prior enters once.

    A state with nothing in it and a prior of 0 predicts every label of its whole first batch, and
    those counts stay: a warning says so. With ``prior=1``, 20,000 rows between two additions cost
    less than 0.2 % of macro-F1.

    Parameters
    ----------
    policy : Policy
        One whose state is counts only, such as ``omma.OMMA("macro_f1", prior=1.0)``.
    state : State
        From ``policy.init(m)``, ``trace.state`` or ``learner.state``; it is not changed.
    eta : array-like, sparse matrix, frame or tensor of shape (n, m)
        Probability of each label in each row.
    y : as eta, or class ids of shape (n,), optional
        True labels. Without them only what is learned without labels is counted.
    weights : array-like of shape (n,), optional
        A row of weight w counts as w rows. Weights are not costs: see ``omma.metrics.RowCosts``.

    Returns
    -------
    predictions, delta
        Indicators in the shape of eta, and a State.

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=20, seed=0)
    >>> policy = omma.OMMA("macro_f1", prior=1.0)
    >>> state = policy.init(20)
    >>> for start in range(0, 2000, 500):
    ...     rows = slice(start, start + 500)
    ...     predictions, delta = omma.step(policy, state, eta[rows], y[rows])
    ...     state = state + delta
    >>> state.rows
    2000.0
    """
    check_is_policy("step", policy, "omma.OMMA('macro_f1', prior=1.0)")
    if not isinstance(state, State) or not state.adds_up:
        raise TypeError(
            f"state of step must be counts only, such as {type(policy).__name__}(...).init(m) of "
            f"an omma.OMMA or omma.Auto makes, got {shown(state)}"
        )
    # A state of another kind of feedback has other counts, which would be misread.
    fresh = policy.init(state.m)
    if not fresh.adds_up or fresh.kind != state.kind:
        raise TypeError(f"state of step must be one that {policy!r} makes, got {shown(state)}")
    batch = Batch.read("step", eta, y, weights, policy.names)
    if batch.m != state.m:
        raise ValueError(f"eta of step must have {state.m} labels, as the state, got {batch.m}")
    batch.check("step")
    check_learns("step", policy, batch, policy.objective)
    plan = policy.plan(batch.m)
    if policy.objective is not None and state.rows == 0 and plan.prior == 0.0:
        warnings.warn(
            f"step decides its first batch on nothing: {policy!r} has a prior of 0, and predicts "
            "every label of every row until something is counted; use prior=1",
            UserWarning,
            stacklevel=2,
        )
    predictions = policy.decide_rows(state, batch.values)
    return batch.restore_type(predictions), count_batch(plan, state, batch, predictions)


def count_batch(
    plan: Plan, state: State, batch: Batch, predictions: Any, *, late: bool = False
) -> State:
    """What decided rows add to a state, counted by one compiled loop.

    Calibration and decay continue from those of the state; limits move no prices. Rows whose labels
    come ``late`` were counted without them before.
    """
    delta = State.start(plan, state.m)
    if delta.calibration and state.calibration:
        delta.calibration.fill(state.calibration)
    delta.pace = None if state.pace is None else state.pace.copy()
    if state.prices is not None:  # the same prices, which no row has moved
        delta.prices = state.prices.with_spread(0.0 * state.prices.spread)
    if not sparse.issparse(predictions):  # kernels count matrices, also of a single label
        predictions = np.asarray(predictions).reshape(batch.n, state.m)
    # Prices follow rows one by one, and a batch is decided at once.
    Engine(replace(plan, limits=None), delta).learn_rows(batch, predictions, late=late)
    # The batch has learned the difference, which adds up with that of other batches.
    if delta.calibration and state.calibration:
        delta.calibration.fill(delta.calibration.combined(state.calibration, -1.0, delta.unit))
    return delta


def handed_out(state: State) -> State:
    """The state that workers get for a part of a batch, within which nothing fades.

    >>> import omma
    >>> policy = omma.Forgetting(omma.OMMA("f1"), half_life=10)
    >>> handed_out(policy.init(1)).pace
    array([1., 1., 0.])
    """
    frozen = state.now()
    if frozen.pace is not None:
        frozen.pace[GROWTH] = 1.0
    return frozen


class WorkerPart:
    """A worker's part of a batch, decided on a state that was ``handed_out``.

    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=100, m=5, seed=0)
    >>> policy = omma.OMMA("macro_f1", prior=1.0)
    >>> part = WorkerPart(policy, policy.init(5))
    >>> part.decide(eta[:60], y[:60]).shape, part.decide(eta[60:], y[60:]).shape
    ((60, 5), (40, 5))
    >>> part.delta.rows
    100.0
    """

    def __init__(self, policy: Policy, state: State) -> None:
        self._policy, self._start = policy, state
        self._turn = state.copy() if policy.limits else None
        self.delta: State | None = None  # what its rows add to the state

    def decide(self, eta: Any, y: Any = None, known: Any = None) -> Any:
        """Decide some rows, and count them; ``known`` says which rows have labels."""
        policy, state = self._policy, self._start
        batch = Batch.of(eta, y, known=known)
        if self._turn is not None:  # a price follows every row
            run = policy.engine(self._turn).replay(f"a batch of {type(policy).__name__}", batch)
            self.delta = self._turn - state
            return run.predictions
        labels = batch.labels
        if policy.needs_labels and labels is not None and labels.known is not None:
            predictions, _ = step(policy, state, eta)
            _, delta = step(policy, state, batch.take(labels.known))  # labelled rows alone
        else:
            predictions, delta = step(policy, state, batch)
        self.delta = delta if self.delta is None else self.delta + delta
        return predictions


def settled(policy: Policy, state: State, eta: Any, y: Any, predictions: Any) -> State:
    """What labels add that come after their rows were decided.

    Probabilities were counted when the rows were decided, and are not counted again. ``state`` is
    the present one, ``handed_out``; ``predictions`` are the decisions of that time: indicators in
    the shape of ``eta``.

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
    # A policy that counts only labels has counted nothing of these rows yet.
    late = state.labels is not None
    return count_batch(policy.plan(state.m), state, batch, predictions, late=late)


def merged(state: State, deltas: Iterable[State]) -> State:
    """The state after a batch, from what its parts add to the state that was ``handed_out``.

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
    after = handed_out(state) + total
    own, prices = state.prices, total.prices
    if own is not None and prices is not None:
        # Prices of the workers, weighted by how much each has moved them.
        spread = own.spread + prices.spread / len(parts)
        after.prices = Prices(prices.mu, spread, own.rates.copy(), prices.mean)
        after.prices.settle(after.limited.cells)
    if state.pace is None or after.pace is None:
        return after
    # Within a batch nothing faded; after it, all of its rows have passed.
    after.pace[GROWTH] = state.pace[GROWTH]
    return after.faded(total.totals[N])
