"""Gradients of a loss with respect to variables, and the questions a step asks of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from mixtrain.engine.tensorflow.layout import forget_twin


def value_and_gradient(
    function: Callable[[], tuple[Any, Any]], variables: Sequence[Any]
) -> tuple[Any, Any, list[Any]]:
    """Run `function` and differentiate its first result.

    Args:
        function: Takes nothing and returns ``(value, auxiliary)``; `value` is the tensor to differentiate.
        variables: `keras.Variable` objects, or tensors that `function` reads.

    Returns:
        ``(value, auxiliary, gradients)``; a gradient is None where `value` does not depend on the variable, and may
        be sparse (indexed slices) where the engine has that.
    """
    sources = [variable.value if isinstance(variable, keras.Variable) else variable for variable in variables]
    for source in sources:
        forget_twin(source)
    with tf.GradientTape() as tape:
        tape.watch(sources)
        value, auxiliary = function()
    return value, auxiliary, tape.gradient(value, sources)


def is_sparse(gradient: Any) -> bool:
    """Say whether a gradient is sparse: values with the rows that they belong to."""
    return isinstance(gradient, tf.IndexedSlices)


def densified(gradient: Any) -> Any:
    """Return a gradient as a plain tensor."""
    return tf.convert_to_tensor(gradient) if is_sparse(gradient) else gradient


def map_values(function: Callable[[Any], Any], gradient: Any) -> Any:
    """Apply `function`, which must keep zeros and shapes, to a gradient's values, dense or sparse."""
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(function(gradient.values), gradient.indices, gradient.dense_shape)
    return function(gradient)


def all_finite(gradients: Sequence[Any]) -> Any:
    """Return a scalar bool tensor: whether every value of every gradient is finite; None entries are passed over."""
    values = [g.values if isinstance(g, tf.IndexedSlices) else g for g in gradients if g is not None]
    floats = [tf.convert_to_tensor(v) for v in values]
    floats = [v for v in floats if v.dtype.is_floating]
    if not floats:
        return tf.constant(True)
    return tf.reduce_all([tf.reduce_all(tf.math.is_finite(v)) for v in floats])
