"""The online protocol over a whole sequence, and what is left of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omma._candidates import warn_of_rows
from omma._html import html_table
from omma._validate import check_positive_int, check_seed, shown
from omma.certificate import Certificate, Look
from omma.counts import Counts, counts_of
from omma.gap import Gap
from omma.held import Held, held
from omma.kernels.layout import POSITIVE, PREDICTED, TP
from omma.limits import Limit
from omma.metrics import Metric, metric as find_metric
from omma.metrics.names import MetricName
from omma.policies import Policy
from omma.policies.base import check_task, fit_first
from omma.rows.batch import Batch
from omma.rows.frames import Names, opened
from omma.rows.labels import Labels
from omma.rule import Rule
from omma.running.empty import NO_ROWS
from omma.running.runner import Run
from omma.running.sequence import Progress, Sequence
from omma.running.truth import labels_of
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


@dataclass(frozen=True)
class History:
    """The metric so far, at some rows of the sequence.

    ``rows`` are numbers of rows, ``values`` the metric over that many; it is worked out when it is
    first asked for.
    """

    rows: NDArray[np.int64]
    _counts: Iterable[Counts] = field(repr=False)
    _metric: Metric = field(repr=False)
    _looks: tuple[Look, ...] = field(default=(), repr=False)  # what a certificate saw at each
    _limits: tuple[Limit, ...] = field(default=(), repr=False)

    @cached_property
    def limits(self) -> dict[str, NDArray[np.float64]]:
        """The values of the policy's limits over the first ``rows[i]`` rows, by their texts."""
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


def replay(
    policy: Policy,
    eta: Any,
    y: Any = None,
    *,
    metric: MetricName | str | Metric | None = None,
    seed: int | None = None,
    weights: ArrayLike | None = None,
    predictions: bool = True,
    checkpoints: int | ArrayLike = 50,
    progress: bool = False,
    gap: bool = False,
) -> Trace:
    """Run a policy over a sequence: for each row decide, then learn its labels.

    Parameters
    ----------
    policy : Policy
        For example ``omma.OMMA("macro_f1")``.
    eta : array-like, sparse matrix, frame or tensor of shape (n, m), or (n,) for a binary problem
        Probability of each label in each row. pandas and polars frames and torch tensors are read
        as they are. Or an ``omma.Batch`` with all of eta, y and weights, read before.
    y : as eta, or class ids of shape (n,), optional
        True labels. They may be left out with ``feedback="estimates"``. Columns of a frame are
        matched with those of eta by name; class names stand for ids where names are known. Class
        ids are the names of the columns where these are whole numbers, as of a frame with the
        columns 1, 2, 3, and else their places. Rows go by their place: where pandas gives eta, y
        or weights an index, and two of them differ in its values or their order, they are refused.
        A default index (0, 1, …) goes with any other, but not with the same numbers in another
        order. Labels that are NaN are unknown: of whole rows, where probabilities are counted, or
        of some entries; known ones then count where they are (see the page on missing labels).
    metric : str or Metric, optional
        What to measure by; default the policy's own.
    seed : int, optional
        Take the rows in the order ``numpy.random.default_rng(seed).permutation(n)``; None keeps
        theirs.
    weights : array-like of shape (n,), optional
        A row of weight w counts as w rows with the same decision.
    predictions : bool
        Keep the predictions. Where a row has fewer than k labels of probability above zero, the
        lowest other labels fill up, and a warning says in how many rows; ``at_most`` has none.
    checkpoints : int or array-like
        How many places, evenly spaced, to take ``trace.history`` at; or the numbers of rows.
    progress : bool
        Show a progress bar.
    gap : bool
        Estimate also what could still be gained: ``trace.gap``, and at the checkpoints
        ``trace.history.gaps``. A replay then takes three to four times as long.

    Returns
    -------
    Trace

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=1000, m=10, seed=0)
    >>> trace = omma.replay(omma.OMMA("macro_f1", k=3), eta, y)
    >>> trace.predictions.sum(axis=1).tolist() == [3] * 1000
    True
    >>> trace.value == trace.metric.value(trace.counts)
    True
    """
    if not isinstance(policy, Policy):
        raise TypeError(
            "policy of replay must be a policy, such as omma.OMMA('macro_f1'), got "
            f"{shown(policy)}{fit_first(policy)}"
        )
    if seed is not None:
        check_seed("replay", seed)
    judged_by = _judge(policy, metric)
    batch = Batch.read("replay", eta, y, weights, policy.names)
    policy = policy.for_names(batch.names)
    _check(policy, judged_by, batch)
    if not _takes_all(policy):
        warn_of_rows("replay", batch.eta, policy.budget)
    order = None if seed is None else np.random.default_rng(seed).permutation(batch.n)
    given = Sequence(
        batch,
        order,
        _places(checkpoints, batch.n) if batch.labels is not None else NO_ROWS,
        keep=predictions or judged_by.needs_matrix,
    )
    certificate = Certificate("replay", judged_by, policy.budget, batch.m) if gap else None
    done = _run(policy, given, pairs=judged_by.needs_matrix, progress=progress)
    counts, history = _measured(judged_by, given, done)
    if history is not None and policy.limits:
        found = tuple(one.named(None, batch.m, "replay") for one in policy.limits)
        history = replace(history, _limits=found)
    if certificate is not None:
        looks = _certified(certificate, given)
        history = None if history is None else replace(history, _looks=looks)
    trace = Trace(
        policy,
        judged_by,
        counts,
        batch.close(done.predictions) if predictions else None,
        history,
        done.state,
        done.seconds,
        batch.names,
        _chosen=done.chosen,
        _classes=batch.classes,
    )
    return trace if certificate is None else replace(trace, gap=certificate.gap(trace.value))


def _run(policy: Policy, given: Sequence, *, pairs: bool, progress: bool) -> Run:
    """Run the policy; where pairs of classes are counted afterwards, it keeps no other counts."""
    with progress_bar(given.batch.n, policy, progress) as advance:
        wanted = NO_ROWS if pairs else given.checkpoints
        return policy.replay(replace(given, checkpoints=wanted, progress=advance))


def _certified(certificate: Certificate, given: Sequence) -> tuple[Look, ...]:
    """Run a certificate over a sequence; what it saw at each checkpoint, and at the end."""
    looks, weights = [], given.weights
    step = given.eta.rows_per_block
    for start, stop in pairwise((0, *given.checkpoints.tolist(), given.batch.n)):
        for begin in range(start, stop, step):
            end = min(begin + step, stop)
            part = np.arange(begin, end) if given.order is None else given.order[begin:end]
            true = labels_of(given.batch.labels, part, listed=True)
            certificate.replay(given.eta, part, true, weights[part] if len(weights) else weights)
        looks.append(certificate.look())
    return tuple(looks)


def _takes_all(policy: Policy) -> bool:
    """Whether labels of probability zero are candidates: with a matrix of costs they are."""
    return policy.objective is not None and policy.objective.needs_matrix


def _judge(policy: Policy, metric: str | Metric | None) -> Metric:
    if metric is not None:
        return find_metric(metric)
    if policy.objective is None:
        raise ValueError(
            f"metric of replay must be given for {policy!r}, which has none of its own: "
            "pass metric='macro_f1' or another"
        )
    return policy.objective


def _check(policy: Policy, judged_by: Metric, batch: Batch) -> None:
    """Refuse rows that policy or metric cannot go with."""
    if batch.n == 0 or batch.m == 0:
        raise ValueError(
            f"eta of replay must have at least one row and label, got {batch.n} rows and "
            f"{batch.m} labels"
        )
    if judged_by is not policy.objective:
        judged_by.check_labels(batch.m)
    policy.check_labels(batch.m)
    if batch.labels is not None:
        unknown = not policy.needs_labels
        check_task("replay", batch, policy.budget, judged_by, unknown=unknown, parts=policy)
    elif policy.needs_labels:
        raise ValueError(
            f"y of replay must be given for {policy!r}: only feedback='estimates' learns "
            "without labels"
        )


def _places(checkpoints: int | ArrayLike, n: int) -> NDArray[np.int64]:
    if np.ndim(checkpoints) == 0:
        if checkpoints == 0:
            return np.empty(0, dtype=np.int64)
        check_positive_int("replay", "checkpoints", checkpoints)
        number = min(int(checkpoints), n)  # type: ignore[arg-type]
        return np.unique(np.linspace(n / number, n, number).round().astype(np.int64))
    places = np.asarray(checkpoints)
    rising = places.ndim == 1 and (np.diff(places) > 0).all()
    if not rising or places.dtype.kind not in "iu" or (len(places) and not places[0] > 0):
        raise ValueError(
            f"checkpoints of replay must be rising numbers of rows, got {shown(checkpoints)}"
        )
    if len(places) and places[-1] > n:
        raise ValueError(
            f"checkpoints of replay must be at most {n}, the number of rows, got {places[-1]}"
        )
    return places.astype(np.int64)


def _measured(
    judged_by: Metric, given: Sequence, done: Run
) -> tuple[Counts | None, History | None]:
    if given.batch.labels is None:
        return None, None
    if judged_by.needs_matrix:
        *every, last = _pair_counts(given, given.batch.labels, done)
        return last, History(given.checkpoints, tuple(every), judged_by)
    taken = Snapshots(done.snapshots, done.snapshot_rows, done.missed)
    return counts_of(done.state), History(given.checkpoints, taken, judged_by)


def _pair_counts(given: Sequence, labels: Labels, done: Run) -> Iterator[Counts]:
    """Counts of class pairs after each checkpoint and at the end, for metrics that need them."""
    batch, weights = given.batch, given.weights
    total = Counts.zeros(batch.m, matrix=True)
    for start, stop in pairwise((0, *given.checkpoints.tolist(), batch.n)):
        if start < stop:
            part = np.arange(start, stop) if given.order is None else given.order[start:stop]
            known = labels.known_of(part)
            part = part[known > 0] if len(known) else part
            starts, _, ids = labels.block(part)
            total = total + Counts.from_labels(
                ids[starts],
                done.predictions[part],
                sample_weight=weights[part] if len(weights) else None,
                n_labels=batch.m,
                matrix=True,
            )
        yield total


@contextmanager
def progress_bar(total: int, title: object, wanted: bool) -> Iterator[Progress | None]:
    """A progress bar on standard error, if wanted."""
    if not wanted:
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress as Bar,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("compiling", total=total)

        def advance(count: int) -> None:
            bar.update(task, description=str(title), advance=count)

        yield advance
