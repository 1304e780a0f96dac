"""What a compiled step really computes in: the operations of its graph, by layer and dtype."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import tensorflow as tf

# Operations that do a layer's arithmetic; casts, shapes and reads are not among them.
ARITHMETIC = {
    "Conv2D": "T", "DepthwiseConv2dNative": "T", "MatMul": "T", "BatchMatMulV2": "T", "Einsum": "T", "Relu": "T",
    "Softmax": "T", "FusedBatchNormV3": "U", "Rsqrt": "T", "SquaredDifference": "T", "Mean": "T", "Tanh": "T",
    "Sigmoid": "T", "MaxPool": "T", "AvgPool": "T", "AddV2": "T", "Mul": "T", "BiasAdd": "T",
}


@dataclasses.dataclass(frozen=True)
class Operation:
    """One operation of a graph: its scope path, type and the dtype it computes in."""

    name: str
    kind: str
    dtype: str


def nodes_of(function: Any, *inputs: Any) -> list[Any]:
    """Return the forward nodes of a function compiled for these inputs, loop bodies included."""
    graph = tf.function(function, autograph=False).get_concrete_function(*inputs).graph.as_graph_def()
    nodes = [*graph.node, *(node for body in graph.library.function for node in body.node_def)]
    return [node for node in nodes if "gradient_tape" not in node.name]


def operations(function: Any, *inputs: Any) -> list[Operation]:
    """Return the forward arithmetic of a function compiled for these inputs, loop bodies included."""
    return arithmetic_among(nodes_of(function, *inputs))


def arithmetic_among(nodes: list[Any]) -> list[Operation]:
    """Return the nodes that do a layer's arithmetic."""
    return [
        Operation(node.name, node.op, tf.as_dtype(node.attr[ARITHMETIC[node.op]].type).name)
        for node in nodes
        if node.op in ARITHMETIC
    ]


def casts_among(nodes: list[Any]) -> int:
    """Return how many nodes cast from one float format to another."""
    ends = [[tf.as_dtype(node.attr[end].type) for end in ("SrcT", "DstT")] for node in nodes if node.op == "Cast"]
    return sum(source.is_floating and target.is_floating and source != target for source, target in ends)


def dtypes_under(found: list[Operation], layer: str, *kinds: str) -> set[str]:
    """Return the dtypes of operations whose scope path has `layer` (or `layer_1`, ...) as one of its names."""
    name = re.compile(rf"(^|/){re.escape(layer)}(_\d+)?/")
    return {
        operation.dtype
        for operation in found
        if name.search(operation.name) and (not kinds or operation.kind in kinds)
    }
