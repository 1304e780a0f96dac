"""Keras's normalizations by the backend's kernels: batch normalization in one fused kernel, others with lean gradients.

The fused kernel takes and returns half or float32, and computes in float32. The gradient of layer and group
normalization saves memory: only the input is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import keras

from mixtrain import backend
from mixtrain.dtype import DType, as_dtype, bfloat16, float16, float32, wider
from mixtrain.network.interpose import Forward
from mixtrain.typing import Layer, Tensor

_DTYPES: Final = (float32, float16, bfloat16)


# ---- batch normalization -------------------------------------------------------------------------------------------
def reason_not_fused(layer: keras.layers.BatchNormalization) -> str | None:
    """Return why a batch normalization computes in separate operations; None if the kernel can compute it."""
    if type(layer).call is not keras.layers.BatchNormalization.call:
        return "its class has a call of its own"
    for option in ("synchronized", "renorm"):
        if getattr(layer, option, False):
            return f"{option}=True"
    spec = layer.input_spec
    if spec is not None and layer.axis not in (-1, spec.ndim - 1):
        return f"axis={layer.axis}"
    return None


def fused(layer: keras.layers.BatchNormalization, forward: Forward) -> Forward:
    """Return a forward function that uses the kernel wherever it applies.

    The numbers are Keras's: the batch's variance divides by n, in the moving variance too. Masked inputs, dtypes other
    than float32 and half, and channels that are not on the last axis go through the layer's own `call`.
    """

    def call(inputs: Tensor, training: Tensor | bool | None = None, mask: Tensor | None = None) -> Tensor:
        if mask is not None or not _applies(layer, inputs, training):
            return forward(inputs, training=training, mask=mask)
        shape, channels = keras.ops.shape(inputs), inputs.shape[-1]
        # The kernel takes rank 4; all axes but the last are alike to it.
        images = inputs if len(shape) == 4 else keras.ops.reshape(inputs, (-1, 1, 1, channels))
        by_batch = bool(training) and layer.trainable
        outputs, mean, variance = backend.fused_batch_norm(
            images, keras.ops.ones((channels,), float32) if layer.gamma is None else backend.to_tensor(layer.gamma),
            keras.ops.zeros((channels,), float32) if layer.beta is None else backend.to_tensor(layer.beta),
            backend.to_tensor(layer.moving_mean), backend.to_tensor(layer.moving_variance), epsilon=layer.epsilon,
            training=by_batch,
        )
        if by_batch:
            count = keras.ops.cast(keras.ops.size(images), float32) / channels
            joined = backend.joined_sum(count)
            _update_statistics(layer, mean, variance, count if joined is None else joined)
        return keras.ops.reshape(outputs, shape)

    return call


def _applies(layer: keras.layers.BatchNormalization, inputs: Tensor, training: Tensor | bool | None) -> bool:
    rank = len(inputs.shape)
    known = (training is None or isinstance(training, (bool, int))) and inputs.shape[-1] is not None
    return known and as_dtype(inputs.dtype) in _DTYPES and rank > 1 and layer.axis in (-1, rank - 1)


def _update_statistics(layer: keras.layers.BatchNormalization, mean: Tensor, variance: Tensor, count: Tensor) -> None:
    """Update the moving statistics; the kernel's variance divides by n - 1, Keras's by n."""
    momentum = layer.momentum
    variance = variance * ((count - 1.0) / count)
    layer.moving_mean.assign(layer.moving_mean * momentum + mean * (1.0 - momentum))
    layer.moving_variance.assign(layer.moving_variance * momentum + variance * (1.0 - momentum))


# ---- layer and group normalization ---------------------------------------------------------------------------------
def is_lean(layer: Layer) -> bool:
    # With `rms_scaling` Keras computes another formula.
    return getattr(type(layer), "call", None) in _LEAN and not getattr(layer, "rms_scaling", False)


def lean(layer: keras.Layer, forward: Forward, output: DType) -> Forward:
    """Return a forward function with Keras's numbers that keeps no float32 copies for the backward pass.

    Dtypes other than float32 and half go through the layer's own `call`.
    """
    normalize = _LEAN[type(layer).call]

    def call(inputs: Tensor) -> Tensor:
        if as_dtype(inputs.dtype) not in _DTYPES:
            return forward(inputs)
        # The kernel's result has the dtype of its input, which may hold less than the result of this layer.
        return keras.ops.cast(normalize(layer, keras.ops.cast(inputs, wider(inputs.dtype, output))), output)

    return call


def _by_layer(layer: keras.layers.LayerNormalization, inputs: Tensor) -> Tensor:
    rank = len(inputs.shape)
    axes = tuple(sorted(axis % rank for axis in layer.axis))
    return _normalized(layer, inputs, axes, [inputs.shape[axis] if axis in axes else 1 for axis in range(rank)])


def _by_group(layer: keras.layers.GroupNormalization, inputs: Tensor) -> Tensor:
    axis, rank, shape = layer.axis % len(inputs.shape), len(inputs.shape), keras.ops.shape(inputs)
    groups = (layer.groups, inputs.shape[axis] // layer.groups)
    split = keras.ops.reshape(inputs, (*shape[:axis], *groups, *shape[axis + 1 :]))
    # Statistics are over all axes of `split` but the batch and the groups.
    axes = tuple(index for index in range(1, rank + 1) if index != axis)
    parameter_shape = [1] * axis + [*groups] + [1] * (rank - axis - 1)
    return keras.ops.reshape(_normalized(layer, split, axes, parameter_shape), shape)


def _normalized(layer: keras.Layer, inputs: Tensor, axes: tuple[int, ...], shape: list[int]) -> Tensor:
    """Normalize over axes, with parameters reshaped to a shape that broadcasts."""
    gamma, beta = (
        default(shape, float32) if parameter is None
        else keras.ops.reshape(keras.ops.cast(backend.to_tensor(parameter), float32), shape)
        for parameter, default in ((layer.gamma, keras.ops.ones), (layer.beta, keras.ops.zeros))
    )
    return backend.normalize_axes(inputs, gamma, beta, axes=axes, epsilon=layer.epsilon)[0]


_LEAN: Final[dict[Callable[..., Any], Callable[[keras.Layer, Tensor], Tensor]]] = {
    keras.layers.LayerNormalization.call: _by_layer,
    keras.layers.GroupNormalization.call: _by_group,
}
