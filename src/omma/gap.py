"""What could still be gained: the best attainable value, estimated along a stream."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from omma.kernels.certificate import KNOWN_W, ROWS_USED, SUM_W
from omma.metrics import Macro, Metric
from omma.metrics.binary import LabelMetric

TWO_SIDED, ONE_SIDED = 1.959964, 1.644854  # of 95%, by the normal distribution
TOO_FAR = 4.0  # standard errors by which labels may differ from what probabilities promise


@dataclass(frozen=True)
class Gap:
    """What any classifier with these probabilities and this budget could still gain.

    Attributes
    ----------
    attainable : float
        An estimate of ψ(C*), the best value that decisions by these probabilities can have in the
        long run. For concave metrics it errs upwards once each label has occurred some times.
    value : float or None
        ``attainable`` minus the metric so far; it may be a little below zero by chance. None where
        labels are unknown.
    error : float
        The standard error of both.
    rows : int
        How many rows it is estimated from: about the later three quarters.
    heuristic : bool
        Whether it can be wrong by more than chance.
    reason : str
        Why, in a sentence.
    disagreement : float
        By how many standard errors labels differ from what the probabilities promise, in the
        direction that matters here; NaN where labels are unknown. Far from zero, the
        probabilities are wrong, and so is the rest.
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
        """Where what could be gained lies, with 95% confidence."""
        if self.value is None:
            raise ValueError("a gap has an interval where labels are known")
        return self.value - TWO_SIDED * self.error, self.value + TWO_SIDED * self.error

    @property
    def upper(self) -> float:
        """At most this can be gained, with 95% confidence."""
        if self.value is None:
            raise ValueError("a gap has an upper end where labels are known")
        return self.value + ONE_SIDED * self.error

    def __str__(self) -> str:
        gained = "unknown" if self.value is None else f"{self.value:.4f} ± {self.error:.4f}"
        kind = "heuristic" if self.heuristic else "certificate"
        return f"{gained} still to gain of {self.attainable:.4f} ({kind}: {self.reason})"


def gap_from(metric: Metric, k: int | None, sums: NDArray[np.float64], value: float | None) -> Gap:
    """The gap from sums over blocks of rows, one row of ``sums`` a block."""
    attainable, error = weighted_mean(sums[:, SUM_W:KNOWN_W])
    off, off_error = weighted_mean(sums[:, KNOWN_W:ROWS_USED])
    disagreement = off / off_error if off_error > 0 else math.nan
    heuristic, reason = judged(metric, k, disagreement)
    return Gap(
        attainable,
        None if value is None else attainable - value,
        error,
        int(sums[:, ROWS_USED].sum()),
        heuristic,
        reason,
        disagreement,
    )


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
    freedom = w * w / np.maximum(w * w - ww, 1e-300)
    several = ww < w * w * (1.0 - 1e-12)
    variance = np.where(several, np.maximum(spread, 0.0) * freedom, 0.0).sum()
    return float(wu.sum() / total), float(np.sqrt(variance) / total)


def judged(metric: Metric, k: int | None, disagreement: float) -> tuple[bool, str]:
    """Whether the gap is only heuristic, and why."""
    if abs(disagreement) > TOO_FAR:
        return True, (
            f"labels differ by {disagreement:+.1f} standard errors from what the probabilities "
            "promise: calibrate them first"
        )
    if metric.concave:
        return False, (
            f"{metric.name} is concave, so in the long run no decisions by these probabilities do "
            "better, if they are right and rows come independently"
        )
    label = metric.of if isinstance(metric, Macro) else metric
    if k is None and isinstance(label, LabelMetric) and label.linear_fractional:
        return True, (
            f"{metric.name} is not concave but a ratio for each label: right where the decisions "
            "are nearly the best ones, and only in sign elsewhere"
        )
    return True, (
        f"{metric.name} is not concave: it says what decisions near those of OMMA could gain"
    )
