"""What skl2onnx has to know to convert a MetricClassifier: the estimator, and then the rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._validate import require
from omma.export import seats_of
from omma.export.onnx import class_places, write_rule
from omma.rule import Rule
from omma.sklearn._target import CLASSES, LABELS, YES
from omma.sklearn.classifier import MetricClassifier

ALIAS = "OmmaMetricClassifier"


def register() -> None:
    """Tell skl2onnx how to convert ``MetricClassifier``; twice does no harm."""
    skl2onnx = require("skl2onnx", "register_skl2onnx needs", '"omma[onnx]"')
    skl2onnx.update_registered_converter(MetricClassifier, ALIAS, _shapes, _convert, parser=_parse)


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """The estimator's probabilities in, the decisions out."""
    from skl2onnx._parse import _get_sklearn_operator_name, _parse_sklearn

    estimator = _unfrozen(model.estimator_)
    inner = estimator
    while True:  # without probabilities by name, wherever they come from
        scope.add_options(id(inner), {"zipmap": False})
        if not hasattr(inner, "steps"):
            break
        inner = _unfrozen(inner.steps[-1][1])
    operator = scope.declare_local_operator(_get_sklearn_operator_name(type(model)), model)
    operator.inputs = [_parse_sklearn(scope, estimator, inputs, custom_parsers)[-1]]
    operator.outputs.append(scope.declare_local_variable("output_label", _output_type(model)))
    return operator.outputs


def _unfrozen(estimator: Any) -> Any:
    return estimator.estimator if type(estimator).__name__ == "FrozenEstimator" else estimator


def _output_type(model: Any) -> Any:
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType

    target = model._target
    if target.kind == LABELS:
        return Int64TensorType([None, target.m])
    text = target.classes.dtype.kind in "UO"
    return StringTensorType([None]) if text else Int64TensorType([None])


def _shapes(operator: Any) -> None:
    operator.outputs[0].type = _output_type(operator.raw_operator)


def _convert(scope: Any, operator: Any, container: Any) -> None:
    model = operator.raw_operator
    target = model._target
    graph = _Container(scope, container)
    eta = _probabilities(operator, graph)
    decisions = write_rule(graph, _single_precision(model.rule_), eta)
    if target.kind == LABELS:
        found = graph.node("Cast", decisions, to=7)  # int64
    else:
        order = target.classes
        if target.kind == CLASSES:
            places = class_places(graph, decisions)
        else:  # 0 and 1 of the only column are places of two classes
            flat = graph.node("Reshape", decisions, graph.constant("flat", np.array([-1])))
            places = graph.node("Cast", flat, to=7)
            order = order if target.positive == 1 else order[::-1]
        known = order.astype(str if order.dtype.kind in "UO" else np.int64)
        found = graph.node("Gather", graph.constant("classes", known), places, axis=0)
    container.add_node(
        "Identity",
        [found],
        [operator.outputs[0].full_name],
        name=scope.get_unique_operator_name("out"),
    )


def _probabilities(operator: Any, graph: _Container) -> str:
    """Of what the estimator gives, the columns that the rule takes."""
    model, found = operator.raw_operator, operator.inputs[0].full_name
    target, known = model._target, model.estimator_.classes_
    if target.kind == LABELS and isinstance(known, list):
        if not all(np.array_equal(one, [0, 1]) for one in known):
            raise ValueError(
                "estimator_ of MetricClassifier must have seen every label present and absent to "
                f"be converted to ONNX, got {[list(one) for one in known]}"
            )
        if type(operator.inputs[0].type).__name__ == "SequenceType":
            found = graph.node("ConcatFromSequence", found, axis=0, new_axis=1)
        yes = graph.node("Gather", found, graph.constant("yes", np.array(1)), axis=2)
        return graph.node("Transpose", yes, perm=[1, 0])  # (labels, rows) there
    if target.kind != LABELS and not np.array_equal(known, target.classes):
        raise ValueError(
            "estimator_ of MetricClassifier must know every class to be converted to ONNX, got "
            f"{list(known)} of {target.classes.tolist()}"
        )
    if target.kind == YES:
        place = graph.constant("positive", np.array([target.positive]))
        return graph.node("Gather", found, place, axis=1)
    return str(found)


def _single_precision(rule: Rule) -> Rule:
    """Thresholds as single precision has them, as that is what converted estimators give.

    A cut tuned on labels is often a probability that the estimator gives again and again, such as
    that of a leaf: rounded to single precision it must still reach the cut.
    """
    plain = seats_of(rule) is None and rule.calibration is None and (rule.slope > 0).all()
    if not plain:
        return rule
    # All cuts beyond the probabilities are alike, and those far beyond have no finite number.
    cuts = np.clip(-rule.offset / rule.slope, -1.0, 2.0).astype(np.float32).astype(np.float64)
    return replace(rule, slope=np.ones(rule.m), offset=-cuts)


class _Container:
    """A graph as skl2onnx keeps it."""

    def __init__(self, scope: Any, container: Any) -> None:
        self._scope, self._container = scope, container

    def constant(self, name: str, values: NDArray[Any]) -> str:
        from onnx import TensorProto

        unique = str(self._scope.get_unique_variable_name(f"omma_{name}"))
        kinds = {"f": TensorProto.DOUBLE, "i": TensorProto.INT64, "U": TensorProto.STRING}
        content = values.ravel().tolist()
        if values.dtype.kind == "U":
            content = [one.encode() for one in content]
        self._container.add_initializer(unique, kinds[values.dtype.kind], values.shape, content)
        return unique

    def node(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        wanted = [f"omma_{kind.lower()}"] * outputs
        names = [str(self._scope.get_unique_variable_name(one)) for one in wanted]
        unique = self._scope.get_unique_operator_name(f"omma_{kind}")
        self._container.add_node(kind, list(inputs), names, name=unique, **attributes)
        return names[-1]
