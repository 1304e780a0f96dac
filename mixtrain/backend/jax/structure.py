"""Structures of tensors and other values, split for JAX's transformations, which take only tensors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import keras
import numpy as np

from mixtrain.backend.tensor_base import backend_value
from mixtrain.typing import Tensor, Tree


@dataclasses.dataclass(frozen=True)
class _Slot:
    """The position of a tensor in a structure."""

    index: int


def split_tensors(structure: Tree) -> tuple[list[Tensor], Callable[[list[Tensor]], Tree]]:
    """Return the tensors of a structure, and a function that fills it with other ones.

    Example:
        >>> tensors, fill = split_tensors({"loss": jax.numpy.ones(()), "name": "first"})
        >>> fill([2.0])
        {'loss': 2.0, 'name': 'first'}
    """
    tensors: list[Tensor] = []

    def take(value: Any) -> Any:
        value = backend_value(value)
        if not isinstance(value, (jax.Array, np.ndarray)):
            return value
        tensors.append(value)
        return _Slot(len(tensors) - 1)

    template = keras.tree.map_structure(take, structure)

    def fill(values: list[Tensor]) -> Tree:
        return keras.tree.map_structure(lambda leaf: values[leaf.index] if isinstance(leaf, _Slot) else leaf, template)

    return tensors, fill
