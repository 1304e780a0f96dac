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


def operations(function: Any, *inputs: Any) -> list[Operation]:
    """Return the forward arithmetic of a function compiled for these inputs, loop bodies included."""
    graph = tf.function(function, autograph=False).get_concrete_function(*inputs).graph.as_graph_def()
    nodes = [*graph.node, *(node for body in graph.library.function for node in body.node_def)]
    found = []
    for node in nodes:
        if node.op in ARITHMETIC and "gradient_tape" not in node.name:
            dtype = tf.as_dtype(node.attr[ARITHMETIC[node.op]].type).name
            found.append(Operation(node.name, node.op, dtype))
    return found


def dtypes_under(found: list[Operation], layer: str, *kinds: str) -> set[str]:
    """Return the dtypes of operations whose scope path has `layer` (or `layer_1`, ...) as one of its names."""
    name = re.compile(rf"(^|/){re.escape(layer)}(_\d+)?/")
    return {
        operation.dtype
        for operation in found
        if name.search(operation.name) and (not kinds or operation.kind in kinds)
    }
