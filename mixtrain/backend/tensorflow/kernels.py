"""Products, pooling, gathering and losses; half tensors by float32 kernels where a device has no fast half kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import tensorflow as tf

from mixtrain.backend.info import DeviceInfo
from mixtrain.backend.tensorflow.device import describe_device
from mixtrain.dtype import bfloat16, float16
from mixtrain.typing import Tensor

UNPOOLED_VOLUMES: Final = frozenset({"float64"})


def product(function: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor) -> Tensor:
    # Hardware for half arithmetic multiplies half numbers, sums in float32 and rounds the sum. A device without it
    # emulates that many times slower than its float32 kernels (a step of six convolutions with batch normalization on a
    # CPU of 2 cores, relative to float32: bfloat16 3.2, with this function 0.7; float16 compiled by XLA 2.7, with this
    # function 1.2).
    x, y = tf.convert_to_tensor(x), tf.convert_to_tensor(y)
    if x.dtype != y.dtype or multiplies(x.dtype.name, describe_device()):
        return function(x, y)
    return by_float32(function, x, y)


def times_transposed(x: Tensor, weight: Tensor) -> Tensor:
    """No transposed copy of the weight is made."""
    return product(lambda x, weight: tf.matmul(x, weight, transpose_b=True), x, weight)


def multiplies(dtype: str, device: DeviceInfo) -> bool:
    """Whether a device has fast kernels for products of a dtype."""
    if device.kind != "CPU" or dtype not in (float16, bfloat16):
        return True
    return dtype == bfloat16 and device.fast_bfloat16


def has_kernels(dtype: str, device: DeviceInfo) -> bool:
    """Whether a device has fast kernels of a dtype besides products: oneDNN has no float16 on CPU."""
    return device.kind != "CPU" or dtype != float16


def by_float32(function: Callable[..., Any], *tensors: Tensor) -> Any:
    """Compute a function of tensors of one half-precision dtype in float32, and round the result once.

    The backward pass does the same from the half tensors: no float32 copy is kept for it. It recomputes the results
    inside the function that it needs, for a product none.
    """
    half = tensors[0].dtype

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def compute(*tensors: Tensor) -> tuple[Any, Callable[[Any], list[Tensor]]]:
        def gradient(upstream: Any) -> list[Tensor]:
            wide_upstream = tf.cast(upstream, tf.float32)
            gradients: list[Tensor] = []
            # In sequence, since each needs float32 copies of the other tensors.
            for index in reversed(range(len(tensors))):
                wide = widened(tensors, after=gradients[0] if gradients else upstream)
                with tf.GradientTape() as tape:
                    tape.watch(wide[index])
                    # The graph keeps only what the derivative needs: nothing for a bilinear function.
                    result = function(*wide)
                wide_gradient = tape.gradient(result, wide[index], output_gradients=wide_upstream)
                gradients.insert(0, tf.cast(wide_gradient, half))
            return gradients

        return tf.cast(function(*widened(tensors)), half), gradient

    return compute(*tensors)


def widened(tensors: Sequence[Tensor], *, after: Tensor | None = None) -> list[Tensor]:
    """Return float32 copies of tensors.

    They wait for `after`: without it, those of a backward pass would be made, and kept, in the forward pass.
    """
    with tf.control_dependencies([] if after is None else [after]):
        return [tf.cast(tensor, tf.float32) for tensor in tensors]


def float8_einsum(
    equation: str, x: Tensor, x_scale: Tensor, y: Tensor, y_scale: Tensor, *, dtype: str, exact: bool
) -> Tensor:
    return tf.cast(tf.einsum(equation, x * x_scale, y * y_scale), dtype)


def pool(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    # On CPU float16 kernels run in one thread, and their gradient takes seven times as long as that of float32.
    x = tf.convert_to_tensor(x)
    return function(x) if has_kernels(x.dtype.name, describe_device()) else by_float32(function, x)


def gather_in_batches(x: Tensor, indices: Tensor, *, axis: int, batch_axes: int) -> Tensor:
    return tf.gather(x, indices, axis=axis, batch_dims=batch_axes)


def gather_nd(x: Tensor, indices: Tensor) -> Tensor:
    return tf.gather_nd(x, indices)


def boolean_mask(x: Tensor, mask: Tensor) -> Tensor:
    return tf.boolean_mask(x, mask)


def unique_with_indices(x: Tensor) -> tuple[Tensor, Tensor]:
    values, indices = tf.unique(tf.reshape(x, (-1,)))
    return values, tf.reshape(indices, tf.shape(x))


def sparse_softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    return tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
