"""What a learner has counted, and what waits to be."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.certificate import Certificate
from omma.counts import Counts, counts_of, estimates_of, state_of
from omma.metrics import Metric
from omma.online import events
from omma.online.packed import Decision
from omma.online.pending import Id, Pending, Refusals, age_and_clock
from omma.online.stats import Seen
from omma.online.steps import Decided, Step, Task
from omma.policies import Policy
from omma.rows.frames import Names
from omma.rows.row import Partly, Row
from omma.state import State

UNRECORDED = nullcontext()  # where there is no journal
LOOKS = 1000  # questions of a learner that are looked at for want of candidates


class Counting:
    """The parts of a learner that change, and every way in which they do."""

    policy: Policy
    n_labels: int
    names: Names | None
    metric: Metric | None
    _state: Any
    _pairs: NDArray[np.float64] | None
    _certificate: Certificate | None
    _last: Decided | None
    _pending: Pending
    _refusals: Refusals
    _seen: Seen | None

    @property
    def state(self) -> Any:
        """All that the policy has counted; another one of the same policy may be put in."""
        return self._state

    @state.setter
    def state(self, state: Any) -> None:
        self._state, self._engine = state, self.policy.engine(state)

    def _prepare(self) -> None:
        """What is made again wherever the learner is unpacked."""
        self._engine = self.policy.engine(self.state)
        self._lock = threading.RLock()  # counting is one thing at a time; deciding needs none
        one_each = self.metric is not None and self.metric.single_label
        soft, judged = self.state.labels is not None, self._certificate is not None
        self._task = Task(self.policy, self.metric, self.n_labels, soft)
        self._keeps = self.policy.needs_eta or judged
        # What is counted when a row is decided need not wait with it.
        corrects = self.state.known is not None or self.state.calibration is not None
        self._keeps_late = judged or corrects or (self.policy.needs_eta and not soft)
        self._pending.evicted = self._forgotten
        self._row_shape = (self.n_labels,)
        # With costs every label is a candidate; with k = m every label is predicted.
        k = self.policy.budget
        costs = self.metric is not None and self.metric.needs_matrix
        self._looks = 0 if k is None or k >= self.n_labels or costs else LOOKS
        # Whether a row is counted by one call of a kernel.
        self._simple = not (one_each or self._pairs is not None or judged)
        self._plain = self._simple
        self._journal: Any = None

    def _attach(self, journal: Any) -> None:
        """Write all that happens down from now on, and so check all of it before."""
        if self._journal is not None:
            raise ValueError(f"a learner can have one journal, and this one has {self._journal!r}")
        self._journal, self._plain = journal, False

    def _detach(self, journal: Any) -> None:
        if self._journal is journal:
            self._journal, self._plain = None, self._simple

    def _certify(self) -> Certificate:
        if self.metric is None:
            raise ValueError(
                f"gap of OnlineClassifier needs a metric, and {self.policy!r} has none of its own: "
                "pass metric="
            )
        return Certificate("OnlineClassifier", self.metric, self.policy.budget, self.n_labels)

    def _recorded(self, event: Callable[..., bytes], *parts: Any) -> AbstractContextManager[None]:
        """Write an event to the journal, if there is one; it is to be counted within."""
        return UNRECORDED if self._journal is None else self._journal.record(event(*parts))

    def _changed(self) -> AbstractContextManager[None]:
        """Change within what no event tells: a journal begins anew."""
        return UNRECORDED if self._journal is None else self._journal.change()

    def _take_names(self, names: Names | None) -> None:
        if names != self.names:
            with self._recorded(events.named, names):
                self.names = names

    def _wait(self, key: Id, chosen: NDArray[Any], row: Row | None, moved: bool) -> None:
        """Remember one decision; where decisions look at probabilities, these count now."""
        if self.state.labels is not None:
            self._engine.learn(row, None, chosen, 1.0)
        else:
            self._engine.drew()
        kept = row if self._keeps_late else None
        self._pending.put(key, kept, chosen, sparse=chosen.dtype == np.int32, moved=moved)

    def _settle(self, key: Id, true: NDArray[Any], weight: float) -> None:
        """Count the labels of one decision that waited."""
        one = self._pending.take(key)
        self._count(Step(one.eta, true, one.prediction, weight), late=True)

    def _count(self, step: Step, late: bool = False) -> None:
        row, true, chosen, weight = step
        self._engine.learn(row, true, chosen, weight, late=late)
        thin = chosen.dtype == np.int32
        if self._pairs is not None and true is not None:
            ids = chosen if thin else np.flatnonzero(chosen)
            which = true if thin else np.flatnonzero(true)
            self._pairs[np.ix_(which, ids)] += weight
        if self._certificate is not None and row is not None:
            whole = None if isinstance(true, Partly) else true  # a gap is of rows known in full
            dense = whole is not None and not isinstance(row, tuple)
            found: Any = np.flatnonzero(whole).astype(np.int32) if dense else whole  # type: ignore[arg-type]
            self._certificate.step(row, found, weight)

    def _forgotten(self, key: Id, decision: Decision) -> None:
        """A decision whose labels never came: what could be gained is still seen from estimates."""
        if self._certificate is not None and self.state.labels is not None:
            assert decision.eta is not None
            self._certificate.step(decision.eta, None, decision.weight)

    def _check_made(self, one: Decision, keeps: bool) -> None:
        """Refuse a decision from a file that this learner could not have made."""
        if keeps and one.eta is None:
            raise ValueError("a decision without its probabilities")
        if one.moved and self.names is None:
            raise ValueError("a decision on columns in another order, and no names of labels")

    def wait_for(self, pending: Pending) -> None:
        """Let these decisions wait, as they were read from a file."""
        self._pending = pending
        pending.evicted = self._forgotten

    def bound_waiting(self, limit: int | None, max_seconds: float | None = None) -> None:
        """Change how many decisions wait at most, or for how long; None leaves that as it is."""
        pending = self._pending
        with self._lock:
            if max_seconds is not None and pending.clock is None:
                raise ValueError(
                    "decisions of this learner were made without a clock: max_seconds must be "
                    "given when it is begun"
                )
            with self._changed():  # what is forgotten from now on is so when done again
                pending.limit = pending.limit if limit is None else limit
                pending.max_age = pending.max_age if max_seconds is None else max_seconds

    # What was counted elsewhere.

    def _add_counts(self, counts: Counts, estimates: Counts | None) -> None:
        """Add true labels against predictions, and probabilities where these are counted."""
        state = self.state
        parts = state.truth.missed is not None
        if parts or state.known is not None or state.calibration is not None:
            raise TypeError(
                f"merge of OnlineClassifier needs all that {self.policy!r} keeps"
                f"{' of rows labelled in part' * parts}: pass other.state in place of counts"
            )
        if state.labels is not None and estimates is None:
            raise ValueError("estimates of merge must be given with feedback='estimates'")
        if self._pairs is not None and counts.matrix is None:
            raise ValueError(f"counts of merge must have a matrix for {self.metric!r}, got none")
        # All that can go wrong is done before anything is changed.
        with self._lock:
            soft = estimates_of(state)
            mine = counts_of(state)
            mine.matrix = self._pairs
            true = mine + counts
            own = true if soft is None or estimates is None else soft + estimates
            made = state_of(own)
            made.labels = None if soft is None else state_of(true)
            if state.prices is not None:  # they stay; what they look at is counted anew
                made.prices = state.prices * 1.0
                made.prices.settle(made.limited.cells)
            if soft is not None and own == soft:  # added up anew, sums may differ in a last digit
                made.cells, made.totals = state.cells, state.totals
            self._go_on_from(made, true.matrix)

    def _add_state(self, other: State, pairs: Any) -> None:
        """Add all that another learner of the same policy keeps."""
        if self._pairs is not None and pairs is None:
            raise ValueError(
                f"counts of merge must have a matrix for {self.metric!r}: pass other.counts and "
                "other.state"
            )
        with self._lock:
            both = None if self._pairs is None else self._pairs + pairs
            self._go_on_from(self.state + other, both)

    def _go_on_from(self, made: State, pairs: Any) -> None:
        """Go on from a state; a journal begins anew, as this is no event of it."""
        with self._changed():
            self.state.restore({name: one.copy() for name, one in made.arrays().items()})
            if self._pairs is not None and pairs is not None:
                self._pairs[...] = pairs

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        for made_again in ("_engine", "_lock", "_task", "_journal"):
            del state[made_again]
        pending = self._pending
        by_clock = pending.clock is not None
        state["_pending"] = (pending.arrays(), pending.limit, pending.max_age, by_clock)
        if self._last is not None:  # an index would need pandas where it is read
            state["_last"] = self._last._replace(index=None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        arrays, limit, age, by_clock = state["_pending"]
        ages = age_and_clock("a learner", None if by_clock else age, age if by_clock else None)
        waiting = Pending.from_arrays(arrays, state["n_labels"], limit=limit, **ages)
        self.__dict__.update({**state, "_pending": waiting})
        self._prepare()
