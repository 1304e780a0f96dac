"""Keras's layer and group normalization by a gradient of the backend's that saves memory: only the input is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import keras

from mixtrain import backend
from mixtrain.dtype import DType, as_dtype, bfloat16, float16, float32
from mixtrain.network.interpose import Forward
from mixtrain.typing import Layer, Tensor

_DTYPES: Final = (float32, float16, bfloat16)


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
        return keras.ops.cast(normalize(layer, inputs), output)

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
