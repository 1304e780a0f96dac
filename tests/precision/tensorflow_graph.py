"""What a compiled step computes in, read from TensorFlow's graph."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import tensorflow as tf

from mixtrain.backend.tensorflow import kernels, normalize

# Operations that do a layer's arithmetic; casts, shapes and reads are not among them.
ARITHMETIC = {
    "Conv2D": "T", "DepthwiseConv2dNative": "T", "MatMul": "T", "BatchMatMulV2": "T", "Einsum": "T", "Relu": "T",
    "Softmax": "T", "FusedBatchNormV3": "U", "Rsqrt": "T", "SquaredDifference": "T", "Mean": "T", "Tanh": "T",
    "Sigmoid": "T", "MaxPool": "T", "AvgPool": "T", "AddV2": "T", "Mul": "T", "BiasAdd": "T",
}


@contextlib.contextmanager
def half_units() -> Iterator[None]:
    """Trace for a device that has half kernels; others get float32 ones, fed with half values."""
    with contextlib.ExitStack() as patches:
        for file, name in ((kernels, "multiplies"), (kernels, "has_kernels"), (normalize, "has_kernels")):
            patches.enter_context(mock.patch.object(file, name, return_value=True))
        yield


def nodes_of(function: Any, *inputs: Any) -> list[Any]:
    """Return the forward nodes of a function compiled for these inputs, loop bodies included."""
    graph = tf.function(function, autograph=False).get_concrete_function(*inputs).graph.as_graph_def()
    nodes = [*graph.node, *(node for body in graph.library.function for node in body.node_def)]
    return [node for node in nodes if "gradient_tape" not in node.name]


def arithmetic_of(node: Any) -> tuple[str, str, str] | None:
    """Return a node's scope path, its kind and the format that it computes in; None where it is no arithmetic."""
    if node.op not in ARITHMETIC:
        return None
    return node.name, node.op, tf.as_dtype(node.attr[ARITHMETIC[node.op]].type).name


def is_cast(node: Any) -> bool:
    """Whether a node casts from one float format to another."""
    if node.op != "Cast":
        return False
    source, target = (tf.as_dtype(node.attr[end].type) for end in ("SrcT", "DstT"))
    return bool(source.is_floating and target.is_floating and source != target)
