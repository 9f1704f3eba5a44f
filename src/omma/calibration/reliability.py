"""How far probabilities can be trusted: reliability, expected calibration error, log-loss, Brier.

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
from scipy.special import betainc, chdtrc

from omma._validate import check_choice, check_number, check_positive_int
from omma.rows.arrays import DenseProbabilities, blocks, entries_of
from omma.rows.batch import Batch

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
    sample = _read_sample(owner, eta, y, weights, label)
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
    sample = _read_sample("log_loss", eta, y, weights)
    total = 0.0
    for values, hits, weight in _cases(sample):
        if sample.class_ids:  # only the class that came counts
            values, hits, weight = values[hits], hits[hits], weight[hits]
        present, absent = np.maximum(values, LEAST), np.minimum(values, 1 - LEAST)
        total -= float(np.where(hits, np.log(present), np.log1p(-absent)) @ weight)
    return total / _size(sample)


def brier(eta: Any, y: Any = None, *, weights: ArrayLike | None = None) -> float:
    """Brier score: mean of (probability - label)², or with class ids its sum over classes.

    ``weights`` are those of ``reliability``.

    >>> from omma.calibration import brier
    >>> brier([[0.5, 0.25]], [[0, 1]])
    0.406
    """
    sample = _read_sample("brier", eta, y, weights)
    total = sum(np.square(values - hits) @ weight for values, hits, weight in _cases(sample))
    return float(total / _size(sample))


def _read_sample(
    owner: str, eta: Any, y: Any, weights: ArrayLike | None, label: int | None = None
) -> Batch:
    """Rows of which some label is known; all input is checked."""
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
    if not batch.row_weights.sum() > 0:
        raise ValueError(f"weights of {owner} must not all be zero")
    return batch


def _size(sample: Batch) -> float:
    """The number of cases of a mean: rows with a class each, or pairs of row and label."""
    weight, labels = sample.row_weights, sample.labels
    if sample.class_ids:
        return float(weight.sum())
    missing = None if labels is None else labels.missing
    unknown = 0.0 if missing is None else float(weight @ np.diff(missing.indptr))
    return float(weight.sum()) * sample.m - unknown


def _cases(
    sample: Batch, label: int | None = None
) -> Iterator[tuple[Floats, NDArray[np.bool_], Floats]]:
    """Probabilities, whether each came true, and their weights, a block of rows at a time.

    They are of every pair of row and label of which the label is known, or of one label alone. Of
    sparse rows, all probabilities that are not stored are two cases: zeros that came true, and
    zeros that did not.
    """
    m, eta, labels, row_weights = sample.m, sample.eta, sample.labels, sample.row_weights
    assert labels is not None
    for _, block in blocks(sample.n, eta.rows_per_block, None):
        weight = row_weights[block]
        # A pair of row and label is known by its place, row · m + label.
        true = _places(labels.block(block), m)
        unknown = _places(labels.unknown_of(block), m)
        if isinstance(eta, DenseProbabilities):
            values = np.asarray(eta.array[block], dtype=np.float64).ravel()
            places = np.arange(len(values))
        else:
            stored = eta.matrix[block[0] : block[-1] + 1].tocoo()
            values = stored.data.astype(np.float64)
            places = stored.coords[0].astype(np.int64) * m + stored.coords[1]
        if label is not None:
            values, places = values[places % m == label], places[places % m == label]
            true, unknown = (at[at % m == label] for at in (true, unknown))
        if len(unknown):
            known = ~np.isin(places, unknown)
            values, places = values[known], places[known]
        hits, own = np.isin(places, true), weight[places // m]
        if not isinstance(eta, DenseProbabilities):
            everything = weight.sum() * (m if label is None else 1) - weight[unknown // m].sum()
            came_true = weight[true // m].sum() - own[hits].sum()
            values, hits = np.append(values, [0.0, 0.0]), np.append(hits, [True, False])
            own = np.append(own, [came_true, everything - own.sum() - came_true])
        yield values, hits, own


def _places(lists: Any, m: int) -> NDArray[np.int64]:
    """Places of the labels of rows, given as where each list starts and ends, and all ids."""
    if lists is None:
        return np.empty(0, dtype=np.int64)
    starts, ends, ids = lists
    row = np.repeat(np.arange(len(starts), dtype=np.int64), ends - starts)
    return np.asarray(row * m + ids[entries_of(starts, ends)])


def _quantiles(sample: Batch, label: int | None, shares: Floats) -> Floats:
    """Edges of bins that hold as many cases each, equal edges being one."""
    blocks_of_cases = [(values, weight) for values, _, weight in _cases(sample, label)]
    values, weight = (np.concatenate(arrays) for arrays in zip(*blocks_of_cases, strict=True))
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
            reliability(data, bins=ERROR_BINS).expected_error,
            float(curve.observed[filled] @ share),
            int(curve.beyond_chance.sum()),
            int(filled.sum()),
            curve.p_value,
            (float(curve.predicted[worst]), float(curve.observed[worst])),
            curve.chance_error,
            curve.chance_error > MOST_CHANCE * min(predicted, 1.0 - predicted),
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
