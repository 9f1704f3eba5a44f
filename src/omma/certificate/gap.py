"""The gap: the best attainable value, estimated along a stream, minus the value so far."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from omma.kernels.certificate import KNOWN_W, ROWS_USED, SUM_W, SUM_WW
from omma.metrics import Metric
from omma.metrics.averages import Micro, OverClasses
from omma.metrics.binary import Binary, Minimum
from omma.metrics.scoring import value_range

TWO_SIDED, ONE_SIDED = 1.959964, 1.644854  # of 95%, by the normal distribution
TOO_FAR = 4.0  # standard errors by which labels may differ from what probabilities promise
FEW_ROWS = 30.0  # of equal weight, below which one of them can decide
ROUNDING = 1e-6


@dataclass(frozen=True)
class Gap:
    """How much any decisions by these probabilities, with this budget, could still gain.

    Attributes
    ----------
    attainable : float
        An estimate of ψ(C*), the best value that decisions by these probabilities can have in the
        long run; C* is that of the paper's Eq. (7). For concave metrics it errs upwards once each
        label has occurred some times. It never exceeds the metric's highest value, where that is
        known.
    value : float or None
        ``attainable`` minus the metric so far; it may be a little below zero by chance. None where
        labels are unknown.
    error : float
        The standard error of both.
    rows : int
        The number of rows behind the estimate: about the later three quarters of those with weight.
    heuristic : bool
        Whether it can be wrong by more than chance.
    reason : str
        The reason, in a sentence.
    disagreement : float
        By how many standard errors labels differ from the probabilities, in the direction that
        matters here; NaN where labels are unknown. Far from zero, the probabilities are wrong, and
        so is the gap.
    """

    attainable: float
    value: float | None
    error: float
    rows: int
    heuristic: bool
    reason: str
    disagreement: float

    @property
    def interval(self) -> tuple[float, float]:
        """A 95% confidence interval of the possible gain."""
        if self.value is None:
            raise ValueError("a gap has an interval where labels are known")
        return self.value - TWO_SIDED * self.error, self.value + TWO_SIDED * self.error

    @property
    def upper(self) -> float:
        """An upper 95% confidence bound of the possible gain."""
        if self.value is None:
            raise ValueError("a gap has an upper end where labels are known")
        return self.value + ONE_SIDED * self.error

    def __str__(self) -> str:
        gained = "unknown" if self.value is None else f"{self.value:.4f} ± {self.error:.4f}"
        kind = "heuristic" if self.heuristic else "certificate"
        return f"{gained} still to gain of {self.attainable:.4f} ({kind}: {self.reason})"


def gap_from(
    metric: Metric,
    k: int | None,
    sums: NDArray[np.float64],
    effective: float,
    unsure: float,
    value: float | None,
) -> Gap:
    """The gap from sums over blocks of rows, one row of ``sums`` a block.

    ``effective`` is the effective number of rows; ``unsure`` is how much of the metric depends on
    labels that may not have occurred yet.
    """
    attainable, error = weighted_mean(sums[:, SUM_W:KNOWN_W])
    attainable = min(attainable, value_range(metric)[1])
    off, off_error = weighted_mean(sums[:, KNOWN_W:ROWS_USED])
    disagreement = off / off_error if off_error > 0 else math.nan
    rows = int(sums[:, ROWS_USED].sum())
    # The first reason why the gap can be wrong by more than chance.
    if effective < min(FEW_ROWS, 0.5 * rows):
        doubt = (
            f"a few rows have most of the weight, which makes {rows} rows worth {effective:.1f} of "
            "equal weight"
        )
    elif abs(disagreement) > TOO_FAR:
        doubt = (
            f"labels differ by {disagreement:+.1f} standard errors from what the probabilities "
            "promise: calibrate them first"
        )
    elif not metric.concave:
        doubt = doubt_of_metric(metric, k)
    elif unsure > error + ROUNDING:
        doubt = (
            "some labels are expected so few times that they may not have occurred yet, and about "
            f"{unsure:.2g} of the value hangs on whether they have"
        )
    else:
        doubt = ""
    proof = (
        f"{metric.name} is concave, so in the long run no decisions by these probabilities do "
        "better, if they are right and rows come independently"
    )
    gained = None if value is None else attainable - value
    return Gap(attainable, gained, error, rows, bool(doubt), doubt or proof, disagreement)


def effective_rows(sums: NDArray[np.float64]) -> float:
    """The effective number of rows, (Σw)² / Σw²: as many rows of equal weight are as precise."""
    squares = float(sums[:, SUM_WW].sum())
    return float(sums[:, SUM_W].sum()) ** 2 / squares if squares > 0.0 else 0.0


def weighted_mean(sums: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and standard error from Σw, Σw², Σwu, Σw²u and Σw²u² of each block.

    Rows are compared with the mean of their own block: tangents differ between blocks.
    """
    w, ww, wu, wwu, wwuu = sums[sums[:, SUM_W] > 0].T
    total = w.sum()
    if total <= 0:
        return math.nan, math.nan
    mean = wu / w
    spread = wwuu - 2.0 * mean * wwu + mean * mean * ww
    # A block's own mean takes up one of its rows' worth of spread.
    squared = w * w
    freedom = squared / np.maximum(squared - ww, 1e-12 * squared + 1e-300)
    several = ww < squared * (1.0 - 1e-12)
    variance = np.where(several, np.maximum(spread, 0.0) * freedom, 0.0).sum()
    return float(wu.sum() / total), float(np.sqrt(variance) / total)


def doubt_of_metric(metric: Metric, k: int | None) -> str:
    """Why a gap is no bound for a metric that is not concave."""
    label = metric.per_label
    if k is None and label and label.linear_fractional and not isinstance(metric, Micro):
        return (
            f"{metric.name} is not concave but a ratio for each label: right where the decisions "
            "are nearly the best ones, and only in sign elsewhere"
        )
    # Of a sum, or of a user's own metric, it is not known.
    is_known = isinstance(label, Binary | Minimum) or isinstance(metric, OverClasses)
    known_to_be = "" if is_known else "known to be "
    return (
        f"{metric.name} is not {known_to_be}concave: it says what decisions "
        "near those of OMMA could gain"
    )
