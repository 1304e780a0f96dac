"""Whether classes and functions are Keras's own, by the top-level package of their module."""

from __future__ import annotations

from typing import Any

import keras


def keras_owns(thing: Any) -> bool:
    """Whether a class or function is Keras's own, not a user's or another library's.

    Args:
        thing: A class or function; False for anything else.

    Example:
        >>> class Mine(keras.layers.Dense):
        ...     pass
        >>> keras_owns(keras.layers.Dense), keras_owns(keras.activations.relu), keras_owns(Mine)
        (True, True, False)
    """
    return str(getattr(thing, "__module__", "")).partition(".")[0] == keras.__name__
