"""Rules at work elsewhere: in ONNX, SQL, PyTorch and scikit-learn, one file each.

``Rule.to_onnx``, ``Rule.to_sql``, ``Rule.to_torch`` and ``Rule.to_sklearn`` are the doors. What
each target has to compute is said once, in ``omma.export.parts``.
"""


def register_skl2onnx() -> None:
    """Let ``skl2onnx.to_onnx`` convert ``omma.sklearn.MetricClassifier``, whatever is inside it.

    The model's one output is its decisions. Converted estimators give probabilities in single
    precision; thresholds are rounded to that.

    >>> from omma.export import register_skl2onnx
    >>> register_skl2onnx()
    """
    from omma.export.skl2onnx import register

    register()
