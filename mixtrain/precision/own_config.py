"""The configuration of a planned Keras layer keeps the user's dtype policy, so that Keras saves no plan."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import keras


def keep_own_config(layer: keras.Layer, policy: keras.dtype_policies.DTypePolicy) -> Callable[[], None]:
    """Let `layer.get_config`, and so Keras's save and clone, return the user's own policy; return what reverts it."""
    own, previous = layer.get_config, vars(layer).get("get_config")

    # Keras marks its default `get_config` by an attribute of the function, which `wraps` copies.
    @functools.wraps(own)
    def get_config() -> dict[str, Any]:
        config: dict[str, Any] = own()
        if "dtype" in config:
            config["dtype"] = keras.dtype_policies.serialize(policy)
        return config

    object.__setattr__(layer, "get_config", get_config)

    def undo() -> None:
        if previous is None:
            object.__delattr__(layer, "get_config")
        else:
            object.__setattr__(layer, "get_config", previous)

    return undo
