"""The families of layers that precision rules speak of, and which layer belongs to which."""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

import keras

Family = Literal["matmul", "recurrent", "normalisation", "softmax", "other"]
FAMILIES: Final = get_args(Family)

_layers = keras.layers


def _known(*names: str) -> tuple[type, ...]:
    """Return the Keras layer classes of these names that the installed Keras has."""
    return tuple(getattr(_layers, name) for name in names if hasattr(_layers, name))


KERAS_FAMILIES: Final[dict[Family, tuple[type, ...]]] = {
    "matmul": _known(
        "Conv1D", "Conv2D", "Conv3D", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose", "DepthwiseConv1D",
        "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D", "Dense", "EinsumDense", "Dot",
    ),
    "recurrent": _known(
        "RNN", "LSTM", "GRU", "SimpleRNN", "StackedRNNCells", "LSTMCell", "GRUCell", "SimpleRNNCell", "ConvLSTM1D",
        "ConvLSTM2D", "ConvLSTM3D",
    ),
    "normalisation": _known(
        "BatchNormalization", "LayerNormalization", "GroupNormalization", "RMSNormalization", "UnitNormalization",
        "Normalization", "SpectralNormalization",
    ),
    "softmax": _known("Softmax"),
}

# Operations of functional models are not public classes; they are told apart by name.
_OPERATION_FAMILIES: Final[dict[str, Family]] = {
    **dict.fromkeys(("Matmul", "Einsum", "Dot", "Tensordot", "Inner", "Outer", "Vdot"), "matmul"),
    **dict.fromkeys(("Softmax", "LogSoftmax"), "softmax"),
}
_SOFTMAXES: Final = (keras.activations.softmax, keras.activations.log_softmax)


def rule_giver(layer: Any) -> Any:
    """Return the layer whose rules a layer follows: itself, or for `TimeDistributed` the layer inside.

    Keras runs that one as a part of the wrapper, in the wrapper's format.
    """
    while isinstance(layer, _layers.TimeDistributed):
        layer = layer.layer
    return layer


def family_of(layer: Any) -> Family:
    """Return the family of a Cell (its class's `precision_family`), Keras layer or operation."""
    layer = rule_giver(layer)
    if isinstance(layer, keras.Layer):
        for family, classes in KERAS_FAMILIES.items():
            if isinstance(layer, classes):
                return family
        return "other"
    if isinstance(layer, keras.Operation):
        return _OPERATION_FAMILIES.get(type(layer).__name__, "other")
    family = getattr(layer, "precision_family", "other")
    return family if family in FAMILIES else "other"


def ends_in_softmax(layer: Any) -> bool:
    """Say whether a layer's last computation is a softmax: a softmax layer, or one with that activation."""
    if family_of(layer) == "softmax":
        return True
    return getattr(rule_giver(layer), "activation", None) in _SOFTMAXES
