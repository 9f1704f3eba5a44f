"""A rule as an ONNX graph: probabilities in, decisions out."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._validate import check_choice, require
from omma.export import seats_of
from omma.kernels.calibrate import STRAIGHT
from omma.kernels.layout import LEAST, MOST
from omma.state_parts import Curve

OPSET, IR_VERSION = 17, 8  # what onnxruntime has read since 2022
MANY = 256  # classes beyond which a table of costs would make too large a graph
INT8, INT64, DOUBLE = 3, 7, 11  # types of ONNX, as ``Cast`` takes them


class Graph:
    """Nodes and constants with unique names, which ``unique`` makes of any.

    It knows no library: whoever builds a model makes ONNX of its lists.
    """

    def __init__(self, unique: Callable[[str], str] = str) -> None:
        self.constants: dict[str, NDArray[Any]] = {}
        # Of each node its kind, the names of its inputs and outputs, and its attributes.
        self.nodes: list[tuple[str, list[str], list[str], dict[str, Any]]] = []
        self._unique = unique

    def constant(self, name: str, values: Any, dtype: Any = np.float64) -> str:
        """Add an array or a number under a name of its own; returns the unique name."""
        unique = self._unique(name)
        self.constants[unique] = np.asarray(values, dtype)
        return unique

    def node(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """Add a node; returns the name of its last output."""
        start = f"{kind.lower()}_{len(self.nodes)}"
        names = [self._unique(f"{start}_{place}") for place in range(outputs)]
        self.nodes.append((kind, list(inputs), names, attributes))
        return names[-1]

    def name_output(self, source: str, name: str) -> None:
        """Give an output of the graph the name that users know it by."""
        self.nodes.append(("Identity", [source], [name], {}))


def model_of(rule: Any, *, dtype: str = "float32", name: str = "omma_rule") -> Any:
    """The rule as an ``onnx.ModelProto``; ``Rule.to_onnx`` says more."""
    onnx = require("onnx", "Rule.to_onnx needs", '"omma-learn[onnx]"')
    check_choice("Rule.to_onnx", "dtype", dtype, ("float32", "float64"))
    helper, types = onnx.helper, onnx.TensorProto
    graph = Graph()
    decisions = write_rule(graph, rule, "eta")
    graph.name_output(decisions, "decisions")
    outputs = [helper.make_tensor_value_info("decisions", types.INT8, ["n", rule.m])]
    if rule.k == 1:
        graph.name_output(class_places(graph, decisions), "classes")
        outputs.append(helper.make_tensor_value_info("classes", types.INT64, ["n"]))
    kind = types.FLOAT if dtype == "float32" else types.DOUBLE
    inputs = [helper.make_tensor_value_info("eta", kind, ["n", rule.m])]
    nodes = [helper.make_node(*names, **attributes) for *names, attributes in graph.nodes]
    constants = [
        onnx.numpy_helper.from_array(values, own_name)
        for own_name, values in graph.constants.items()
    ]
    model = helper.make_model(
        helper.make_graph(nodes, name, inputs, outputs, initializer=constants),
        opset_imports=[helper.make_opsetid("", OPSET)],
        producer_name="omma",
        ir_version=IR_VERSION,
    )
    # Whoever has the model can read the rule back from it.
    helper.set_model_props(model, {"omma_rule": rule.to_json()})
    onnx.checker.check_model(model)
    return model


def write_rule(graph: Graph, rule: Any, eta: str) -> str:
    """Write the nodes that decide; returns the name of the int8 indicators."""
    # In double precision, whatever the model gives: single precision would move thresholds.
    wide = graph.node("Cast", eta, to=DOUBLE)
    zero, never = graph.constant("zero", 0.0), graph.constant("never", -np.inf)
    is_candidate = graph.node("Greater", wide, zero)
    probabilities = wide
    if rule.curve is not None:
        calibrated = _calibrated(graph, rule.curve, wide)
        probabilities = graph.node("Where", is_candidate, calibrated, zero)
    gains = _gains(graph, rule, probabilities)
    if rule.matrix is None:
        gains = graph.node("Where", is_candidate, gains, never)
    seats = seats_of(rule)
    if seats is None:
        return graph.node("Cast", graph.node("GreaterOrEqual", gains, zero), to=INT8)
    # Of equal gains ``TopK`` takes the lowest index, as rules do.
    budget = graph.constant("k", [seats], np.int64)
    best = graph.node("TopK", gains, budget, outputs=2, axis=1, largest=1, sorted=1)
    # With k, the best labels are predicted whatever they gain.
    best_gains = graph.node("GatherElements", gains, best, axis=1)
    reached = graph.node("GreaterOrEqual", best_gains, zero if rule.k is None else never)
    ones = graph.node("Cast", reached, to=INT8)
    # Indicators: zeros of the shape of the row, with a one at each of the best.
    zeros = graph.node("Cast", graph.node("Mul", wide, zero), to=INT8)
    return graph.node("ScatterElements", zeros, best, ones, axis=1)


def class_places(graph: Graph, decisions: str) -> str:
    """The place of the one label of each row, as int64."""
    return graph.node("ArgMax", decisions, axis=1, keepdims=0)


def _calibrated(graph: Graph, curve: Curve, eta: str) -> str:
    """Calibrated probabilities."""
    scale, common, biases, squash = curve
    clipped = graph.node("Max", eta, graph.constant("least", LEAST))
    clipped = graph.node("Min", clipped, graph.constant("most", MOST))
    complement = graph.node("Sub", graph.constant("one", 1.0), clipped)
    logit = graph.node("Log", graph.node("Div", clipped, complement))
    if squash != STRAIGHT:  # z·r·(2 − r), r = s / max(|z|, s)
        bound = graph.constant("squash", squash)
        r = graph.node("Div", bound, graph.node("Max", graph.node("Abs", logit), bound))
        two_less_r = graph.node("Sub", graph.constant("two", 2.0), r)
        logit = graph.node("Mul", logit, graph.node("Mul", r, two_less_r))
    scaled = graph.node("Mul", logit, graph.constant("scale", scale))
    return graph.node("Sigmoid", graph.node("Add", scaled, graph.constant("bias", common + biases)))


def _gains(graph: Graph, rule: Any, eta: str) -> str:
    scaled = graph.node("Mul", eta, graph.constant("slope", rule.slope))
    gains = graph.node("Add", scaled, graph.constant("offset", rule.offset))
    if rule.matrix is None:
        return gains
    if rule.m > MANY:
        raise ValueError(
            f"a rule with a table of costs must have at most {MANY} classes for Rule.to_onnx, got "
            f"{rule.m}"
        )
    for i, row in enumerate(rule.matrix):  # one after another: sums in another order differ
        place = graph.constant(f"place_{i}", [i], np.int64)
        column = graph.node("Gather", eta, place, axis=1)
        worth = graph.node("Mul", column, graph.constant(f"worth_{i}", row))
        gains = graph.node("Add", gains, worth)
    return gains
