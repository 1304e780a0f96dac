"""Which classes and functions are Keras's own: told by the name that users import, not by modules inside of Keras."""

from __future__ import annotations

from typing import Any

import keras


def keras_owns(thing: Any) -> bool:
    """Whether a class or function is Keras's own, neither a user's nor of another library.

    Args:
        thing: A class or function; of anything else the answer is no.

    Example:
        >>> class Mine(keras.layers.Dense):
        ...     pass
        >>> keras_owns(keras.layers.Dense), keras_owns(keras.activations.relu), keras_owns(Mine)
        (True, True, False)
    """
    return str(getattr(thing, "__module__", "")).partition(".")[0] == keras.__name__
