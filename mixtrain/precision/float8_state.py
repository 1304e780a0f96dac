"""`AmaxHistory`: the largest magnitudes of an operand of float8 products in the last steps, and the scale they give."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

import keras
import numpy as np

from mixtrain.dtype import float32
from mixtrain.network.marks import HISTORIES
from mixtrain.network.unique_names import unique_names
from mixtrain.network.walk import tree_of
from mixtrain.typing import Layer, Tensor

# Steps that are looked back at, Keras's default.
_STEPS: Final = 1024
_OPERANDS: Final = ("inputs", "kernel", "outputs_grad")


class AmaxHistory:
    """Variables that take their next value in place of a gradient, named as those of Keras's float8 layers.

    `operand`: "inputs", "kernel" or "outputs_grad".

    Attributes:
        variables: The scale, float32, and the largest magnitudes of the last steps, float32 (1024,).
    """

    def __init__(self, operand: str) -> None:
        self.variables = (
            keras.Variable(np.ones((), np.float32), autocast=False, name=f"{operand}_scale"),
            keras.Variable(np.zeros(_STEPS, np.float32), autocast=False, name=f"{operand}_amax_history"),
        )
        for variable in self.variables:
            variable.overwrite_with_gradient = True

    def tensors(self) -> list[Tensor]:
        """Return the values of the variables."""
        return [keras.ops.cast(keras.ops.convert_to_tensor(variable), float32) for variable in self.variables]


class AmaxHistories:
    """The histories of a layer's inputs, weights and gradients under a plan, kept while another is in force."""

    @functools.cached_property
    def of_operands(self) -> list[AmaxHistory]:
        """One for each operand, made when they are first needed."""
        return [AmaxHistory(operand) for operand in _OPERANDS]


def histories_on(layer: Layer) -> list[AmaxHistory]:
    """Return the histories of the plan in force on a layer."""
    histories: AmaxHistories | None = HISTORIES.of(layer)
    return [] if histories is None else histories.of_operands


def histories_by_name(layers: Sequence[Layer]) -> dict[str, keras.Variable]:
    """Return the variables of all histories in some networks, by the path of their layer and their name."""
    found: dict[int, tuple[str, keras.Variable]] = {}
    for layer in layers:
        for node in tree_of(layer).walk():
            for history in histories_on(node.layer):
                for variable in history.variables:
                    found.setdefault(id(variable), (f"{node.path}.{variable.name}".lstrip("."), variable))
    names = unique_names(name for name, _ in found.values())
    return {name: variable for name, (_, variable) in zip(names, found.values(), strict=True)}
