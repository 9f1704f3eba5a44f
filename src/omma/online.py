"""A policy and its state in one object, for those who serve one row at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from omma import _saved
from omma._frames import (
    Opened,
    by_name,
    check_order,
    is_foreign,
    numbered,
    opened,
    read_names,
)
from omma._given import (
    Row,
    are_ids,
    as_sparse,
    as_table,
    indicator_rows,
    one_hot,
    probability_rows,
    single_row,
)
from omma._index import check_same_indexes, index_of
from omma._rows import read_numbers, read_weights
from omma._run import NO_LABELS, NO_NUMBERS, State
from omma._validate import check_number, check_positive_int, shown
from omma.certificate import Certificate
from omma.counts import Counts
from omma.evaluation import counts_of
from omma.gap import Gap
from omma.metrics import Metric, metric as find_metric
from omma.metrics.base import state_of
from omma.policies import LinearPolicy, Policy, policy_from_json
from omma.rule import Rule


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
                f"{shown(policy)}"
            )
        check_positive_int("OnlineClassifier", "n_labels", n_labels)
        self.policy = policy
        self.n_labels = int(n_labels)
        self.names = read_names("OnlineClassifier", names, self.n_labels) or policy.names
        self._offered = self.names  # by the frame predicted last; they count once it is learned
        self._moved = False  # whether the columns of that frame were in another order
        self._index: Any = None  # of its rows, where pandas gave them one
        self.metric = policy.objective if metric is None else find_metric(metric)
        if self.metric is not None:
            self.metric.check_labels(self.n_labels)
        self.state = policy.init(self.n_labels)
        self._soft = policy.feedback == "estimates"
        self._truth = State.zeros(self.n_labels) if self._soft else self.state
        keeps_pairs = self.metric is not None and self.metric.needs_matrix
        self._pairs = np.zeros((n_labels, n_labels)) if keeps_pairs else None
        needs_one = self.metric is not None and self.metric.single_label
        self._certificate = self._certify() if gap else None
        self._keeps = policy.needs_eta or gap
        self._plain = not (self._keeps or needs_one)
        self._pending: tuple[Any, Any] | None = None
        self._stepper = policy.stepper(self.n_labels)

    @property
    def counts(self) -> Counts:
        """True labels against predictions so far, without prior."""
        counts = counts_of(self._truth)
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

    def predict(self, eta: Any) -> Any:
        """Decide one row, or each row of a matrix on the present counts. Asking changes nothing.

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
        self._moved, self._index = False, None
        row = single_row(eta, self.n_labels)
        if row is None:
            prediction = self.policy.decide_rows(self.state, eta)
            self._pending = (_copied(eta) if self._keeps else None, _copied(prediction))
            return prediction
        chosen = self._stepper.decide(self.state, row)
        if isinstance(row, tuple):
            prediction = as_sparse([chosen], self.n_labels, type(eta.tocsr()))
            self._pending = (_copied(eta) if self._keeps else None, prediction.copy())
            return prediction
        self._pending = (row.copy() if self._keeps else None, chosen)
        return np.int8(chosen[0]) if np.ndim(eta) == 0 else chosen.copy()

    def _predict_opened(self, eta: Any) -> Any:
        """Decide what another library made, and answer in its own kind."""
        table = self._opened("predict", "eta", eta)
        prediction = self.predict(table.values)
        self._offered, self._moved = table.names, table.moved
        self._index = self._rows_index(eta, len(as_table(prediction)))
        return table.close(prediction)

    def _opened(self, owner: str, parameter: str, given: Any, row: bool = True) -> Opened:
        """What was given, in the order of the names; a series is one row of several labels."""
        names = self.names or self._offered
        return opened(owner, parameter, given, names, row=row and self.n_labels > 1)

    def _opened_labels(self, y: Any, prediction: Any) -> Opened:
        """True labels of the rows predicted: a series is class ids where they are several."""
        return self._opened("update", "y", y, row=len(as_table(prediction)) == 1)

    def _rows_index(self, given: Any, rows: int) -> Any:
        """The index of rows; that of one row as a series holds names of labels."""
        if self.n_labels > 1 and rows == 1 and not hasattr(given, "columns"):
            return None
        return index_of(given)

    def _check_index(self, frames: dict[str, Any], rows: int, late: bool) -> None:
        """Refuse frames that pandas would pair otherwise; what is decided last has its index."""
        found = {name: self._rows_index(one, rows) for name, one in frames.items()}
        if not late:
            found = {**found, "prediction": self._index}
        known = {name: index for name, index in found.items() if index is not None}
        check_same_indexes("update", known)

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
        if prediction is None and eta is None and self._update_fast(y, weight):
            if self._offered is not self.names:
                self.names = self._offered
            return
        late = prediction is not None
        frames = {"prediction": prediction, "eta": eta, "y": y, "weight": weight}
        first, second = (
            self._opened("update", "prediction", prediction),
            self._opened("update", "eta", eta),
        )
        prediction, eta = first.values, second.values
        if late:
            given = (eta, prediction)
        elif self._pending is not None:
            given = self._pending if eta is None else (eta, self._pending[1])
        else:
            raise ValueError(
                "update of OnlineClassifier must come after predict, or be given prediction="
            )
        count = len(as_table(given[1]))
        self._check_index(frames, count, late)
        labels = self._opened_labels(y, given[1])
        moved = first.moved or second.moved or (self._moved and not late)
        true = labels.values
        if are_ids(true, count, self.n_labels) and by_name(true, labels.names):
            true, moved = numbered("update", "y", true, labels.names), False
        check_order("update", moved, labels)
        steps = self._steps(true, *given, weight)
        for row, true, chosen, row_weight in steps:
            self._count(row, true, chosen, row_weight)
        self.names = self._offered = labels.names
        if not late:
            self._pending = None

    def _update_fast(self, y: Any, weight: Any) -> bool:
        """Count the usual case, a row of indicators just predicted; False leaves it to others."""
        if type(y) is not np.ndarray or y.shape != (self.n_labels,):
            return False
        if self._moved or not self._plain:
            return False
        if self._pending is None or type(weight) is not float or not 0.0 <= weight < np.inf:
            return False
        chosen = self._pending[1]
        if type(chosen) is not np.ndarray or chosen.shape != y.shape or y.dtype.kind not in "fiub":
            return False
        true = y.astype(np.float64)
        self._stepper.count(self.state, self._stepper.scratch[0], true, chosen, weight)
        self._pending = None
        return True

    def _steps(
        self, y: Any, eta: Any, prediction: Any, weight: Any
    ) -> list[tuple[Row, Any, NDArray[Any], float]]:
        """Everything that an update will count, checked, in the form that the kernels take."""
        thin = sparse.issparse(prediction)
        chosen = indicator_rows("prediction", prediction, np.int8, thin, self.n_labels)
        if eta is None:
            if self._keeps:
                why = "which learns from it" if self.policy.needs_eta else "whose gap needs it"
                raise ValueError(
                    f"eta of update must be given with prediction= for {self.policy!r}, {why}"
                )
            nothing = (np.empty(0, dtype=np.int32), np.empty(0))
            rows = [nothing if thin else self._stepper.scratch[0]] * len(chosen)
        else:
            rows = probability_rows(eta, thin, self.n_labels)
        true = self._true_rows(y, len(chosen), thin)
        if not len(rows) == len(true) == len(chosen):
            raise ValueError(
                f"y, eta and prediction of update must have as many rows, got {len(true)}, "
                f"{len(rows)} and {len(chosen)}"
            )
        weights = read_numbers("update", "weight", weight).ravel()
        if len(weights) == 1:
            check_number("update", "weight", weights[0].item(), low=0.0)
            weights = np.repeat(weights, len(chosen))
        else:
            weights = read_weights("update", weights, len(chosen), "weight")
        return list(zip(rows, true, chosen, weights.tolist(), strict=True))

    def _true_rows(self, y: Any, count: int, thin: bool) -> list[Any]:
        """True labels of each row, None where they are unknown."""
        if y is None:
            if not self._soft:
                raise ValueError(
                    "y of update must be given: only feedback='estimates' learns without labels"
                )
            return [None] * count
        if are_ids(y, count, self.n_labels):
            y = one_hot(np.atleast_1d(y), self.n_labels, self.policy.budget)
        rows = indicator_rows("y", y, np.float64, thin, self.n_labels)
        if self.metric is not None and self.metric.single_label:
            for row in rows:
                found = len(row) if thin else int(row.sum())
                if found != 1:
                    raise ValueError(
                        f"y of update must have exactly one label a row for {self.metric.name}, "
                        f"got {found}"
                    )
        return rows

    def _count(self, row: Row, true: Any, chosen: NDArray[Any], weight: float) -> None:
        if true is not None:
            self._stepper.count(self._truth, row, true, chosen, weight, soft=False)
            if self._pairs is not None:
                ids = chosen if isinstance(row, tuple) else np.flatnonzero(chosen)
                which = true if isinstance(row, tuple) else np.flatnonzero(true)
                self._pairs[np.ix_(which, ids)] += weight
        if self._soft:
            nothing = NO_LABELS if isinstance(row, tuple) else NO_NUMBERS
            self._stepper.count(self.state, row, nothing, chosen, weight)
        if self._certificate is not None:
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
        if self._soft and estimates is None:
            raise ValueError("estimates of merge must be given with feedback='estimates'")
        if self._pairs is not None and counts.matrix is None:
            raise ValueError(f"counts of merge must have a matrix for {self.metric!r}, got none")
        true = self.counts + counts
        own = counts_of(self.state) + estimates if self._soft and estimates is not None else true
        self.state.restore(state_of(own).arrays())
        if self._soft:
            self._truth.restore(state_of(true).arrays())
        if self._pairs is not None:
            self._pairs[...] = true.matrix

    def save(self, path: str | Path) -> None:
        """Write the learner to a file, whole or not at all. It holds no code.

        A metric of your own cannot be saved: pass it to ``load`` again.
        """
        pending = {}
        if self._pending is not None:
            eta, prediction = self._pending
            pending = {**_saved.packed("eta", eta), **_saved.packed("prediction", prediction)}
        _saved.write(
            path,
            {
                "policy": self.policy.to_json(),
                "n_labels": self.n_labels,
                "gap": self._certificate is not None,
                "names": self.names,
                "metric": None
                if self.metric in (None, self.policy.objective)
                else self.metric.to_json(),
            },
            {
                **{f"state_{name}": found for name, found in self.state.arrays().items()},
                **{
                    f"truth_{name}": found
                    for name, found in (self._truth.arrays() if self._soft else {}).items()
                },
                **({} if self._pairs is None else {"pairs": self._pairs}),
                **{f"gap_{name}": found for name, found in self._gap_arrays().items()},
                **pending,
            },
        )

    def _gap_arrays(self) -> dict[str, NDArray[Any]]:
        return {} if self._certificate is None else self._certificate.arrays()

    @classmethod
    def load(cls, path: str | Path, *, metric: Metric | None = None) -> OnlineClassifier:
        """Read a learner that ``save`` wrote; safe to use on files from strangers.

        Parameters
        ----------
        path : str or Path
        metric : Metric, optional
            The metric that decides, or judges, where it is a function of your own.
        """
        content, arrays = _saved.read(path)
        own, judge = content["policy"], content.get("metric")
        given_for_judge = metric is not None and judge == metric.to_json()
        try:
            policy = policy_from_json(own, None if given_for_judge else metric)
            judged_by = metric if given_for_judge else _saved.metric_of(judge)
            learner = cls(
                policy,
                content["n_labels"],
                metric=judged_by,
                gap=bool(content.get("gap", False)),
                names=content.get("names"),
            )
        except TypeError as error:
            raise ValueError(f"{path} is not a whole omma learner: {error}") from error
        learner._restore(path, arrays)
        return learner

    def _restore(self, path: str | Path, arrays: dict[str, NDArray[Any]]) -> None:
        try:
            for name, state in (("state", self.state), ("truth", self._truth)):
                if name == "state" or self._soft:
                    state.restore(_under(f"{name}_", arrays))
            if self._pairs is not None:
                self._pairs[...] = arrays["pairs"]
            if self._certificate is not None:
                self._certificate.restore(_under("gap_", arrays))
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise ValueError(f"{path} is not a whole omma learner: {error}") from error
        prediction = _saved.unpacked("prediction", arrays)
        if prediction is not None:
            self._pending = (_saved.unpacked("eta", arrays), prediction)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        del state["_stepper"]  # scratch space and compiled code are made again
        state["_index"] = None  # it would need pandas where it is read
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if not self._soft:
            self._truth = self.state
        self._stepper = self.policy.stepper(self.n_labels)

    def __repr__(self) -> str:
        counted = f"{self._truth.totals[0]:g} rows counted"
        return f"<online classifier of {self.policy!r}, {self.n_labels} labels, {counted}>"


def _under(start: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin so, without that."""
    return {key.removeprefix(start): arrays[key] for key in arrays if key.startswith(start)}


def _copied(values: Any) -> Any:
    return values.copy() if sparse.issparse(values) else np.array(values)
