"""Methods given to TensorFlow's tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from mixtrain.engine.methods import install_methods


def install_tensor_methods(
    methods: Mapping[str, Callable[..., Any]], properties: Mapping[str, Callable[[Any], Any]]
) -> None:
    """Give every tensor methods and properties.

    Args:
        methods: Functions by name; their first argument is the tensor.
        properties: Functions of the tensor by name.
    """
    install_methods([tf.Tensor], methods, properties)
