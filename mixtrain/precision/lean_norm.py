"""Keras's LayerNormalization through the engine's own gradient: float32 arithmetic, and only its input is held."""

from __future__ import annotations

from typing import Any, Final

import keras

from mixtrain import engine
from mixtrain.dtype import DType, as_dtype, bfloat16, float16, float32
from mixtrain.network.interpose import Forward

_FORMATS: Final = (float32, float16, bfloat16)


def is_lean(layer: Any) -> bool:
    """Say whether a layer is a layer normalisation that `lean` can compute."""
    if not isinstance(layer, keras.layers.LayerNormalization):
        return False
    return type(layer).call is keras.layers.LayerNormalization.call and not getattr(layer, "rms_scaling", False)


def lean(layer: keras.layers.LayerNormalization, forward: Forward, output: DType) -> Forward:
    """Return the layer's forward function with Keras's numbers, which holds no float32 copies for the backward pass.

    Formats other than float32 and half go through the layer's own `call`.

    Args:
        layer: The layer; its parameters are float32.
        forward: Its own `call`.
        output: The format that it gives.
    """

    def call(inputs: Any) -> Any:
        if as_dtype(inputs.dtype) not in _FORMATS:
            return forward(inputs)
        rank = len(inputs.shape)
        axes = tuple(sorted(axis % rank for axis in layer.axis))
        shape = [inputs.shape[axis] if axis in axes else 1 for axis in range(rank)]
        gamma = keras.ops.ones(shape, float32) if layer.gamma is None else _reshaped(layer.gamma, shape)
        beta = keras.ops.zeros(shape, float32) if layer.beta is None else _reshaped(layer.beta, shape)
        outputs, _, _ = engine.normalise_axes(inputs, gamma, beta, axes=axes, epsilon=layer.epsilon)
        return keras.ops.cast(outputs, output)

    return call


def _reshaped(parameter: Any, shape: list[int]) -> Any:
    return keras.ops.reshape(keras.ops.cast(engine.to_tensor(parameter), float32), shape)
