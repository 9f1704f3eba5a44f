"""The online protocol over a whole sequence, and what is left of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omma._candidates import warn_of_rows
from omma._frames import Names, opened_pair, values_of
from omma._rows import (
    Labels,
    Probabilities,
    Rows,
    read_labels,
    read_probabilities,
    read_weights,
)
from omma._run import Progress, Run, Sequence, labels_of
from omma._validate import check_positive_int, check_seed, shown
from omma.certificate import Certificate
from omma.counts import Counts, counts_of
from omma.gap import Gap
from omma.kernels.layout import POSITIVE, PREDICTED, TP
from omma.metrics import Metric, metric as find_metric
from omma.policies import Policy
from omma.policies.base import check_task
from omma.rule import Rule


@dataclass(frozen=True)
class History:
    """The metric so far, at some rows of the sequence.

    ``rows`` are numbers of rows, ``values`` the metric over that many; it is worked out when it is
    first asked for.
    """

    rows: NDArray[np.int64]
    _counts: Callable[[], list[Counts]] = field(repr=False)
    _metric: Metric = field(repr=False)
    _gaps: Callable[[NDArray[np.float64]], tuple[Gap | None, ...]] | None = field(
        default=None, repr=False
    )

    @cached_property
    def gaps(self) -> tuple[Gap | None, ...]:
        """What could still be gained after ``rows[i]`` rows; empty where it was not asked for."""
        return () if self._gaps is None else self._gaps(self.values)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The metric over the first ``rows[i]`` rows; NaN where their weight is zero."""
        return np.array(
            [self._metric.value(counts) if counts.n > 0 else np.nan for counts in self._counts()]
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

    @cached_property
    def rule(self) -> Rule:
        """The policy's rule after the last row, with the names of the labels where known."""
        return self.policy.rule(self.state).named(self.names)

    @cached_property
    def value(self) -> float | None:
        """The metric of true labels against predictions, over the whole sequence.

        None where labels were not given, NaN where all rows weigh nothing.
        """
        if self.counts is None:
            return None
        return self.metric.value(self.counts) if self.counts.n > 0 else math.nan

    @property
    def classes(self) -> NDArray[np.int32]:
        """The predicted class of each row, where exactly one was predicted."""
        if self.policy.budget != 1:
            raise ValueError(
                f"a trace has classes where k = 1, got k={self.policy.budget}: use predictions"
            )
        if self.predictions is None:
            raise ValueError("a trace has classes where predictions were kept")
        if self._chosen is not None:
            return self._chosen[:, 0]  # type: ignore[no-any-return]
        found = values_of("a trace", "predictions", self.predictions)
        return np.atleast_2d(found.T).T.argmax(axis=1).astype(np.int32)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        value = "unknown" if self.value is None else f"{self.value:.4f}"
        return f"<trace of {self.policy!r}: {self.metric.name} = {value}, {self.seconds:.3g} s>"


def replay(
    policy: Policy,
    eta: Any,
    y: Any = None,
    *,
    metric: str | Metric | None = None,
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
        as they are.
    y : as eta, or class ids of shape (n,), optional
        True labels. They may be left out with ``feedback="estimates"``. Columns of a frame are
        matched with those of eta by name; class names stand for ids where names are known. Class
        ids are the names of the columns where these are whole numbers, as of a frame with the
        columns 1, 2, 3, and else their places. Rows go by their place: where pandas gives eta, y
        or weights an index, and two of them differ in its values or their order, they are refused.
        A default index (0, 1, …) goes with any other, but not with the same numbers in another
        order.
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
            f"policy of replay must be a policy, such as omma.OMMA('macro_f1'), got {shown(policy)}"
        )
    if seed is not None:
        check_seed("replay", seed)
    judged_by = _judge(policy, metric)
    table, y = opened_pair("replay", eta, y, policy.names, weights)
    rows = read_probabilities("replay", table.values)
    if rows.n == 0 or rows.m == 0:
        raise ValueError(f"eta of replay must have at least one row and label, got {_size(rows)}")
    judged_by.check_labels(rows.m)
    policy.check_labels(rows.m)
    labels = _labels(policy, judged_by, y, rows)
    if not _takes_all(policy):
        warn_of_rows("replay", rows, policy.budget)
    order = None if seed is None else np.random.default_rng(seed).permutation(rows.n)
    row_weights = read_weights("replay", weights, rows.n)
    places = _places(checkpoints, rows.n) if labels is not None else np.empty(0, dtype=np.int64)
    keep = predictions or judged_by.needs_matrix
    certificate = Certificate("replay", judged_by, policy.budget, rows.m) if gap else None
    with progress_bar(rows.n, repr(policy), progress) as advance:
        nowhere = np.empty(0, dtype=np.int64)
        done = policy.replay(
            Sequence(
                rows,
                labels,
                order,
                row_weights,
                checkpoints=nowhere if judged_by.needs_matrix else places,
                keep=keep,
                progress=advance,
            )
        )
    counts, history = _measured(judged_by, rows, labels, order, row_weights, places, done)
    if certificate is not None:
        taken = _certified(certificate, rows, labels, order, row_weights, places)
        history = None if history is None else replace(history, _gaps=taken)
    trace = Trace(
        policy,
        judged_by,
        counts,
        table.close(done.predictions) if predictions else None,
        history,
        done.state,
        done.seconds,
        table.names,
        _chosen=done.chosen,
    )
    return trace if certificate is None else replace(trace, gap=certificate.gap(trace.value))


def _certified(
    certificate: Certificate,
    rows: Probabilities,
    labels: Labels | None,
    order: Rows | None,
    weights: NDArray[Any],
    places: NDArray[np.int64],
) -> Callable[[NDArray[np.float64]], tuple[Gap | None, ...]]:
    """Run a certificate over a sequence; what is left makes the gap at each place of the values."""
    looks = []
    edges = np.concatenate(([0], places, [rows.n]))
    for start, stop in pairwise(edges):
        for begin in range(start, stop, rows.rows_per_block):
            end = min(begin + rows.rows_per_block, stop)
            part = np.arange(begin, end) if order is None else order[begin:end]
            true = labels_of(labels, part, listed=True)
            certificate.replay(rows, part, true, weights[part] if len(weights) else weights)
        looks.append(certificate.look())

    def gaps(values: NDArray[np.float64]) -> tuple[Gap | None, ...]:
        return tuple(look(float(value)) for look, value in zip(looks, values, strict=False))

    return gaps


def _takes_all(policy: Policy) -> bool:
    """Whether labels of probability zero are candidates: with a matrix of costs they are."""
    return policy.objective is not None and policy.objective.needs_matrix


def _size(rows: Probabilities) -> str:
    return f"{rows.n} rows and {rows.m} labels"


def _judge(policy: Policy, metric: str | Metric | None) -> Metric:
    if metric is not None:
        return find_metric(metric)
    if policy.objective is None:
        raise ValueError(
            f"metric of replay must be given for {policy!r}, which has none of its own: "
            "pass metric='macro_f1' or another"
        )
    return policy.objective


def _labels(policy: Policy, judged_by: Metric, y: Any, rows: Probabilities) -> Labels | None:
    if y is None:
        if policy.needs_labels:
            raise ValueError(
                f"y of replay must be given for {policy!r}: only feedback='estimates' learns "
                "without labels"
            )
        return None
    labels = read_labels("replay", y, rows.n, rows.m)
    check_task("replay", labels, rows, policy.budget, judged_by)
    return labels


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
    judged_by: Metric,
    rows: Probabilities,
    labels: Labels | None,
    order: Rows | None,
    weights: NDArray[Any],
    places: NDArray[np.int64],
    done: Run,
) -> tuple[Counts | None, History | None]:
    if labels is None:
        return None, None
    if judged_by.needs_matrix:
        every = _pair_counts(rows, labels, order, weights, places, done)
        return every[-1], History(places, lambda: every[:-1], judged_by)

    def snapshots() -> list[Counts]:
        pairs = zip(done.snapshots, done.snapshot_rows, strict=True)
        return [
            Counts(cells[TP], cells[PREDICTED], cells[POSITIVE], float(n)) for cells, n in pairs
        ]

    return counts_of(done.state), History(places, snapshots, judged_by)


def _pair_counts(
    rows: Probabilities,
    labels: Labels,
    order: Rows | None,
    weights: NDArray[Any],
    places: NDArray[np.int64],
    done: Run,
) -> list[Counts]:
    """Counts of class pairs after each place and at the end, for metrics that need them."""
    total = Counts.zeros(rows.m, matrix=True)
    every = []
    edges = np.concatenate(([0], places, [rows.n]))
    for start, stop in pairwise(edges):
        if start < stop:
            part = np.arange(start, stop) if order is None else order[start:stop]
            starts, _, ids = labels.block(part)
            total = total + Counts.from_labels(
                ids[starts],
                done.predictions[part],
                sample_weight=weights[part] if len(weights) else None,
                n_labels=rows.m,
                matrix=True,
            )
        every.append(total)
    return every


@contextmanager
def progress_bar(total: int, title: str, wanted: bool) -> Iterator[Progress | None]:
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
            bar.update(task, description=title, advance=count)

        yield advance
