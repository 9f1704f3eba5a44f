"""How a learner decides whatever it is given."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from omma.online import events
from omma.online.counting import Counting
from omma.online.decided import Decided, indicated_row, stored_of
from omma.online.late import check_as_many, read_ids, rows_of
from omma.policies.stepper import UnsortedError
from omma.rows.frames import Opened, is_foreign, opened
from omma.rows.index import index_of
from omma.rows.row import as_table, single_row, sparse_row


class Deciding(Counting):
    """Decides arrays, sparse matrices and frames, with and without ids."""

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
            now = self._pending.now
            if self._journal is not None:
                told = events.decided(keys, rows, decided.moved, self.n_labels, now)
                self._journal.write(told)
            with self._pending.at(now):  # the moment that was written down
                for key, (chosen, row) in zip(keys, rows, strict=True):
                    self._wait(key, chosen, row, decided.moved)
        return answer


def _copied(values: Any) -> Any:
    return values.copy() if sparse.issparse(values) else np.array(values)
