"""Conversion of a MetricClassifier by skl2onnx: the estimator, and then the rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from omma._validate import require
from omma.export import seats_of
from omma.export.onnx import INT64, Graph, class_places, write_rule
from omma.rule import Rule
from omma.sklearn._problem import BINARY, MULTICLASS, MULTILABEL
from omma.sklearn.classifier import MetricClassifier

ALIAS = "OmmaMetricClassifier"


def register() -> None:
    """Tell skl2onnx how to convert ``MetricClassifier``; twice does no harm."""
    skl2onnx = require("skl2onnx", "register_skl2onnx needs", '"omma-learn[onnx]"')
    skl2onnx.update_registered_converter(MetricClassifier, ALIAS, _shapes, _convert, parser=_parse)


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """The estimator's probabilities in, the decisions out."""
    # skl2onnx has no public way to parse an estimator inside of another.
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
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def _output_type(model: Any) -> Any:
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType

    problem = model._problem
    if problem.kind == MULTILABEL:
        return Int64TensorType([None, problem.m])
    text = problem.classes.dtype.kind in "UO"
    return StringTensorType([None]) if text else Int64TensorType([None])


def _shapes(operator: Any) -> None:
    operator.outputs[0].type = _output_type(operator.raw_operator)


def _convert(scope: Any, operator: Any, container: Any) -> None:
    from onnx.helper import np_dtype_to_tensor_dtype

    model = operator.raw_operator
    problem = model._problem
    graph = Graph(lambda name: str(scope.get_unique_variable_name(f"omma_{name}")))
    decisions = write_rule(graph, _single_precision(model.rule_), _probabilities(operator, graph))
    if problem.kind == MULTILABEL:
        output = graph.node("Cast", decisions, to=INT64)
    else:
        order = problem.classes
        if problem.kind == MULTICLASS:
            places = class_places(graph, decisions)
        else:  # 0 and 1 of the only column are places of two classes
            flat = graph.node("Reshape", decisions, graph.constant("flat", [-1], np.int64))
            places = graph.node("Cast", flat, to=INT64)
            order = order if problem.positive == 1 else order[::-1]
        known = graph.constant("classes", order, str if order.dtype.kind in "UO" else np.int64)
        output = graph.node("Gather", known, places, axis=0)
    graph.name_output(output, operator.outputs[0].full_name)
    for name, values in graph.constants.items():
        dtype = np_dtype_to_tensor_dtype(values.dtype)
        container.add_initializer(name, dtype, values.shape, values.ravel().tolist())
    for kind, inputs, outputs, attributes in graph.nodes:
        unique = scope.get_unique_operator_name(f"omma_{kind}")
        container.add_node(kind, inputs, outputs, name=unique, **attributes)


def _probabilities(operator: Any, graph: Graph) -> str:
    """The columns of the estimator's output that the rule takes."""
    model, output = operator.raw_operator, operator.inputs[0].full_name
    problem, known = model._problem, model.estimator_.classes_
    if problem.kind == MULTILABEL and isinstance(known, list):
        if not all(np.array_equal(classes, [0, 1]) for classes in known):
            raise ValueError(
                "estimator_ of MetricClassifier must have seen every label present and absent to "
                f"be converted to ONNX, got {list(map(list, known))}"
            )
        if type(operator.inputs[0].type).__name__ == "SequenceType":
            output = graph.node("ConcatFromSequence", output, axis=0, new_axis=1)
        present = graph.node("Gather", output, graph.constant("yes", 1, np.int64), axis=2)
        return graph.node("Transpose", present, perm=[1, 0])  # (labels, rows) there
    if problem.kind != MULTILABEL and not np.array_equal(known, problem.classes):
        raise ValueError(
            "estimator_ of MetricClassifier must know every class to be converted to ONNX, got "
            f"{list(known)} of {problem.classes.tolist()}"
        )
    if problem.kind == BINARY:
        place = graph.constant("positive", [problem.positive], np.int64)
        return graph.node("Gather", output, place, axis=1)
    return str(output)


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
