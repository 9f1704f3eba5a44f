"""What was counted elsewhere, added to what a learner has counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omma.counts import Counts, estimates_of, state_of
from omma.state import State

if TYPE_CHECKING:
    from omma.online.learner import OnlineClassifier


def merge(
    learner: OnlineClassifier, counts: Counts | State, estimates: Counts | State | None
) -> None:
    """Add counts, or all that another learner of the same policy keeps."""
    if type(learner.state) is not State:
        raise TypeError(f"merge of OnlineClassifier cannot add to what {learner.policy!r} keeps")
    if isinstance(counts, State):
        _add_state(learner, counts, None)
    elif isinstance(estimates, State):
        _add_state(learner, estimates, counts.matrix)
    else:
        _add_counts(learner, counts, estimates)


def _add_counts(learner: OnlineClassifier, counts: Counts, estimates: Counts | None) -> None:
    state = learner.state
    parts = state.truth.missed is not None
    if parts or state.known is not None or state.calibration is not None:
        raise TypeError(
            f"merge of OnlineClassifier needs all that {learner.policy!r} keeps"
            f"{' of rows labelled in part' * parts}: pass other.state in place of counts"
        )
    if state.labels is not None and estimates is None:
        raise ValueError("estimates of merge must be given with feedback='estimates'")
    if learner._pairs is not None and counts.matrix is None:
        raise ValueError(f"counts of merge must have a matrix for {learner.metric!r}, got none")
    # All that can go wrong is done before anything is changed.
    with learner._lock:
        soft = estimates_of(state)
        true = learner.counts + counts
        own = true if soft is None or estimates is None else soft + estimates
        made = state_of(own)
        made.labels = None if soft is None else state_of(true)
        if state.prices is not None:  # they stay; what they look at is counted anew
            made.prices = state.prices * 1.0
            made.prices.settle(made.limited.cells)
        if soft is not None and own == soft:  # added up anew, sums may differ in a last digit
            made.cells, made.totals = state.cells, state.totals
        _take(learner, made, true.matrix)


def _add_state(learner: OnlineClassifier, other: State, pairs: Any) -> None:
    if learner._pairs is not None and pairs is None:
        raise ValueError(
            f"counts of merge must have a matrix for {learner.metric!r}: pass other.counts and "
            "other.state"
        )
    with learner._lock:
        both = None if learner._pairs is None else learner._pairs + pairs
        _take(learner, learner.state + other, both)


def _take(learner: OnlineClassifier, made: State, pairs: Any) -> None:
    """Let the learner go on from a state; a journal begins anew, as this is no event of it."""
    learner.state.restore({name: one.copy() for name, one in made.arrays().items()})
    if learner._pairs is not None and pairs is not None:
        learner._pairs[...] = pairs
    if learner._journal is not None:
        learner._journal.cut()
