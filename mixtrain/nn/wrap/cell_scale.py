"""The loss scale of a step that an update cell or a tensor gives, as MindSpore's train cells take it."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import checks, faces
from mixtrain.boundary import is_any_tensor
from mixtrain.cell.cell import Cell
from mixtrain.common.parameter import Parameter
from mixtrain.loss_scale.rule import STATIC, LossScaleState
from mixtrain.loss_scale.step_scale import StepScale
from mixtrain.nn.wrap.update_cell import LossScaleUpdateCell
from mixtrain.typing import Tensor, TensorLike


class CellScale(StepScale):
    """The scale of a user's own update cell, which updates a variable of its own.

    `state` mirrors that scale and keeps the counters.

    `where`: Name of the caller, for errors. `update`: The update cell.
    """

    def __init__(self, where: str, update: Any) -> None:
        start = float(update.get_loss_scale())
        super().__init__(LossScaleState(start, STATIC))
        self._where, self._update = where, update
        self.variable = Parameter(start, name="scale_sense", requires_grad=False)

    def own_variables(self) -> list[keras.Variable]:
        """Return the scale of the update cell, and its parameters."""
        return [self.variable, *self._update.get_parameters()]

    def advance(self, finite: Tensor) -> None:
        """Update the loss scale and the counts after a step."""
        # The count of overflows at the smallest scale compares the user's scale.
        self.state.loss_scale.assign(keras.ops.cast(scalar(self._where, self.variable), "float32"))
        self.state.advance(finite)
        self._update(self.variable, keras.ops.logical_not(finite))


def step_scale(where: str, scale_sense: Any) -> StepScale:
    """Return the loss scale of a train cell.

    `where`: Name of the caller, for errors. `scale_sense`: A loss-scale update cell, or a scalar tensor for a constant
    loss scale.

    Raises: TypeError if `scale_sense` is neither. ValueError if `scale_sense` is a tensor that is not a scalar.
    """
    if isinstance(scale_sense, LossScaleUpdateCell):
        return StepScale(scale_sense.state)
    if isinstance(scale_sense, Cell):
        return CellScale(where, scale_sense)
    if is_any_tensor(scale_sense):
        return StepScale(LossScaleState(float(scalar(where, scale_sense)), STATIC))
    raise checks.fail_type(
        where, "scale_sense must be an update cell or a scalar tensor", scale_sense,
        "nn.DynamicLossScaleUpdateCell(2**24, 2, 2000)",
    )


def scalar(where: str, value: TensorLike) -> Tensor:
    """Reshape a tensor of shape () or (1,) to a scalar. Raises: ValueError if the tensor has another shape."""
    if tuple(value.shape) not in ((), (1,)):
        raise checks.fail_value(
            where, "scale_sense must have shape () or (1,)", tuple(value.shape), "mixtrain.Tensor(1024.0)"
        )
    return keras.ops.reshape(value, ())


faces.register("scale_of_cell", step_scale)
