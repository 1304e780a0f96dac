"""Gradients of a loss with respect to variables, and the questions a step asks of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import keras
import tensorflow as tf

from mixtrain.backend.tensor_base import backend_value


# Tensors of up to so many numbers are looked at together.
_SMALL: Final = 2**13


def value_and_gradient(
    function: Callable[..., tuple[Any, Any]], variables: Sequence[keras.Variable], tensors: Sequence[Any] = (),
    factor: Any = None,
) -> tuple[Any, Any, list[Any]]:
    """Run `function` and differentiate its first result.

    Args:
        function: Takes `tensors` and returns ``(value, auxiliary)``; `value` is the tensor to differentiate.
        variables: Variables that it reads.
        tensors: Tensors.
        factor: What the gradients are multiplied by from the first on, a scalar tensor; None for 1.

    Returns:
        ``(value, auxiliary, gradients)``, of the variables, then of the tensors; a gradient is None where `value` does
        not depend on it, and may be sparse (indexed slices) where the backend has that.
    """
    tensors = [backend_value(tensor) for tensor in tensors]
    sources = [*(variable.value for variable in variables), *tensors]
    return _differentiated(lambda _: function(*tensors), sources, factor)


def tapped_gradients(
    function: Callable[[Callable[[Any], Any]], tuple[Any, Any]], variables: Sequence[keras.Variable],
    factor: Any,
) -> tuple[Any, Any, list[Any]]:
    """Run `function` and differentiate its first result times a factor, by tensors inside it too.

    Args:
        function: Takes `tap` and returns ``(value, auxiliary)``. `tap` takes a floating-point tensor and returns what
            to go on with in its place. It may run more than once.
        variables: Variables that it reads.
        factor: A scalar tensor.

    Returns:
        As `value_and_gradient`: the gradients of the variables, then those of the tapped tensors in their order.
    """
    return _differentiated(function, [variable.value for variable in variables], factor)


def _differentiated(
    function: Callable[[Callable[[Any], Any]], tuple[Any, Any]], sources: list[Any], factor: Any
) -> tuple[Any, Any, list[Any]]:
    sources = list(sources)
    with tf.GradientTape() as tape:
        tape.watch(sources)

        def tap(tensor: Any) -> Any:
            tape.watch(tensor)
            sources.append(tensor)
            return tensor

        value, auxiliary = function(tap)
    return value, auxiliary, tape.gradient(backend_value(value), sources, factor)


def with_backward_hook(values: Sequence[Any], hook: Callable[[tuple[Any, ...]], Sequence[Any]]) -> tuple[Any, ...]:
    """Return tensors as they are, with a function in the way of their gradients.

    Args:
        values: Floating-point tensors.
        hook: Takes the tuple of their gradients, zeros where nothing depends on a tensor, and returns those to go on
            with. In eager code the gradients have values.
    """

    @tf.custom_gradient
    def same(*tensors: Any) -> tuple[Any, Any]:
        return tuple(map(tf.identity, tensors)), lambda *gradients: tuple(hook(gradients))

    return tuple(same(*values))


def is_sparse(gradient: Any) -> bool:
    """Whether a gradient is sparse: values with the rows that they belong to."""
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
    found = [tf.reduce_all(tf.math.is_finite(v)) for v in _fewer(floats)]
    return found[0] if len(found) == 1 else tf.reduce_all(found)


def non_finite_counts(gradients: Sequence[Any], all_finite: Any) -> Any:
    """Return how many values of each gradient are not finite, int32 (n,); 0 for None entries.

    Args:
        gradients: They.
        all_finite: Whether all are finite, a scalar bool tensor: then no number is looked at.
    """

    def count(gradient: Any) -> Any:
        values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
        if values is None or not values.dtype.is_floating:
            return tf.constant(0)
        return tf.reduce_sum(tf.cast(tf.logical_not(tf.math.is_finite(values)), tf.int32))

    none = tf.zeros([len(gradients)], tf.int32)
    return tf.cond(all_finite, lambda: none, lambda: tf.stack([count(gradient) for gradient in gradients]))


def global_norm(gradients: Sequence[Any]) -> Any:
    """Return the L2 norm of all gradients as one vector, a float32 scalar; None entries are passed over.

    It is infinite where the sum of squares is more than float32 holds, although every number may be finite.
    """
    values = [_summed_rows(g) if is_sparse(g) else tf.convert_to_tensor(g) for g in gradients if g is not None]
    halves = [tf.nn.l2_loss(v) for v in _fewer(values)]
    return tf.sqrt(2.0 * (halves[0] if len(halves) == 1 else tf.add_n(halves)))


def finite_and_norm(gradients: Sequence[Any]) -> tuple[Any, Any]:
    """Return whether every value of every gradient is finite, a bool scalar, and their `global_norm`."""
    return all_finite(gradients), global_norm(gradients)


def _summed_rows(gradient: Any) -> Any:
    """Return the values of a sparse gradient with those of one row added up, in the place of the first of them."""
    if gradient.dense_shape is None:  # How many rows there are is not known; TensorFlow's own gradients tell.
        return gradient.values
    count = tf.shape(gradient.indices)[0]
    places = tf.range(count)
    first = tf.math.unsorted_segment_min(places, gradient.indices, gradient.dense_shape[0])
    return tf.math.unsorted_segment_sum(gradient.values, tf.gather(first, gradient.indices), count)


def _fewer(values: Sequence[Any]) -> list[Any]:
    """Return the numbers of some tensors in fewer tensors: a small operation costs as much as a larger one."""
    small: dict[Any, list[Any]] = {}
    rest = []
    for value in values:
        size = value.shape.num_elements()
        if size is None or size > _SMALL:
            rest.append(value)
        else:
            small.setdefault(value.dtype, []).append(value if value.shape.rank == 1 else tf.reshape(value, [-1]))
    return [*rest, *(parts[0] if len(parts) == 1 else tf.concat(parts, 0) for parts in small.values())]
