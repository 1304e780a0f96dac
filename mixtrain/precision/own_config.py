"""A planned Keras layer's configuration: the policy that its user gave it, so that Keras's own files know no plan."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import keras


def keep_own_config(layer: keras.Layer, policy: Any) -> Callable[[], None]:
    """Let `layer.get_config`, and so Keras's save and clone, say the user's own dtype policy; return what undoes it.

    Args:
        layer: The layer, whose policy a plan is about to replace.
        policy: The policy that the user gave it.
    """
    own, before = layer.get_config, vars(layer).get("get_config")

    # Keras asks whether this function is its own default; the answer is an attribute, which `wraps` keeps.
    @functools.wraps(own)
    def get_config() -> dict[str, Any]:
        config: dict[str, Any] = own()
        if "dtype" in config:
            config["dtype"] = keras.dtype_policies.serialize(policy)
        return config

    object.__setattr__(layer, "get_config", get_config)

    def undo() -> None:
        if before is None:
            object.__delattr__(layer, "get_config")
        else:
            object.__setattr__(layer, "get_config", before)

    return undo
