"""What a state is made of: sets of counts, what calibration has learned, and what limits cost."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

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
    TOTALS,
    TP,
    UNIT,
    N,
)

Array = NDArray[Any]
Curve = tuple[float, float, NDArray[np.float64], float]  # a, b, b_j, s of a rule
IDENTITY = np.array([1.0, 1.0, 0.0])  # θ₀ = (a, e, b) that changes nothing
HALF = np.triu_indices(3)  # where the curvature is stored: its upper half, row by row
UNLEARNED = np.pad(IDENTITY, (0, SHARED - len(IDENTITY)))  # ``Calibration.shared`` at the start
EARLIER = (
    "its calibration is that of an earlier release, which this one cannot continue: go on with "
    "that release, or start anew and replay the rows"
)
START_PRICE = 1.0
START_SPREAD = 1e-12  # the first row moves a price by about one, whatever it missed by
# Soft labels and weights are fractions, and sums of fractions are rounded: as a part of all rows,
# and of sums over labels.
ROUNDING = 1e-9
SUM_ROUNDING = 1e-6
FILED_TOTALS = 7  # files have room for three more sums, which an earlier release kept
NEGATIVE = 1e-9  # sums of fractions may end below zero by rounding: as a part of the largest


def check_array(
    name: str, array: Any, shape: tuple[int, ...] | None, *, signed: bool = True
) -> None:
    """Refuse an array that cannot be a state's: kernels believe what they are given."""
    expected = f"{name} of a state must be finite numbers of shape {shape}"
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        raise ValueError(f"{expected}, got {'nothing' if array is None else array.dtype}")
    if array.shape != shape or not np.isfinite(array).all():
        wrong = "what is not finite" if array.shape == shape else f"shape {array.shape}"
        raise ValueError(f"{expected}, got {wrong}")
    if not signed and array.size and array.min() < -NEGATIVE * max(1.0, float(array.max())):
        raise ValueError(f"{name} of a state must be at least 0, got {array.min():g}")


def check_pace(pace: Any, expected: Array) -> None:
    """Refuse a pace that no stream with this half-life can have."""
    check_array("pace", pace, expected.shape, signed=False)
    right = 1.0 <= pace[UNIT] < LARGEST_UNIT and pace[ERAS] == np.floor(pace[ERAS])
    if not right or pace[GROWTH] != expected[GROWTH]:
        raise ValueError(
            f"pace of a state must have a weight of at least 1 that grows by {expected[GROWTH]!r} "
            f"a row, got {pace.tolist()}"
        )


def in_proportion(cells: Array, rows: float, missed: Array | None) -> Array:
    """Counts of labels as if each had been known in all rows: times rows / rows known.

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
    """One of the sets of counts of a state, which it is a view of.

    Attributes
    ----------
    cells : ndarray of shape (3, m)
        True positives, predictions and occurrences of each label.
    totals : ndarray
        The number of rows, and sums over labels for the metrics that need them.
    missed : ndarray of shape (m,) or None
        Where rows were labelled in part, how much weight of rows each label was unknown in: the
        counts of a label are of the others.
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
        """The cells as if each label had been known in all rows."""
        return in_proportion(self.cells, self.rows, self.missed)

    def arrays(self) -> dict[str, Array]:
        """All of it as plain arrays, for a file."""
        totals = np.concatenate((self.totals, np.zeros(FILED_TOTALS - TOTALS)))
        missed = {} if self.missed is None else {"missed": self.missed}
        return {"cells": self.cells, "totals": totals, **missed}

    def fill(self, arrays: dict[str, Array]) -> None:
        """Take over the numbers of other arrays, in its own."""
        self.cells[...] = arrays["cells"]
        self.totals[...] = arrays["totals"][:TOTALS]
        if self.missed is not None:
            self.missed[...] = arrays.get("missed", 0.0)

    def check(self, arrays: dict[str, Array]) -> None:
        """Refuse counts that no stream has: tp <= predicted <= n, tp <= positive <= n.

        >>> counts = CountSet(np.zeros((3, 1)), np.zeros(4))
        >>> counts.check({"cells": np.array([[2.0], [1.0], [3.0]]), "totals": 5.0 * np.eye(7)[0]})
        Traceback (most recent call last):
        ...
        ValueError: counts of a state must have tp <= predicted, got 2 of 1 in label 0
        """
        missed = arrays.get("missed")
        check_array("cells", arrays.get("cells"), self.cells.shape, signed=False)
        check_array("totals", arrays.get("totals"), (FILED_TOTALS,), signed=False)
        if missed is not None:
            check_array("missed", missed, self.cells.shape[1:], signed=False)
        cells, totals = arrays["cells"], arrays["totals"][:TOTALS]
        (tp, predicted, positive), n = cells, np.full(cells.shape[1], totals[N])
        # Each comparison by name, so that the sentence says which count is too large.
        slack = ROUNDING * max(1.0, float(totals[N]))
        for name, lower, bound, upper in (
            ("tp", tp, "predicted", predicted),
            ("tp", tp, "positive", positive),
            ("predicted", predicted, "n", n),
            ("positive", positive, "n", n),
            ("missed", n if missed is None else missed, "n", n),
        ):
            wrong = np.flatnonzero(lower > upper + slack)
            if len(wrong):
                j = wrong[0]
                raise ValueError(
                    f"counts of a state must have {name} <= {bound}, got {lower[j]:g} of "
                    f"{upper[j]:g} in label {j}"
                )
        expected = cells.sum(axis=1)
        apart = np.abs(totals[SUM_TP:] - expected) > SUM_ROUNDING * np.maximum(1.0, expected)
        wrong = np.flatnonzero(apart & (totals[SUM_TP:] != 0.0))  # zero: no sums are needed
        if len(wrong):
            raise ValueError(
                f"totals of a state must be sums over its counts, got {totals[SUM_TP + wrong[0]]:g}"
                f" in place of {expected[wrong[0]]:g}"
            )


@dataclass(eq=False)
class StatePart:
    """Arrays that go into a file, and come back from one."""

    SIGNED: ClassVar[tuple[str, ...]] = ()  # those that may hold numbers below zero

    def arrays(self) -> dict[str, Array]:
        """All of it as plain arrays, for a file."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def fill(self, arrays: dict[str, Array]) -> None:
        """Take over the numbers of other arrays, in its own."""
        for name, own in self.arrays().items():
            own[...] = arrays[name]

    def check(self, arrays: dict[str, Array]) -> None:
        """Refuse arrays that are not those of such a part."""
        for name, own in self.arrays().items():
            check_array(name, arrays.get(name), own.shape, signed=name in self.SIGNED)


MOST_AUDIT_WEIGHT = 10.0  # of an audited entry in calibration: larger ones make it restless
SHARED_AUDITS = 3.0  # expected labels that the audits of all labels are worth beside a label's own


@dataclass(eq=False)
class Unseen(StatePart):
    """What is known of labels that nobody saw, because they were not predicted.

    Attributes
    ----------
    cells : ndarray of shape (3, m)
        For each label the sum of (calibrated) probabilities of entries that nobody saw; and of the
        entries that were audited and not predicted, labels and probabilities.
    rows : ndarray
        The weight of rows whose labels were seen only where predicted, and of those audited.
    """

    cells: NDArray[np.float64]
    rows: NDArray[np.float64]

    @property
    def ratios(self) -> NDArray[np.float64]:
        """How many labels audits found per unit of probability among entries not predicted.

        Over all labels (A_y + 1) / (A_c + 1), where A_y and A_c are the audited labels and their
        probabilities. Audits of a label move its own ratio away from that.
        """
        _, labels, probabilities = self.cells
        shared = (labels.sum() + 1.0) / (probabilities.sum() + 1.0)
        return np.asarray((labels + SHARED_AUDITS * shared) / (probabilities + SHARED_AUDITS))

    def estimate(self, truth: CountSet) -> NDArray[np.float64]:
        """Counts of all rows, of which the positives are estimated: shape (3, m).

        What was predicted or audited counts as it is. The probabilities of all other entries, times
        the ratios that audits found, are added to the positives. A prediction whose label never
        came counts as the others of its label.

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

    def audit_weights(self, audited: Array, weights: Array | None = None) -> NDArray[np.float64]:
        """What audits weigh in the rows to come, which are counted; −1 in rows without an audit.

        A row that was audited stands for 1/α rows, where α is the share of audited rows so far.
        """
        weights = np.ones(len(audited)) if weights is None else weights
        rows = self.rows[0] + np.cumsum(weights)
        audits = self.rows[1] + np.cumsum(weights * audited)
        share = audits / np.maximum(rows, 1e-300)
        self.rows[:] = (rows[-1], audits[-1]) if len(audited) else self.rows
        heavier = np.minimum(1.0 / np.maximum(share, 1.0 / MOST_AUDIT_WEIGHT), MOST_AUDIT_WEIGHT)
        return np.asarray(np.where(audited, heavier, -1.0))


@dataclass(eq=False)
class Calibration(StatePart):
    """What online calibration has learned: c = σ(a (z − z̄_j) + e z̄_j + b + b_j), z = logit(η).

    Attributes
    ----------
    shared : ndarray
        a, e, b, the upper half of their curvature H (six numbers), the weight of rows whose labels
        came, W and N of the variance of logits within labels, s, from where on logits are squashed,
        and κ, the part of the correction that is made (``omma.kernels.calibrate``).
    bias, precision : ndarray of shape (m,)
        b_j of each label, and how much was learned of it: what is known before the first row is not
        stored, so that both of them and the curvature add up.
    mean, entries : ndarray of shape (m,)
        z̄_j, the mean logit of a label's probabilities, and n_j, the weight of rows in it.
    """

    SIGNED = ("shared", "bias", "mean")

    shared: NDArray[np.float64]
    bias: NDArray[np.float64]
    precision: NDArray[np.float64]
    mean: NDArray[np.float64]
    entries: NDArray[np.float64]

    @classmethod
    def start(cls, m: int, *, classes: bool = False) -> Calibration:
        """Nothing learned yet: probabilities pass as they are."""
        shared = UNLEARNED.copy()
        shared[SQUASH] = STRAIGHT if classes else SURE
        return cls(shared, *np.zeros((4, m)))

    def fill(self, arrays: dict[str, Array]) -> None:
        if is_earlier(arrays):
            raise ValueError(EARLIER)
        super().fill(arrays)

    def check(self, arrays: dict[str, Array]) -> None:
        if is_earlier(arrays):
            raise ValueError(EARLIER)
        super().check(arrays)
        if not arrays["shared"][SQUASH] > 0.0:
            raise ValueError(f"s of calibration must be positive, got {arrays['shared'][SQUASH]}")

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
        """θ − θ₀, with slopes within their bounds; a sum of calibrations may go past them."""
        theta = self.shared[:CURVES].copy()
        theta[:INTERCEPT] = np.clip(theta[:INTERCEPT], FLATTEST, STEEPEST)
        return np.asarray(theta - IDENTITY)

    @property
    def curve(self) -> Curve:
        """The same curve as a rule has it, c = σ(a z + b + b'_j): a, b, b'_j, and s.

        b'_j = b_j + (e − a) z̄_j, rounded as kernels do.
        """
        biases = self.bias + (self.between - self.slope) * self.mean
        return self.slope, self.intercept, biases, float(self.shared[SQUASH])

    @property
    def rows(self) -> float:
        """The weight of the rows that it was learned from."""
        return float(self.shared[LABELLED])

    def take(self, slope: float, intercept: float, bias: Any, squash: float) -> None:
        """Calibrate by the curve of a rule, as if it had been learned."""
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
        """H₀ = diag(3 v, 30, 1), in the ``unit`` that rows have now."""
        counted = self.shared[COUNTED] if self.shared[COUNTED] > 0.0 else 1.0
        variance = max(float(self.shared[SPREAD] / counted), LEAST_VARIANCE)
        diagonal = unit * np.array([START_SLOPE * variance, START_BETWEEN, START_INTERCEPT])
        return np.asarray(np.diag(diagonal))

    def _sums(self, unit: float) -> tuple[Array, Array]:
        """What was learned as sums over rows: numbers of all labels, and of each label (4, m).

        Estimates are weighed by their precision, with what was known before the first row:
        (H₀ + H)(θ − θ₀) is in place of θ, and logits and their squares are about zero.
        """
        shared = self.shared.copy()
        curvature = self._start(unit) + self._curvature()
        shared[:CURVES] = curvature @ (self.shared[:CURVES] - IDENTITY)
        shared[SPREAD] += self.entries @ self.mean**2
        pull = (START_PRECISION * unit + self.precision) * self.bias
        return shared, np.stack((pull, self.precision, self.entries * self.mean, self.entries))

    def combined(self, other: Calibration, sign: float, unit: float = 1.0) -> Calibration:
        """Add or subtract (``sign``) what was learned elsewhere.

        Both began at θ₀ = (1, 1, 0) and b_j = 0, held there by H₀, which the variance of logits
        decides:

            θ = θ₀ + (H₀ + H₁ + H₂)⁻¹ [(H₀₁ + H₁)(θ₁ − θ₀) + (H₀₂ + H₂)(θ₂ − θ₀)]

        What is in brackets adds up, so the order of several sums does not matter.
        """
        if self.shared[TRUST] == 1.0:  # the curve of a rule, which is the same in both
            return Calibration(**{name: array.copy() for name, array in self.arrays().items()})
        pairs = zip(self._sums(unit), other._sums(unit), strict=True)
        shared, (pull, precision, logits, entries) = (
            mine + sign * theirs for mine, theirs in pairs
        )
        entries = np.maximum(entries, 0.0)
        mean = np.divide(logits, entries, out=np.zeros(len(entries)), where=entries > 0.0)
        bias = pull / (START_PRECISION * unit + precision)
        total = Calibration(shared, bias, precision, mean, entries)
        # A difference of sums may end below zero by rounding.
        shared[COUNTED] = max(shared[COUNTED], 0.0)
        shared[SPREAD] = max(shared[SPREAD] - entries @ mean**2, 0.0)
        shared[SQUASH] = self.shared[SQUASH]
        curvature = total._start(unit) + total._curvature()
        shared[:CURVES] = IDENTITY + np.linalg.solve(curvature, shared[:CURVES])
        total.set_trust(unit)
        return total

    def __add__(self, other: Calibration) -> Calibration:
        return self.combined(other, 1.0)


def is_earlier(arrays: dict[str, Array]) -> bool:
    """Whether arrays of a calibration are those of a release that learned other numbers."""
    return "shared" in arrays and np.size(arrays["shared"]) != SHARED


@dataclass(eq=False)
class Prices(StatePart):
    """What each limit costs now.

    Attributes
    ----------
    mu, spread : ndarray with a number for each limit
        The price, and the sum of squares of what rows missed the limit by.
    rates : ndarray
        Where a limit asks for the mean of recalls: the sum of those of labels that occurred, and
        how many these are. Else it is empty.
    mean : ndarray with a number for each limit
        The mean so far of where the price stood: the price up to one, and one more than its
        logarithm beyond. Row t weighs t ** 2, so that the start is soon forgotten.
    """

    mu: NDArray[np.float64]
    spread: NDArray[np.float64]
    rates: NDArray[np.float64]
    mean: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        if not len(self.mean):  # of an earlier release: where it stands
            self.mean = np.where(self.mu < 1.0, self.mu, 1.0 + np.log(np.maximum(self.mu, 1.0)))

    @property
    def settled(self) -> NDArray[np.float64]:
        """The price of a rule that will stand still: at the mean of where it stood.

        >>> prices = Prices.start(1)
        >>> prices.mean[:] = 1.0 + np.log(20.0)
        >>> prices.settled.round(6)
        array([20.])
        """
        return np.where(self.mean < 1.0, self.mean, np.exp(np.maximum(self.mean, 1.0) - 1.0))

    @classmethod
    def start(cls, limits: int, *, rates: bool = False) -> Prices:
        """The prices before the first row."""
        mu, spread = np.full(limits, START_PRICE), np.full(limits, START_SPREAD)
        return cls(mu, spread, np.zeros(2 if rates else 0))

    def settle(self, cells: Array) -> None:
        """Work out the sum of recalls from counts."""
        if len(self.rates):
            # A label that never occurred has no recall, and is not in the mean.
            occurred = cells[POSITIVE] > 0
            recalls = cells[TP][occurred] / cells[POSITIVE][occurred]
            self.rates[:] = recalls.sum(), occurred.sum()

    def __add__(self, other: Prices) -> Prices:
        """Both: a price weighs by how much it moved."""
        self._check_alike(other)
        # Both moved on rows of their own; who saw more of them knows the price better.
        spread = self.spread + other.spread
        mu = (self.mu * self.spread + other.mu * other.spread) / spread
        mean = (self.mean * self.spread + other.mean * other.spread) / spread
        return Prices(mu, spread, self.rates.copy(), mean)

    def __sub__(self, other: Prices) -> Prices:
        """Without those rows: the price stays, and moves as freely as before them."""
        self._check_alike(other)
        return self._with_spread(self.spread - other.spread)

    def __mul__(self, factor: float) -> Prices:
        """Forget: the price stays, and moves more freely."""
        return self._with_spread(factor * self.spread)

    def _with_spread(self, spread: Array) -> Prices:
        spread = np.maximum(spread, START_SPREAD)
        return Prices(self.mu.copy(), spread, self.rates.copy(), self.mean.copy())

    def _check_alike(self, other: Prices) -> None:
        mine, theirs = len(self.mu), len(other.mu)
        if mine != theirs or len(self.rates) != len(other.rates):
            raise ValueError(
                f"states can be added for the same limits only, got {mine} and {theirs}"
                f"{'' if mine != theirs else ', of which one is on macro_recall'}"
            )

    def check(self, arrays: dict[str, Array]) -> None:
        super().check({"mean": self.mean, **arrays})  # an earlier release wrote no mean
        if (arrays["spread"] <= 0.0).any():
            raise ValueError("spread of prices must be positive")
