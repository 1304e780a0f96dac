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
    """Give every tensor methods and properties; to a module that uses none of our names, JAX's own stay what they are.

    The class of arrays has no public name (`jax.Array` is another); tests/engine/test_tensor.py fails if it moves.

    Args:
        methods: Functions by name; their first argument is the tensor.
        properties: Functions of the tensor by name.
    """
    both = {"numpy": methods["asnumpy"], **methods}  # TensorFlow's tensors have it themselves.
    install_methods([ArrayImpl, jax.core.Tracer], both, properties)
