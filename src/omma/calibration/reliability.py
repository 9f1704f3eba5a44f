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
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc

from omma._validate import check_choice, check_number, check_positive_int
from omma.rows.arrays import DenseProbabilities, blocks, entries_of
from omma.rows.batch import Batch
from omma.rows.labels import Labels

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
        How many probabilities each bin holds, or their weight.
    """

    edges: Floats
    predicted: Floats
    observed: Floats
    count: NDArray[np.int64] | Floats

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

    @property
    def p_values(self) -> Floats:
        """How likely chance alone makes each bin as far off: a two-sided binomial test.

        Probabilities within a bin differ, so that its hits vary less than binomial ones, and the
        test is on the safe side. Exact tails matter where rates are small: 2 hits where 0.1 were
        expected are many standard errors off and not rare. 1 where a bin is empty.
        """
        filled = self.count > 0
        hits = np.round(np.where(filled, self.observed, 0.0) * self.count)
        share = np.clip(np.where(filled, self.predicted, 0.5), LEAST, 1 - LEAST)
        # P(X >= h) and P(X <= h) of a binomial, by the incomplete beta function.
        misses = np.maximum(self.count - hits, 0.0)
        at_least = np.where(hits > 0, betainc(np.maximum(hits, 1e-9), misses + 1, share), 1.0)
        at_most = np.where(misses > 0, betainc(np.maximum(misses, 1e-9), hits + 1, 1 - share), 1.0)
        found: Floats = np.where(filled, np.minimum(2 * np.minimum(at_least, at_most), 1.0), 1.0)
        return found

    @property
    def beyond_chance(self) -> NDArray[np.bool_]:
        """Bins that are off by more than chance, at 1 % for all bins together (Bonferroni)."""
        filled = max(int((self.count > 0).sum()), 1)
        beyond: NDArray[np.bool_] = self.p_values < 0.01 / filled
        return beyond


def reliability(
    eta: Any,
    y: Any = None,
    bins: int = 10,
    *,
    strategy: str = "width",
    label: int | None = None,
    weights: ArrayLike | None = None,
) -> Reliability:
    """Group probabilities into bins, and compare each with how often it came true.

    Parameters
    ----------
    eta : ndarray or CSR of shape (n, m), or (n,), or an ``omma.Batch`` with its labels
    y : indicators of shape (n, m), dense or sparse, or class ids of shape (n,)
    bins : int
    strategy : {"width", "mass"}
        Bins of equal width, or such that each holds about as many probabilities. As
        with scikit-learn, equal probabilities stay together, so there may be fewer bins.
    label : int, optional
        Look at this label alone; default all of them together.
    weights : array-like of shape (n,), optional
        A row of weight w counts as w rows.

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
    cases = Cases.read(owner, eta, y, label, weights)
    edges = np.linspace(0.0, 1.0, bins + 1)
    if strategy == "mass":
        edges = _quantiles(cases, edges)
    return _grouped(cases, edges)


def expected_error(
    eta: Any,
    y: Any = None,
    bins: int = 10,
    *,
    strategy: str = "width",
    weights: ArrayLike | None = None,
) -> float:
    """Expected calibration error: how far, on average, probabilities are from frequencies.

    >>> from omma.calibration import expected_error
    >>> expected_error([[0.2], [0.2], [0.9]], [[0], [1], [1]])
    0.233
    """
    return reliability(eta, y, bins, strategy=strategy, weights=weights).expected_error


def log_loss(eta: Any, y: Any = None, *, weights: ArrayLike | None = None) -> float:
    """Mean log-loss: over rows and labels, or with class ids over rows.

    Zeros and ones are taken as 1e-15 and 1 - 1e-15.

    >>> from omma.calibration import log_loss
    >>> log_loss([[0.5, 0.25]], [1])  # one class a row: -log 0.25
    1.386
    >>> log_loss([[0.5, 0.25]], [[0, 1]])  # labels: (-log 0.5 - log 0.25) / 2
    1.040
    """
    cases = Cases.read("log_loss", eta, y, weights=weights)
    total = 0.0
    for part in cases.parts():
        hits, rest = part.hits, ~part.hits
        total -= float(np.log(np.maximum(part.values[hits], LEAST)) @ part.weight[hits])
        total -= part.hidden_hits * np.log(LEAST)
        if not cases.labels.class_ids:
            missed = np.log1p(-np.minimum(part.values[rest], 1 - LEAST))
            total -= float(missed @ part.weight[rest])
    return float(total / cases.judged)


def brier(eta: Any, y: Any = None, *, weights: ArrayLike | None = None) -> float:
    """Brier score: mean of (probability - label)², or with class ids its sum over classes.

    >>> from omma.calibration import brier
    >>> brier([[0.5, 0.25]], [[0, 1]])
    0.406
    """
    cases = Cases.read("brier", eta, y, weights=weights)
    total = sum(
        np.square(part.values - part.hits) @ part.weight + part.hidden_hits
        for part in cases.parts()
    )
    return float(total / cases.judged)


class Part(NamedTuple):
    """Probabilities of a block of rows, and which came true; those not stored are zero."""

    values: Floats
    hits: NDArray[np.bool_]
    weight: Floats
    hidden: float  # the weight of what is not stored
    hidden_hits: float


@dataclass(frozen=True)
class Cases:
    """Every pair of row and label of which the label is known, read a block of rows at a time."""

    batch: Batch
    labels: Labels
    label: int | None = None
    weights: Floats | None = None  # of the rows, where they were given

    @classmethod
    def read(
        cls,
        owner: str,
        eta: Any,
        y: Any,
        label: int | None = None,
        weights: ArrayLike | None = None,
    ) -> Cases:
        """Check all that is given."""
        batch = Batch.read(owner, eta, y, weights)
        if not batch.n:
            raise ValueError(f"eta of {owner} must have at least one row, got none")
        batch.check(owner)
        if label is not None:
            check_number(owner, "label", label, low=0, high=batch.m - 1)
        if batch.labels is None:
            raise ValueError(f"y of {owner} must be given, got None")
        if batch.labels.known is not None:
            batch = batch.take(batch.labels.known)
            if not batch.n:
                raise ValueError(f"y of {owner} must have labels that are known, got nan alone")
        assert batch.labels is not None
        given = batch.weights if len(batch.weights) else None
        if given is not None and not given.sum() > 0:
            raise ValueError(f"weights of {owner} must not all be zero")
        return cls(batch, batch.labels, label, given)

    @property
    def judged(self) -> float:
        """What a mean is taken over: rows with a class each, or pairs of row and label."""
        total = self.batch.n if self.weights is None else float(self.weights.sum())
        if self.labels.class_ids:
            return total
        missing, m = self.labels.missing, self.batch.m
        if missing is None:
            return total * m
        lacking = np.diff(missing.indptr)
        unknown = lacking.sum() if self.weights is None else self.weights @ lacking
        return total * m - float(unknown)

    def parts(self) -> Iterator[Part]:
        """Blocks of rows, one after another."""
        for _, block in blocks(self.batch.n, self.batch.eta.rows_per_block, None):
            starts, ends, ids = self.labels.block(block)
            owner = np.repeat(np.arange(len(block)), ends - starts)
            yield self._part(block, owner, ids[entries_of(starts, ends)])

    def _part(self, block: Any, owner: Any, true: Any) -> Part:
        m, eta = self.batch.m, self.batch.eta
        weight = np.ones(len(block)) if self.weights is None else self.weights[block]
        lacking = self._lacking(block)
        if isinstance(eta, DenseProbabilities):
            values = np.asarray(eta.array[block], dtype=np.float64)
            hits, known = np.zeros((2, *values.shape), dtype=np.bool_)
            hits[owner, true] = True
            known[...] = True
            known.ravel()[lacking] = False
            of = np.s_[:] if self.label is None else np.s_[:, self.label]
            weights = np.repeat(weight, m).reshape(values.shape)
            there = known[of]
            return Part(values[of][there], hits[of][there], weights[of][there], 0.0, 0.0)
        stored = eta.matrix[block[0] : block[-1] + 1].tocoo()
        values, row, column = stored.data.astype(np.float64), stored.coords[0], stored.coords[1]
        pairs = weight.sum() * m
        if self.label is not None:
            values, row = values[column == self.label], row[column == self.label]
            column = np.full(len(row), self.label)
            owner, true = owner[true == self.label], true[true == self.label]
            lacking = lacking[lacking % m == self.label]
            pairs = weight.sum()
        places = row.astype(np.int64) * m + column
        if len(lacking):
            there = ~np.isin(places, lacking)
            values, row, places = values[there], row[there], places[there]
            pairs -= weight[lacking // m].sum()
        hits = np.isin(places, owner * m + true)
        own = weight[row]
        missed = weight[owner].sum() - own[hits].sum()
        return Part(values, hits, own, pairs - own.sum(), missed)

    def _lacking(self, block: Any) -> NDArray[np.int64]:
        """Where labels of a block are unknown: row times the number of labels, plus label."""
        found = self.labels.unknown_of(block)
        if found is None:
            return np.empty(0, dtype=np.int64)
        starts, ends, ids = found
        row = np.repeat(np.arange(len(block), dtype=np.int64), ends - starts)
        return row * self.batch.m + ids[entries_of(starts, ends)]


def _quantiles(cases: Cases, shares: Floats) -> Floats:
    """Edges of bins that hold as many cases each, equal edges being one."""
    parts = list(cases.parts())
    if cases.weights is not None:
        return _weighted_quantiles(parts, shares)
    values = np.sort(np.concatenate([part.values for part in parts]))
    hidden = round(sum(part.hidden for part in parts))
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


def _weighted_quantiles(parts: list[Part], shares: Floats) -> Floats:
    """The same where cases weigh: the first probability at which so much weight is reached."""
    values = np.append(0.0, np.concatenate([part.values for part in parts]))
    weight = np.append(
        sum(part.hidden for part in parts), np.concatenate([part.weight for part in parts])
    )
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order])
    at = np.searchsorted(reached, shares * reached[-1] * (1 - 1e-12))
    return np.unique(values[order][at])


def _grouped(cases: Cases, edges: Floats) -> Reliability:
    """Sums of each bin; a bin reaches from its lower edge up to, but without, its upper one."""
    bins = max(1, len(edges) - 1)
    count, total, hits = np.zeros(bins), np.zeros(bins), np.zeros(bins)
    for part in cases.parts():
        place = np.searchsorted(edges[1:-1], part.values, side="right")
        count += np.bincount(place, part.weight, minlength=bins)
        total += np.bincount(place, part.values * part.weight, minlength=bins)
        hits += np.bincount(place, part.hits * part.weight, minlength=bins)
        zero = np.searchsorted(edges[1:-1], 0.0, side="right")
        count[zero] += part.hidden
        hits[zero] += part.hidden_hits
    with np.errstate(invalid="ignore"):
        predicted, observed = total / count, hits / count
    whole = cases.weights is None
    return Reliability(edges, predicted, observed, count.astype(np.int64) if whole else count)
