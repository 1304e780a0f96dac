"""`TimeDistributed`: a layer applied to each step of a sequence."""

from __future__ import annotations

import keras

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.ops.inputs import axis_of, rank_of, tensor
from mixtrain.typing import Layer, Tensor


class TimeDistributed(Cell):
    """Apply a layer to every step of a sequence.

    Args:
        layer: A Cell or primitive.
        time_axis: Axis of the steps.
        reshape_with_axis: Axis to merge with `time_axis`, so that the layer is called once; the two are adjacent in the
            output. None: the layer is called for each step.

    Inputs: x: a tensor with the axis `time_axis`.
    Returns: The outputs of the steps, along `time_axis`, or next to `reshape_with_axis`.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> steps = mixtrain.Tensor(np.ones((4, 5, 3), np.float32))
        >>> tuple(nn.TimeDistributed(nn.Dense(3, 6), time_axis=1, reshape_with_axis=0)(steps).shape)
        (4, 5, 6)
    """

    def __init__(self, layer: Layer, time_axis: int, reshape_with_axis: int | None = None) -> None:
        super().__init__()
        where = self.cls_name
        if not callable(layer):
            raise checks.fail_type(where, "layer must be a Cell or primitive", layer, "layer=nn.Dense(3, 6)")
        self.layer = layer
        self.time_axis = checks.instance(where, "time_axis", time_axis, int, "time_axis=1")
        self.reshape_with_axis = reshape_with_axis
        if reshape_with_axis is not None:
            checks.instance(where, "reshape_with_axis", reshape_with_axis, int, "reshape_with_axis=0")

    def construct(self, x: Tensor) -> Tensor:
        """Return the outputs of all steps."""
        where, x = self.cls_name, tensor(self.cls_name, x)
        time = axis_of(where, self.time_axis, rank_of(x))
        if self.reshape_with_axis is None:
            steps = keras.ops.unstack(x, axis=time)
            return keras.ops.stack([tensor(where, self.layer(step)) for step in steps], axis=time)
        merged = axis_of(where, self.reshape_with_axis, rank_of(x))
        if merged == time:
            raise checks.fail_value(where, "reshape_with_axis must be another axis", merged, "reshape_with_axis=0")
        # Move the steps next to the other axis, merge the two for the call of the layer, and split them again.
        x = keras.ops.moveaxis(x, time, merged + 1 if time > merged else merged - 1)
        first = merged if time > merged else merged - 1
        shape = keras.ops.shape(x)
        y = tensor(where, self.layer(keras.ops.reshape(x, (*shape[:first], -1, *shape[first + 2:]))))
        y_shape = keras.ops.shape(y)
        return keras.ops.reshape(y, (*y_shape[:first], *shape[first:first + 2], *y_shape[first + 1:]))
