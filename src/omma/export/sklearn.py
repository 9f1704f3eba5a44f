"""A rule on top of a scikit-learn classifier."""

from typing import Any

import numpy as np

from omma._validate import require

TINIEST = np.nextafter(0.0, 1.0)  # a label of probability zero is never predicted


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
    options = (rule.k, rule.calibration, rule.at_most)
    if rule.m != 1 or any(option is not None for option in options):
        return None
    slope, offset = float(rule.slope[0]), float(rule.offset[0])
    cut = float(rule.thresholds[0])
    if np.isnan(cut):  # the label is predicted below a probability
        return None
    # Dividing rounds: go to the very first number that gains, as the rule computes gains.
    while slope * cut + offset < 0:
        cut = np.nextafter(cut, np.inf)
    while slope * (below := np.nextafter(cut, -np.inf)) + offset >= 0 and below > 0:
        cut = below
    return np.float64(max(cut, TINIEST))
