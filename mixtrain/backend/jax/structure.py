"""Structures that hold tensors beside anything else: JAX's transformations take and return tensors alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import keras
import numpy as np

from mixtrain.backend.tensor_base import backend_value


@dataclasses.dataclass(frozen=True)
class _Place:
    """Where a tensor belongs."""

    index: int


def split_tensors(structure: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """Return the tensors of a structure, and a function that puts others in their places.

    Example:
        >>> tensors, fill = split_tensors({"loss": jax.numpy.ones(()), "name": "first"})
        >>> fill([2.0])
        {'loss': 2.0, 'name': 'first'}
    """
    tensors: list[Any] = []

    def take(value: Any) -> Any:
        value = backend_value(value)
        if not isinstance(value, (jax.Array, np.ndarray)):
            return value
        tensors.append(value)
        return _Place(len(tensors) - 1)

    form = keras.tree.map_structure(take, structure)

    def fill(values: list[Any]) -> Any:
        return keras.tree.map_structure(lambda leaf: values[leaf.index] if isinstance(leaf, _Place) else leaf, form)

    return tensors, fill
