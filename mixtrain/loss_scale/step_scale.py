"""`StepScale`: the loss scale of a training step, updated inside the compiled step."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import checks
from mixtrain.boundary import is_any_tensor
from mixtrain.cell.cell import Cell
from mixtrain.common.parameter import Parameter
from mixtrain.loss_scale.arguments import STATIC
from mixtrain.loss_scale.rule import LossScaleState
from mixtrain.loss_scale.update_cell import LossScaleUpdateCell
from mixtrain.typing import Tensor, TensorLike


class StepScale:
    """Loss scale of a training step and its counters.

    A user's own update cell updates a variable of its own; `state` then mirrors that scale and keeps the counters.

    Args:
        where: Name of the caller, for errors.
        scale_sense: A loss-scale update cell, or a scalar tensor for a constant loss scale.

    Attributes:
        state: The scale and its counters.
        variable: The scale that the next step uses.
        update: The user's own update cell, or None.

    Raises:
        TypeError: `scale_sense` is neither.
        ValueError: `scale_sense` is a tensor that is not a scalar.
    """

    def __init__(self, where: str, scale_sense: Any) -> None:
        self._where = where
        self.update: Cell | None = None
        if isinstance(scale_sense, LossScaleUpdateCell):
            self.state = scale_sense.state
        elif isinstance(scale_sense, Cell):
            start = float(scale_sense.get_loss_scale())  # type: ignore[attr-defined]
            self.state, self.update = LossScaleState(start, STATIC), scale_sense
        elif is_any_tensor(scale_sense):
            self.state = LossScaleState(float(self.scalar(scale_sense)), STATIC)
        else:
            raise checks.fail_type(
                where, "scale_sense must be an update cell or a scalar tensor", scale_sense,
                "nn.DynamicLossScaleUpdateCell(2**24, 2, 2000)",
            )
        self.variable: keras.Variable = self.state.loss_scale
        if self.update is not None:
            self.variable = Parameter(start, name="scale_sense", requires_grad=False)

    def variables(self) -> list[keras.Variable]:
        """Return the variables that a step updates, the counts first."""
        if self.update is None:
            return [self.state.counts, self.state.loss_scale]
        return [self.state.counts, self.state.loss_scale, self.variable, *self.update.get_parameters()]

    def advance(self, finite: Tensor) -> None:
        """Update the loss scale and the counts after a step.

        Args:
            finite: Whether the gradients of the step are finite: a bool scalar tensor or a Python bool.
        """
        if self.update is not None:
            # The count of overflows at the smallest scale compares the user's scale.
            self.state.loss_scale.assign(keras.ops.cast(self.scalar(self.variable), "float32"))
        self.state.advance(finite)
        if self.update is not None:
            self.update(self.variable, keras.ops.logical_not(finite))

    def scalar(self, value: TensorLike) -> Tensor:
        """Reshape a tensor of shape () or (1,) to a scalar.

        Raises:
            ValueError: The tensor has another shape.
        """
        if tuple(value.shape) not in ((), (1,)):
            raise checks.fail_value(
                self._where, "scale_sense must have shape () or (1,)", tuple(value.shape), "mixtrain.Tensor(1024.0)"
            )
        return keras.ops.reshape(value, ())
