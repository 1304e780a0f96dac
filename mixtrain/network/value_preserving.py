"""Layers and functions that preserve values: those that only move, drop, select or average them."""

from __future__ import annotations

import functools
from typing import Any, Final

import keras

from mixtrain.typing import Layer

# Normalized names of classes (Cells, Keras layers and operations) and functions. A loss takes an output and nothing
# else. What a Lambda does is unknown; most only rearrange.
_NAMES: Final = frozenset({
    "activityregularization", "alphadropout", "average", "concat", "concatenate", "cropping1d", "cropping2d",
    "cropping3d", "dropout", "dropout1d", "dropout2d", "dropout3d", "expanddims", "flatten", "gaussiandropout",
    "getitem", "globalaveragepooling1d", "globalaveragepooling2d", "globalaveragepooling3d", "globalmaxpooling1d",
    "globalmaxpooling2d", "globalmaxpooling3d", "identity", "lambda", "lossbase", "maximum", "mean", "minimum",
    "moveaxis", "permute", "ravel", "reducemean", "repeatvector", "reshape", "spatialdropout1d", "spatialdropout2d",
    "spatialdropout3d", "squeeze", "stack", "swapaxes", "transpose", "upsampling1d", "upsampling2d", "upsampling3d",
    "view",
})


def preserves_values(layer: Layer) -> bool:
    """Whether the outputs of a layer are its inputs, except for order, selection and averages."""
    if isinstance(layer, keras.layers.Activation):
        return name_of(layer.activation) in ("linear", "identity")
    return not _NAMES.isdisjoint(names_of(layer.__class__))


def name_passes_on(name: str) -> bool:
    """Whether a function of this name passes its values on, as `preserves_values` means it."""
    return plain(name) in _NAMES


def name_of(function: Any) -> str:
    """Return the normalized name of a function, also of a `functools.partial`."""
    function = getattr(function, "func", function)
    return plain(getattr(function, "__name__", ""))


@functools.lru_cache(maxsize=1024)
def names_of(kind: type) -> tuple[str, ...]:
    """Return the normalized names of a class and its base classes."""
    return tuple(plain(base.__name__) for base in kind.__mro__)


def plain(name: str) -> str:
    """Normalize a name: lower case, without "_"."""
    return name.replace("_", "").lower()
