"""What a policy did on a sequence, and the metric so far at some of its rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omma._html import html_table
from omma.certificate import Gap, Look
from omma.counts import Counts
from omma.held import Held, held
from omma.kernels.layout import POSITIVE, PREDICTED, TP
from omma.limits import Limit
from omma.metrics import Metric
from omma.policies import Policy
from omma.rows.frames import Names, opened
from omma.rule import Rule
from omma.state import in_proportion

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Snapshots:
    """Counts after some rows as plain arrays: cells (places, 3, m), and how much rows weighed.

    ``missed`` is how much of that each label was unknown in.
    """

    cells: NDArray[np.float64]
    rows: NDArray[np.float64]
    missed: NDArray[np.float64] | None = None

    def __iter__(self) -> Iterator[Counts]:
        missed = [None] * len(self.rows) if self.missed is None else self.missed
        for kept, n, less in zip(self.cells, self.rows, missed, strict=True):
            cells = in_proportion(kept, float(n), less)
            yield Counts(cells[TP], cells[PREDICTED], cells[POSITIVE], float(n))

    def values(self, metric: Metric) -> NDArray[np.float64]:
        """The metric after each of them; NaN where no row weighed anything yet."""
        has_rows = self.rows > 0.0
        rows = np.where(has_rows, self.rows, 1.0)
        missed = None if self.missed is None else self.missed[:, np.newaxis]
        cells = in_proportion(self.cells, rows[:, np.newaxis, np.newaxis], missed)  # type: ignore[arg-type]
        values = metric.values(cells[:, TP], cells[:, PREDICTED], cells[:, POSITIVE], rows)
        return np.where(has_rows, values, np.nan)


@dataclass(frozen=True)
class History:
    """The metric so far, at some rows of the sequence.

    ``rows`` are numbers of rows, ``values`` the metric over that many; it is computed when it is
    first asked for.
    """

    rows: NDArray[np.int64]
    _counts: Iterable[Counts] = field(repr=False)
    _metric: Metric = field(repr=False)
    _looks: tuple[Look, ...] = field(default=(), repr=False)  # what a certificate saw at each
    _limits: tuple[Limit, ...] = field(default=(), repr=False)

    @cached_property
    def limits(self) -> dict[str, NDArray[np.float64]]:
        """The values of the policy's limits over the first ``rows[i]`` rows, by their texts.

        They are of true labels, and of rows where these are known; ``trace.limits`` has what is
        held, which may be estimates, and what is predicted in all rows.
        """
        every = list(self._counts) if self._limits else []
        return {
            str(one): np.array([one.value(counts) if counts.n > 0 else np.nan for counts in every])
            for one in self._limits
        }

    @cached_property
    def gaps(self) -> tuple[Gap | None, ...]:
        """What could still be gained after ``rows[i]`` rows; empty where it was not asked for."""
        pairs = zip(self._looks, self.values, strict=False)  # the last look is after all rows
        return tuple(look(float(value)) for look, value in pairs)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The metric over the first ``rows[i]`` rows; NaN where their weight is zero."""
        if isinstance(self._counts, Snapshots):
            return self._counts.values(self._metric)
        return np.array(
            [self._metric.value(counts) if counts.n > 0 else np.nan for counts in self._counts]
        )

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Trace:
    """What a policy did on a sequence.

    Attributes
    ----------
    policy : Policy
    metric : Metric
        What ``value`` and ``history`` are measured by.
    counts : Counts or None
        True labels against predictions, without prior; None where labels were not given.
    predictions : ndarray, sparse matrix, frame, tensor or None
        Indicators in eta's shape and order, int8 or CSR; of a frame, a frame of the same library
        with the same columns and index, of a tensor a tensor. None if they were not kept.
    history : History or None
        The metric so far.
    state : State
        The policy's own state; with ``feedback="estimates"`` it counts probabilities.
    seconds : float
        Time of the replay, without compilation.
    names : list of str or None
        The names of the labels, where eta or y is a frame.
    gap : Gap or None
        What could still be gained at the end, where ``gap=True`` asked for it.
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
    _chosen: Any = field(repr=False, default=None)
    _classes: Any = field(repr=False, default=None)  # what they are called

    @cached_property
    def rule(self) -> Rule:
        """The policy's rule after the last row, with the names of the labels where known.

        Under limits it is at the mean price of each, which wanders less than the last one.
        """
        return self.policy.rule(self.state).named(self.names)

    @cached_property
    def limits(self) -> tuple[Held, ...]:
        """How the limits of the policy stand at the end.

        >>> import omma
        >>> eta, y = omma.datasets.long_tail(n=4000, m=20, seed=0)
        >>> policy = omma.Auto("macro_recall", k=3, subject_to="micro_precision >= 0.9")
        >>> print(*omma.replay(policy, eta, y).limits)  # doctest: +ELLIPSIS
        micro_precision: reached 0..., asked 0.90: no rule does better here
        """
        return held(self.policy, self.state)

    @cached_property
    def value(self) -> float | None:
        """The metric of true labels against predictions, over the whole sequence.

        None where labels were not given, NaN where all rows weigh nothing.
        """
        if self.counts is None:
            return None
        return self.metric.value(self.counts) if self.counts.n > 0 else math.nan

    @property
    def classes(self) -> NDArray[Any]:
        """The predicted class of each row, where exactly one was predicted, told as y tells it.

        By name where names are known, else by id; by id, too, where y has ids beside names.

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
        if self._chosen is not None:
            ids = self._chosen[:, 0]
        else:
            found = opened("a trace", "predictions", self.predictions, self.names).values
            ids = np.atleast_2d(found.T).T.argmax(axis=1).astype(np.int32)
        return ids if self._classes is None else self._classes[ids]  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        value = "unknown" if self.value is None else f"{self.value:.4f}"
        return f"<trace of {self.policy!r}: {self.metric.name} = {value}, {self.seconds:.3g} s>"

    def _repr_html_(self) -> str:
        value = "unknown" if self.value is None else self.value
        counts = self.counts
        rows = [(self.metric.name, value)]
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
