"""Functions written for other programs: a SavedModel of TensorFlow's, or ONNX by way of tf2onnx."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf


def write_saved_model(function: Callable[..., Any], inputs: Sequence[Any], folder: str) -> None:
    """Write a function of tensors as a SavedModel, with the signature ``serving_default``.

    Args:
        function: Takes tensors, returns a tensor or a structure of them, in the file ``output_0``, ``output_1`` ...
        inputs: An example of each input, in the file ``input_0``, ``input_1`` ...; the first axis may have any size
            where the function allows it.
        folder: Where it is written.
    """
    graph, concrete = _traced(function, inputs)
    module = tf.Module()
    module.variables_read = list(concrete.graph.variables)
    module.run = graph
    tf.saved_model.save(module, folder, signatures=concrete)


def write_onnx(function: Callable[..., Any], inputs: Sequence[Any], file: str) -> None:
    """Write a function of tensors as an ONNX model; arguments as in `write_saved_model`.

    Raises:
        ImportError: tf2onnx or onnx is not installed.
    """
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
    """Return a function as a graph, and its one trace; for any first axis, or else for that of the inputs."""

    def named(*arguments: Any) -> dict[str, Any]:
        outputs = keras.tree.flatten(function(*arguments))
        return {f"output_{index}": output for index, output in enumerate(outputs)}

    try:
        graph = tf.function(named, _specs(inputs, any_size=True), autograph=False)
        return graph, graph.get_concrete_function()
    except (TypeError, ValueError, tf.errors.OpError):
        # A network that counts on the size of its batch.
        graph = tf.function(named, _specs(inputs, any_size=False), autograph=False)
        return graph, graph.get_concrete_function()


def _specs(inputs: Sequence[Any], *, any_size: bool) -> list[tf.TensorSpec]:
    free = [any_size and value.shape.rank > 0 for value in inputs]
    shapes = [(None, *value.shape[1:]) if is_free else value.shape for is_free, value in zip(free, inputs, strict=True)]
    rows = enumerate(zip(shapes, inputs, strict=True))
    return [tf.TensorSpec(shape, value.dtype, f"input_{index}") for index, (shape, value) in rows]
