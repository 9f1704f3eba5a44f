"""Whether probabilities are calibrated, as far as the labels of these rows can tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from omma.calibration import reliability

TEST_BINS = 10  # of equal mass: bins of equal width leave most of rare labels in a single one
ERROR_BINS = 20


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
    worst : tuple of float
        Predicted and observed rate of the bin that is least likely by chance.
    metric : str
    gain : float or None
        What calibrating the probabilities adds to the metric of OMMA(η̂), which trusts them, on
        unseen rows; None where that was not tried.
    """

    error: float
    base_rate: float
    bins_off: int
    bins: int
    worst: tuple[float, float]
    metric: str = ""
    gain: float | None = None

    @classmethod
    def of(cls, data: Any) -> CalibrationCheck:
        """Test a batch with labels.

        >>> import omma
        >>> eta, y = omma.datasets.long_tail(n=2000, m=20, seed=0)
        >>> CalibrationCheck.of(omma.Batch.of(eta, y)).looks_calibrated
        True
        >>> CalibrationCheck.of(omma.Batch.of(eta**1.2, y)).looks_calibrated
        False
        """
        curve = reliability(data, bins=TEST_BINS, strategy="mass")
        off, filled = curve.beyond_chance, curve.count > 0
        worst = int(np.argmin(np.where(filled, curve.p_values, np.inf)))
        rate = float(curve.observed[filled] @ curve.count[filled] / curve.count.sum())
        return cls(
            reliability(data, bins=ERROR_BINS).expected_error,
            rate,
            int(off.sum()),
            int(filled.sum()),
            (float(curve.predicted[worst]), float(curve.observed[worst])),
        )

    @property
    def looks_calibrated(self) -> bool:
        """Whether chance explains how far every bin is off."""
        return self.bins_off == 0

    def __str__(self) -> str:
        error, rate = f"{100 * self.error:.2g} points", f"{100 * self.base_rate:.2g} %"
        size = f"mean calibration error {error}, base rate {rate}"
        if self.looks_calibrated:
            text = f"The probabilities look calibrated: no bin is off by more than chance ({size})."
        else:
            predicted, observed = (f"{100 * share:.2g} %" for share in self.worst)
            text = (
                f"The probabilities do not look calibrated: {self.bins_off} of {self.bins} bins "
                f"are off by more than chance, as where {predicted} was predicted and {observed} "
                f"observed ({size})."
            )
        if self.gain is None:
            return text
        effect = "adds" if self.gain >= 0 else "takes"
        to = "to" if self.gain >= 0 else "from"
        return (
            f"{text} Calibrating them {effect} {100 * abs(self.gain):.2f} points {to} the "
            f"{self.metric} of OMMA(η̂), which trusts them; Auto calibrates by itself."
        )
