"""Whether classes, functions and methods are Keras's own."""

from __future__ import annotations

import inspect
from typing import Any

import keras


def keras_owns(thing: Any) -> bool:
    """Whether a class or function is Keras's own, not a user's or another library's.

    `thing`: A class or function; False for anything else.

    Example:
        >>> class Mine(keras.layers.Dense):
        ...     pass
        >>> keras_owns(keras.layers.Dense), keras_owns(keras.activations.relu), keras_owns(Mine)
        (True, True, False)
    """
    return str(getattr(thing, "__module__", "")).partition(".")[0] == keras.__name__


def overrides(network: keras.Model, method: str) -> bool:
    """Whether a Keras model, or its class, has its own method of this name instead of `keras.Model`'s."""
    # `mixtrain.keras.prepare` wraps methods of the model by functions that name what they wrap.
    own = inspect.unwrap(getattr(network, method))
    return getattr(own, "__func__", own) is not inspect.unwrap(getattr(keras.Model, method))
