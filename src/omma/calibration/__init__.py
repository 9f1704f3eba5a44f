"""Measures of calibration, and calibration that learns as labels come.

Reliability, expected calibration error, log-loss and Brier take probabilities and labels as
``omma.replay`` does. ``OnlineCalibrator`` is the calibration inside ``omma.Auto``, alone.
"""

from omma.calibration.online import Calibrated, OnlineCalibrator, Scores
from omma.calibration.reliability import (
    LEAST,
    Reliability,
    brier,
    expected_error,
    log_loss,
    reliability,
)

__all__ = [
    "LEAST",
    "Calibrated",
    "OnlineCalibrator",
    "Reliability",
    "Scores",
    "brier",
    "expected_error",
    "log_loss",
    "reliability",
]
