"""Loss-scale update cells: the rule and its state in the shape of a MindSpore cell."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain.cell.cell import Cell
from mixtrain.loss_scale.arguments import STATIC, checked_rule, checked_scale
from mixtrain.loss_scale.rule import LossScaleState


class LossScaleUpdateCell(Cell):
    """What the update cells share: a state, and a call that moves it."""

    def __init__(self, state: LossScaleState) -> None:
        super().__init__()
        self.state = state

    def get_loss_scale(self) -> float:
        """Return the loss scale that a run starts with."""
        return self._start

    def construct(self, loss_scale: Any, overflow: Any) -> Any:
        """Move on by one step.

        Args:
            loss_scale: The variable that holds the scale; it is assigned the next one.
            overflow: bool scalar: whether the step's gradients were not finite.

        Returns:
            `overflow`.
        """
        finite = keras.ops.logical_not(keras.ops.cast(overflow, "bool"))
        if isinstance(loss_scale, keras.Variable) and loss_scale is not self.state.loss_scale:
            self.state.loss_scale.assign(keras.ops.reshape(loss_scale, ()))
            self.state.advance(finite)
            loss_scale.assign(keras.ops.reshape(self.state.loss_scale, loss_scale.shape))
        else:
            self.state.advance(finite)
        return overflow

    _start: float = 1.0


class DynamicLossScaleUpdateCell(LossScaleUpdateCell):
    """Lowers the scale after an overflow, raises it after a window of good steps.

    Args:
        loss_scale_value: The first scale, at least 1.
        scale_factor: What it is divided by and multiplied by, greater than 1.
        scale_window: Good steps in a row before it grows.
        state: The state to move; a new one by default.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> import mixtrain
        >>> cell = DynamicLossScaleUpdateCell(loss_scale_value=16, scale_factor=2, scale_window=3)
        >>> scale = mixtrain.Parameter(16.0, name="scale", requires_grad=False)
        >>> _ = cell(scale, mixtrain.Tensor(True))
        >>> float(scale.asnumpy())
        8.0

    Source: MindSpore, `mindspore.nn.DynamicLossScaleUpdateCell`.
    """

    def __init__(
        self,
        loss_scale_value: float,
        scale_factor: float,
        scale_window: int,
        *,
        state: LossScaleState | None = None,
    ) -> None:
        where = type(self).__name__
        start = checked_scale(where, "loss_scale_value", loss_scale_value, example=2.0**24)
        rule = checked_rule(where, scale_factor, scale_window)
        super().__init__(state or LossScaleState(start, rule))
        self._start = start
        self.scale_factor, self.scale_window, self.loss_scale_value = rule.factor, rule.window, start


class FixedLossScaleUpdateCell(LossScaleUpdateCell):
    """Leaves the scale alone; overflowing steps are dropped all the same.

    Args:
        loss_scale_value: The scale, at least 1.

    Raises:
        TypeError: `loss_scale_value` is not a number.
        ValueError: It is under 1 or not finite in float32.

    Example:
        >>> FixedLossScaleUpdateCell(128.0).get_loss_scale()
        128.0

    Source: MindSpore, `mindspore.nn.FixedLossScaleUpdateCell`.
    """

    def __init__(self, loss_scale_value: float) -> None:
        start = checked_scale(type(self).__name__, "loss_scale_value", loss_scale_value, example=128.0)
        super().__init__(LossScaleState(start, STATIC))
        self._start = start
        self.loss_scale_value = start
