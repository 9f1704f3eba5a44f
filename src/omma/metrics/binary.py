"""Metrics of one label: a rate, a mean of recall and specificity, the Matthews correlation, or the
smaller of two rates.

A rate is a ratio of two linear forms in (tp, predicted, positive, n). Compiled code gets only its
coefficients, or the kind of the mean, so one kernel serves all of them.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.kernels import objectives as kinds
from omma.kernels.layout import EPSILON
from omma.metrics.base import Metric, divide

Form = tuple[float, float, float, float]

# The kinds of compiled code for metrics of one label that are no rate: means of recall and
# specificity, and the correlation. ``LabelMetric.of_cells`` has the exact value of each.
MEANS: dict[str, Any] = {
    "arithmetic": kinds.Arithmetic,
    "geometric": kinds.Geometric,
    "harmonic": kinds.Harmonic,
    "quadratic": kinds.Quadratic,
    "correlation": kinds.Correlation,
}


@dataclass(frozen=True)
class Rate:
    """A ratio of two linear forms in (tp, predicted, positive, n).

    >>> precision = Rate(over=(1, 0, 0, 0), under=(0, 1, 0, 0))
    >>> float(precision.of(3.0, 4.0, 6.0, 10.0, 0.0))
    0.75
    """

    over: Form
    under: Form

    def sums(self, *cells: Any) -> list[Any]:
        """Numerator and denominator at cells (tp, predicted, positive, n)."""
        parts: list[Any] = [0, 0]
        for i, form in enumerate((self.over, self.under)):
            for factor, cell in zip(form, cells, strict=True):
                if factor:  # most are zero, and arrays need not be added
                    parts[i] = parts[i] + factor * cell
        return parts

    def of(self, tp: Any, predicted: Any, positive: Any, n: Any, zero_division: float) -> Any:
        """Its value; 0/0 is ``zero_division``."""
        over, under = self.sums(tp, predicted, positive, n)
        return divide(over, under, zero_division)

    @cached_property
    def kind(self) -> kinds.Ratio:
        """The rate in the form that kernels read."""
        over, under = (tuple(map(float, form)) for form in (self.over, self.under))
        return kinds.Ratio(over, under, EPSILON)  # type: ignore[arg-type]


# Coefficients of (tp, predicted, positive, n): tn is n − predicted − positive + tp, and the
# negatives are n − positive.
RECALL = Rate(over=(1, 0, 0, 0), under=(0, 0, 1, 0))
SPECIFICITY = Rate(over=(1, -1, -1, 1), under=(0, 0, -1, 1))


class LabelMetric(Metric):
    """A metric of one label, which averages can wrap.

    It is the ``mean`` of its ``rates``; one without rates has a value of its own in ``of_cells``.
    """

    binary = True
    mean: str
    rates: tuple[Rate, ...]

    def of_cells(
        self, tp: Any, predicted: Any, positive: Any, n: Any, zero_division: float = 0.0
    ) -> NDArray[np.float64]:
        """The value at each entry of arrays of counts."""
        if self.mean == "correlation":
            # tp·tn − fp·fn is tp·n − predicted·positive, the covariance. Rounding of weights may
            # leave a count a little above n.
            negative, absent = np.maximum(n - predicted, 0.0), np.maximum(n - positive, 0.0)
            spread = np.sqrt(predicted * negative) * np.sqrt(positive * absent)
            return divide(tp * n - predicted * positive, spread, zero_division)  # type: ignore[no-any-return]
        values = [rate.of(tp, predicted, positive, n, zero_division) for rate in self.rates]
        return mean_of(self.mean, np.stack(values))

    @property
    @abstractmethod
    def kind(self) -> Any:
        """The metric of one label in the form that kernels read."""

    @property
    def per_label(self) -> LabelMetric:
        return self

    # One label is a macro average over one: macro-ψ of the paper's Section 2 is (1/m) Σ ψ(C_j).

    def values(
        self, tp: Any, predicted: Any, positive: Any, n: Any, zero_division: float = 0.0
    ) -> NDArray[np.float64]:
        # A label of 0/0 stays in the mean.
        of_labels = self.of_cells(tp, predicted, positive, n[..., np.newaxis], zero_division)
        return of_labels.mean(axis=-1)  # type: ignore[no-any-return]

    def term(self, weight: float = 1.0, exact: bool = False) -> Any:
        return kinds.MacroTerm(float(weight), self.kind)


@dataclass(frozen=True, repr=False)
class Binary(LabelMetric):
    """A metric of one label; ``macro`` and ``micro`` make it one of many.

    >>> import omma
    >>> omma.metrics.f1.score([1, 1, 0, 0], [1, 0, 1, 0])
    0.5
    """

    name: str
    formula: str
    mean: str  # "rate", or of recall and specificity "arithmetic", …; or "correlation"
    rate: Rate | None = None
    concave: bool = False
    smooth: bool = False
    linear: bool = False
    linear_fractional: bool = False
    spec: Any = field(default=None, hash=False)  # its JSON, if that is not its name

    def __post_init__(self) -> None:
        self._set(__doc__=f"{self.name}: {self.formula}")

    @cached_property
    def rates(self) -> tuple[Rate, ...]:  # type: ignore[override]
        if self.rate is not None:
            return (self.rate,)
        # The means of Table 1 are of recall and specificity.
        return () if self.mean == "correlation" else (RECALL, SPECIFICITY)

    @property
    def kind(self) -> Any:
        return MEANS[self.mean](EPSILON) if self.rate is None else self.rate.kind

    def to_json(self) -> Any:
        return self.name if self.spec is None else self.spec


def mean_of(mean: str, rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of rates along the first axis; harmonic of zeros only is zero."""
    if mean in ("arithmetic", "rate"):  # a single rate is its own mean
        return rates.mean(axis=0)  # type: ignore[no-any-return]
    if mean == "minimum":
        return rates.min(axis=0)  # type: ignore[no-any-return]
    # Q-mean of the paper's Table 1: one minus the quadratic mean of the misses.
    if mean == "quadratic":
        return 1.0 - np.sqrt(((1.0 - rates) ** 2).mean(axis=0))  # type: ignore[no-any-return]
    # The logarithm and the reciprocal of zero: both means are zero where a rate is.
    some_zero = (rates <= 0).any(axis=0)
    positive = np.where(rates > 0, rates, 1.0)
    if mean == "geometric":
        # Logarithms where a product of many rates may vanish.
        many = len(rates) > 2
        result = np.exp(np.log(positive).mean(axis=0)) if many else np.sqrt(positive.prod(axis=0))
    else:
        result = 1.0 / (1.0 / positive).mean(axis=0)
    return np.where(some_zero, 0.0, result)


@dataclass(frozen=True)
class Smoothing:
    """How a minimum is smoothed where a gradient is taken; made by ``omma.metrics.smoothed``.

    ``gamma`` is a number, 0 for none, or None for the best bound of the paper at ``rows`` rows, or
    at those seen so far where ``rows`` is None.
    """

    gamma: float | None = None
    rows: int | None = None

    def __bool__(self) -> bool:
        return self.gamma != 0.0

    # Kernels take numbers alone: no γ is −1 there, and no number of rows is 0.
    @property
    def numbers(self) -> tuple[float, float]:
        """γ (negative if it follows the number of rows) and that number (0 for rows so far)."""
        return -1.0 if self.gamma is None else float(self.gamma), float(self.rows or 0)

    def to_json(self, metric: Any) -> Any:
        """The metric with this smoothing as JSON."""
        return {"smoothed": metric, "gamma": self.gamma, "rows": self.rows} if self else metric


UNSMOOTHED = Smoothing(0.0)


@dataclass(frozen=True, repr=False)
class Minimum(LabelMetric):
    """The smaller of two rates; made by ``omma.metrics.minimum``."""

    mean = "minimum"

    first: Binary
    second: Binary
    smoothing: Smoothing = UNSMOOTHED

    def __post_init__(self) -> None:
        first, second = self.first, self.second
        name = f"min_{first.name}_{second.name}"
        rates = (*first.rates, *second.rates)
        self._set(
            # Under another name, as policies with and without it end with different rules.
            name=f"smoothed_{name}" if self.smoothing else name,
            formula=f"min({first.name}, {second.name})",
            rates=rates,
            # A minimum of linear functions is concave: denominators that no decision changes.
            concave=all(not (rate.under[0] or rate.under[1]) for rate in rates),
            smooth=bool(self.smoothing),
        )

    @property
    def kind(self) -> Any:
        return kinds.Smaller(self.first.kind, self.second.kind, *self.smoothing.numbers)

    def to_json(self) -> Any:
        return self.smoothing.to_json({"minimum": [self.first.to_json(), self.second.to_json()]})
