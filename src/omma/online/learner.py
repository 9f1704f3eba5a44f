"""A policy and its state in one object, for those who serve one row at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from omma._candidates import warn_of_row, warn_of_rows
from omma._types import Arrays, Decisions, Frame, SparseMatrix
from omma._validate import check_number, check_positive_int, shown
from omma.certificate import Certificate, Gap
from omma.counts import Counts, counts_of, state_with
from omma.engine import UnsortedError
from omma.limits import LimitStatus, limit_statuses
from omma.metrics import Metric, metric as find_metric
from omma.metrics.names import MetricName
from omma.online import codec
from omma.online.codec import COUNTED, DECIDED, LABELLED, NAMED, Decision, Event, EventRow, Id
from omma.online.reading import (
    FLOAT64,
    check_as_many,
    csr_of_ids,
    decisions_of,
    indicators_of_names,
    labels_of,
    quick_csr_row,
    quick_indicators,
    quick_label_ids,
    refuse_two_columns,
    weights_of,
)
from omma.online.stats import html_of, stats_of
from omma.online.waiting import REFUSALS, Waiting, read_ids
from omma.policies import Policy
from omma.policies.base import check_is_policy
from omma.rows.arrays import HEAVIEST, plain_array, read_probabilities
from omma.rows.frames import (
    InputTable,
    Names,
    check_same_indexes,
    index_of,
    indicators_of_sets,
    is_label_sets,
    open_table,
    read_names,
)
from omma.rows.labels import read_classes
from omma.rows.row import (
    PartlyKnown,
    are_ids,
    probability_rows,
    refuse_indicators,
    single_row,
)
from omma.rule import Rule
from omma.state import State
from omma.state_parts import Unseen
from omma.unseen import (
    check_policy,
    check_seen,
    read_audited,
    reported_value,
)

CANDIDATE_CHECKS = 1000  # calls of predict that are looked at for want of candidates


class OnlineClassifier:
    """Decide rows one at a time, and learn from their labels when these are known.

    Parameters
    ----------
    policy : Policy
        For example ``omma.Auto("macro_f1")``, the default choice.
    n_labels : int
        Number of labels; 1 for a binary problem.
    metric : str or Metric, optional
        The metric of ``value``; default the policy's own.
    gap : bool
        Estimate how much could still be gained; see ``OnlineClassifier.gap``.
    names : sequence of str, optional
        The names of the labels; default those of the policy, or the columns of the first frame that
        is learned from. Columns of frames are matched by name, in any order. With a metric of one
        class per row, ``predict`` returns class names.
    max_waiting : int
        The largest number of decisions that wait for labels by id. Beyond it, the oldest is
        dropped.
    max_age : int, optional
        Drop a decision when more than this number of rows were decided by id after it.
    max_seconds : float, optional
        Drop a decision that has waited longer than this. Time in which the learner is saved in a
        file does not count. Pass ``max_age`` or ``max_seconds``, not both.

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
        metric: MetricName | str | Metric | None = None,
        gap: bool = False,
        names: Sequence[str] | None = None,
        max_waiting: int = 10_000,
        max_age: int | None = None,
        max_seconds: float | None = None,
    ) -> None:
        check_is_policy("OnlineClassifier", policy)
        self.n_labels = check_positive_int("OnlineClassifier", "n_labels", n_labels)
        self.names = read_names("OnlineClassifier", names, self.n_labels) or policy.names
        self.policy = policy = policy.for_names(self.names)
        self.metric = policy.objective if metric is None else find_metric(metric)
        if self.metric is not None:
            self.metric.check_labels(self.n_labels)
        self._state = policy.init(self.n_labels)
        # Some metrics need to know which class was taken for which; a state does not count that.
        needs_pairs = self.metric is not None and self.metric.needs_matrix
        self._pairs = np.zeros((n_labels, n_labels)) if needs_pairs else None
        self._certificate: Certificate | None = None
        if gap:
            if self.metric is None:
                raise ValueError(
                    f"gap of OnlineClassifier needs a metric, and {policy!r} has none of its own: "
                    "pass metric="
                )
            self._certificate = Certificate(
                "OnlineClassifier", self.metric, policy.budget, self.n_labels
            )
        self._last: Decision | None = None  # the last decision without an id
        self._waiting = Waiting(
            self.n_labels, limit=max_waiting, max_age=max_age, max_seconds=max_seconds
        )
        self._refused = dict.fromkeys(REFUSALS, 0)
        self._seen: tuple[Counts, Rule] | None = None  # those of the last call of stats
        self._prepare()

    def _prepare(self) -> None:
        """Set what follows from other attributes, also after unpickling."""
        self._lock = threading.RLock()  # for all that counts; deciding needs no lock
        self._journal: Any = None
        self._engine = self.policy.engine(self._state)
        self._waiting.evicted = self._forgotten
        metric, k, state = self.metric, self.policy.budget, self._state
        self._soft = state.labels is not None  # decisions look at probabilities, which are counted
        has_gap = self._certificate is not None
        self._keeps_eta = self.policy.needs_eta or has_gap
        one_class = k == 1 and metric is not None and metric.multiclass
        self._class_names = np.array(self.names) if self.names and one_class else None
        # Probabilities that are counted when a row is decided need not wait with it.
        corrects = state.known is not None or state.calibration is not None
        self._keeps_eta_late = has_gap or corrects or (self.policy.needs_eta and not self._soft)
        # With costs every label is a candidate; with k = m every label is predicted.
        costs = metric is not None and metric.needs_matrix
        is_scarce = k is not None and k < self.n_labels and not costs
        self._candidate_checks = CANDIDATE_CHECKS if is_scarce else 0
        # Whether the engine alone counts a row and checks its labels.
        single_label = metric is not None and metric.single_label
        self._is_simple = not (single_label or costs or has_gap)
        self._row_shape = (self.n_labels,)

    # Deciding

    @overload
    def predict(self, eta: float, *, id: Id | None = ...) -> np.int8: ...
    @overload
    def predict(self, eta: Arrays, *, id: Id | None = ..., ids: Any = ...) -> Decisions: ...
    @overload
    def predict(
        self, eta: SparseMatrix, *, id: Id | None = ..., ids: Any = ...
    ) -> sparse.csr_array: ...
    @overload
    def predict(self, eta: Frame, *, id: Id | None = ..., ids: Any = ...) -> Frame: ...

    def predict(self, eta: Any, *, id: Id | None = None, ids: Any = None) -> Any:  # noqa: A002
        """Predict the labels of one row, or of each row of a matrix, with the present counts.

        Without an id, nothing is counted. The learner remembers the decision until the next call,
        and several threads may call ``predict`` at once. With an id, the decision waits for
        ``update`` with the same id. With ``feedback="estimates"``, probabilities are counted at
        once, and labels only serve to compute the value.

        With a budget k, a row with fewer than k probabilities above zero is filled up with the
        lowest other labels. If this happens in the first 1,000 calls, a warning says so once.

        Parameters
        ----------
        eta : array-like of shape (m,) or (n, m), sparse matrix of shape (n, m), frame or tensor
            A pandas series is one row, indexed by label names.
        id : str or int, optional
            The id of the row.
        ids : sequence of str or int, optional
            The ids of several rows. If one is refused, nothing is decided.

        Returns
        -------
        int8 indicators of the same shape and type: array, sparse matrix, frame or tensor. If the
        learner has ``names`` and a metric of one class per row, arrays give class names instead;
        ``decide`` always returns indicators.

        Examples
        --------
        >>> import omma
        >>> learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), n_labels=2)
        >>> learner.predict([[0.9, 0.2], [0.1, 0.8]], ids=["a", "b"])
        array([[1, 0],
               [0, 1]], dtype=int8)
        >>> learner.update([0, 1], id="b")
        >>> learner.update([1, 0], id="a")
        >>> learner.counts.n
        2.0
        >>> policy = omma.Auto("multiclass_gmean")
        >>> pets = omma.OnlineClassifier(policy, n_labels=2, names=["cat", "dog"])
        >>> pets.predict([0.3, 0.7])
        'dog'
        """
        decided = self.decide(eta, id=id, ids=ids)
        if self._class_names is None or type(decided) is not np.ndarray:
            return decided
        classes = self._class_names[decided.argmax(axis=-1)]
        return str(classes) if decided.ndim == 1 else classes

    def decide(self, eta: Any, *, id: Id | None = None, ids: Any = None) -> Any:  # noqa: A002
        """Predict like ``predict``, but return indicators even if classes have names.

        >>> import omma
        >>> policy = omma.Auto("multiclass_gmean")
        >>> omma.OnlineClassifier(policy, 2, names=["cat", "dog"]).decide([0.3, 0.7])
        array([0, 1], dtype=int8)
        """
        if id is None and ids is None:
            self._last, answer = self._decide(eta)
            return answer
        # Under the lock: the row is decided on the counts to which its own are added.
        with self._lock, self._counted_refusals():
            keys = read_ids("predict", id, ids)
            self._waiting.tick()
            for key in keys:
                self._waiting.check_free(key)
            decision, answer = self._decide(eta)
            rows = self._rows("predict", decision)
            check_as_many("predict", "eta", len(rows), "ids", len(keys))
            self._take_names(decision.names)
            self._commit(DECIDED, [EventRow(*row) for row in zip(keys, rows, strict=True)])
        return answer

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
        seen: str | None = None,
        audited: bool | ArrayLike = False,
    ) -> None:
        """Learn the true labels of the row that was predicted last, or of one predicted earlier.

        Parameters
        ----------
        y : array-like, sparse matrix, or class id
            True labels: indicators in the shape of the prediction, or class ids: one for a row, a
            vector for several rows. A class id is a position, or a name if the learner has names.
            NaN is unknown; known labels of the same row are counted. y may be omitted if the policy
            counts estimates, as ``omma.Auto`` does. Several rows of pandas must have the index of
            the prediction, in the same order.
        prediction : optional
            An earlier prediction, for delayed labels; default the last one.
        eta : optional
            The probabilities of ``prediction``, needed with ``feedback="estimates"``.
        weight : float, or array-like for several rows
            A row of weight w counts as w rows. Weights are not costs: for these, see
            ``omma.metrics.RowCosts``.
            With ``feedback="estimates"`` and an id it must be 1, the weight with which the
            probabilities were counted.
        id : str or int, optional
            The id with which the row was predicted; see ``predict``.
        ids : sequence of str or int, optional
            The ids of several rows, in the order of ``y``. If one is refused, none is counted.
        seen : {None, "predicted"}
            "predicted": labels are seen only where they were predicted, like clicks on shown items.
            Other entries of y are ignored, and y may be omitted if nothing was predicted. ``value``
            is then an estimate if it needs unseen labels; see "Labels seen only where predicted".
        audited : bool, or array-like for several rows
            With ``seen="predicted"``: all labels of the row were checked, so all of y counts.
            Choose rows to audit at random, independently of their probabilities.

        Examples
        --------
        >>> import numpy as np, omma
        >>> rng = np.random.default_rng(0)
        >>> eta = rng.beta(0.3, 3, size=1000)
        >>> y = rng.random(1000) < eta
        >>> learner = omma.OnlineClassifier(omma.Auto("f1"), n_labels=1)
        >>> for row, true in zip(eta, y):
        ...     alarm = learner.predict(row)
        ...     audited = rng.random() < 0.05
        ...     learned = int(true) if alarm or audited else None
        ...     learner.update(learned, seen="predicted", audited=audited)
        >>> learner.value.rests_on
        '53 of 1,000 rows audited'
        """
        if seen is not None or audited is not False:
            check_seen("update", seen, audited)
        with self._lock:
            if id is not None or ids is not None:
                with self._counted_refusals():
                    if prediction is not None or eta is not None or (y is None and seen is None):
                        raise ValueError(
                            "update with an id must be given y, and neither prediction nor eta, "
                            "which it knows"
                        )
                    keys = read_ids("update", id, ids)
                    self._waiting.tick()
                    rows = [self._waiting.get(key) for key in keys]
                    self._learn(keys, rows, y, weight, seen, audited)
                return
            decided = self._last if prediction is None else self._quick_decision(prediction)
            if (
                decided is not None
                and decided.names is None
                and eta is None
                and seen is None
                and self._is_simple
                and self._journal is None
                and type(weight) is float
                and 0.0 <= weight <= HEAVIEST
            ):  # the usual case: the engine counts a row, and says what is wrong with its labels
                labels = self._quick_labels(y, decided.prediction)
                if labels is not None:
                    self._engine.learn(decided.eta, labels, decided.prediction, weight)
                    if prediction is None:
                        self._last = None
                    return
            rows, names = self._decided_rows(prediction, eta, y, weight)
            self._learn(None, rows, y, weight, seen, audited, names)
            if prediction is None:
                self._last = None

    # What was learned

    @property
    def value(self) -> float | None:
        """The metric over all labelled rows so far; None before the first one.

        With ``seen="predicted"``, a metric that needs unseen labels is an ``EstimatedValue``: a
        float that says how it was estimated. ``expected_value`` needs no labels.
        """
        if self.metric is None:
            raise ValueError(
                f"{self.policy!r} has no metric of its own: pass metric= to OnlineClassifier"
            )
        counts = self.counts
        if not counts.n > 0:
            return None
        return reported_value("learner.value", self.metric, self.policy, counts, self._state)

    @property
    def expected_value(self) -> float | None:
        """The metric that the probabilities expect, without labels.

        The estimate is as good as the probabilities, which ``omma.Auto`` calibrates. None if the
        policy counts labels only, and before the first row.

        >>> import omma
        >>> eta, y = omma.datasets.long_tail(n=500, m=5, seed=0)
        >>> learner = omma.OnlineClassifier(omma.Auto("macro_f1"), n_labels=5)
        >>> for row in eta:
        ...     _ = learner.predict(row)
        ...     learner.update(None)
        >>> learner.value, 0.5 < learner.expected_value < 0.8
        (None, True)
        """
        with self._lock:
            return self.policy.expected_value(self.state, self.metric)

    @property
    def counts(self) -> Counts:
        """Counts of true labels and predictions so far, without the prior."""
        with self._lock:
            counts = counts_of(self.state)
            counts.matrix = None if self._pairs is None else self._pairs.copy()
        return counts

    @property
    def rule(self) -> Rule:
        """The rule that decides the next row; with limits, the rule to deploy.

        With limits, the rule uses the mean of each price over the rows so far, because prices
        fluctuate from row to row. What ``Auto`` has learned of calibration is part of its
        thresholds; "Explain one decision" in the documentation shows both apart.
        """
        return self.policy.rule(self.state).named(self.names)

    @property
    def limits(self) -> tuple[LimitStatus, ...]:
        """The status of each limit of the policy: value so far, price, and whether it holds.

        >>> import omma
        >>> policy = omma.Auto("f1", subject_to="predicted_rate <= 0.02")
        >>> learner = omma.OnlineClassifier(policy, n_labels=1)
        >>> print(*learner.limits)
        predicted_rate <= 0.02: nothing to judge it by yet
        """
        with self._lock:
            return limit_statuses(self.policy.limits, self.state)

    @property
    def gap(self) -> Gap | None:
        """How much could still be gained, with its standard error; see "The optimality gap".

        None without ``gap=True``, and before about twenty rows with a weight above 0.

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

    def stats(self, *, peek: bool = False) -> dict[str, Any]:
        """Statistics as plain data: rows decided, learned, dropped and refused, and the value.

        - ``rows``: the weight of the rows that decisions depend on; ``labels``: the weight of the
          labelled rows in ``value``.
        - ``decided``, ``waiting``, ``dropped``: numbers of rows with ids.
        - ``recent_value``, ``moved``: changes since the last call without ``peek``.
        - ``window_value``: the value over the rows that decisions depend on, with ``omma.Window``
          and ``omma.Forgetting``.
        - ``calibration_error``: the distance between mean calibrated probabilities and label rates,
          if probabilities are counted.
        - ``limits``: the status of ``subject_to``.

        >>> import omma
        >>> learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), n_labels=2, names=["a", "b"])
        >>> prediction = learner.predict([0.9, 0.2], id="first")
        >>> learner.update([1, 0], id="first")
        >>> stats = learner.stats()
        >>> stats["labels"], stats["waiting"], stats["recent_value"]
        (1.0, 0, 0.5)
        """
        with self._lock:
            now, before = (self.counts, self.rule), self._seen
            if before is None:
                fresh = self.policy.init(self.n_labels)
                nothing = Counts.zeros(self.n_labels, matrix=self._pairs is not None)
                before = (nothing, self.policy.rule(fresh))
            if not peek:
                self._seen = now
            return stats_of(self, now, before)

    @property
    def waiting(self) -> Waiting:
        """The decisions that wait for their labels by id (read only).

        >>> import omma
        >>> learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), n_labels=2, max_waiting=2)
        >>> for name in ("a", "b", "c"):
        ...     prediction = learner.predict([0.9, 0.2], id=name)
        >>> list(learner.waiting), learner.waiting.forgotten
        (['b', 'c'], 1)
        """
        return self._waiting

    @property
    def state(self) -> Any:
        """Everything that the policy has counted. You may assign a state of the same policy."""
        return self._state

    @state.setter
    def state(self, state: Any) -> None:
        self._state, self._engine = state, self.policy.engine(state)

    # Files, and other learners

    def save(self, path: str | Path) -> None:
        """Write the learner to a file, atomically. The file contains no code.

        Waiting decisions are saved, too. Your own metric cannot be saved: pass it to ``load``.
        """
        with self._lock:
            codec.write(path, self)

    @classmethod
    def load(cls, path: str | Path, *, metric: Metric | None = None) -> OnlineClassifier:
        """Read a learner that ``save`` wrote; safe to use on files from strangers.

        Parameters
        ----------
        path : str or Path
        metric : Metric, optional
            Your own metric, if the policy or ``value`` uses one.
        """
        return codec.read(cls, path, metric)

    def merge(self, counts: Counts | State, estimates: Counts | State | None = None) -> None:
        """Add the counts of another learner, for example from another machine.

        In ``gap``, only the value changes: ``attainable`` is still estimated on this learner's
        rows.

        Parameters
        ----------
        counts : Counts or State
            True labels against predictions, such as ``other.counts``; or all that another learner
            of the same policy keeps, ``other.state``: then nothing else is needed.
        estimates : Counts or State, optional
            Probabilities against predictions, needed with ``feedback="estimates"``; or, where the
            metric looks at pairs of classes, which no state has, ``other.state`` beside the counts.

        >>> import omma
        >>> learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), n_labels=2)
        >>> learner.merge(omma.Counts([3, 1], [4, 4], [5, 2], 20))
        >>> learner.rule.thresholds.round(3)
        array([0.333, 0.167])
        """
        state = self._state
        if not state.adds_up:
            raise TypeError(f"merge of OnlineClassifier cannot add to what {self.policy!r} keeps")
        states = [part for part in (counts, estimates) if isinstance(part, State)]
        matrix: Any = counts.matrix if isinstance(counts, Counts) else None
        if self._pairs is not None and matrix is None:
            way = ": pass other.counts and other.state" if states else ", got none"
            raise ValueError(f"counts of merge must have a matrix for {self.metric!r}{way}")
        parts = state.truth.missed is not None
        if not states and (parts or state.known is not None or state.calibration is not None):
            raise TypeError(
                f"merge of OnlineClassifier needs all that {self.policy!r} keeps"
                f"{' of rows labelled in part' * parts}: pass other.state in place of counts"
            )
        if not states and self._soft and estimates is None:
            raise ValueError("estimates of merge must be given with feedback='estimates'")
        # All that can go wrong is done before anything is changed.
        with self._lock:
            merged = state + states[0] if states else state_with(state, counts, estimates)
            pairs = None if self._pairs is None else self._pairs + matrix
            with self._changed():
                state.restore(merged.arrays())
                self._pairs = pairs

    def bound_waiting(self, limit: int | None, max_seconds: float | None = None) -> None:
        """Change how many decisions wait at most, or for how long; None leaves that as it is."""
        waiting, owner = self._waiting, "bound_waiting"
        limit = check_positive_int(owner, "limit", limit, optional=True)
        if max_seconds is not None:
            max_seconds = check_number(owner, "max_seconds", max_seconds, low=0.0, strict=True)
        with self._lock:
            if max_seconds is not None and waiting.max_seconds is None:
                raise ValueError(
                    "decisions of this learner were made without a clock: max_seconds must be "
                    "given when it is begun"
                )
            with self._changed():  # so that a journal forgets the same decisions when it is read
                waiting.limit = waiting.limit if limit is None else limit
                waiting.max_seconds = waiting.max_seconds if max_seconds is None else max_seconds

    # How rows are decided

    def _decide(self, eta: Any) -> tuple[Decision, Any]:
        """Decide one row or several: the decision to learn from, and the answer in eta's own kind.

        The decision has copies, as callers may use their buffers again.
        """
        m = self.n_labels
        if type(eta) is list:
            eta = plain_array("eta of predict", eta, hint="")
        if (
            type(eta) is np.ndarray
            and eta.dtype is FLOAT64
            and eta.shape == self._row_shape
            and eta.flags.carray
        ):  # the usual case: nothing is to be converted
            prediction = self._engine.decide(eta)
            if self._candidate_checks:
                self._check_candidates(eta, eta)
            copied: Any = eta.copy() if self._keeps_eta else None
            # As Decision(prediction, copied), without the time that its defaults take.
            decision = tuple.__new__(Decision, (prediction, copied, False, None, None))
            return decision, prediction.copy()
        table = self._open("predict", "eta", eta)
        values = table.values
        if m == 1:
            refuse_two_columns(values, self.metric)
        row: Any = quick_csr_row(values, m)
        if row is None or row[1].dtype.kind != "f":
            row = single_row("predict", values, m)
        else:  # of 64 bits, which is what kernels of single rows read
            row = row[0], row[1].astype(FLOAT64, copy=False)
        if row is None:
            prediction = self.policy.decide_rows(self._state, values)
            answer = prediction.copy()
        elif isinstance(row, tuple):
            try:
                prediction = self._engine.decide(row)
            except UnsortedError:  # ids as they are stored need not rise
                row = probability_rows("predict", values, True, m)[0]
                prediction = self._engine.decide(row)
            answer = csr_of_ids(prediction, m, type(values.tocsr()))
        else:
            prediction = self._engine.decide(row)
            is_number = m == 1 and np.ndim(values) == 0
            answer = np.int8(prediction[0]) if is_number else prediction.copy()
        if self._candidate_checks:
            self._check_candidates(row, values)
        copied = deepcopy(values if row is None else row) if self._keeps_eta else None
        # Names of a frame become those of the learner once a row is learned.
        names = table.names if table.is_named else None
        decision = Decision(prediction, copied, table.is_reordered, names, table.index)
        return decision, table.restore_type(answer)

    def _check_candidates(self, row: Any, values: Any) -> None:
        """Warn once of a row with fewer candidates than the budget; only the first calls look.

        ``row`` is None for several rows, which are in ``values``.
        """
        k: Any = self.policy.budget
        left, self._candidate_checks = self._candidate_checks - 1, 0
        # The caller of ``predict`` is five calls above.
        if row is None:
            is_short = warn_of_rows("predict", read_probabilities("predict", values), k, None, 6)
        else:
            is_short = warn_of_row("predict", row, k, stacklevel=6)
        if not is_short:
            self._candidate_checks = left

    def _rows(self, owner: str, decision: Decision) -> list[Decision]:
        """A decision on a matrix as a decision on each of its rows."""
        if decision.is_sparse or decision.prediction.shape == self._row_shape:
            return [decision]
        prediction, eta, moved = decision[:3]
        return decisions_of(owner, prediction, eta, self.n_labels, moved)

    def _open(self, owner: str, parameter: str, values: Any, row: bool = True) -> InputTable:
        """Values of any library, in the order of the names; a series is one row of many labels."""
        is_row = row and self.n_labels > 1
        return open_table(owner, parameter, values, self._label_names(), row=is_row)

    def _label_names(self) -> Names | None:
        """The names of the labels: the learner's, or else those of the frame decided last."""
        return self._last.names if self.names is None and self._last is not None else self.names

    def _rows_index(self, values: Any, rows: int) -> Any:
        """The pandas index of rows; that of one row as a series holds names of labels."""
        if self.n_labels > 1 and rows == 1 and not hasattr(values, "columns"):
            return None
        return index_of(values)

    # How labels are read

    def _decided_rows(
        self, prediction: Any, eta: Any, y: Any, weight: Any
    ) -> tuple[list[Decision], Names | None]:
        """The rows of the last decision or of a prediction, and the names that it came with.

        Of labels and weights only the index of their rows is checked.
        """
        last, m, names = self._last, self.n_labels, None
        if self._class_names is not None and np.asarray(prediction).dtype.kind in "US":
            prediction = indicators_of_names(prediction, self._class_names)
        first = self._open("update", "prediction", prediction)
        second = self._open("update", "eta", eta)
        moved = first.is_reordered or second.is_reordered
        if prediction is not None:
            if eta is None and self._keeps_eta:
                why = "which learns from it" if self.policy.needs_eta else "whose gap needs it"
                raise ValueError(
                    f"eta of update must be given with prediction= for {self.policy!r}, {why}"
                )
            # Users may have made it themselves: every number is checked.
            rows = decisions_of("update", first.values, second.values, m, moved)
            index = self._rows_index(prediction, len(rows))
        elif last is None:
            raise ValueError(
                "update of OnlineClassifier must come after predict, or be given prediction="
            )
        else:
            names, index, moved = last.names, last.index, moved or last.moved
            rows = self._rows("update", last)
            if eta is not None:  # in place of the probabilities that were decided
                decided = csr_of_ids(last.prediction, m) if last.is_sparse else last.prediction
                rows = decisions_of("update", decided, second.values, m, moved)
        others = {"eta": eta, "y": y, "weight": weight}
        indexes = {name: self._rows_index(of_rows, len(rows)) for name, of_rows in others.items()}
        check_same_indexes("update", {"prediction": index, **indexes})
        return rows, names

    def _learn(
        self,
        keys: list[Id] | None,
        rows: list[Decision],
        y: Any,
        weight: Any,
        seen: str | None,
        audited: Any,
        names: Names | None = None,
    ) -> None:
        """Check the labels of decisions with or without ids, and count them."""
        others = "predictions" if keys is None else "ids"
        labels, own_names = self._read_labels(y, rows, others, seen)
        weights = weights_of(weight, len(rows))
        if keys is not None and self._soft and any(number != 1.0 for number in weights):
            raise ValueError(
                "weight of update must be 1 with an id and feedback='estimates': the probabilities "
                f"were counted when the row was decided, got {shown(weight)}"
            )
        audits = self._audits(rows, weights, seen, audited)
        self._take_names(own_names or names)
        parts: tuple[Any, ...] = (keys or [None] * len(rows), rows, labels, weights, audits)
        events = [EventRow(*row) for row in zip(*parts, strict=True)]
        self._commit(COUNTED if keys is None else LABELLED, events)

    def _read_labels(
        self, y: Any, rows: list[Decision], others: str, seen: str | None
    ) -> tuple[list[Any], Names | None]:
        """True labels of each row in the layout of its decision, and the names of their frame."""
        count, m, moved = len(rows), self.n_labels, any(row.moved for row in rows)
        if count == 1 and self._is_simple and not moved:
            labels = self._quick_labels(y, rows[0].prediction)
            if labels is not None:
                # A journal must get sound labels; without one, the engine checks them.
                if self._journal is not None and not rows[0].is_sparse:
                    refuse_indicators("update", "y", labels)
                return [labels], None
        table = self._open("update", "y", y, row=count == 1)
        if is_label_sets(table.values):
            table = replace(table, values=indicators_of_sets("update", "y", table.values, None, m))
        has_ids = are_ids(table.values, count, m)
        true, _ = read_classes("update", table, moved, are_ids=has_ids)
        # Decisions that waited by id may be of dense rows and of sparse ones.
        can_miss = seen is not None or (self._soft and not self.policy.needs_labels)
        options = (self.policy, self.metric, has_ids, can_miss)
        by_layout = {
            is_sparse: labels_of(true, count, is_sparse, m, *options)
            for is_sparse in {row.is_sparse for row in rows}
        }
        for labels_of_rows in by_layout.values():
            check_as_many("update", "y", len(labels_of_rows), others, count)
        return [by_layout[row.is_sparse][place] for place, row in enumerate(rows)], table.names

    def _quick_decision(self, prediction: Any) -> Decision | None:
        """A prediction of one row of indicators; None leaves any other to ``decisions_of``."""
        if type(prediction) is not np.ndarray or prediction.shape != self._row_shape:
            return None
        is_ready = prediction.dtype.char == "b" and prediction.flags.carray
        return Decision(prediction) if is_ready and not self._keeps_eta else None

    def _quick_labels(self, y: Any, prediction: Any) -> NDArray[Any] | None:
        """The labels of one row in a usual form; None leaves any other to ``labels_of``."""
        m = self.n_labels
        if prediction.dtype.char != "b":  # label ids, not int8 indicators
            return quick_label_ids(y, m)
        if prediction.shape != self._row_shape:
            return None
        if type(y) is not int:
            return quick_indicators(y, m)
        has_class_ids = m > 1 and self.policy.budget is not None and self._label_names() is None
        if not has_class_ids or not 0 <= y < m:
            return None
        indicators = np.zeros(m)
        indicators[y] = 1.0
        return indicators

    def _audits(
        self, rows: list[Decision], weights: list[float], seen: str | None, audited: Any
    ) -> list[float]:
        """The weight of the audit of each row; zeros where labels do not depend on decisions."""
        if seen is None:
            return [0.0] * len(rows)
        check_policy("update", self.policy, self.metric)
        if any(row.eta is None for row in rows):
            raise ValueError(
                f"seen='predicted' of update needs probabilities, which {self.policy!r} does not "
                "keep: pass eta=, or use omma.Auto"
            )
        flags = read_audited("update", audited, len(rows))
        # A copy counts further rows: those of the state are counted with the event.
        unseen = Unseen(np.zeros((3, 0)), self._state.audits.copy())
        audits = unseen.audit_weights(flags, np.array(weights))
        return list(map(float, audits))

    # How events are counted, with a journal or without

    @contextmanager
    def _counted_refusals(self) -> Iterator[None]:
        """Count calls that are refused by the kind of their error, which is raised again."""
        try:
            yield
        except (ValueError, TypeError) as error:
            self._refused[getattr(error, "counted_as", "unsound")] += 1
            raise

    def _take_names(self, names: Names | None) -> None:
        if names is not None and names != self.names:
            self._commit(NAMED, [], names)

    def _commit(self, kind: str, rows: list[EventRow], names: Names | None = None) -> None:
        """Write an event to the journal, if there is one, and then count it."""
        event = Event(kind, rows, self._waiting.seconds, names)
        if self._journal is None:
            self._apply(event)
        else:
            with self._journal.record(codec.encode(event)):
                self._apply(event)

    def _apply(self, event: Event) -> None:
        """Count an event: one that has just been recorded, or one of a journal."""
        if event.kind == NAMED:
            self.names = event.names
            return
        key: Any
        decision: Any
        for key, decision, labels, weight, audit in event.rows:
            if event.kind == DECIDED:
                self._wait(key, decision)
            elif event.kind == COUNTED:
                self._count(decision, labels, weight, audit)
            else:
                # Labels that the engine refuses leave the decision waiting.
                self._count(decision, labels, weight, audit, late=True)
                self._waiting.drop(key)

    def _wait(self, key: Id, decision: Decision) -> None:
        """Let a decision wait; where decisions look at probabilities, count them now."""
        if self._soft:
            self._engine.learn(decision.eta, None, decision.prediction, 1.0)
        else:
            self._engine.drew()  # policies that draw rules draw another for the next row
        eta = decision.eta if self._keeps_eta_late else None
        self._waiting.put(key, Decision(decision.prediction, eta, decision.moved))

    def _count(
        self,
        decision: Decision,
        labels: Any,
        weight: float,
        audit: float = 0.0,
        *,
        late: bool = False,
    ) -> None:
        """Count the labels of one row."""
        row, chosen = decision.eta, decision.prediction
        if audit:
            self._state.allow_unseen()
            self._state.audits += (weight, weight * (audit > 0.0))
        self._engine.learn(row, labels, chosen, weight, late=late, audit=audit)
        if self._pairs is not None and labels is not None:
            is_sparse = decision.is_sparse
            pair = (labels, chosen) if is_sparse else map(np.flatnonzero, (labels, chosen))
            self._pairs[np.ix_(*pair)] += weight
        if self._certificate is not None and row is not None:
            # A gap is of whole rows.
            whole = None if isinstance(labels, PartlyKnown) or audit < 0.0 else labels
            if whole is not None and not decision.is_sparse:
                whole = np.flatnonzero(whole).astype(np.int32)
            self._certificate.step(row, whole, weight)

    def _forgotten(self, decision: Decision) -> None:
        """Note a decision whose labels never came: the gap still learns from its probabilities."""
        if self._certificate is not None and self._soft:
            self._certificate.step(decision.eta, None, 1.0)

    def _redo(self, content: bytes) -> None:
        """Count an event of a journal again; refuse one that no learner can have had."""
        event = codec.decode(content, self.n_labels)
        if event.kind in (DECIDED, LABELLED):  # as calls with ids have done
            self._waiting.tick(event.time)
        rows = []
        for row in event.rows:
            decision: Any = row.decision
            if decision is None:
                decision = self._waiting.get(row.key)  # type: ignore[arg-type]
            else:
                self._check_decision(decision, self._keeps_eta)
            if event.kind != DECIDED and row.labels is None and not (self._soft or row.audit):
                raise ValueError("a row without labels")
            if row.audit and decision.eta is None:
                raise ValueError("labels seen where predicted, and no probabilities")
            labels = codec.lay_out(row.labels, decision, self.n_labels)
            rows.append(row._replace(decision=decision, labels=labels))
        self._apply(event._replace(rows=rows))

    def _check_decision(self, decision: Decision, needs_eta: bool) -> None:
        """Refuse a decision from a file that this learner cannot have made."""
        if needs_eta and decision.eta is None:
            raise ValueError("a decision without its probabilities")
        if decision.moved and self.names is None and decision.names is None:
            raise ValueError("a decision on columns in another order, and no names of labels")

    def _changed(self) -> AbstractContextManager[None]:
        """Change what no event describes: a journal then saves a snapshot."""
        return nullcontext() if self._journal is None else self._journal.change()

    # How it is copied and shown

    def __getstate__(self) -> dict[str, Any]:
        remade = ("_engine", "_lock", "_journal")
        state = {name: value for name, value in vars(self).items() if name not in remade}
        if self._last is not None:  # an index would need pandas where it is read
            state["_last"] = self._last._replace(index=None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()

    def __repr__(self) -> str:
        counted = f"{self.state.truth.rows:g} rows counted"
        return f"<online classifier of {self.policy!r}, {self.n_labels} labels, {counted}>"

    def _repr_html_(self) -> str:
        return html_of(self)
