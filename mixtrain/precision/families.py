"""The families of layers that precision rules distinguish."""

from __future__ import annotations

import functools
from typing import Final, Literal, get_args

import keras

from mixtrain.typing import Layer

Family = Literal["matmul", "recurrent", "normalization", "other"]
FAMILIES: Final = get_args(Family)

_layers = keras.layers


def _known(*names: str) -> tuple[type, ...]:
    """Return the Keras layer classes of these names that the installed Keras has."""
    return tuple(getattr(_layers, name) for name in names if hasattr(_layers, name))


KERAS_FAMILIES: Final[dict[Family, tuple[type, ...]]] = {
    "matmul": _known(
        "Conv1D", "Conv2D", "Conv3D", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose", "DepthwiseConv1D",
        "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D", "Dense", "TernaryDense", "EinsumDense", "Dot",
    ),
    "recurrent": _known(
        "RNN", "LSTM", "GRU", "SimpleRNN", "StackedRNNCells", "LSTMCell", "GRUCell", "SimpleRNNCell", "ConvLSTM1D",
        "ConvLSTM2D", "ConvLSTM3D",
    ),
    "normalization": _known(
        "BatchNormalization", "LayerNormalization", "GroupNormalization", "RMSNormalization", "UnitNormalization",
        "Normalization", "SpectralNormalization",
    ),
}

# With a mixed policy of Keras's own these fail (Keras 3.15): operations inside them mix dtypes. The last four return
# float32 whatever their policy.
FLOAT32_ONLY: Final = _known(
    "CutMix", "MixUp", "RandomElasticTransform", "RandomErasing", "RandomGaussianBlur", "STFTSpectrogram", "TFSMLayer",
    "CategoryEncoding", "HashedCrossing", "Hashing", "MaxNumBoundingBoxes",
)

# Their inputs fall into bins, which would be others for inputs in half (on TensorFlow, with Keras's policy too).
BINNING: Final = _known("Discretization")

# Operations of functional models are not public classes, so they are recognized by name.
_MATMUL_OPERATIONS: Final = ("Matmul", "Einsum", "Dot", "Tensordot", "Inner", "Outer", "Vdot")


def rule_giver(layer: Layer) -> Layer:
    """Return the layer whose rules a layer follows: the layer itself, or for `TimeDistributed` the wrapped layer.

    Keras runs the wrapped layer as part of the wrapper, in the wrapper's dtype.
    """
    while isinstance(layer, _layers.TimeDistributed):
        layer = layer.layer
    return layer


def family_of(layer: Layer) -> Family:
    """Return the family of a Cell (its class's `precision_family`), Keras layer or operation."""
    return _family_of_class(rule_giver(layer).__class__)


@functools.lru_cache(maxsize=1024)
def _family_of_class(kind: type) -> Family:
    if issubclass(kind, keras.Layer):
        for family, classes in KERAS_FAMILIES.items():
            if issubclass(kind, classes):
                return family
        return "other"
    if issubclass(kind, keras.Operation):
        return "matmul" if kind.__name__ in _MATMUL_OPERATIONS else "other"
    own: Family = getattr(kind, "precision_family", "other")
    return own if own in FAMILIES else "other"


def reason_for_float32(layer: Layer) -> str | None:
    """Return why no level computes a layer in half precision, or None."""
    giver = rule_giver(layer)
    if isinstance(giver, BINNING):
        return "inputs in half fall into other bins"
    return "Keras computes it in float32 alone" if isinstance(giver, FLOAT32_ONLY) else None
