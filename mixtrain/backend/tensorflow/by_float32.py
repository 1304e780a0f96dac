"""Functions of half tensors where a device has no half kernels for them: float32 kernels, the result rounded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from mixtrain.backend.info import DeviceInfo
from mixtrain.dtype import float16


def has_kernels(dtype: str, device: DeviceInfo) -> bool:
    """Whether a device has fast kernels of a format for what is no product: oneDNN has no float16 on CPU."""
    return device.kind != "CPU" or dtype != float16


def by_float32(function: Callable[..., Any], *tensors: Any) -> Any:
    """Return the function's result on the values of half tensors, computed in float32 and rounded once.

    The backward pass does the same, from the half tensors: no float32 copy is held for it. What it needs of the
    function's own steps is computed again; of a product nothing is.

    Args:
        function: Takes tensors of one format and returns one of that format.
        tensors: Its arguments, of one half format.
    """
    half = tensors[0].dtype

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def compute(*tensors: Any) -> tuple[Any, Callable[[Any], list[Any]]]:
        def gradient(upstream: Any) -> list[Any]:
            wide_upstream = tf.cast(upstream, tf.float32)
            found: list[Any] = []
            # One after the other: each holds float32 copies of other tensors.
            for place in reversed(range(len(tensors))):
                wide = widened(tensors, after=found[0] if found else upstream)
                with tf.GradientTape() as tape:
                    tape.watch(wide[place])
                    # Only what its derivative needs of this stays in the graph; a bilinear function's needs nothing.
                    result = function(*wide)
                one = tape.gradient(result, wide[place], output_gradients=wide_upstream)
                found.insert(0, tf.cast(one, half))
            return found

        return tf.cast(function(*widened(tensors)), half), gradient

    return compute(*tensors)


def widened(tensors: Sequence[Any], *, after: Any = None) -> list[Any]:
    """Return float32 copies of tensors.

    Args:
        tensors: The tensors.
        after: What the copies wait for: without it, those of a backward pass would be made in the forward pass, and
            held.
    """
    with tf.control_dependencies([] if after is None else [after]):
        return [tf.cast(tensor, tf.float32) for tensor in tensors]
