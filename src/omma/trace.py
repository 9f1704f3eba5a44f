"""The result of a replay: decisions, counts, and the metric so far at some rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._html import html_table
from omma.certificate import Gap
from omma.counts import Counts
from omma.limits import Limit, LimitStatus, limit_statuses
from omma.metrics import Metric
from omma.policies import Policy
from omma.rows.frames import Names, open_table
from omma.rule import Rule
from omma.unseen import EstimatedValue, reported_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def values_at(measures: Sequence[Metric | Limit], counts: Sequence[Counts]) -> NDArray[np.float64]:
    """The metric and the limits at each of ``counts``: shape (counts, measures).

    They are NaN where rows weigh nothing.
    """
    table = np.full((len(counts), len(measures)), np.nan)
    weighed = [i for i, counted in enumerate(counts) if counted.n > 0]
    for j, measure in enumerate(measures if weighed else ()):
        if isinstance(measure, Limit) or measure.needs_matrix:
            table[weighed, j] = [measure.value(counts[i]) for i in weighed]
        else:
            # Each of shape (counts, m).
            tp, predicted, positive = np.stack([counts[i].cells for i in weighed], axis=1)
            rows = np.array([counts[i].n for i in weighed])
            table[weighed, j] = measure.values(tp, predicted, positive, rows)
    return table


@dataclass(frozen=True)
class History:
    """The metric so far, at some rows of the sequence.

    ``rows`` are numbers of rows, ``values`` the metric over that many.
    """

    rows: NDArray[np.int64]
    _measures: tuple[Metric | Limit, ...] = field(repr=False)  # the metric, and the limits
    # Makes counts after these rows when they are asked for. Where they would take much memory,
    # values were taken on the way.
    _counts: Callable[[], Sequence[Counts]] = field(default=tuple, repr=False)
    _taken: Sequence[NDArray[np.float64]] = field(default=(), repr=False)
    _gaps: tuple[Gap | None, ...] = field(default=(), repr=False)  # at each, without a value

    @cached_property
    def _table(self) -> NDArray[np.float64]:
        """All measures after ``rows[i]`` rows: shape (rows, measures)."""
        if self._taken:
            return np.concatenate(self._taken)
        return values_at(self._measures, self._counts())

    @cached_property
    def limits(self) -> dict[str, NDArray[np.float64]]:
        """The values of the policy's limits over the first ``rows[i]`` rows, by their texts.

        They are of true labels, over rows with known labels. ``trace.limits`` has the counts on
        which limits are held: these may be estimates, or predictions in all rows.
        """
        return dict(zip(map(str, self._measures[1:]), self._table.T[1:], strict=True))

    def values_of(self, limit: Limit) -> NDArray[np.float64]:
        """The values of any limit over the first ``rows[i]`` rows; NaN where no counts are left."""
        if limit in self._measures:
            return self._table[:, self._measures.index(limit)]
        values = values_at([limit], self._counts())[:, 0]
        return values if len(values) else np.full(len(self.rows), np.nan)

    @cached_property
    def gaps(self) -> tuple[Gap | None, ...]:
        """What could still be gained after ``rows[i]`` rows; empty without ``gap=True``."""
        # Computed only on request: each is compared with the value after as many rows.
        pairs = zip(self._gaps, self.values, strict=False)  # the last gap is after all rows
        return tuple(
            None if gap is None else replace(gap, value=gap.attainable - float(value))
            for gap, value in pairs
        )

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The metric over the first ``rows[i]`` rows; NaN where their weight is zero."""
        return self._table[:, 0]

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Trace:
    """The result of ``omma.replay``: decisions, counts and values of a policy on a sequence.

    Attributes
    ----------
    policy : Policy
    metric : Metric
        The metric of ``value`` and ``history``.
    counts : Counts or None
        Counts of true labels and predictions, without the prior; None without labels.
    predictions : ndarray, sparse matrix, frame, tensor or None
        Indicators in the shape, order and type of eta: int8 arrays, CSR matrices, frames with the
        same columns and index, or tensors. None if they were not kept.
    history : History or None
        The running metric.
    state : State
        The state of the policy; with ``feedback="estimates"`` it counts probabilities.
    seconds : float
        Time of the replay, without compilation.
    names : list of str or None
        The names of the labels, if eta or y is a frame.
    gap : Gap or None
        How much could still be gained at the end, with ``gap=True``.
    """

    policy: Policy
    metric: Metric
    counts: Counts | None
    predictions: Any = field(repr=False)
    history: History | None = field(repr=False)
    state: Any = field(repr=False)
    seconds: float
    names: Names | None = field(repr=False, default=None)
    gap: Gap | None = field(repr=False, default=None)
    _classes: Any = field(repr=False, default=None)  # the names of the classes, as y has them

    @cached_property
    def rule(self) -> Rule:
        """The policy's rule after the last row, with label names if known.

        With limits, the rule uses the mean of each price, which fluctuates less than the last one.
        """
        return self.policy.rule(self.state).named(self.names)

    @cached_property
    def limits(self) -> tuple[LimitStatus, ...]:
        """The status of the policy's limits at the end.

        >>> import omma
        >>> eta, y = omma.datasets.long_tail(n=4000, m=20, seed=0)
        >>> policy = omma.Auto("macro_recall", k=3, subject_to="micro_precision >= 0.9")
        >>> print(*omma.replay(policy, eta, y).limits)  # doctest: +ELLIPSIS
        micro_precision: reached 0..., asked 0.90: no rule does better here
        """
        return limit_statuses(self.policy.limits, self.state)

    @cached_property
    def value(self) -> float | None:
        """The metric of true labels against predictions, over the whole sequence.

        None where labels were not given (``expected_value`` needs none), NaN where all rows weigh
        nothing. Where labels were seen only where predicted, a value that needs the others is an
        ``EstimatedValue``: a float that says what it rests on.
        """
        if self.counts is None:
            return None
        if not self.counts.n > 0:
            return math.nan
        return reported_value(
            "trace.value", self.metric, self.policy, self.counts, self.state, stacklevel=4
        )

    @cached_property
    def expected_value(self) -> float | None:
        """The metric that the probabilities expect: an estimate, while ``value`` is counted.

        It is over the rows that the policy's decisions depend on, and None if the policy counts
        only labels. See ``Policy.expected_value``.
        """
        return self.policy.expected_value(self.state, self.metric)

    @property
    def classes(self) -> NDArray[Any]:
        """The predicted class of each row, if k = 1: names or ids, as in y.

        These are names if names are known, unless y has ids.

        >>> import omma, pandas as pd
        >>> eta = pd.DataFrame([[0.7, 0.3], [0.2, 0.8]], columns=["cat", "dog"])
        >>> omma.replay(omma.OMMA("multiclass_accuracy"), eta, ["cat", "dog"]).classes
        array(['cat', 'dog'], dtype='<U3')
        >>> omma.replay(omma.OMMA("multiclass_accuracy"), eta, [0, 1]).classes
        array([0, 1], dtype=int32)
        """
        if self.policy.budget != 1:
            raise ValueError(
                f"a trace has classes where k = 1, got k={self.policy.budget}: use predictions"
            )
        if self.predictions is None:
            raise ValueError("a trace has classes where predictions were kept")
        chosen = open_table("a trace", "predictions", self.predictions, self.names).values
        if sparse.issparse(chosen):  # its rows have one id each
            ids = chosen.indices.astype(np.int32)
        else:
            ids = np.atleast_2d(chosen.T).T.argmax(axis=1).astype(np.int32)
        return ids if self._classes is None else self._classes[ids]  # type: ignore[no-any-return]

    def _described_value(self) -> float | str:
        """The value; in words where it is an estimate or unknown."""
        if isinstance(self.value, EstimatedValue):
            return f"{self.value:.4f} (estimated: {self.value.rests_on})"
        if self.value is not None:
            return self.value
        expected = self.expected_value
        return "unknown" if expected is None else f"{expected:.4f} expected by probabilities"

    def __repr__(self) -> str:
        value = self._described_value()
        text = value if isinstance(value, str) else f"{value:.4f}"
        return f"<trace of {self.policy!r}: {self.metric.name} = {text}, {self.seconds:.3g} s>"

    def _repr_html_(self) -> str:
        counts = self.counts
        rows: list[tuple[str, Any]] = [(self.metric.name, self._described_value())]
        rows += [("rows", counts.n), ("labels", counts.m)] if counts is not None else []
        rows += [("seconds", f"{self.seconds:.3g}")]
        return html_table(repr(self.policy), ("", "value"), rows, len(rows))

    def plot(self, ax: Axes | None = None, *, gap: bool = False) -> Axes:
        """Draw the metric so far, as ``omma.plots.plot_running`` does; needs matplotlib.

        >>> import omma
        >>> from matplotlib.figure import Figure
        >>> eta, y = omma.datasets.long_tail(n=500, m=5, seed=0)
        >>> ax = omma.replay(omma.Auto("macro_f1"), eta, y).plot(Figure().add_subplot())
        >>> ax.get_ylabel()
        'macro_f1 so far, %'
        """
        from omma.plots import plot_running

        return plot_running({type(self.policy).__name__: self}, ax, gap=gap)
