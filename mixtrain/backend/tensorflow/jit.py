"""Compile functions of users; the dtypes in their graphs decide on XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from mixtrain.backend.info import JitChoice
from mixtrain.backend.tensorflow.branches import call_with_branches
from mixtrain.backend.tensorflow.compile import Compilation, choose_jit, graph_function
from mixtrain.backend.tensorflow.device import describe_device
from mixtrain.dtype import DType, bfloat16, float16, float32, float64
from mixtrain.typing import Tensor

_FLOATS = {tf.as_dtype(dtype).as_datatype_enum: dtype for dtype in (float16, bfloat16, float32, float64)}


def compile_once(function: Callable[..., Any], *, jit: bool | None = None) -> Callable[..., Any]:
    compilations: list[Compilation] = []

    def run(*tensors: Tensor) -> Any:
        return call_with_branches(call, *tensors)

    def call(*tensors: Tensor) -> Any:
        if not compilations:
            plain = graph_function(function)
            choice = JitChoice(jit, 'jit(jit_level="O1")') if jit is not None else _choice(plain, tensors)
            compilations.append(
                Compilation(lambda jit: graph_function(function, jit=True) if jit else plain, choice)
            )
        return compilations[0].run(lambda compiled: compiled(*tensors))

    return run


def _choice(plain: Any, tensors: tuple[Any, ...]) -> JitChoice:
    graph = plain.get_concrete_function(*tensors).graph.as_graph_def()
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    dtypes: set[DType] = {
        _FLOATS[attribute.type]
        for node in nodes
        for attribute in node.attr.values()
        if attribute.type in _FLOATS
    }
    return choose_jit(dtypes or {float32}, describe_device())
