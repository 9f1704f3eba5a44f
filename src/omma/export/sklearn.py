"""A rule on top of a scikit-learn classifier."""

from bisect import bisect_left
from typing import Any

import numpy as np

from omma._validate import require
from omma.export import seats_of

INFINITY = int(np.float64(np.inf).view(np.int64))  # its bits


def classifier_of(rule: Any, estimator: Any, *, pos_label: Any = None) -> Any:
    """The rule as a classifier; ``Rule.to_sklearn`` says more."""
    require("sklearn", "Rule.to_sklearn needs", '"omma-learn[sklearn]"')
    from sklearn.base import is_classifier

    if not is_classifier(estimator) or not hasattr(estimator, "predict_proba"):
        raise TypeError(
            "estimator of Rule.to_sklearn must be a classifier with predict_proba, got "
            f"{type(estimator).__name__}"
        )
    cut = one_threshold(rule)
    if cut is not None:
        from sklearn.model_selection import FixedThresholdClassifier

        return FixedThresholdClassifier(
            estimator, threshold=cut, pos_label=pos_label, response_method="predict_proba"
        )
    from omma.sklearn.ruled import RuledClassifier

    return RuledClassifier(estimator, rule, pos_label=pos_label)


def one_threshold(rule: Any) -> Any:
    """The lowest probability that the rule says yes to; None where that is not all there is to it.

    As a NumPy number: single precision would be compared with a Python one after rounding that.

    >>> from omma import Rule
    >>> float(one_threshold(Rule([1.0], [-0.5])))
    0.5
    """
    if rule.m != 1 or seats_of(rule) is not None or rule.calibration is not None:
        return None
    slope, offset = float(rule.slope[0]), float(rule.offset[0])
    if slope < 0:  # the label is predicted below a probability
        return None

    def gains(bits: int) -> bool:
        return slope * float(np.int64(bits).view(np.float64)) + offset >= 0

    # Dividing offset by slope would round. Numbers above 0 have the order of their bits, so that
    # bisection finds the very first that gains, or infinity. Zero is never predicted.
    first = 1 + bisect_left(range(1, INFINITY), True, key=gains)
    return np.int64(first).view(np.float64)
