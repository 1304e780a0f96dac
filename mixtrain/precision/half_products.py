"""Keras's dense, convolution and pooling layers by the backend's kernels, fast in half precision on every device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import keras

from mixtrain import backend
from mixtrain.dtype import DType
from mixtrain.network.interpose import Forward, interpose
from mixtrain.typing import Layer, Tensor

_layers = keras.layers
# Bound at import: inside an autocast `keras.ops` has replacements that cast, and here the dtypes are decided already.
_matmul, _einsum = keras.ops.matmul, keras.ops.einsum


def by_backend_products(layer: keras.Layer) -> Callable[[], None] | None:
    """Compute a layer's product or pooling by the backend's kernels; return what restores it, None where it stays."""
    if getattr(type(layer), "call", None) in _POOLINGS and "call" not in vars(layer):
        return interpose(layer, _pooling)
    if _multiplies_embeddings(layer) and "call" not in vars(layer):
        return interpose(layer, lambda forward: _reversing(layer, forward))
    # A method that the user has set on the layer object itself runs as it is.
    if not covered(layer) or {"call", "convolution_op"} & vars(layer).keys():
        return None
    if isinstance(layer, _CONVOLUTIONS):
        return interpose(layer, _convolution, method="convolution_op")
    return interpose(layer, lambda forward: _DENSE[type(layer).call](layer, forward))


def covered(layer: Layer) -> bool:
    """Whether the backend can compute the product of a layer: one with the code of Keras's own dense or convolution."""
    kind = type(layer)
    if isinstance(layer, _CONVOLUTIONS):
        return kind.call in _CONVOLUTION_CALLS and kind.convolution_op in _CONVOLUTION_OPS
    return getattr(kind, "call", None) in _DENSE and getattr(layer, "quantization_mode", None) is None


def _multiplies_embeddings(layer: keras.Layer) -> bool:
    """Whether a layer is Keras's reversible embedding, without a `reverse_dtype` chosen by the user."""
    return getattr(type(layer), "call", None) in _REVERSIBLE and layer.reverse_dtype is None


def _reversing(layer: keras.Layer, forward: Forward) -> Forward:
    """Compute the reverse product in the layer's compute dtype, as Keras documents; Keras 3.15 computes in float32."""

    def call(inputs: Tensor, reverse: bool = False) -> Tensor:
        if not reverse:
            return forward(inputs)
        object.__setattr__(layer, "reverse_dtype", layer.compute_dtype)
        try:
            return forward(inputs, reverse=True)
        finally:
            object.__setattr__(layer, "reverse_dtype", None)

    return call


def _convolution(forward: Forward) -> Forward:
    return lambda inputs, kernel: backend.product(forward, inputs, kernel)


def _pooling(forward: Forward) -> Forward:
    return lambda inputs: backend.pool(forward, inputs)


def _dense(layer: keras.Layer, forward: Forward) -> Forward:
    def call(inputs: Tensor, training: Tensor | bool | None = None) -> Tensor:
        return finished(layer, backend.product(_matmul, inputs, layer.kernel))

    return call


def _einsum_dense(layer: keras.Layer, forward: Forward) -> Forward:
    def call(inputs: Tensor, training: Tensor | bool | None = None) -> Tensor:
        def multiply(x: Tensor, kernel: Tensor) -> Tensor:
            return _einsum(layer.equation, x, kernel)

        return finished(layer, backend.product(multiply, inputs, layer.kernel))

    return call


def finished(layer: keras.Layer, outputs: Tensor, bias_dtype: DType | None = None) -> Tensor:
    """Add the bias of a dense layer, rounded to a dtype if there is one, to its product; apply its activation."""
    if layer.bias is not None:
        bias = layer.bias if bias_dtype is None else keras.ops.cast(layer.bias, bias_dtype)
        outputs = keras.ops.add(outputs, keras.ops.cast(bias, outputs.dtype) if bias_dtype else bias)
    return outputs if layer.activation is None else layer.activation(outputs)


_CONVOLUTIONS: Final = (_layers.Conv1D, _layers.Conv2D, _layers.Conv3D)
_CONVOLUTION_CALLS: Final = {kind.call for kind in _CONVOLUTIONS}
_CONVOLUTION_OPS: Final = {kind.convolution_op for kind in _CONVOLUTIONS}
_POOLINGS: Final = {kind.call for kind in (_layers.MaxPooling2D, _layers.AveragePooling2D)}
_REVERSIBLE: Final = {kind.call for name in ("ReversibleEmbedding",) if (kind := getattr(_layers, name, None))}
_DENSE: Final[dict[Callable[..., Any], Callable[[keras.Layer, Forward], Forward]]] = {
    _layers.Dense.call: _dense,
    _layers.EinsumDense.call: _einsum_dense,
}
