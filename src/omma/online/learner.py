"""A policy and its state in one object, for those who serve one row at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from omma._candidates import candidates_of, warn_of_row, warn_of_rows
from omma._types import Arrays, Decisions, Given, Sparse
from omma._validate import check_positive_int, shown
from omma.certificate import Gap
from omma.counts import Counts, counts_of
from omma.held import Held, held
from omma.metrics import Metric, metric as find_metric
from omma.metrics.names import MetricName
from omma.online import saved
from omma.online.learning import FLOAT64, Learning
from omma.online.pending import Id, Pending, Refusals, age_and_clock, read_ids
from omma.online.stats import Seen, stats_of
from omma.online.steps import Decided, array_of
from omma.policies import Policy
from omma.policies.base import fit_first
from omma.rows.arrays import read_probabilities
from omma.rows.frames import is_foreign, read_names, values_of
from omma.rule import Rule
from omma.state import State


class OnlineClassifier(Learning):
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
    max_seconds : float, optional
        Or when they have waited for longer than that, not counting the time in which the learner
        was saved in a file; only one of both ages can be given.

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
        if not isinstance(policy, Policy):
            raise TypeError(
                "policy of OnlineClassifier must be a policy, such as omma.OMMA('macro_f1'), got "
                f"{shown(policy)}{fit_first(policy)}"
            )
        check_positive_int("OnlineClassifier", "n_labels", n_labels)
        self.n_labels = int(n_labels)
        self.names = read_names("OnlineClassifier", names, self.n_labels) or policy.names
        self.policy = policy = policy.for_names(self.names)
        self.metric = policy.objective if metric is None else find_metric(metric)
        if self.metric is not None:
            self.metric.check_labels(self.n_labels)
        self.state = policy.init(self.n_labels)
        keeps_pairs = self.metric is not None and self.metric.needs_matrix
        self._pairs = np.zeros((n_labels, n_labels)) if keeps_pairs else None
        self._certificate = self._certify() if gap else None
        self._last = None
        ages = age_and_clock("OnlineClassifier", max_age, max_seconds)
        self._pending = Pending(self.n_labels, limit=max_waiting, **ages)
        self._refusals = Refusals()
        self._seen = None  # at the last call of stats
        self._prepare()

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
    def limits(self) -> tuple[Held, ...]:
        """How the limits of the policy stand: value so far, price, and whether it holds.

        >>> import omma
        >>> policy = omma.Auto("f1", subject_to="predicted_rate <= 0.02")
        >>> learner = omma.OnlineClassifier(policy, n_labels=1)
        >>> print(*learner.limits)
        predicted_rate <= 0.02: nothing to judge it by yet
        """
        with self._lock:
            return held(self.policy, self.state)

    @property
    def rule(self) -> Rule:
        """The rule by which the next row is decided; under limits the one to deploy.

        That is at the mean of each price over the rows so far, as prices wander from row to row.
        """
        return self.policy.rule(self.state).named(self.names)

    def stats(self, *, peek: bool = False) -> dict[str, Any]:
        """How it goes, as plain data: what was decided, learned, lost and refused, and the value.

        ``recent_value`` and ``moved`` look at what came since the last call, or since the last that
        did not ``peek``. ``rows`` is what decisions look at, ``labels`` what the value is of, both
        by weight; ``decided``, ``waiting`` and ``dropped`` are rows with ids. ``window_value`` is
        of what decisions look at, known where that is not all: with ``omma.Window`` and
        ``omma.Forgetting``. ``calibration_error`` is how far mean probabilities, after
        calibration, are from frequencies; known where probabilities are counted. ``limits`` say
        how those of ``subject_to`` stand.

        >>> import omma
        >>> learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), n_labels=2, names=["a", "b"])
        >>> prediction = learner.predict([0.9, 0.2], id="first")
        >>> learner.update([1, 0], id="first")
        >>> stats = learner.stats()
        >>> stats["labels"], stats["waiting"], stats["recent_value"]
        (1.0, 0, 0.5)
        """
        with self._lock:
            counts, rule = self.counts, self.rule
            before = self._seen
            if before is None:
                fresh = self.policy.init(self.n_labels)
                before = Seen(Counts.zeros(self.n_labels), self.policy.rule(fresh))
            if not peek:
                self._seen = Seen(counts, rule)
            return stats_of(self, counts, rule, before)

    # Deciding

    @overload
    def predict(self, eta: float, *, id: Id | None = ...) -> np.int8: ...
    @overload
    def predict(self, eta: Arrays, *, id: Id | None = ..., ids: Any = ...) -> Decisions: ...
    @overload
    def predict(self, eta: Sparse, *, id: Id | None = ..., ids: Any = ...) -> sparse.csr_array: ...
    @overload
    def predict(self, eta: Given, *, id: Id | None = ..., ids: Any = ...) -> Given: ...

    def predict(self, eta: Any, *, id: Id | None = None, ids: Any = None) -> Any:  # noqa: A002
        """Decide one row, or each row of a matrix on the present counts.

        Without an id nothing is changed: what is decided waits for its labels until the next is
        asked for, and a learner may be asked from several threads at once. With an id the decision
        waits for ``update`` with the same id, whenever that comes; with ``feedback="estimates"``
        its probabilities are counted at once, and only the judgement waits for labels. Where one
        of the first 1,000 questions has fewer than k labels of probability above zero, a warning
        says so once: the lowest others fill up.

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
        >>> learner.predict([[0.9, 0.2], [0.1, 0.8]], ids=["a", "b"])
        array([[1, 0],
               [0, 1]], dtype=int8)
        >>> learner.update([0, 1], id="b")
        >>> learner.update([1, 0], id="a")
        >>> learner.counts.n
        2.0
        """
        if type(eta) is list:
            eta = array_of(eta)
        if self._looks:
            self._look(eta)
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

    def _look(self, eta: Any) -> None:
        """Say once where a budget exceeds the candidates; only the first rows are looked at."""
        k = self.policy.budget
        self._looks -= 1
        values = eta if sparse.issparse(eta) else np.asarray(values_of("predict", "eta", eta))
        if k is None or values.dtype.kind not in "fiub":
            return
        if values.ndim == 2 and values.shape[1] == self.n_labels:
            short = warn_of_rows("predict", read_probabilities("predict", values), k, stacklevel=4)
            self._looks = 0 if short else self._looks
        elif values.shape == self._row_shape and (found := candidates_of(values)) < k:
            self._looks = 0
            warn_of_row("predict", found, k)

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
            and are text or whole numbers. It may be left out where estimates are counted, as
            ``omma.Auto`` does. NaN is a label, or class, that is not known; the others of its row
            are counted. Several rows of pandas must have the index of what was predicted, in its
            order.
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

    def merge(self, counts: Counts | State, estimates: Counts | State | None = None) -> None:
        """Add what was counted elsewhere, as by a learner on another machine.

        Of ``gap`` only the value changes: what is attainable is estimated on this learner's rows.

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
        if type(self.state) is not State:
            raise TypeError(f"merge of OnlineClassifier cannot add to what {self.policy!r} keeps")
        if isinstance(counts, State):
            self._add_state(counts, None)
        elif isinstance(estimates, State):
            self._add_state(estimates, counts.matrix)
        else:
            self._add_counts(counts, estimates)

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

    def __repr__(self) -> str:
        counted = f"{self.state.truth.rows:g} rows counted"
        return f"<online classifier of {self.policy!r}, {self.n_labels} labels, {counted}>"
