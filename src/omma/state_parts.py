"""Parts of a state: sets of counts, calibration, prices of limits, and labels nobody saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omma.kernels.calibrate import (
    BETWEEN,
    COUNTED,
    CURVES,
    DOUBT,
    FLATTEST,
    INTERCEPT,
    LABELLED,
    LEAST_VARIANCE,
    SHARED,
    SLOPE,
    SPREAD,
    SQUASH,
    START_BETWEEN,
    START_INTERCEPT,
    START_PRECISION,
    START_SLOPE,
    STEEPEST,
    STRAIGHT,
    SURE,
    TRUST,
)
from omma.kernels.layout import (
    ERAS,
    GROWTH,
    LARGEST_UNIT,
    OWN,
    POSITIVE,
    SUM_TP,
    TP,
    UNIT,
    N,
)

Array = NDArray[Any]
Curve = tuple[float, float, NDArray[np.float64], float]  # a, b, b_j, s of a rule
IDENTITY = np.array([1.0, 1.0, 0.0])  # θ₀ = (a, e, b) that changes nothing
HALF = np.triu_indices(3)  # where the curvature is stored: its upper half, row by row
UNLEARNED = np.pad(IDENTITY, (0, SHARED - len(IDENTITY)))  # ``Calibration.shared`` at the start
START_PRICE = 1.0
START_SPREAD = 1e-12  # the first row moves a price by about one, whatever it missed by
# Rounding errors in sums of fractions (weights, probabilities), relative to the number of rows and
# to sums over labels.
ROUNDING = 1e-9
SUM_ROUNDING = 1e-6
NEGATIVE = 1e-9  # how far below zero rounding may take a sum, relative to the largest number


def check_array(name: str, array: Any, shape: tuple[int, ...], *, signed: bool = True) -> None:
    """Refuse an array that a state cannot have: kernels do not check."""
    expected = f"{name} of a state must be finite numbers of shape {shape}"
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        raise ValueError(f"{expected}, got {'nothing' if array is None else array.dtype}")
    if array.shape != shape or not np.isfinite(array).all():
        wrong = "what is not finite" if array.shape == shape else f"shape {array.shape}"
        raise ValueError(f"{expected}, got {wrong}")
    if not signed and array.size and array.min() < -NEGATIVE * max(1.0, float(array.max())):
        raise ValueError(f"{name} of a state must be at least 0, got {array.min():g}")


def check_pace(pace: Array, expected: Array) -> None:
    """Refuse a pace that a stream with this half-life cannot have."""
    right = 1.0 <= pace[UNIT] < LARGEST_UNIT and pace[ERAS] == np.floor(pace[ERAS])
    if not right or pace[GROWTH] != expected[GROWTH]:
        raise ValueError(
            f"pace of a state must have a weight of at least 1 that grows by {expected[GROWTH]!r} "
            f"a row, got {pace.tolist()}"
        )


def in_proportion(cells: Array, rows: float, missed: Array | None) -> Array:
    """Counts scaled up to all rows: times rows / (rows in which the label was known).

    >>> cells = np.array([[2.0, 2.0], [3.0, 3.0], [4.0, 4.0]])
    >>> in_proportion(cells, 8.0, np.array([0.0, 4.0]))[:, 1]
    array([4., 6., 8.])
    """
    if missed is None:
        return cells
    known = rows - missed
    ever = known > 0.0
    return np.asarray(np.where(ever, rows / np.where(ever, known, 1.0), 1.0) * cells)


class CountSet(NamedTuple):
    """One of the sets of counts of a state, as views of its arrays.

    Attributes
    ----------
    cells : ndarray of shape (3, m)
        True positives, predictions and occurrences of each label.
    totals : ndarray
        The number of rows, and sums over labels for the metrics that need them.
    missed : ndarray of shape (m,) or None
        With partial labels: the weight of the rows in which each label was unknown. The counts of
        the label do not contain these rows.
    """

    cells: NDArray[np.float64]
    totals: NDArray[np.float64]
    missed: NDArray[np.float64] | None = None
    place: int = OWN  # which of the sets it is (``omma.kernels.layout``)

    @property
    def rows(self) -> float:
        """The number of rows, or their weight."""
        return float(self.totals[N])

    @property
    def in_proportion(self) -> NDArray[np.float64]:
        """The cells, scaled up to all rows for labels that were unknown in some."""
        return in_proportion(self.cells, self.rows, self.missed)

    def check(self) -> None:
        """Refuse counts without tp <= predicted <= n and tp <= positive <= n.

        >>> CountSet(np.array([[2.0], [1.0], [3.0]]), np.array([5.0, 0.0, 0.0, 0.0])).check()
        Traceback (most recent call last):
        ...
        ValueError: counts of a state must have tp <= predicted, got 2 of 1 in label 0
        """
        (tp, predicted, positive), totals = self.cells, self.totals
        n = np.full(self.cells.shape[1], totals[N])
        # With names, so that the message says which count is too large.
        slack = ROUNDING * max(1.0, float(totals[N]))
        for name, lower, bound, upper in (
            ("tp", tp, "predicted", predicted),
            ("tp", tp, "positive", positive),
            ("predicted", predicted, "n", n),
            ("positive", positive, "n", n),
            ("missed", n if self.missed is None else self.missed, "n", n),
        ):
            wrong = np.flatnonzero(lower > upper + slack)
            if len(wrong):
                j = wrong[0]
                raise ValueError(
                    f"counts of a state must have {name} <= {bound}, got {lower[j]:g} of "
                    f"{upper[j]:g} in label {j}"
                )
        expected = self.cells.sum(axis=1)
        apart = np.abs(totals[SUM_TP:] - expected) > SUM_ROUNDING * np.maximum(1.0, expected)
        wrong = np.flatnonzero(apart & (totals[SUM_TP:] != 0.0))  # zero: no sums are needed
        if len(wrong):
            raise ValueError(
                f"totals of a state must be sums over its counts, got {totals[SUM_TP + wrong[0]]:g}"
                f" in place of {expected[wrong[0]]:g}"
            )


MOST_AUDIT_WEIGHT = 10.0  # of an audited entry in calibration: larger weights make it unstable
SHARED_AUDITS = 3.0  # the weight of all labels' audits beside a label's own, in expected labels


@dataclass(eq=False)
class Unseen:
    """What is known about labels that nobody saw, because they were not predicted.

    Attributes
    ----------
    cells : ndarray of shape (3, m)
        For each label: the sum of (calibrated) probabilities over entries that nobody saw; and over
        entries that were audited and not predicted, the sums of labels and of probabilities.
    rows : ndarray
        The weight of rows whose labels were seen only where predicted, and of audited rows.
    """

    cells: NDArray[np.float64]
    rows: NDArray[np.float64]

    @property
    def ratios(self) -> NDArray[np.float64]:
        """Labels per unit of probability among audited entries that were not predicted.

        It is (A_y + 1) / (A_c + 1) over all labels, where A_y and A_c are the sums of audited
        labels and of their probabilities. Audits of a single label move its ratio away from that.
        """
        _, labels, probabilities = self.cells
        shared = (labels.sum() + 1.0) / (probabilities.sum() + 1.0)
        return np.asarray((labels + SHARED_AUDITS * shared) / (probabilities + SHARED_AUDITS))

    def estimate(self, truth: CountSet) -> NDArray[np.float64]:
        """Counts of all rows, with estimated positives: shape (3, m).

        Predicted and audited entries count as they are. The probabilities of all other entries,
        times ``ratios``, are added to the positives. Predictions whose label never came are assumed
        to be right as often as the others of the same label.

        >>> truth = CountSet(np.array([[8.0], [10.0], [9.0]]), np.array([100.0, 0, 0, 0]))
        >>> unseen = Unseen(np.array([[4.0], [1.0], [0.0]]), np.array([100.0, 5.0]))
        >>> unseen.estimate(truth)[:, 0].round(2)
        array([ 8.  , 10.  , 18.33])
        """
        tp, predicted, positive = truth.cells
        missed = 0.0 if truth.missed is None else truth.missed
        hits = tp * (1.0 + missed / np.maximum(predicted, 1.0))
        positive = positive + (hits - tp) + self.ratios * self.cells[0]
        return np.stack((hits, predicted + missed, np.minimum(positive, truth.rows)))

    def audit_weights(self, audited: Array, weights: Array) -> NDArray[np.float64]:
        """Count further rows, and return the weight of each audit; −1 for rows without an audit.

        An audited row stands for 1/α rows, where α is the share of audited rows so far.
        """
        rows = self.rows[0] + np.cumsum(weights)
        audits = self.rows[1] + np.cumsum(weights * audited)
        share = audits / np.maximum(rows, 1e-300)
        self.rows[:] = (rows[-1], audits[-1]) if len(audited) else self.rows
        heavier = np.minimum(1.0 / np.maximum(share, 1.0 / MOST_AUDIT_WEIGHT), MOST_AUDIT_WEIGHT)
        return np.asarray(np.where(audited, heavier, -1.0))


@dataclass(eq=False)
class Calibration:
    """Online calibration: c = σ(a (z − z̄_j) + e z̄_j + b + b_j), z = logit(η).

    Attributes
    ----------
    shared : ndarray
        a, e, b; the upper half of their curvature H (six numbers); the weight of rows with labels;
        W and N, from which the variance of logits within labels follows; s, beyond which logits are
        squashed; and κ, the part of the correction that is applied (``omma.kernels.calibrate``).
    bias, precision : ndarray of shape (m,)
        b_j of each label, and its precision. Precision and curvature do not contain their values
        before the first row, so that those of several streams add up.
    mean, entries : ndarray of shape (m,)
        z̄_j, the mean logit of a label's probabilities, and n_j, the weight of its rows.
    """

    shared: NDArray[np.float64]
    bias: NDArray[np.float64]
    precision: NDArray[np.float64]
    mean: NDArray[np.float64]
    entries: NDArray[np.float64]

    @classmethod
    def start(cls, m: int, *, classes: bool = False) -> Calibration:
        """A calibration that has learned nothing and changes no probability."""
        shared = UNLEARNED.copy()
        shared[SQUASH] = STRAIGHT if classes else SURE
        return cls(shared, *np.zeros((4, m)))

    def check(self) -> None:
        """Refuse numbers that no calibration has."""
        for name in ("precision", "entries"):
            check_array(name, getattr(self, name), self.bias.shape, signed=False)
        if not self.shared[SQUASH] > 0.0:
            raise ValueError(f"s of calibration must be positive, got {self.shared[SQUASH]}")

    def fill(self, other: Calibration) -> None:
        """Copy the numbers of another one into its own arrays."""
        for name, array in vars(self).items():
            array[...] = getattr(other, name)

    @property
    def slope(self) -> float:
        """The slope within labels that decides: 1 + κ (a − 1)."""
        return float(1.0 + self.shared[TRUST] * self._learned[SLOPE])

    @property
    def between(self) -> float:
        """The slope between labels that decides: 1 + κ (e − 1)."""
        return float(1.0 + self.shared[TRUST] * self._learned[BETWEEN])

    @property
    def intercept(self) -> float:
        """The intercept that decides: κ b."""
        return float(self.shared[TRUST] * self._learned[INTERCEPT])

    @property
    def _learned(self) -> NDArray[np.float64]:
        """θ − θ₀, with slopes within their bounds, which a sum of calibrations may leave."""
        theta = self.shared[:CURVES].copy()
        theta[:INTERCEPT] = np.clip(theta[:INTERCEPT], FLATTEST, STEEPEST)
        return np.asarray(theta - IDENTITY)

    @property
    def curve(self) -> Curve:
        """The same curve in the form of a rule, c = σ(a z + b + b'_j): a, b, b'_j and s.

        b'_j = b_j + (e − a) z̄_j, in the order of operations of the kernels.
        """
        biases = self.bias + (self.between - self.slope) * self.mean
        return self.slope, self.intercept, biases, float(self.shared[SQUASH])

    @property
    def rows(self) -> float:
        """The weight of the rows with labels."""
        return float(self.shared[LABELLED])

    def take(self, slope: float, intercept: float, bias: Any, squash: float) -> None:
        """Take over the curve of a rule."""
        self.shared[[SLOPE, BETWEEN, INTERCEPT]] = slope, slope, intercept
        self.shared[[LABELLED, SQUASH, TRUST]] = 1.0, squash, 1.0
        self.bias[...] = bias

    def set_trust(self, unit: float = 1.0) -> None:
        """κ = T / (T + 2) with T = (θ − θ₀)ᵀ H (θ − θ₀), for curvatures in ``unit``."""
        evidence = max(float(self._learned @ self._curvature() @ self._learned), 0.0)
        self.shared[TRUST] = evidence / (evidence + DOUBT * unit)

    def _curvature(self) -> NDArray[np.float64]:
        """Second derivatives of the log-loss by a, e and b."""
        curvature = np.zeros((3, 3))
        curvature[HALF] = self.shared[CURVES:LABELLED]
        return curvature + np.triu(curvature, 1).T

    def _start(self, unit: float) -> NDArray[np.float64]:
        """H₀ = diag(3 v, 30, 1), in the present ``unit`` of a row."""
        counted = self.shared[COUNTED] if self.shared[COUNTED] > 0.0 else 1.0
        variance = max(float(self.shared[SPREAD] / counted), LEAST_VARIANCE)
        diagonal = unit * np.array([START_SLOPE * variance, START_BETWEEN, START_INTERCEPT])
        return np.asarray(np.diag(diagonal))

    def _sums(self, unit: float) -> tuple[Array, Array]:
        """The calibration as sums over rows, which add up: shared numbers, and (4, m) by label.

        (H₀ + H)(θ − θ₀) is in place of θ, likewise for biases, and logits are about 0 instead of
        their mean.
        """
        shared = self.shared.copy()
        curvature = self._start(unit) + self._curvature()
        shared[:CURVES] = curvature @ (self.shared[:CURVES] - IDENTITY)
        shared[SPREAD] += self.entries @ self.mean**2
        pull = (START_PRECISION * unit + self.precision) * self.bias
        return shared, np.stack((pull, self.precision, self.entries * self.mean, self.entries))

    def combined(self, other: Calibration, sign: float, unit: float = 1.0) -> Calibration:
        """Add or subtract (``sign``) the calibration of another stream.

        Both started at θ₀ = (1, 1, 0) and b_j = 0 with the curvature H₀, which depends on the
        variance of logits:

            θ = θ₀ + (H₀ + H₁ + H₂)⁻¹ [(H₀₁ + H₁)(θ₁ − θ₀) + (H₀₂ + H₂)(θ₂ − θ₀)]

        The brackets add up, so the order of several sums does not matter.
        """
        if self.shared[TRUST] == 1.0:  # the curve of a rule: both have the same
            return Calibration(**{name: array.copy() for name, array in vars(self).items()})
        pairs = zip(self._sums(unit), other._sums(unit), strict=True)
        shared, (pull, precision, logits, entries) = (
            mine + sign * theirs for mine, theirs in pairs
        )
        entries = np.maximum(entries, 0.0)
        mean = np.divide(logits, entries, out=np.zeros(len(entries)), where=entries > 0.0)
        bias = pull / (START_PRECISION * unit + precision)
        total = Calibration(shared, bias, precision, mean, entries)
        # By rounding, a difference of sums may be below zero.
        shared[COUNTED] = max(shared[COUNTED], 0.0)
        shared[SPREAD] = max(shared[SPREAD] - entries @ mean**2, 0.0)
        shared[SQUASH] = self.shared[SQUASH]
        curvature = total._start(unit) + total._curvature()
        shared[:CURVES] = IDENTITY + np.linalg.solve(curvature, shared[:CURVES])
        total.set_trust(unit)
        return total


@dataclass(eq=False)
class Prices:
    """The price of each limit (``omma.kernels.limits``).

    Attributes
    ----------
    mu, spread : ndarray with a number for each limit
        The price μ, and V, the sum of squared excesses of rows, which scales its steps.
    rates : ndarray
        If a limit is on the mean of recalls: the sum of the recalls of labels that occurred, and
        their number. Else it is empty.
    mean : ndarray with a number for each limit
        The mean position of the price so far: the position is μ up to 1, and 1 + log μ beyond. Row
        t weighs t ** 2, so that early rows hardly count.
    """

    mu: NDArray[np.float64]
    spread: NDArray[np.float64]
    rates: NDArray[np.float64]
    mean: NDArray[np.float64]

    @property
    def settled(self) -> NDArray[np.float64]:
        """The prices of a rule that will be deployed: those at the mean position.

        >>> prices = Prices.start(1)
        >>> prices.mean[:] = 1.0 + np.log(20.0)
        >>> prices.settled.round(6)
        array([20.])
        """
        return np.where(self.mean < 1.0, self.mean, np.exp(np.maximum(self.mean, 1.0) - 1.0))

    def settled_at(self, prices: NDArray[np.float64]) -> Prices:
        """The same with other prices of a rule that will be deployed.

        >>> Prices.start(2).settled_at(np.array([0.5, 20.0])).settled.round(6)
        array([ 0.5, 20. ])
        """
        mean = np.where(prices < 1.0, prices, 1.0 + np.log(np.maximum(prices, 1.0)))
        return Prices(self.mu, self.spread, self.rates, mean)

    @classmethod
    def start(cls, limits: int, *, rates: bool = False) -> Prices:
        """The prices before the first row."""
        mu, spread = np.full(limits, START_PRICE), np.full(limits, START_SPREAD)
        return cls(mu, spread, np.zeros(2 if rates else 0), mu.copy())

    def settle(self, cells: Array) -> None:
        """Compute the sum of recalls from counts."""
        if len(self.rates):
            # A label that never occurred has no recall and is not in the mean.
            occurred = cells[POSITIVE] > 0
            recalls = cells[TP][occurred] / cells[POSITIVE][occurred]
            self.rates[:] = recalls.sum(), occurred.sum()

    def combined(self, other: Prices, sign: float) -> Prices:
        """Add the rows of another stream (``sign`` 1), or take them away (−1).

        A sum is the mean of both prices, weighted by V: it is larger after more rows. If rows are
        taken away, the price stays, and its steps are as large as before these rows.
        """
        mine, theirs = len(self.mu), len(other.mu)
        if mine != theirs or len(self.rates) != len(other.rates):
            raise ValueError(
                f"states can be added for the same limits only, got {mine} and {theirs}"
                f"{'' if mine != theirs else ', of which one is on macro_recall'}"
            )
        if sign < 0.0:
            return self.with_spread(self.spread - other.spread)
        spread = self.spread + other.spread
        mu = (self.mu * self.spread + other.mu * other.spread) / spread
        mean = (self.mean * self.spread + other.mean * other.spread) / spread
        return Prices(mu, spread, self.rates.copy(), mean)

    def with_spread(self, spread: Array) -> Prices:
        """A copy whose next steps have another size; a smaller spread makes them larger."""
        spread = np.maximum(spread, START_SPREAD)
        return Prices(self.mu.copy(), spread, self.rates.copy(), self.mean.copy())

    def check(self) -> None:
        """Refuse numbers that no prices have."""
        if (self.spread <= 0.0).any():
            raise ValueError("spread of prices must be positive")
