"""The live loss scale of a training step, and what moves it inside a compiled call."""

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


class StepScale:
    """The scale of a step with its counts; an update cell of the user's own moves a scale of its own beside them.

    Args:
        where: Who asks, for errors.
        scale_sense: A loss-scale update cell, or a scalar tensor for a constant loss scale.

    Attributes:
        state: The scale and the counts kept beside it.
        variable: Holds the scale that the next step uses.
        update: The user's own update cell, or None.

    Raises:
        TypeError: `scale_sense` is neither.
        ValueError: A tensor that is not a scalar.
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
        """Return everything that a step moves, the counts first."""
        if self.update is None:
            return [self.state.counts, self.state.loss_scale]
        return [self.state.counts, self.state.loss_scale, self.variable, *self.update.get_parameters()]

    def advance(self, finite: Any) -> None:
        """Move the loss scale and the counts by one step.

        Args:
            finite: bool scalar, a tensor or Python's own: whether the step's gradients were finite.
        """
        if self.update is not None:
            # The counts of overflows at the smallest scale go by the user's scale.
            self.state.loss_scale.assign(keras.ops.cast(self.scalar(self.variable), "float32"))
        self.state.advance(finite)
        if self.update is not None:
            self.update(self.variable, keras.ops.logical_not(finite))

    def scalar(self, value: Any) -> Any:
        """Return a tensor of shape () or (1,) as a scalar.

        Raises:
            ValueError: It has another shape.
        """
        if tuple(value.shape) not in ((), (1,)):
            raise checks.fail_value(
                self._where, "scale_sense must have shape () or (1,)", tuple(value.shape), "mixtrain.Tensor(1024.0)"
            )
        return keras.ops.reshape(value, ())
