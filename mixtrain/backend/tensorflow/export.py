"""Export of functions as a SavedModel, or as ONNX with tf2onnx."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf


def write_saved_model(function: Callable[..., Any], inputs: Sequence[Any], folder: str) -> None:
    graph, concrete = _traced(function, inputs)
    module = tf.Module()
    module.variables_read = list(concrete.graph.variables)
    module.run = graph
    tf.saved_model.save(module, folder, signatures=concrete)


def write_onnx(function: Callable[..., Any], inputs: Sequence[Any], file: str) -> None:
    try:
        import onnx  # noqa: F401
        import tf2onnx
    except ImportError as error:
        raise ImportError(
            'export: expected tf2onnx and onnx to be installed for file_format="ONNX"; got neither or one. '
            'Write pip install "mixtrain[onnx]", or file_format="SAVED_MODEL".'
        ) from error
    graph, _ = _traced(function, inputs)
    tf2onnx.convert.from_function(graph, list(graph.input_signature), output_path=file)


def _traced(function: Callable[..., Any], inputs: Sequence[Any]) -> tuple[Any, Any]:
    """Return a `tf.function` and its trace, for any size of the first axis if the function allows it."""

    def named(*arguments: Any) -> dict[str, Any]:
        outputs = keras.tree.flatten(function(*arguments))
        return {f"output_{index}": output for index, output in enumerate(outputs)}

    def traced(shapes: Sequence[Any]) -> tuple[Any, Any]:
        indexed = enumerate(zip(shapes, inputs, strict=True))
        specs = [tf.TensorSpec(shape, value.dtype, f"input_{index}") for index, (shape, value) in indexed]
        graph = tf.function(named, specs, autograph=False)
        return graph, graph.get_concrete_function()

    shapes = [value.shape for value in inputs]
    try:
        return traced([(None, *shape[1:]) if shape.rank > 0 else shape for shape in shapes])
    except (TypeError, ValueError, tf.errors.OpError):  # The network requires the batch size of the inputs.
        return traced(shapes)
