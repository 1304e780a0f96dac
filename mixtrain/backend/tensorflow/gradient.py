"""Gradients of a loss with respect to variables, their norm and whether they are finite."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeGuard

import keras
import tensorflow as tf

from mixtrain.backend.next_value import takes_next_value
from mixtrain.backend.signatures import BackwardRule, Differentiable, Gradients, Variables
from mixtrain.backend.tensor_base import backend_value
from mixtrain.typing import Tensor, Tree

# Tensors of up to this size are concatenated and reduced together.
_MAX_SMALL_SIZE: Final = 2**13


def value_and_gradient(
    function: Differentiable, variables: Variables, tensors: Sequence[Tensor] = (), factor: Tensor | None = None
) -> tuple[Tensor, Tree, list[Tensor]]:
    # New tensors: the tape would also see the other uses of a tensor, as another input or in a closure.
    tensors = [tf.identity(backend_value(tensor)) for tensor in tensors]
    with _sources(variables) as values:
        sources = [*values, *tensors]
        # TensorFlow warns of integers.
        floats = [source for source in sources if source.dtype.is_floating or source.dtype.is_complex]
        with tf.GradientTape() as tape:
            tape.watch(floats)
            value, auxiliary = function(*tensors)
        gradients = dict(zip(map(id, floats), tape.gradient(backend_value(value), floats, factor), strict=True))
        return value, auxiliary, [gradients.get(id(source)) for source in sources]


def tapped_gradients(
    function: Differentiable, variables: Variables, factor: Tensor | float
) -> tuple[Tensor, Tree, list[Tensor]]:
    with _sources(variables) as values:
        sources = list(values)
        with tf.GradientTape() as tape:
            tape.watch(sources)

            def tap(tensor: Tensor) -> Tensor:
                tape.watch(tensor)
                sources.append(tensor)
                return tensor

            value, auxiliary = function(tap)
        return value, auxiliary, tape.gradient(backend_value(value), sources, factor)


class _WrittenScope(keras.StatelessScope):  # type: ignore[misc]
    """A scope that keeps the variables that are written in it."""

    def __init__(self, state_mapping: Sequence[tuple[keras.Variable, Tensor]]) -> None:
        super().__init__(state_mapping=state_mapping)
        self.written: dict[int, tuple[keras.Variable, Tensor]] = {}

    def add_update(self, update: tuple[keras.Variable, Tensor]) -> None:
        super().add_update(update)
        self.written[id(update[0])] = update


@contextlib.contextmanager
def _sources(variables: Variables) -> Iterator[list[Any]]:
    """Yield the values of variables to differentiate with respect to, as the code inside reads them.

    In eager code TensorFlow takes the Keras variables that a float8 layer passes to its `custom_gradient` for captured
    ones, and expects gradients of them twice (TensorFlow 2.21, Keras 3.15): there they are read as tensors.
    """
    if not tf.executing_eagerly() or not any(map(takes_next_value, variables)):
        yield [variable.value for variable in variables]
        return
    values = [tf.identity(variable.value) for variable in variables]
    with _WrittenScope(list(zip(variables, values, strict=True))) as scope:
        yield values
    for variable, value in scope.written.values():
        variable.assign(value)


class _Rules(threading.local):
    """How often a gradient was replaced."""

    count = 0


_rules = _Rules()


def custom_gradient_count() -> int:
    return _rules.count


def with_backward_hook(values: Sequence[Tensor], hook: Callable[[tuple[Tensor, ...]], Gradients]) -> tuple[Tensor, ...]:
    _rules.count += 1

    @tf.custom_gradient
    def identity(*tensors: Tensor) -> tuple[Any, Any]:
        return tuple(map(tf.identity, tensors)), lambda *gradients: tuple(hook(gradients))

    return tuple(identity(*values))


def with_backward_rule(values: Sequence[Tensor], outputs: Sequence[Tensor], rule: BackwardRule) -> tuple[Tensor, ...]:
    count = len(values)
    _rules.count += 1

    @tf.custom_gradient
    def computed(*tensors: Tensor) -> tuple[Any, Any]:
        def gradients(*of_outputs: Tensor) -> tuple[Tensor | None, ...]:
            return (*rule(tensors[:count], results, of_outputs), *[None] * len(outputs))

        return tuple(map(tf.identity, tensors[count:])), gradients

    # The rule gets what can itself be differentiated, for second derivatives.
    results = tuple(computed(*values, *outputs))
    return results


def is_sparse(gradient: Any) -> TypeGuard[tf.IndexedSlices]:
    return isinstance(gradient, tf.IndexedSlices)


def densified(gradient: Any) -> Any:
    return tf.convert_to_tensor(gradient) if is_sparse(gradient) else gradient


def map_values(function: Callable[[Tensor], Tensor], gradient: Tensor) -> Tensor:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(function(gradient.values), gradient.indices, gradient.dense_shape)
    return function(gradient)


def all_finite(gradients: Gradients) -> Tensor:
    values = [g.values if isinstance(g, tf.IndexedSlices) else g for g in gradients if g is not None]
    floats = [tf.convert_to_tensor(v) for v in values]
    floats = [v for v in floats if v.dtype.is_floating]
    if not floats:
        return tf.constant(True)
    results = [tf.reduce_all(tf.math.is_finite(v)) for v in _merge_small(floats)]
    return results[0] if len(results) == 1 else tf.reduce_all(results)


def non_finite_counts(gradients: Gradients, all_finite: Tensor) -> Tensor:
    """If all are finite, nothing is counted on any device."""

    def count(gradient: Tensor) -> Tensor:
        values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
        if values is None or not values.dtype.is_floating:
            return tf.constant(0)
        return tf.reduce_sum(tf.cast(tf.logical_not(tf.math.is_finite(values)), tf.int32))

    zeros = tf.zeros([len(gradients)], tf.int32)
    return tf.cond(all_finite, lambda: zeros, lambda: tf.stack([count(gradient) for gradient in gradients]))


def global_norm(gradients: Gradients) -> Tensor:
    values = [_summed_rows(g) if is_sparse(g) else tf.convert_to_tensor(g) for g in gradients if g is not None]
    halves = [tf.nn.l2_loss(v) for v in _merge_small(values)]
    return tf.sqrt(2.0 * (halves[0] if len(halves) == 1 else tf.add_n(halves)))


def check_gradients(
    gradients: Gradients, variables: Variables, *, finite: bool = True
) -> tuple[list[Tensor | None], Tensor, Tensor]:
    del variables
    return list(gradients), all_finite(gradients) if finite else tf.constant(True), global_norm(gradients)


def _summed_rows(gradient: Tensor) -> Tensor:
    """Return the values of a sparse gradient, duplicates of a row summed into the first one and zeros elsewhere."""
    if gradient.dense_shape is None:  # The number of rows is unknown; TensorFlow's own gradients have it.
        return gradient.values
    count = tf.shape(gradient.indices)[0]
    positions = tf.range(count)
    first = tf.math.unsorted_segment_min(positions, gradient.indices, gradient.dense_shape[0])
    return tf.math.unsorted_segment_sum(gradient.values, tf.gather(first, gradient.indices), count)


def _merge_small(values: Sequence[Tensor]) -> list[Tensor]:
    """Concatenate small tensors of one dtype: a small operation costs as much as a larger one."""
    small: dict[Any, list[Tensor]] = {}
    rest = []
    for value in values:
        size = value.shape.num_elements()
        if size is None or size > _MAX_SMALL_SIZE:
            rest.append(value)
        else:
            small.setdefault(value.dtype, []).append(value if value.shape.rank == 1 else tf.reshape(value, [-1]))
    return [*rest, *(parts[0] if len(parts) == 1 else tf.concat(parts, 0) for parts in small.values())]
