"""The online protocol over a whole sequence."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omma._candidates import warn_of_rows
from omma._pool import progress_bar
from omma._validate import check_positive_int, check_seed, shown
from omma.certificate import Certificate, Gap
from omma.counts import Counts, counts_of, snapshot_counts
from omma.engine import Engine
from omma.limits import Limit
from omma.metrics import Metric, metric as find_metric
from omma.metrics.names import MetricName
from omma.policies import Policy
from omma.policies.base import check_is_policy, check_learns
from omma.rows.arrays import NO_ROWS, SparseProbabilities, blocks
from omma.rows.batch import Batch
from omma.rows.labels import TrueLabels
from omma.trace import History, Trace, values_at
from omma.unseen import check_policy, check_seen, read_audited

FEWEST = 3  # checkpoints at least
PASSES = 2  # over all labels, at most, for as many entries as there are labels
COPIED = 2**22  # numbers that copies of all counts at checkpoints may take: 32 MB


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
    seen: str | None = None,
    audited: ArrayLike | None = None,
) -> Trace:
    """Run a policy over a sequence: decide each row, then learn its labels.

    Parameters
    ----------
    policy : Policy
        For example ``omma.Auto("macro_f1")``.
    eta : array-like, sparse matrix, frame or tensor of shape (n, m), or (n,) for a binary problem
        Probability of each label in each row. pandas and polars frames and torch tensors are
        accepted. Or an ``omma.Batch`` that contains eta, y and weights.
    y : as eta, or class ids of shape (n,), optional
        True labels. They may be omitted with ``feedback="estimates"``. NaN is unknown, for whole
        rows or single entries; see "Missing labels".

        Columns of frames are matched by name. Class ids are positions, or column names if these
        are whole numbers (a frame with the columns 1, 2, 3) or if names are known. Rows are matched
        by position. If eta, y and weights have pandas indexes that differ, they are refused; a
        default index (0, 1, …) fits any other index except the same numbers in another order.
    metric : str or Metric, optional
        The metric of ``trace.value``; default the policy's own.
    seed : int, optional
        Shuffle the rows by ``numpy.random.default_rng(seed).permutation(n)``. None keeps their
        order.
    weights : array-like of shape (n,), optional
        A row of weight w counts as w rows with the same decision. Weights are not costs: all
        rows share one rule. For a cost of each row see ``omma.metrics.RowCosts``.
    predictions : bool
        Keep the predictions. With k, a row with fewer than k probabilities above zero is filled up
        with the lowest other labels, and a warning says in how many rows.
    checkpoints : int or array-like
        The number of evenly spaced points of ``trace.history``, or the row numbers themselves.
        Sparse rows with very many labels have fewer points, because each takes a pass over all
        labels.
    progress : bool
        Show a progress bar.
    gap : bool
        Also estimate how much could still be gained: ``trace.gap``, and ``trace.history.gaps`` at
        the checkpoints. A replay then takes three to four times as long.
    seen : {None, "predicted"}
        "predicted": labels are seen only where they were predicted, like clicks on shown items.
        Other entries of y are ignored, and values that need them are estimates; see "Labels seen
        only where predicted".
    audited : array-like of shape (n,), optional
        With ``seen="predicted"``: True for rows whose labels were all checked. Choose these rows at
        random, independently of their probabilities.

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
    check_is_policy("replay", policy)
    judged_by = policy.objective if metric is None else find_metric(metric)
    if judged_by is None:
        raise ValueError(
            f"metric of replay must be given for {policy!r}, which has none of its own: "
            "pass metric='macro_f1' or another"
        )
    batch = Batch.read("replay", eta, y, weights, policy.names)
    # Limits may name labels: with names known, they are about places.
    if batch.names is not None:
        policy = policy.for_names(batch.names)
    engine = _engine(policy, judged_by, batch)
    if seen is not None or audited is not None:
        check_seen("replay", seen, audited)
    flags = None
    if seen is not None:
        check_policy("replay", policy, judged_by)
        if gap or batch.labels is None:
            missing = "y" if batch.labels is None else "whole rows, so no gap=True"
            raise ValueError(f"seen='predicted' of replay needs {missing}")
        flags = read_audited("replay", audited, batch.n)
    order = None
    if seed is not None:
        order = np.random.default_rng(check_seed("replay", seed)).permutation(batch.n)
    places = NO_ROWS if batch.labels is None else _places(checkpoints, batch)
    # Values of limits are taken at the checkpoints, too.
    limits = tuple(limit.named(None, batch.m, "replay") for limit in policy.limits)
    measures: tuple[Metric | Limit, ...] = (judged_by, *limits)
    taken: list[NDArray[np.float64]] = []

    def take_values(cells: NDArray[np.float64], rows: float) -> None:
        taken.append(values_at(measures, [Counts._unchecked(np.array(cells), rows)]))

    # Where labels are unknown in some rows, and where copies of all counts would take much memory,
    # values are worked out at their checkpoint.
    partly = batch.labels is not None and batch.labels.missing is not None
    is_long = 3 * batch.m * len(places) > COPIED
    look = take_values if partly or seen is not None or is_long else None
    # Pairs of classes are counted after the replay, which then copies no counts.
    pairs = judged_by.matrix is not None
    certificate = Certificate("replay", judged_by, policy.budget, batch.m) if gap else None
    with progress_bar(batch.n, policy) if progress else nullcontext() as advance:
        done = engine.replay(
            f"replay of {type(policy).__name__}",
            batch,
            order,
            keep=predictions or pairs,
            checkpoints=NO_ROWS if pairs else places,
            look=None if pairs else look,
            progress=advance,
            audited=flags,
        )
    # With a matrix of costs labels of probability zero are candidates, too.
    if done.filled and (policy.objective is None or not policy.objective.needs_matrix):
        warn_of_rows("replay", batch.eta, policy.budget, done.filled)
    stretches: list[NDArray[np.int64]] = []
    if pairs or gap:  # rows up to each checkpoint, and those after the last one
        rows = np.arange(batch.n, dtype=np.int64) if order is None else order
        stretches = np.split(rows, places)
    # A second pass, which is not part of the policy's time.
    gaps = () if certificate is None else _certified(certificate, batch, stretches)
    counts = history = None
    if batch.labels is not None:
        if pairs:
            *copies, counts = _pair_counts(batch, batch.labels, stretches, done.predictions)
            snapshots: Any = partial(list, copies)
        else:
            counts = counts_of(done.state)
            snapshots = partial(snapshot_counts, done.snapshots, done.snapshot_rows)
        history = History(places, measures, snapshots, taken, gaps)
    trace = Trace(
        policy,
        judged_by,
        counts,
        batch.restore_type(done.predictions) if predictions else None,
        history,
        done.state,
        done.seconds,
        batch.names,
        _classes=batch.classes,
    )
    return trace if certificate is None else replace(trace, gap=certificate.gap(trace.value))


def _certified(
    certificate: Certificate, batch: Batch, stretches: list[NDArray[np.int64]]
) -> tuple[Gap | None, ...]:
    """Run a certificate over stretches of rows; the gap after each of them, without a value."""
    gaps = []
    for rows in stretches:
        for _, block in blocks(len(rows), batch.eta.rows_per_block, rows):
            certificate.replay(batch, block)
        gaps.append(certificate.gap(None))
    return tuple(gaps)


def _engine(policy: Policy, judged_by: Metric, batch: Batch) -> Engine:
    """A new engine; refuses rows that do not suit the policy or the metric."""
    if batch.n == 0 or batch.m == 0:
        raise ValueError(
            f"eta of replay must have at least one row and label, got {batch.n} rows and "
            f"{batch.m} labels"
        )
    if judged_by is not policy.objective:
        judged_by.check_labels(batch.m)
    engine = policy.engine(policy.init(batch.m))
    check_learns("replay", policy, batch, judged_by)
    if batch.labels is None and policy.needs_labels:
        raise ValueError(
            f"y of replay must be given for {policy!r}: only feedback='estimates' learns "
            "without labels"
        )
    return engine


def _places(checkpoints: int | ArrayLike, batch: Batch) -> NDArray[np.int64]:
    n = batch.n
    if isinstance(checkpoints, Hashable) and np.ndim(checkpoints) == 0:
        # A look takes about as long as deciding m stored entries.
        stored = batch.eta.matrix.nnz if isinstance(batch.eta, SparseProbabilities) else n * batch.m
        affordable = max(FEWEST, PASSES * stored // batch.m)
        return _evenly(checkpoints, min(affordable, n), n).copy()
    # Kernels go through the places once, so these must rise.
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


@lru_cache(maxsize=16, typed=True)
def _evenly(checkpoints: Any, most: int, n: int) -> NDArray[np.int64]:
    """Evenly spaced numbers of rows, for replays of n rows; the number of them is checked once."""
    number = min(check_positive_int("replay", "checkpoints", checkpoints, least=0), most)
    steps = np.linspace(n / max(number, 1), n, number)
    return np.unique(steps.round().astype(np.int64))


def _pair_counts(
    batch: Batch, labels: TrueLabels, stretches: list[NDArray[np.int64]], predictions: Any
) -> Iterator[Counts]:
    """Counts of class pairs after each stretch of rows, for metrics that need them."""
    weights, total = batch.row_weights, Counts.zeros(batch.m, matrix=True)
    for part in stretches:
        # Rows whose class is unknown are in no pair.
        part = part if labels.complete is None else part[labels.complete[part]]
        if len(part):
            pair = labels.values[part], predictions[part]
            total += Counts.from_labels(*pair, sample_weight=weights[part], matrix=True)
        yield total
