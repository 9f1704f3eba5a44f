"""How a learner decides whatever it is given, and takes labels in."""

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import shown
from omma.online import events
from omma.online.counting import UNRECORDED, Counting
from omma.online.pending import Id, check_id, read_ids
from omma.online.steps import (
    Decided,
    Step,
    check_as_many,
    indicated_row,
    read_steps,
    rows_of,
    stored_of,
    true_ids,
    true_rows,
    weights_of,
)
from omma.policies.stepper import UnsortedError
from omma.rows.arrays import HEAVIEST
from omma.rows.frames import Names, Opened, by_name, check_order, is_foreign, numbered, opened
from omma.rows.index import check_same_indexes, index_of
from omma.rows.row import (
    are_ids,
    as_table,
    probability_rows,
    refuse_indicators,
    single_row,
    sparse_row,
)
from omma.rows.sets import indicators_of_sets, is_label_sets

FLOAT64 = np.dtype(np.float64)


class Learning(Counting):
    """Decides arrays, sparse matrices and frames, with and without ids, and reads their labels.

    These are of the last row, of one handed back, and of rows by their ids.
    """

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
            kept = None
            if keeps:
                kept = eta.copy() if sparse.issparse(eta) else np.array(eta)
            return Decided(prediction, kept), prediction.copy()
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
            now = self._pending.now
            told = (keys, rows, decided.moved, self.n_labels, now)
            # At the moment that is written down.
            with self._recorded(events.decided, *told), self._pending.at(now):
                for key, (chosen, row) in zip(keys, rows, strict=True):
                    self._wait(key, chosen, row, decided.moved)
        return answer

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
        if late and eta is not None and not self._keeps:
            return False  # nobody needs it, and nobody would look at it here
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
        if not self._simple or not known or not 0.0 <= weight <= (1.0 if soft else HEAVIEST):
            return False
        waited = self._pending.get(key)
        true = true_ids(y, self.n_labels) if waited.sparse else self._indicators_fast(y)
        if true is None or waited.moved or (soft and weight != 1.0):
            return False
        chosen = waited.prediction
        recorded: AbstractContextManager[None] = UNRECORDED
        if self._journal is not None:
            if not waited.sparse:  # what is written down must be right
                refuse_indicators("update", "y", true)
            steps, now = [Step(None, true, chosen, weight)], self._pending.now
            recorded = self._recorded(events.labelled, [check_id(key)], steps, self.n_labels, now)
        with recorded:
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
        made: NDArray[np.float64] = y.astype(FLOAT64)  # its own memory: kernels write to it
        return None if y.dtype.kind == "f" and np.isnan(made.dot(made)) else made

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
        with self._recorded(events.counted, steps, self.n_labels):
            for step in steps:
                self._count(step)
            if not late:
                self._last = None

    def _true(self, y: Any, count: int, moved: bool) -> tuple[Any, Names | None]:
        """True labels in the order of the learner's own, and the names of all."""
        labels = self._opened("update", "y", y, row=count == 1)
        true = labels.values
        if is_label_sets(true):
            true = indicators_of_sets("update", "y", true, None, self.n_labels)
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

    def _update_late(self, y: Any, keys: list[Id], prediction: Any, eta: Any, weight: Any) -> None:
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
        now = self._pending.now
        recorded = self._recorded(events.labelled, keys, steps, self.n_labels, now)
        with recorded, self._pending.at(now):  # none may grow too old now that all were found
            for key, step in zip(keys, steps, strict=True):
                self._settle(key, step.true, step.weight)
