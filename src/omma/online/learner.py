"""A policy and its state in one object, for those who serve one row at a time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from omma._frames import (
    Names,
    Opened,
    by_name,
    check_order,
    is_foreign,
    numbered,
    opened,
    read_names,
)
from omma._index import check_same_indexes, index_of
from omma._row import Row, are_ids, as_table, probability_rows, single_row, sparse_row
from omma._validate import check_positive_int, shown
from omma.certificate import Certificate
from omma.counts import Counts, counts_of, estimates_of, state_of
from omma.gap import Gap
from omma.metrics import Metric, metric as find_metric
from omma.online import events, saved
from omma.online.decided import Decided, indicated_row, stored_of, true_ids
from omma.online.late import Refusals, check_as_many, read_ids, rows_of
from omma.online.packed import Decision
from omma.online.pending import Id, Pending
from omma.online.stats import Seen, calibration_error, moved_most, recent_value
from omma.online.steps import HEAVIEST, Step, Task, read_steps, true_rows, weights_of
from omma.policies import LinearPolicy, Policy
from omma.policies.stepper import UnsortedError
from omma.rule import Rule
from omma.state import State


FLOAT64 = np.dtype(np.float64)


class OnlineClassifier:
    """Decides rows as they come, and learns from their labels when these are known.

    Parameters
    ----------
    policy : Policy
        For example ``omma.OMMA("macro_f1")``.
    n_labels : int
        Number of labels; 1 for a binary problem.
    metric : str or Metric, optional
        What ``value`` is measured by; default the policy's own.
    gap : bool
        Estimate along the way what could still be gained; see ``OnlineClassifier.gap``.
    names : sequence of str, optional
        The names of the labels; default the policy's own, or else the columns of the first frame
        that is learned from. Columns of frames are found by name, whatever their order.
    max_waiting : int
        How many decisions wait for labels by id at most; one more, and the oldest is forgotten.
    max_age : int, optional
        Decisions are forgotten, too, when more rows than that were decided by id since.

    Examples
    --------
    >>> import omma
    >>> learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), n_labels=3)
    >>> learner.predict([0.9, 0.2, 0.0])
    array([1, 0, 0], dtype=int8)
    >>> learner.update([1, 0, 1])
    >>> learner.counts
    Counts(n=1, tp=[1. 0. 0.], predicted=[1. 0. 0.], positive=[1. 0. 1.])
    """

    def __init__(
        self,
        policy: Policy,
        n_labels: int,
        *,
        metric: str | Metric | None = None,
        gap: bool = False,
        names: Sequence[str] | None = None,
        max_waiting: int = 10_000,
        max_age: int | None = None,
    ) -> None:
        if not isinstance(policy, LinearPolicy):
            raise TypeError(
                "policy of OnlineClassifier must be a policy, such as omma.OMMA('macro_f1'), got "
                f"{shown(policy)}{saved.fit_first(policy)}"
            )
        check_positive_int("OnlineClassifier", "n_labels", n_labels)
        self.policy = policy
        self.n_labels = int(n_labels)
        self.names = read_names("OnlineClassifier", names, self.n_labels) or policy.names
        self.metric = policy.objective if metric is None else find_metric(metric)
        if self.metric is not None:
            self.metric.check_labels(self.n_labels)
        self.state = policy.init(self.n_labels)
        keeps_pairs = self.metric is not None and self.metric.needs_matrix
        self._pairs = np.zeros((n_labels, n_labels)) if keeps_pairs else None
        self._certificate = self._certify() if gap else None
        self._last: Decided | None = None
        self._pending = Pending(self.n_labels, limit=max_waiting, max_age=max_age)
        self._refusals = Refusals()
        self._seen: Seen | None = None  # at the last call of stats
        self._prepare()

    def _prepare(self) -> None:
        """What is made again wherever the learner is unpacked."""
        self._stepper = self.policy.stepper(self.n_labels)
        self._lock = threading.RLock()  # counting is one thing at a time; deciding needs none
        one_each = self.metric is not None and self.metric.single_label
        soft, judged = self.state.labels is not None, self._certificate is not None
        self._task = Task(self.policy, self.metric, self.n_labels, soft)
        self._keeps = self.policy.needs_eta or judged
        # What is counted when a row is decided need not wait with it.
        self._keeps_late = judged or (self.policy.needs_eta and not soft)
        self._pending.evicted = self._forgotten
        self._row_shape = (self.n_labels,)
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

    @property
    def counts(self) -> Counts:
        """True labels against predictions so far, without prior."""
        with self._lock:
            counts = counts_of(self.state)
            counts.matrix = None if self._pairs is None else self._pairs.copy()
        return counts

    @property
    def value(self) -> float | None:
        """The metric of what was counted so far; None before the first counted row."""
        if self.metric is None:
            raise ValueError(
                f"{self.policy!r} has no metric of its own: pass metric= to OnlineClassifier"
            )
        counts = self.counts
        return self.metric.value(counts) if counts.n > 0 else None

    def _certify(self) -> Certificate:
        if self.metric is None:
            raise ValueError(
                f"gap of OnlineClassifier needs a metric, and {self.policy!r} has none of its own: "
                "pass metric="
            )
        return Certificate("OnlineClassifier", self.metric, self.policy.budget, self.n_labels)

    @property
    def gap(self) -> Gap | None:
        """What could still be gained, with its standard error; see the page on the certificate.

        None where ``gap=True`` did not ask for it, and before some twenty rows of some
        weight.

        >>> import omma
        >>> eta, y = omma.datasets.long_tail(n=500, m=5, seed=0)
        >>> policy = omma.Threshold(0.5)
        >>> learner = omma.OnlineClassifier(policy, 5, metric="macro_gmean", gap=True)
        >>> for row, true in zip(eta, y):
        ...     prediction = learner.predict(row)
        ...     learner.update(true)
        >>> learner.gap.interval[0] > 0  # 0.5 is the wrong threshold for it
        True
        >>> learner.gap.heuristic
        False
        """
        return None if self._certificate is None else self._certificate.gap(self.value)

    @property
    def rule(self) -> Rule:
        """The rule by which the next row is decided."""
        return self.policy.rule(self.state).named(self.names)

    def stats(self) -> dict[str, Any]:
        """How it goes, as plain data: what was decided, learned, lost and refused, and the value.

        ``recent_value`` and ``moved`` look at what came since the last call. ``rows`` is what
        decisions look at, ``labels`` what the value is of, both by weight; ``decided``, ``waiting``
        and ``dropped`` are rows with ids. ``calibration_error`` is known with
        ``feedback="estimates"`` where no labels are missing.

        >>> import omma
        >>> learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), n_labels=2, names=["a", "b"])
        >>> prediction = learner.predict([0.9, 0.2], id="first")
        >>> learner.update([1, 0], id="first")
        >>> stats = learner.stats()
        >>> stats["labels"], stats["waiting"], stats["recent_value"]
        (1.0, 0, 0.5)
        """
        with self._lock:
            counts, rule, pending = self.counts, self.rule, self._pending
            before = self._seen
            if before is None:
                fresh = self.policy.init(self.n_labels)
                before = Seen(Counts.zeros(self.n_labels), self.policy.rule(fresh))
            self._seen = Seen(counts, rule)
            return {
                "rows": self.state.rows,
                "labels": counts.n,
                "decided": pending.decided,
                "waiting": len(pending),
                "dropped": pending.forgotten,
                "refused": dict(self._refusals.counts),
                "value": None if self.metric is None else self.value,
                "recent_value": recent_value(self.metric, counts, before.counts),
                "moved": moved_most(rule, before.rule),
                "calibration_error": calibration_error(self.state),
            }

    # Deciding

    def predict(self, eta: Any, *, id: Id | None = None, ids: Any = None) -> Any:  # noqa: A002
        """Decide one row, or each row of a matrix on the present counts.

        Without an id nothing is changed: what is decided waits for its labels until the next is
        asked for, and a learner may be asked from several threads at once. With an id the decision
        waits for ``update`` with the same id, whenever that comes; with ``feedback="estimates"``
        its probabilities are counted at once, and only the judgement waits for labels.

        Parameters
        ----------
        eta : array-like of shape (m,) or (n, m), sparse matrix of shape (n, m), frame or tensor
            A pandas series is one row, indexed by the names of labels.
        id : str or int, optional
            The id of the row.
        ids : sequence of str or int, optional
            The ids of several rows. If one is refused, nothing is decided.

        Returns
        -------
        int8 indicators of the same shape: a sparse matrix, frame or tensor where eta is one.

        Examples
        --------
        >>> import omma
        >>> learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), n_labels=2)
        >>> learner.predict([[0.9, 0.2], [0.4, 0.8]], ids=["a", "b"])
        array([[1, 0],
               [0, 1]], dtype=int8)
        >>> learner.update([0, 1], id="b")
        >>> learner.update([1, 0], id="a")
        >>> learner.counts.n
        2.0
        """
        if id is not None or ids is not None:
            return self._predict_late(eta, id, ids)
        if type(eta) is np.ndarray and eta.dtype is FLOAT64 and eta.shape == self._row_shape:
            if eta.flags.carray:  # the usual case: nothing is to be converted
                chosen = self._stepper.decide(self.state, eta)
                kept = eta.copy() if self._keeps else None
                self._last = tuple.__new__(Decided, (chosen, kept, None, False, None, False))
                return chosen.copy()
        elif type(eta) is not np.ndarray and is_foreign(eta):
            self._last, answer = self._decide_opened(eta)
            return answer
        self._last, answer = self._decide(eta)
        return answer

    def _decide(self, eta: Any) -> tuple[Decided, Any]:
        """Decide what NumPy or SciPy holds; what is kept is a copy: buffers may be used again."""
        m, keeps = self.n_labels, self._keeps
        stored = None if type(eta) is np.ndarray else stored_of(eta, m)
        if stored is not None:
            try:
                chosen = self._stepper.decide(self.state, stored)
            except UnsortedError:
                stored = sparse_row("predict", eta, m)
                chosen = self._stepper.decide(self.state, stored)
            pair = (stored[0].copy(), stored[1].copy()) if keeps else None
            answer = indicated_row(chosen, m, type(eta))
            return Decided(chosen, pair, thin=True), answer
        row = single_row("predict", eta, m)
        if row is None:
            prediction = self.policy.decide_rows(self.state, eta)
            return Decided(prediction, _copied(eta) if keeps else None), prediction.copy()
        chosen = self._stepper.decide(self.state, row)
        if isinstance(row, tuple):
            kind = type(eta.tocsr())
            return Decided(chosen, row if keeps else None, thin=True), indicated_row(
                chosen, m, kind
            )
        decided = Decided(chosen, row.copy() if keeps else None)
        if m == 1 and np.ndim(eta) == 0:
            return decided, np.int8(chosen[0])
        return decided, chosen.copy()

    def _decide_opened(self, eta: Any) -> tuple[Decided, Any]:
        """Decide what another library made, and answer in its own kind."""
        table = self._opened("predict", "eta", eta)
        found, answer = self._decide(table.values)
        rows = 1 if found.thin else len(as_table(found.prediction))
        index = self._rows_index(eta, rows)
        decided = found._replace(names=table.names, moved=table.moved, index=index)
        return decided, table.close(answer)

    def _opened(self, owner: str, parameter: str, given: Any, row: bool = True) -> Opened:
        """What was given, in the order of the names; a series is one row of several labels."""
        names = self.names
        if names is None and self._last is not None:
            names = self._last.names  # they count once the row is learned
        return opened(owner, parameter, given, names, row=row and self.n_labels > 1)

    def _rows_index(self, given: Any, rows: int) -> Any:
        """The index of rows; that of one row as a series holds names of labels."""
        if self.n_labels > 1 and rows == 1 and not hasattr(given, "columns"):
            return None
        return index_of(given)

    def _predict_late(self, eta: Any, one: Any, several: Any) -> Any:
        """Decide rows whose labels will come by their ids."""
        with self._lock, self._refusals:
            keys = read_ids("predict", one, several)
            for key in keys:
                self._pending.check_free(key)
            foreign = type(eta) is not np.ndarray and is_foreign(eta)
            decided, answer = self._decide_opened(eta) if foreign else self._decide(eta)
            rows = rows_of(decided, self.n_labels)
            check_as_many("predict", "eta", len(rows), keys)
            if foreign:
                self._take_names(decided.names)
            if self._journal is not None:
                self._journal.write(events.decided(keys, rows, decided.moved, self.n_labels))
            for key, (chosen, row) in zip(keys, rows, strict=True):
                self._wait(key, chosen, row, decided.moved)
        return answer

    def _wait(self, key: Id, chosen: NDArray[Any], row: Row | None, moved: bool) -> None:
        """Remember one decision; where decisions look at probabilities, these count now."""
        if self.state.labels is not None:
            self._stepper.count(self.state, row, None, chosen, 1.0)
        else:
            self._stepper.drew(self.state)
        kept = row if self._keeps_late else None
        self._pending.put(key, kept, chosen, sparse=chosen.dtype == np.int32, moved=moved)

    def _forgotten(self, key: Id, decision: Decision) -> None:
        """A decision whose labels never came: what could be gained is still seen from estimates."""
        if self._certificate is not None and self.state.labels is not None:
            assert decision.eta is not None
            self._certificate.step(decision.eta, None, decision.weight)

    @property
    def waiting(self) -> Pending:
        """The decisions that wait for their labels by id: to be looked at, not to be changed.

        >>> import omma
        >>> learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), n_labels=2, max_waiting=2)
        >>> for name in ("a", "b", "c"):
        ...     prediction = learner.predict([0.9, 0.2], id=name)
        >>> list(learner.waiting), learner.waiting.forgotten
        (['b', 'c'], 1)
        """
        return self._pending

    # Learning

    def update(
        self,
        y: Any = None,
        *,
        prediction: Any = None,
        eta: Any = None,
        weight: float | ArrayLike = 1.0,
        id: Id | None = None,  # noqa: A002
        ids: Any = None,
    ) -> None:
        """Learn the true labels of the row that was predicted last, or of one predicted earlier.

        Parameters
        ----------
        y : array-like, sparse matrix, or class id
            True labels: indicators in the shape of the prediction; or a class id for one row and a
            vector of class ids for several: places, or the names of labels where these are known
            and are text or whole numbers. It may be left out with ``feedback="estimates"``.
            Several rows of pandas must have the index of what was predicted, in its order.
        prediction : optional
            A prediction made earlier, for labels that come late; default the last one.
        eta : optional
            Its probabilities, needed with ``feedback="estimates"`` where ``prediction`` is given.
        weight : float, or array-like for several rows
            A row of weight w counts as w rows. With ``feedback="estimates"`` and an id it must be
            1, the weight with which the probabilities were counted.
        id : str or int, optional
            The id with which the row was predicted; see ``predict``.
        ids : sequence of str or int, optional
            The ids of several rows, in the order of ``y``. If one is refused, none is counted.
        """
        with self._lock:
            if id is not None or ids is not None:
                with self._refusals:
                    if ids is not None or not self._update_waiting(y, id, prediction, eta, weight):
                        keys = read_ids("update", id, ids)
                        self._update_late(y, keys, prediction, eta, weight)
            elif not self._update_fast(y, prediction, eta, weight):
                self._update_any(y, prediction, eta, weight)

    def _update_fast(self, y: Any, prediction: Any, eta: Any, weight: Any) -> bool:
        """Count one row of arrays, the usual case; False, and nothing done, leaves it to others."""
        last, m = self._last, self.n_labels
        if not self._plain or type(weight) is not float or not 0.0 <= weight <= HEAVIEST:
            return False
        late = prediction is not None
        if not late:
            if last is None or last.names is not None or eta is not None:
                return False
            if last.thin:
                return self._update_thin(last, y, weight)
            prediction, eta = last.prediction, last.eta
        if type(prediction) is not np.ndarray or prediction.shape != (m,):
            return False
        if self._keeps and (type(eta) is not np.ndarray or eta.shape != (m,)):
            return False
        true = self._indicators_fast(y)
        if true is None or prediction.dtype.char != "b":
            return False
        if self._keeps and (late or eta.dtype.char != "d"):
            eta = probability_rows("update", eta, False, m)[0]
        self._stepper.count(self.state, eta, true, prediction, weight)
        if not late:
            self._last = None
        return True

    def _update_thin(self, last: Decided, y: Any, weight: float) -> bool:
        """The same for one sparse row."""
        true = true_ids(y, self.n_labels)
        if true is None:
            return False
        self._stepper.count(self.state, last.eta, true, last.prediction, weight)
        self._last = None
        return True

    def _update_waiting(self, y: Any, key: Any, prediction: Any, eta: Any, weight: Any) -> bool:
        """The same for one row that waited under its id."""
        known = prediction is None and eta is None and type(weight) is float
        soft = self.state.labels is not None
        if not self._plain or not known or not 0.0 <= weight <= (1.0 if soft else HEAVIEST):
            return False
        waited = self._pending.get(key)
        true = true_ids(y, self.n_labels) if waited.sparse else self._indicators_fast(y)
        if true is None or waited.moved or (soft and weight != 1.0):
            return False
        chosen = waited.prediction
        self._stepper.count(self.state, waited.eta, true, chosen, weight, late=True)
        self._pending.drop(key)
        return True

    def _indicators_fast(self, y: Any) -> NDArray[np.float64] | None:
        """One row of indicators, or the id of its class, as float64; None leaves it to others."""
        m = self.n_labels
        if type(y) is int and m > 1 and self.names is None and self.policy.budget is not None:
            if not 0 <= y < m:
                return None
            true = np.zeros(m)
            true[y] = 1.0
            return true
        if type(y) is list and len(y) == m > 1:
            y = np.array(y)
        if type(y) is not np.ndarray or y.shape != self._row_shape or y.dtype.kind not in "fiub":
            return None
        return y.astype(FLOAT64)  # its own memory: kernels take no read-only array

    def _update_any(self, y: Any, prediction: Any, eta: Any, weight: Any) -> None:
        late, last = prediction is not None, self._last
        if not late and last is None:
            raise ValueError(
                "update of OnlineClassifier must come after predict, or be given prediction="
            )
        frames = {"prediction": prediction, "eta": eta, "y": y, "weight": weight}
        first = self._opened("update", "prediction", prediction)
        second = self._opened("update", "eta", eta)
        if late or last is None:
            given = Decided(first.values, second.values)
        else:
            given = last.as_matrix(self.n_labels)
            if eta is not None:
                given = given._replace(eta=second.values)
        count = len(as_table(given.prediction))
        self._check_index(frames, count, given.index)
        moved = first.moved or second.moved or given.moved
        true, names = self._true(y, count, moved)
        task = self._task
        steps = read_steps(task, true, given.eta, given.prediction, weight, keeps=self._keeps)
        self._take_names(names)
        if self._journal is not None:
            self._journal.write(events.counted(steps, self.n_labels))
        for step in steps:
            self._count(step)
        if not late:
            self._last = None

    def _take_names(self, names: Names | None) -> None:
        if names != self.names and self._journal is not None:
            self._journal.write(events.named(names))
        self.names = names

    def _true(self, y: Any, count: int, moved: bool) -> tuple[Any, Names | None]:
        """True labels in the order of the learner's own, and the names of all."""
        labels = self._opened("update", "y", y, row=count == 1)
        true = labels.values
        if are_ids(true, count, self.n_labels) and by_name(true, labels.names):
            true, moved = numbered("update", "y", true, labels.names), False
        check_order("update", moved, labels)
        return true, labels.names

    def _check_index(self, frames: dict[str, Any], rows: int, decided: Any) -> None:
        """Refuse frames that pandas would pair otherwise; what is decided last has its index."""
        found = {name: self._rows_index(one, rows) for name, one in frames.items()}
        if frames["prediction"] is None:
            found = {**found, "prediction": decided}
        known = {name: index for name, index in found.items() if index is not None}
        check_same_indexes("update", known)

    def _update_late(
        self, y: Any, keys: list[Id], prediction: Any, eta: Any, weight: Any
    ) -> None:
        """Count decisions that waited under their ids; all is checked before one is taken."""
        if prediction is not None or eta is not None or y is None:
            raise ValueError(
                "update with an id must be given y, and neither prediction nor eta, which it knows"
            )
        decisions = [self._pending.get(key) for key in keys]
        soft, count = self.state.labels is not None, len(keys)
        true, names = self._true(y, count, any(one.moved for one in decisions))
        weights = weights_of(weight, count)
        if soft and weights != [1.0] * count:
            raise ValueError(
                "weight of update must be 1 with an id and feedback='estimates': the probabilities "
                f"were counted when the row was decided, got {shown(weight)}"
            )
        dense, thin = (
            true_rows(self._task, true, count, kind)
            if any(one.sparse == kind for one in decisions)
            else []
            for kind in (False, True)
        )
        check_as_many("update", "y", len(dense or thin), keys)
        steps = [
            Step(None, (thin if one.sparse else dense)[place], one.prediction, weights[place])
            for place, one in enumerate(decisions)
        ]
        self._take_names(names)
        if self._journal is not None:
            self._journal.write(events.labelled(keys, steps, self.n_labels))
        for key, step in zip(keys, steps, strict=True):
            self._settle(key, step.true, step.weight)

    def _settle(self, key: Id, true: NDArray[Any], weight: float) -> None:
        """Count the labels of one decision that waited."""
        one = self._pending.take(key)
        self._count(Step(one.eta, true, one.prediction, weight), late=True)

    def _count(self, step: Step, late: bool = False) -> None:
        row, true, chosen, weight = step
        self._stepper.count(self.state, row, true, chosen, weight, late=late)
        thin = chosen.dtype == np.int32
        if self._pairs is not None and true is not None:
            ids = chosen if thin else np.flatnonzero(chosen)
            which = true if thin else np.flatnonzero(true)
            self._pairs[np.ix_(which, ids)] += weight
        if self._certificate is not None and row is not None:
            dense = true is not None and not isinstance(row, tuple)
            ids = np.flatnonzero(true).astype(np.int32) if dense else true
            self._certificate.step(row, ids, weight)

    def merge(self, counts: Counts, estimates: Counts | None = None) -> None:
        """Add what was counted elsewhere, as by a learner on another machine.

        Of ``gap`` only the value changes: what is attainable is estimated on this learner's rows.

        Parameters
        ----------
        counts : Counts
            True labels against predictions, such as ``other.counts``.
        estimates : Counts, optional
            Probabilities against predictions, needed with ``feedback="estimates"``.

        >>> import omma
        >>> learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), n_labels=2)
        >>> learner.merge(omma.Counts([3, 1], [4, 4], [5, 2], 20))
        >>> learner.rule.thresholds.round(3)
        array([0.333, 0.167])
        """
        if type(self.state) is not State:
            raise TypeError(f"merge of OnlineClassifier cannot add to what {self.policy!r} keeps")
        soft = estimates_of(self.state)
        if soft is not None and estimates is None:
            raise ValueError("estimates of merge must be given with feedback='estimates'")
        if self._pairs is not None and counts.matrix is None:
            raise ValueError(f"counts of merge must have a matrix for {self.metric!r}, got none")
        # All that can go wrong is done before anything is changed.
        with self._lock:
            soft = estimates_of(self.state)  # with the lock, or what others count is lost
            true = self.counts + counts
            own = true if soft is None or estimates is None else soft + estimates
            made = state_of(own)
            made.labels = None if soft is None else state_of(true)
            if soft is not None and own == soft:  # added up anew, sums may differ in a last digit
                made.cells, made.totals = self.state.cells, self.state.totals
            self.state.restore({name: one.copy() for name, one in made.arrays().items()})
            if self._pairs is not None and true.matrix is not None:
                self._pairs[...] = true.matrix
            if self._journal is not None:
                self._journal.cut()

    def save(self, path: str | Path) -> None:
        """Write the learner to a file, whole or not at all. It holds no code.

        What was decided and waits for its labels is part of it. A metric of your own cannot be
        saved: pass it to ``load`` again.
        """
        with self._lock:
            saved.write(path, self)

    @classmethod
    def load(cls, path: str | Path, *, metric: Metric | None = None) -> OnlineClassifier:
        """Read a learner that ``save`` wrote; safe to use on files from strangers.

        Parameters
        ----------
        path : str or Path
        metric : Metric, optional
            The metric that decides, or judges, where it is a function of your own.
        """
        return saved.read(cls, path, metric)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        for made_again in ("_stepper", "_lock", "_task", "_journal"):
            del state[made_again]
        pending = self._pending
        state["_pending"] = (pending.arrays(), pending.limit, pending.max_age)
        if self._last is not None:  # an index would need pandas where it is read
            state["_last"] = self._last._replace(index=None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        arrays, limit, max_age = state["_pending"]
        waiting = Pending.from_arrays(arrays, state["n_labels"], limit=limit, max_age=max_age)
        self.__dict__.update({**state, "_pending": waiting})
        self._prepare()

    def wait_for(self, pending: Pending) -> None:
        """Let these decisions wait, as they were read from a file."""
        self._pending = pending
        pending.evicted = self._forgotten

    def __repr__(self) -> str:
        counted = f"{self.state.truth.rows:g} rows counted"
        return f"<online classifier of {self.policy!r}, {self.n_labels} labels, {counted}>"


def _copied(values: Any) -> Any:
    return values.copy() if sparse.issparse(values) else np.array(values)
