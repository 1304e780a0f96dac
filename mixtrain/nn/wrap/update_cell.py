"""Loss-scale update cells: the rule and its state as MindSpore cells."""

from __future__ import annotations

import keras

from mixtrain import faces
from mixtrain.cell.cell import Cell
from mixtrain.loss_scale.rule import SMALLEST_SCALE, STATIC, LossScaleState, checked_rule, checked_scale
from mixtrain.typing import Tensor


class LossScaleUpdateCell(Cell):
    """Base class of the update cells: a state, and a call that updates it.

    `state`: The state to update. `start`: The loss scale that a run starts with.
    """

    def __init__(self, state: LossScaleState, start: float = SMALLEST_SCALE) -> None:
        super().__init__()
        self._start = start
        self.state = state

    def get_loss_scale(self) -> float:
        """Return the loss scale that a run starts with."""
        return self._start

    def construct(self, loss_scale: Tensor, overflow: Tensor) -> Tensor:
        """Update the state after a step.

        Args:
            loss_scale: The variable that holds the scale; it is assigned the next scale.
            overflow: Whether the gradients of the step are not finite, bool scalar.

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


class DynamicLossScaleUpdateCell(LossScaleUpdateCell):
    """Lowers the scale after an overflow, and raises it after a window of good steps.

    Args:
        loss_scale_value: The first scale, at least 1.
        scale_factor: Factor by which the scale is divided and multiplied, greater than 1.
        scale_window: Number of consecutive good steps before the scale grows.
        state: The state to update; a new one by default.

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
        super().__init__(state or LossScaleState(start, rule), start)
        self.scale_factor, self.scale_window, self.loss_scale_value = rule.factor, rule.window, start

    @property
    def cur_iter(self) -> Tensor:
        """Number of the next step, from 1, an int32 scalar."""
        return self.state.applied_steps + self.state.skipped_steps + 1

    @property
    def last_overflow_iter(self) -> Tensor:
        """Number of the last step that overflowed or filled a window; 0 before there is one."""
        return self.cur_iter - self.state.good_steps - 1


class FixedLossScaleUpdateCell(LossScaleUpdateCell):
    """Keeps the scale constant; overflowing steps are skipped all the same.

    Args:
        loss_scale_value: The scale, at least 1.

    Raises:
        TypeError: `loss_scale_value` is not a number.
        ValueError: It is under 1 or not finite in float32.

    Example:
        >>> FixedLossScaleUpdateCell(128.0).get_loss_scale()
        128.0
    """

    def __init__(self, loss_scale_value: float) -> None:
        start = checked_scale(type(self).__name__, "loss_scale_value", loss_scale_value, example=128.0)
        super().__init__(LossScaleState(start, STATIC), start)
        self.loss_scale_value = start


faces.register("dynamic_update_cell", DynamicLossScaleUpdateCell)
faces.register("fixed_update_cell", FixedLossScaleUpdateCell)
