"""A rule as an ONNX graph: probabilities in, decisions out."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._validate import check_choice, require
from omma.export import logits_of, seats_of
from omma.kernels.layout import LEAST, MOST

OPSET, IR_VERSION = 17, 8  # what onnxruntime has read since 2022
MANY = 256  # classes beyond which a table of costs would make too large a graph
INT8, INT64, DOUBLE = 3, 7, 11  # types of ONNX, as ``Cast`` takes them


class Graph:
    """Nodes and constants under names of which there are no two; ``unique`` is what makes them so.

    It knows no library: whoever builds a model of it makes ONNX of its lists.
    """

    def __init__(self, unique: Callable[[str], str] = str) -> None:
        self.constants: dict[str, NDArray[Any]] = {}
        # Of each node its kind, the names of its inputs and outputs, and its attributes.
        self.nodes: list[tuple[str, list[str], list[str], dict[str, Any]]] = []
        self._unique = unique

    def constant(self, name: str, values: NDArray[Any]) -> str:
        """Keep an array; returns the name that it goes by."""
        unique = self._unique(name)
        self.constants[unique] = values
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
    wide = graph.node("Cast", eta, to=DOUBLE)
    # In double precision, whatever the model gives: single precision would move thresholds.
    gains = _gains(graph, rule, _calibrated(graph, rule, wide))
    if rule.matrix is None:
        zero = graph.constant("zero", np.zeros(1))
        never = graph.constant("never", np.full(1, -np.inf))
        gains = graph.node("Where", graph.node("Greater", wide, zero), gains, never)
    seats = seats_of(rule)
    if seats is None:
        return _gaining(graph, gains)
    budget = graph.constant("k", np.array([seats], dtype=np.int64))
    # Of equal gains ``TopK`` takes the lowest index, as rules do.
    best = graph.node("TopK", gains, budget, outputs=2, axis=1, largest=1, sorted=1)
    # Indicators: zeros of the shape of the row, with a one at each of the best.
    zeros = graph.node(
        "Cast", graph.node("Mul", wide, graph.constant("none", np.zeros(1))), to=INT8
    )
    if rule.k is None:
        ones = _gaining(graph, graph.node("GatherElements", gains, best, axis=1))
    else:
        first = graph.constant("first", np.zeros(1, dtype=np.int64))
        ones = graph.node("Cast", graph.node("GreaterOrEqual", best, first), to=INT8)
    return graph.node("ScatterElements", zeros, best, ones, axis=1)


def _gaining(graph: Graph, gains: str) -> str:
    """One where a gain is at least zero, as int8."""
    nothing = graph.constant("nothing", np.zeros(1))
    return graph.node("Cast", graph.node("GreaterOrEqual", gains, nothing), to=INT8)


def class_places(graph: Graph, decisions: str) -> str:
    """The place of the one label of each row, as int64."""
    return graph.node("ArgMax", decisions, axis=1, keepdims=0)


def _calibrated(graph: Graph, rule: Any, eta: str) -> str:
    """Probabilities as the rule takes them."""
    logits = logits_of(rule)
    if logits is None:
        return eta
    scale, bias, squash = logits
    raised = graph.node("Max", eta, graph.constant("least", np.full(1, LEAST)))
    clipped = graph.node("Min", raised, graph.constant("most", np.full(1, MOST)))
    complement = graph.node("Sub", graph.constant("one", np.ones(1)), clipped)
    odds = graph.node("Div", clipped, complement)
    factor = graph.constant("scale", np.full(1, scale))
    logit = graph.node("Log", odds)
    if squash is not None:  # z·r·(2 − r), r = s / max(|z|, s)
        bound = graph.constant("squash", np.full(1, squash))
        r = graph.node("Div", bound, graph.node("Max", graph.node("Abs", logit), bound))
        two_less_r = graph.node("Sub", graph.constant("two", np.full(1, 2.0)), r)
        logit = graph.node("Mul", logit, graph.node("Mul", r, two_less_r))
    scaled = graph.node("Mul", logit, factor)
    calibrated = graph.node("Sigmoid", graph.node("Add", scaled, graph.constant("bias", bias)))
    if rule.matrix is None:
        return calibrated  # a label of probability zero is no candidate
    is_candidate = graph.node("Greater", eta, graph.constant("absent", np.zeros(1)))
    return graph.node(
        "Where", is_candidate, calibrated, graph.constant("still_absent", np.zeros(1))
    )


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
        place = graph.constant(f"place_{i}", np.array([i], dtype=np.int64))
        column = graph.node("Gather", eta, place, axis=1)
        worth = graph.node("Mul", column, graph.constant(f"worth_{i}", row))
        gains = graph.node("Add", gains, worth)
    return gains
