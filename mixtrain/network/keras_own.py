"""Whether classes, functions and methods are Keras's own."""

from __future__ import annotations

import inspect
from typing import Any, Final

import keras

# Methods that a subclass of keras.Model may override, and that Keras's loops alone call.
_LOOP_METHODS: Final = ("train_step", "test_step", "compute_metrics", "get_metrics_result")


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


def own_steps(network: Any) -> list[str]:
    """Return what of a network only Keras's loops call: methods that it overrides, or the preprocessor of a task.

    `network`: A Cell or Keras layer. A task is one of KerasHub, whose own `fit` calls its preprocessor.
    """
    if not isinstance(network, keras.Model):
        return []
    names = [name for name in _LOOP_METHODS if overrides(network, name)]
    return names if preprocessor_of(network) is None else [*names, "preprocessor"]


def preprocessor_of(network: keras.Operation) -> Any:
    """Return what prepares the rows of a task of KerasHub, no layer of its network; None of any other network."""
    return getattr(network, "preprocessor", None) if hasattr(network, "preprocess_samples") else None
