"""Measures of calibration: reliability, expected calibration error, log-loss, Brier.

All of them take probabilities and labels as ``omma.replay`` does. A label that a sparse row
does not store has the probability zero, and counts like any other. With class ids, every class
is a label of its own, except for ``log_loss`` and ``brier``, which follow the usual definition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import betainc, chdtrc

from omma._validate import check_choice, check_number, check_positive_int
from omma.rows.arrays import blocks, stored_in
from omma.rows.batch import Batch, read_labelled

LEAST = 1e-15  # a probability of zero or one is not taken as certain
TEST_BINS = 10  # of equal mass: bins of equal width leave most of rare labels in a single one
ERROR_BINS = 20  # of equal width, as the expected calibration error is usually taken
SIGNIFICANCE = 0.01  # of the tests: calibrated probabilities fail one of them as often by chance
# Where chance alone makes an error of more than this share of the base rate, no test would find one
# that matters.
MOST_CHANCE = 0.5
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
        # Laplace's rule of succession.
        share = (np.nan_to_num(self.observed) * self.count + 1) / (self.count + 2)
        return np.sqrt(share * (1 - share) / (self.count + 2))

    @property
    def p_values(self) -> Floats:
        """How likely chance alone makes each bin as far off: a two-sided binomial test.

        Probabilities within a bin differ, so that its hits vary less than binomial ones, and the
        test is on the safe side. Exact tails matter where rates are small: 2 hits where 0.1 were
        expected are many standard errors off and not rare. 1 where a bin is empty.
        """
        at_least, at_most = self._tails
        return np.asarray(np.minimum(2 * np.minimum(at_least, at_most), 1.0))

    @property
    def p_value(self) -> float:
        """How likely chance alone makes all bins together as far off, by Fisher's method.

        Several bins that are each a little off count here, and a single one counts less.
        """
        at_least, at_most = self._tails
        # Mid-p values, which count the observed number of hits by half: tails of few hits are
        # coarse, and whole ones would add up to a test that hardly ever finds anything.
        observed = at_least + at_most - 1.0
        mid = np.clip(2 * np.minimum(at_least, at_most) - observed, LEAST, 1.0)
        filled = int((self.count > 0).sum())
        return float(chdtrc(2 * filled, -2 * np.log(mid).sum()))

    @property
    def _tails(self) -> tuple[Floats, Floats]:
        """The chances of at least, and of at most, as many hits in each bin; 1 where it is empty.

        Both are of a binomial distribution, by the incomplete beta function.
        """
        filled = self.count > 0
        # Soft labels and weights may make fractions of hits.
        hits = np.round(np.where(filled, self.observed, 0.0) * self.count)
        share = np.clip(np.where(filled, self.predicted, 0.5), LEAST, 1 - LEAST)
        misses = np.maximum(self.count - hits, 0.0)
        at_least = np.where(hits > 0, betainc(np.maximum(hits, 1e-9), misses + 1, share), 1.0)
        at_most = np.where(misses > 0, betainc(np.maximum(misses, 1e-9), hits + 1, 1 - share), 1.0)
        return at_least, at_most

    @property
    def beyond_chance(self) -> NDArray[np.bool_]:
        """Bins that are off by more than chance, at 1 % for all bins together (Bonferroni)."""
        # Bonferroni: one bin of many is far off now and then by chance alone.
        filled = max(int((self.count > 0).sum()), 1)
        return self.p_values < SIGNIFICANCE / filled

    @property
    def chance_error(self) -> float:
        """The expected error that calibrated probabilities would show here, by chance alone.

        >>> few = reliability([0.5, 0.5, 0.5, 0.5], [0, 1, 1, 0])
        >>> round(few.chance_error, 2)
        0.2
        """
        filled = self.count > 0
        share, count = self.predicted[filled], self.count[filled]
        variance = share * (1 - share)
        # The mean absolute deviation of a normal, or of so few cases that hardly any is a hit.
        deviations = np.minimum(np.sqrt(2 / np.pi * variance / count), 2 * variance)
        return float(deviations @ count / count.sum())


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
        A row of weight w counts as w rows. Weights are not costs: see ``omma.metrics.RowCosts``.

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
    sample = read_sample(owner, eta, y, weights)
    if label is not None:
        check_positive_int(owner, "label", label, least=0)
        check_number(owner, "label", label, low=0, high=sample.m - 1)
    edges = np.linspace(0.0, 1.0, bins + 1)
    if strategy == "mass":
        edges = _quantiles(sample, label, edges)
    # A bin reaches from its lower edge up to, but without, its upper one.
    sums = np.zeros((3, max(1, len(edges) - 1)))
    for values, hits, weight in _cases(sample, label):
        place = np.searchsorted(edges[1:-1], values, side="right")
        for total, of_cases in zip(sums, (weight, values * weight, hits * weight), strict=True):
            total += np.bincount(place, of_cases, minlength=sums.shape[1])
    count, probability, came_true = sums
    with np.errstate(invalid="ignore"):  # an empty bin is 0/0
        predicted, observed = probability / count, came_true / count
    is_weighted = len(sample.weights) > 0
    return Reliability(edges, predicted, observed, count if is_weighted else count.astype(np.int64))


def expected_error(
    eta: Any,
    y: Any = None,
    bins: int = 10,
    *,
    strategy: str = "width",
    weights: ArrayLike | None = None,
) -> float:
    """Expected calibration error: how far, on average, probabilities are from frequencies.

    Parameters are those of ``reliability``.

    >>> from omma.calibration import expected_error
    >>> expected_error([[0.2], [0.2], [0.9]], [[0], [1], [1]])
    0.233
    """
    return reliability(eta, y, bins, strategy=strategy, weights=weights).expected_error


def log_loss(eta: Any, y: Any = None, *, weights: ArrayLike | None = None) -> float:
    """Mean log-loss: over rows and labels, or with class ids over rows.

    Zeros and ones are taken as 1e-15 and 1 - 1e-15. ``weights`` are those of ``reliability``.

    >>> from omma.calibration import log_loss
    >>> log_loss([[0.5, 0.25]], [1])  # one class a row: -log 0.25
    1.386
    >>> log_loss([[0.5, 0.25]], [[0, 1]])  # labels: (-log 0.5 - log 0.25) / 2
    1.040
    """
    sample = read_sample("log_loss", eta, y, weights)
    total = size = 0.0
    for values, hits, weight in _cases(sample):
        if sample.class_ids:  # only the class that came counts
            values, hits, weight = values[hits], hits[hits], weight[hits]
        present, absent = np.maximum(values, LEAST), np.minimum(values, 1 - LEAST)
        total -= float(np.where(hits, np.log(present), np.log1p(-absent)) @ weight)
        size += float(weight.sum())
    return total / size


def brier(eta: Any, y: Any = None, *, weights: ArrayLike | None = None) -> float:
    """Brier score: mean of (probability - label)², or with class ids its sum over classes.

    ``weights`` are those of ``reliability``.

    >>> from omma.calibration import brier
    >>> brier([[0.5, 0.25]], [[0, 1]])
    0.406
    """
    sample = read_sample("brier", eta, y, weights)
    total = size = 0.0
    for values, hits, weight in _cases(sample):
        total += float(np.square(values - hits) @ weight)
        # Each row has one class that came true.
        size += float(weight[hits].sum() if sample.class_ids else weight.sum())
    return total / size


def read_sample(owner: str, eta: Any, y: Any, weights: ArrayLike | None) -> Batch:
    """Rows with at least one known label; all input is checked."""
    batch = read_labelled(owner, eta, y, weights).check(owner)
    if batch.labels is not None and batch.labels.known is not None:
        batch = batch.take(batch.labels.known)
    return batch


def _cases(
    sample: Batch, label: int | None = None
) -> Iterator[tuple[Floats, NDArray[np.bool_], Floats]]:
    """Probabilities, whether each came true, and their weights, a block of rows at a time.

    There is one case for each pair of row and label whose label is known, or for each row of one
    label. All probabilities of zero together are two cases: those that came true, and those that
    did not.
    """
    eta: Any = sample.eta.matrix if sample.is_sparse else sample.eta.array  # type: ignore[union-attr]
    assert sample.labels is not None
    true, missing = sample.labels.matrix, sample.labels.missing
    missing = sparse.csr_array(true.shape) if missing is None else missing
    if label is not None:
        eta, true, missing = (matrix[:, [label]] for matrix in (eta, true, missing))
    for _, rows in blocks(sample.n, sample.eta.rows_per_block, None):
        # Of dense rows, too, only what is not zero is stored. SciPy has no matrices of float16.
        values = sparse.csr_array(eta[rows].astype(np.float64))
        present, unknown = true[rows], missing[rows]
        weight, known = sample.row_weights[rows], ~stored_in(unknown, values)
        hits = stored_in(present, values)[known]
        row = np.repeat(np.arange(len(rows)), np.diff(values.indptr))[known]
        # What is not stored: in each row, all labels less the unknown and the stored ones.
        stored = np.bincount(row, minlength=len(rows))
        zeros = weight @ (values.shape[1] - unknown.sum(axis=1) - stored)
        true_zeros = weight @ (present.sum(axis=1) - np.bincount(row, hits, len(rows)))
        yield (
            np.append(values.data[known], [0.0, 0.0]),
            np.append(hits, [True, False]),
            np.append(weight[row], [true_zeros, zeros - true_zeros]),
        )


def _quantiles(sample: Batch, label: int | None, shares: Floats) -> Floats:
    """Edges of bins of equal mass; equal edges are one."""
    blocks_of_cases = [(values, weight) for values, _, weight in _cases(sample, label)]
    values, weight = (np.concatenate(arrays) for arrays in zip(*blocks_of_cases, strict=True))
    values, weight = values[weight > 0.0], weight[weight > 0.0]  # there may be no zeros
    order = np.argsort(values, kind="stable")
    values, reached = values[order], np.cumsum(weight[order])
    if len(sample.weights):  # the first probability at which so much weight is reached
        at = np.searchsorted(reached, shares * reached[-1] * (1 - 1e-12))
        return np.unique(values[at])
    # Each case weighs one, or many zeros do together: linear between neighbours, as NumPy.
    last = round(reached[-1]) - 1
    place = shares * last
    low = np.floor(place)
    first, second = (
        values[np.searchsorted(reached, rank + 0.5)] for rank in (low, np.minimum(low + 1, last))
    )
    return np.unique(first + (place - low) * (second - first))


@dataclass(frozen=True)
class CalibrationCheck:
    """A test of calibration, and what calibrating gains.

    Attributes
    ----------
    error : float
        Expected calibration error: the mean distance of probabilities from observed rates.
    base_rate : float
        How often labels are positive.
    bins_off, bins : int
        In how many bins of probability the observed rate differs from the predicted one by more
        than chance, and of how many.
    p_value : float
        How likely chance alone makes all bins together as far off.
    worst : tuple of float
        Predicted and observed rate of the bin that is least likely by chance.
    chance_error : float
        The mean distance that calibrated probabilities would show in these bins by chance.
    is_thin : bool
        Whether there are too few labels to call any probabilities calibrated.
    metric : str
    gain : float or None
        What calibrating the probabilities adds to the metric of OMMA(η̂), which trusts them, on
        unseen rows; None where that was not tried.
    """

    error: float
    base_rate: float
    bins_off: int
    bins: int
    p_value: float
    worst: tuple[float, float]
    chance_error: float
    is_thin: bool
    metric: str = ""
    gain: float | None = None

    @classmethod
    def of(cls, data: Batch) -> CalibrationCheck:
        """Test a batch with labels.

        >>> import omma
        >>> eta, y = omma.datasets.long_tail(n=2000, m=20, seed=0)
        >>> CalibrationCheck.of(omma.Batch.of(eta, y)).looks_calibrated
        True
        >>> CalibrationCheck.of(omma.Batch.of(eta**1.2, y)).is_off
        True
        >>> print(CalibrationCheck.of(omma.Batch.of([0.1, 0.4, 0.8], [0, 1, 1])))
        Too few labels to say whether the probabilities are calibrated: calibrated ones would be
        off by about 30 points by chance alone (mean calibration error 30 points, base rate 67 %).
        """
        curve = reliability(data, bins=TEST_BINS, strategy="mass")
        weights = np.asarray(data.weights)
        if len(weights):
            # Rows of weights tell as much as Kish's effective number of equal ones.
            curve = replace(curve, count=curve.count * weights.sum() / (weights**2).sum())
        filled = curve.count > 0
        share = curve.count[filled] / curve.count.sum()
        worst = int(np.argmin(np.where(filled, curve.p_values, np.inf)))
        predicted = float(curve.predicted[filled] @ share)
        return cls(
            error=reliability(data, bins=ERROR_BINS).expected_error,
            base_rate=float(curve.observed[filled] @ share),
            bins_off=int(curve.beyond_chance.sum()),
            bins=int(filled.sum()),
            p_value=curve.p_value,
            worst=(float(curve.predicted[worst]), float(curve.observed[worst])),
            chance_error=curve.chance_error,
            is_thin=curve.chance_error > MOST_CHANCE * min(predicted, 1.0 - predicted),
        )

    @property
    def is_off(self) -> bool:
        """Whether a bin, or all bins together, are off by more than chance."""
        return self.bins_off > 0 or self.p_value < SIGNIFICANCE

    @property
    def looks_calibrated(self) -> bool:
        """Whether chance explains how far bins are off, and there are labels enough to tell."""
        return not self.is_off and not self.is_thin

    def __str__(self) -> str:
        error, rate = f"{100 * self.error:.2g} points", f"{100 * self.base_rate:.2g} %"
        size = f"mean calibration error {error}, base rate {rate}"
        if not self.is_off and self.is_thin:
            return (
                "Too few labels to say whether the probabilities are calibrated: calibrated ones "
                f"would be off by about {100 * self.chance_error:.2g} points by chance alone "
                f"({size})."
            )
        if self.looks_calibrated:
            return f"The probabilities look calibrated: no bin is off by more than chance ({size})."
        predicted, observed = (f"{100 * share:.2g} %" for share in self.worst)
        where = f"as where {predicted} was predicted and {observed} observed ({size})."
        how = f"{self.bins_off} of {self.bins} bins are off by more than chance, {where}"
        if not self.bins_off:
            how = f"all bins together are off by more than chance, {where}"
        text = f"The probabilities do not look calibrated: {how}"
        if self.gain is None:
            return text
        effect = "adds" if self.gain >= 0 else "takes"
        to = "to" if self.gain >= 0 else "from"
        return (
            f"{text} Calibrating them {effect} {100 * abs(self.gain):.2f} points {to} the "
            f"{self.metric} of OMMA(η̂), which trusts them; Auto calibrates by itself."
        )
