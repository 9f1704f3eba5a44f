"""How far probabilities can be trusted: reliability, expected calibration error, log-loss, Brier.

All of them take probabilities and labels as ``omma.replay`` does. A label that a sparse row
does not store has the probability zero, and counts like any other. With class ids, every class
is a label of its own, except for ``log_loss`` and ``brier``, which follow the usual definition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omma._frames import opened_pair
from omma._rows import (
    DenseProbabilities,
    Labels,
    Probabilities,
    blocks,
    check_rows,
    entries_of,
    read_labels,
    read_probabilities,
)
from omma._validate import check_choice, check_number, check_positive_int

LEAST = 1e-15  # a probability of zero or one is not taken as certain
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Reliability:
    """Predicted probability against observed frequency, by bins of probability.

    Attributes
    ----------
    edges : ndarray of shape (bins + 1,)
    predicted, observed : ndarray of shape (bins,)
        Mean probability, and the share of ones; NaN where a bin is empty.
    count : ndarray of shape (bins,)
        How many probabilities each bin holds.
    """

    edges: Floats
    predicted: Floats
    observed: Floats
    count: NDArray[np.int64]

    @property
    def expected_error(self) -> float:
        """Mean distance of the curve from the diagonal, bins weighing as much as they hold."""
        full = self.count > 0
        distance = np.abs(self.predicted[full] - self.observed[full])
        return float(distance @ self.count[full] / self.count.sum())

    @property
    def deviation(self) -> Floats:
        """Standard error of ``observed``, as if all cases were independent.

        A bin where all or none came true is not certain: a case more of each kind is counted.
        """
        share = (np.nan_to_num(self.observed) * self.count + 1) / (self.count + 2)
        error: Floats = np.sqrt(share * (1 - share) / (self.count + 2))
        return error


def reliability(
    eta: Any, y: Any, bins: int = 10, *, strategy: str = "width", label: int | None = None
) -> Reliability:
    """Group probabilities into bins, and compare each with how often it came true.

    Parameters
    ----------
    eta : ndarray or CSR of shape (n, m), or (n,)
    y : indicators of shape (n, m), dense or sparse, or class ids of shape (n,)
    bins : int
    strategy : {"width", "mass"}
        Bins of equal width, or such that each holds about as many probabilities. As
        with scikit-learn, equal probabilities stay together, so there may be fewer bins.
    label : int, optional
        Look at this label alone; default all of them together.

    Returns
    -------
    Reliability

    Examples
    --------
    >>> import omma
    >>> from omma.calibration import reliability
    >>> eta, y = omma.datasets.long_tail(n=2000, m=20, seed=0)
    >>> curve = reliability(eta, y, bins=4)
    >>> curve.predicted.round(2), curve.observed.round(2)
    (array([0.05, 0.35, 0.61, 0.86]), array([0.05, 0.35, 0.6 , 0.85]))
    """
    owner = "reliability"
    check_positive_int(owner, "bins", bins)
    check_choice(owner, "strategy", strategy, ("width", "mass"))
    cases = Cases.read(owner, eta, y, label)
    edges = np.linspace(0.0, 1.0, bins + 1)
    if strategy == "mass":
        edges = _quantiles(cases, edges)
    return _grouped(cases, edges)


def expected_error(eta: Any, y: Any, bins: int = 10, *, strategy: str = "width") -> float:
    """Expected calibration error: how far, on average, probabilities are from frequencies.

    >>> from omma.calibration import expected_error
    >>> expected_error([[0.2], [0.2], [0.9]], [[0], [1], [1]])
    0.233
    """
    return reliability(eta, y, bins, strategy=strategy).expected_error


def log_loss(eta: Any, y: Any) -> float:
    """Mean log-loss: over rows and labels, or with class ids over rows.

    Zeros and ones are taken as 1e-15 and 1 - 1e-15.

    >>> from omma.calibration import log_loss
    >>> log_loss([[0.5, 0.25]], [1])  # one class a row: -log 0.25
    1.386
    >>> log_loss([[0.5, 0.25]], [[0, 1]])  # labels: (-log 0.5 - log 0.25) / 2
    1.040
    """
    cases = Cases.read("log_loss", eta, y)
    total = 0.0
    for part in cases.parts():
        total -= np.log(np.maximum(part.values[part.hits], LEAST)).sum()
        total -= part.hidden_hits * np.log(LEAST)
        if not cases.labels.class_ids:
            total -= np.log1p(-np.minimum(part.values[~part.hits], 1 - LEAST)).sum()
    return float(total / cases.judged)


def brier(eta: Any, y: Any) -> float:
    """Brier score: mean of (probability - label)², or with class ids its sum over classes.

    >>> from omma.calibration import brier
    >>> brier([[0.5, 0.25]], [[0, 1]])
    0.406
    """
    cases = Cases.read("brier", eta, y)
    total = sum(
        np.square(part.values - part.hits).sum() + part.hidden_hits for part in cases.parts()
    )
    return float(total / cases.judged)


class Part(NamedTuple):
    """Probabilities of a block of rows, and which came true; those not stored are zero."""

    values: Floats
    hits: NDArray[np.bool_]
    hidden: int
    hidden_hits: int


@dataclass(frozen=True)
class Cases:
    """Every pair of row and label, read a block of rows at a time."""

    rows: Probabilities
    labels: Labels
    label: int | None = None

    @classmethod
    def read(cls, owner: str, eta: Any, y: Any, label: int | None = None) -> Cases:
        """Check all that is given."""
        table, y = opened_pair(owner, eta, y)
        rows = read_probabilities(owner, table.values)
        if not rows.n:
            raise ValueError(f"eta of {owner} must have at least one row, got none")
        check_rows(owner, rows)
        if label is not None:
            check_number(owner, "label", label, low=0, high=rows.m - 1)
        return cls(rows, read_labels(owner, y, rows.n, rows.m), label)

    @property
    def judged(self) -> int:
        """What a mean is taken over: rows with a class each, or pairs of row and label."""
        return self.rows.n if self.labels.class_ids else self.rows.n * self.rows.m

    def parts(self) -> Iterator[Part]:
        """Blocks of rows, one after another."""
        for _, block in blocks(self.rows.n, self.rows.rows_per_block, None):
            starts, ends, ids = self.labels.block(block)
            owner = np.repeat(np.arange(len(block)), ends - starts)
            yield self._part(block, owner, ids[entries_of(starts, ends)])

    def _part(self, block: Any, owner: Any, true: Any) -> Part:
        m = self.rows.m
        if isinstance(self.rows, DenseProbabilities):
            values = np.asarray(self.rows.array[block], dtype=np.float64)
            hits = np.zeros(values.shape, dtype=np.bool_)
            hits[owner, true] = True
            if self.label is not None:
                values, hits = values[:, self.label], hits[:, self.label]
            return Part(values.ravel(), hits.ravel(), 0, 0)
        stored = self.rows.matrix[block[0] : block[-1] + 1].tocoo()
        values, row, column = stored.data.astype(np.float64), stored.coords[0], stored.coords[1]
        pairs = len(block) * m
        if self.label is not None:
            values, row = values[column == self.label], row[column == self.label]
            column = np.full(len(row), self.label)
            owner, true, pairs = owner[true == self.label], true[true == self.label], len(block)
        hits = np.isin(row.astype(np.int64) * m + column, owner * m + true)
        return Part(values, hits, pairs - len(values), len(true) - int(hits.sum()))


def _quantiles(cases: Cases, shares: Floats) -> Floats:
    """Edges of bins that hold as many cases each, equal edges being one."""
    parts = list(cases.parts())
    values = np.sort(np.concatenate([part.values for part in parts]))
    hidden = sum(part.hidden for part in parts)
    # Cases that are not stored are zeros before all others; linear between neighbours, as NumPy.
    place = shares * (len(values) + hidden - 1)
    low = np.floor(place).astype(np.int64)
    first, second = (
        np.where(at < hidden, 0.0, values[np.clip(at - hidden, 0, len(values) - 1)])
        if len(values)
        else np.zeros(len(at))
        for at in (low, np.minimum(low + 1, len(values) + hidden - 1))
    )
    return np.unique(first + (place - low) * (second - first))


def _grouped(cases: Cases, edges: Floats) -> Reliability:
    """Sums of each bin; a bin reaches from its lower edge up to, but without, its upper one."""
    bins = max(1, len(edges) - 1)
    count, total, hits = np.zeros(bins, np.int64), np.zeros(bins), np.zeros(bins)
    for part in cases.parts():
        place = np.searchsorted(edges[1:-1], part.values, side="right")
        count += np.bincount(place, minlength=bins)
        total += np.bincount(place, part.values, minlength=bins)
        hits += np.bincount(place, part.hits, minlength=bins)
        zero = np.searchsorted(edges[1:-1], 0.0, side="right")
        count[zero] += part.hidden
        hits[zero] += part.hidden_hits
    with np.errstate(invalid="ignore"):
        return Reliability(edges, total / count, hits / count, count)
