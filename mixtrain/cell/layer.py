"""`CellLayer`: a Cell as a layer of a Keras model."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain.boundary import to_backend_tensors
from mixtrain.typing import Layer


class CellLayer(keras.Layer):
    """A Keras layer that runs a Cell; the cell's parameters are its weights.

    Args:
        cell: The Cell.
        **options: Options of `keras.Layer`.

    Example:
        >>> import keras, mixtrain.nn as nn
        >>> model = keras.Sequential([keras.Input((4,)), CellLayer(nn.Dense(4, 2))])
        >>> model.output_shape
        (None, 2)
    """

    def __init__(self, cell: Layer, **options: Any) -> None:
        super().__init__(**options)
        # The cell casts by its own rule, so Keras must not cast its inputs first.
        self.autocast = False
        object.__setattr__(self, "mixtrain_cell", cell)
        self.cell_parameters = list(cell.get_parameters())

    def build(self, input_shape: Any) -> None:
        """Do nothing: a cell's parameters exist from the start."""
        self.built = True

    def call(self, *args: Any, training: bool | None = None) -> Any:
        """Run the cell in training mode where Keras trains."""
        cell = self.mixtrain_cell
        was_training = cell.training
        cell.set_train(bool(training))
        try:
            return to_backend_tensors(cell(*args))
        finally:
            cell.set_train(was_training)
