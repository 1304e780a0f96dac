"""Functions of half tensors by float32 kernels, for devices without half kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from mixtrain.backend.info import DeviceInfo
from mixtrain.dtype import float16
from mixtrain.typing import Tensor


def has_kernels(dtype: str, device: DeviceInfo) -> bool:
    """Whether a device has fast kernels of a dtype besides products: oneDNN has no float16 on CPU."""
    return device.kind != "CPU" or dtype != float16


def by_float32(function: Callable[..., Any], *tensors: Tensor) -> Any:
    """Compute a function of half tensors in float32, and round the result once.

    The backward pass does the same from the half tensors: no float32 copy is kept for it. It recomputes the results
    inside the function that it needs, for a product none.

    Args:
        function: Takes tensors of one dtype and returns one of that dtype.
        tensors: Its arguments, of one half-precision dtype.
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

    Args:
        tensors: The tensors.
        after: A tensor that the copies wait for: without it, those of a backward pass would be made, and kept, in the
            forward pass.
    """
    with tf.control_dependencies([] if after is None else [after]):
        return [tf.cast(tensor, tf.float32) for tensor in tensors]
