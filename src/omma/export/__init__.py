"""Exports of rules to ONNX, SQL, PyTorch and scikit-learn, one file each.

Users call ``Rule.to_onnx``, ``Rule.to_sql``, ``Rule.to_torch`` and ``Rule.to_sklearn``. For each
row, with η in double precision, each target computes:

1. where the rule is calibrated and η > 0, c = sigmoid(a·z·r·(2 − r) + b + b_j), else c = η, with
   z = logit(clip(η)) and r = s / max(|z|, s), for a, b, b_j and s of ``rule.curve``; r is 1, and is
   left out, where s is ``STRAIGHT``;
2. gain = slope·c + offset, and with a table of costs + Σ c_i·matrix[i, j], in the order of i;
3. without a table of costs, η = 0 is no candidate: its gain is minus infinity;
4. every gain of at least 0, of these up to ``at_most`` of the largest, or the k largest whatever
   they are; equal ones go to the lowest label.
"""

from typing import Any


def register_skl2onnx() -> None:
    """Let ``skl2onnx.to_onnx`` convert ``omma.sklearn.MetricClassifier``, whatever is inside it.

    The model's one output is its decisions. Converted estimators give probabilities in single
    precision; thresholds are rounded to that.

    >>> from omma.export import register_skl2onnx
    >>> register_skl2onnx()
    """
    from omma.export.skl2onnx import register

    register()


def seats_of(rule: Any) -> int | None:
    """How many labels a row can get: k, or at_most; None for any number.

    >>> from omma import Rule
    >>> seats_of(Rule([1.0, 2.0], [-0.5, -0.2], k=1))
    1
    """
    seats: int | None = rule.at_most if rule.k is None else rule.k
    return seats
