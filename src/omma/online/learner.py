"""A policy and its state in one object, for those who serve one row at a time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from omma._candidates import candidates_of, warn_of_row, warn_of_rows
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
from omma._row import (
    Row,
    are_ids,
    as_sparse,
    as_table,
    indicator_rows,
    one_hot,
    probability_rows,
    single_row,
)
from omma._rows import read_numbers, read_probabilities, read_weights
from omma._validate import check_number, check_positive_int, shown
from omma.certificate import Certificate
from omma.counts import Counts, counts_of, estimates_of, state_of
from omma.gap import Gap
from omma.metrics import Metric, metric as find_metric
from omma.online import saved
from omma.policies import LinearPolicy, Policy
from omma.rule import Rule
from omma.state import State

LOOKS = 1000  # questions of a learner that are looked at for want of candidates
HEAVIEST = 1e100  # a row may weigh; sums of squares of such weights are still numbers


@dataclass(frozen=True)
class Decision:
    """What was decided and waits for its labels.

    ``eta`` is kept where the policy learns from it; ``names``, ``moved`` and ``index`` say how the
    frame that it came in was laid out.
    """

    prediction: Any
    eta: Any = None
    names: Names | None = None
    moved: bool = False
    index: Any = None


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
        self._last: Decision | None = None
        self._prepare()

    def _prepare(self) -> None:
        """What is made again wherever the learner is unpacked."""
        self._stepper = self.policy.stepper(self.n_labels)
        self._lock = threading.RLock()  # counting is one thing at a time; deciding needs none
        one_each = self.metric is not None and self.metric.single_label
        self._keeps = self.policy.needs_eta or self._certificate is not None
        # With costs every label is a candidate; with k = m every label is predicted.
        k = self.policy.budget
        costs = self.metric is not None and self.metric.needs_matrix
        self._looks = 0 if k is None or k >= self.n_labels or costs else LOOKS
        # Whether a row is counted by one call of a kernel.
        self._plain = not (one_each or self._pairs is not None or self._certificate is not None)

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

    # Deciding

    def predict(self, eta: Any) -> Any:
        """Decide one row, or each row of a matrix on the present counts. Asking changes nothing.

        What is decided waits for its labels until the next is asked for. A learner may be asked
        from several threads at once. Where one of the first 1,000 questions has fewer than k
        labels of probability above zero, a warning says so once: the lowest others fill up.

        Parameters
        ----------
        eta : array-like of shape (m,) or (n, m), sparse matrix of shape (n, m), frame or tensor
            A pandas series is one row, indexed by the names of labels.

        Returns
        -------
        int8 indicators of the same shape: a sparse matrix, frame or tensor where eta is one.
        """
        if type(eta) is not np.ndarray and is_foreign(eta):
            return self._predict_opened(eta)
        self._last = decision = self._decide(eta)
        prediction = decision.prediction
        if np.ndim(eta) == 0 and not sparse.issparse(eta):
            return np.int8(prediction[0])
        return prediction.copy()

    def _decide(self, eta: Any) -> Decision:
        """Decide what NumPy or SciPy holds; what is kept is a copy: buffers may be used again."""
        row = single_row("predict", eta, self.n_labels)
        if self._looks:
            self._look(eta, row)
        if row is None:
            prediction = self.policy.decide_rows(self.state, eta)
            return Decision(prediction, _copied(eta) if self._keeps else None)
        chosen = self._stepper.decide(self.state, row)
        if isinstance(row, tuple):
            prediction = as_sparse([chosen], self.n_labels, type(eta.tocsr()))
            return Decision(prediction, eta.copy() if self._keeps else None)
        return Decision(chosen, row.copy() if self._keeps else None)

    def _look(self, eta: Any, row: Row | None) -> None:
        """Say once where a budget exceeds the candidates; only the first rows are looked at."""
        k = self.policy.budget
        assert k is not None
        self._looks -= 1
        if row is None:
            if warn_of_rows("predict", read_probabilities("predict", eta), k, stacklevel=5):
                self._looks = 0
        elif (found := candidates_of(row)) < k:
            self._looks = 0
            warn_of_row("predict", found, k)

    def _predict_opened(self, eta: Any) -> Any:
        """Decide what another library made, and answer in its own kind."""
        table = self._opened("predict", "eta", eta)
        found = self._decide(table.values)
        index = self._rows_index(eta, len(as_table(found.prediction)))
        self._last = Decision(found.prediction, found.eta, table.names, table.moved, index)
        return table.close(found.prediction.copy())

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

    # Learning

    def update(
        self,
        y: Any = None,
        *,
        prediction: Any = None,
        eta: Any = None,
        weight: float | ArrayLike = 1.0,
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
            A row of weight w counts as w rows.
        """
        with self._lock:
            if not self._update_fast(y, prediction, eta, weight):
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
            prediction, eta = last.prediction, last.eta
        if type(prediction) is not np.ndarray or prediction.shape != (m,):
            return False
        if self._keeps and (type(eta) is not np.ndarray or eta.shape != (m,)):
            return False
        true = self._indicators_fast(y)
        if true is None or prediction.dtype != np.int8:
            return False
        if self._keeps and (late or eta.dtype != np.float64):
            eta = probability_rows("update", eta, False, m)[0]
        self._stepper.count(self.state, eta, true, prediction, weight)
        if not late:
            self._last = None
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
        if type(y) is not np.ndarray or y.shape != (m,) or y.dtype.kind not in "fiub":
            return None
        return y.astype(np.float64)  # its own memory: kernels take no read-only array

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
            given = Decision(first.values, second.values)
        elif eta is None:
            given = last
        else:
            given = Decision(last.prediction, second.values, last.names, last.moved, last.index)
        count = len(as_table(given.prediction))
        self._check_index(frames, count, given.index)
        labels = self._opened("update", "y", y, row=count == 1)
        moved = first.moved or second.moved or given.moved
        true = labels.values
        if are_ids(true, count, self.n_labels) and by_name(true, labels.names):
            true, moved = numbered("update", "y", true, labels.names), False
        check_order("update", moved, labels)
        steps = self._steps(true, given.eta, given.prediction, weight)
        for row, of_row, chosen, row_weight in steps:
            self._count(row, of_row, chosen, row_weight)
        self.names = labels.names
        if not late:
            self._last = None

    def _check_index(self, frames: dict[str, Any], rows: int, decided: Any) -> None:
        """Refuse frames that pandas would pair otherwise; what is decided last has its index."""
        found = {name: self._rows_index(one, rows) for name, one in frames.items()}
        if frames["prediction"] is None:
            found = {**found, "prediction": decided}
        known = {name: index for name, index in found.items() if index is not None}
        check_same_indexes("update", known)

    def _steps(
        self, y: Any, eta: Any, prediction: Any, weight: Any
    ) -> list[tuple[Row | None, Any, NDArray[Any], float]]:
        """Everything that an update will count, checked, in the form that the kernels take."""
        thin, m = sparse.issparse(prediction), self.n_labels
        chosen = indicator_rows("update", "prediction", prediction, np.int8, thin, m)
        rows: Sequence[Row | None] = [None] * len(chosen)
        if eta is not None:
            rows = probability_rows("update", eta, thin, m)
        elif self._keeps:
            why = "which learns from it" if self.policy.needs_eta else "whose gap needs it"
            raise ValueError(
                f"eta of update must be given with prediction= for {self.policy!r}, {why}"
            )
        true = self._true_rows(y, len(chosen), thin)
        if not len(rows) == len(true) == len(chosen):
            raise ValueError(
                f"y, eta and prediction of update must have as many rows, got {len(true)}, "
                f"{len(rows)} and {len(chosen)}"
            )
        weights = read_numbers("update", "weight", weight).ravel()
        if len(weights) == 1:
            check_number("update", "weight", weights[0].item(), low=0.0, high=HEAVIEST)
            weights = np.repeat(weights, len(chosen))
        else:
            weights = read_weights("update", weights, len(chosen), "weight")
            check_number("update", "weight", float(weights.max(initial=0.0)), high=HEAVIEST)
        return list(zip(rows, true, chosen, weights.tolist(), strict=True))

    def _true_rows(self, y: Any, count: int, thin: bool) -> list[Any]:
        """True labels of each row, None where they are unknown."""
        if y is None:
            if self.policy.needs_labels or self.state.labels is None:
                raise ValueError(
                    "y of update must be given: only feedback='estimates' learns without labels"
                )
            return [None] * count
        if are_ids(y, count, self.n_labels):
            y = one_hot("update", np.atleast_1d(y), self.n_labels, self.policy.budget)
        rows = indicator_rows("update", "y", y, np.float64, thin, self.n_labels)
        if self.metric is not None and self.metric.single_label:
            for row in rows:
                found = len(row) if thin else int(row.sum())
                if found != 1:
                    raise ValueError(
                        f"y of update must have exactly one label a row for {self.metric.name}, "
                        f"got {found}"
                    )
        return rows

    def _count(self, row: Row | None, true: Any, chosen: NDArray[Any], weight: float) -> None:
        self._stepper.count(self.state, row, true, chosen, weight)
        thin = isinstance(row, tuple)
        if self._pairs is not None and true is not None:
            ids = chosen if chosen.dtype == np.int32 else np.flatnonzero(chosen)
            which = true if chosen.dtype == np.int32 else np.flatnonzero(true)
            self._pairs[np.ix_(which, ids)] += weight
        if self._certificate is not None and row is not None:
            dense = true is not None and not thin
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
        true = self.counts + counts
        own = true if soft is None or estimates is None else soft + estimates
        made = state_of(own)
        made.labels = None if soft is None else state_of(true)
        with self._lock:
            self.state.restore(made.arrays())
            if self._pairs is not None and true.matrix is not None:
                self._pairs[...] = true.matrix

    def save(self, path: str | Path) -> None:
        """Write the learner to a file, whole or not at all. It holds no code.

        What was decided last and waits for its labels is part of it. A metric of your own cannot be
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
        for made_again in ("_stepper", "_lock"):
            del state[made_again]
        if self._last is not None:  # an index would need pandas where it is read
            last = self._last
            state["_last"] = Decision(last.prediction, last.eta, last.names, last.moved)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()

    def __repr__(self) -> str:
        counted = f"{self.state.truth.rows:g} rows counted"
        return f"<online classifier of {self.policy!r}, {self.n_labels} labels, {counted}>"


def _copied(values: Any) -> Any:
    return values.copy() if sparse.issparse(values) else np.array(values)
