"""Methods given to JAX's arrays, those of functions that are being traced too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
from jax._src.array import ArrayImpl

from mixtrain.engine.methods import install_methods


def install_tensor_methods(
    methods: Mapping[str, Callable[..., Any]], properties: Mapping[str, Callable[[Any], Any]]
) -> None:
    """Give every tensor methods and properties; attributes that JAX has are left as they are.

    The class of arrays has no public name (`jax.Array` is another); tests/engine/test_tensor.py fails if it moves.

    Args:
        methods: Functions by name; their first argument is the tensor.
        properties: Functions of the tensor by name.
    """
    install_methods([ArrayImpl, jax.core.Tracer], methods, properties)
