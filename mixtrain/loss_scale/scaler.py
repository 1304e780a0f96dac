"""Loss scalers for loops that users write themselves: scale, unscale, adjust."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.boundary import library, run_library, settled
from mixtrain.loss_scale.arguments import STATIC, checked_rule, checked_scale
from mixtrain.loss_scale.rule import LossScaleState
from mixtrain.loss_scale.scaling import scaled, unscaled


@library
def all_finite(inputs: Any) -> Any:
    """Whether every value of every tensor is finite.

    Args:
        inputs: A tuple or list of tensors (nested, or with None entries).

    Returns:
        A bool scalar tensor.

    Raises:
        TypeError: A single tensor, or no tensors at all.

    Example:
        >>> import mixtrain
        >>> bool(all_finite([mixtrain.Tensor([1.0, float("inf")])]))
        False

    Source: MindSpore, `mindspore.amp.all_finite`.
    """
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise checks.fail_type("all_finite", "inputs must be a tuple or list of tensors", inputs, "all_finite([x])")
    return backend.all_finite(keras.tree.flatten(inputs))


class LossScaler(abc.ABC):
    """The base of loss scalers; a user's own defines `scale`, `unscale` and `adjust`.

    Source: MindSpore, `mindspore.amp.LossScaler`.
    """

    @abc.abstractmethod
    def scale(self, inputs: Any) -> Any:
        """Return the loss (or a structure of tensors) multiplied by the scale."""

    @abc.abstractmethod
    def unscale(self, inputs: Any) -> Any:
        """Return gradients (a tensor or a structure of them) divided by the scale."""

    @abc.abstractmethod
    def adjust(self, grads_finite: Any) -> bool:
        """Move the scale after a step; return whether the scaler does so at all."""


class _StateScaler(LossScaler):
    """What both scalers share: the state and the arithmetic."""

    def __init__(self, state: LossScaleState) -> None:
        self.state = state

    @property
    def scale_value(self) -> Any:
        """The scale as it is now, a float32 scalar."""
        return backend.public_tensor(backend.to_tensor(self.state.loss_scale))

    def scale(self, inputs: Any) -> Any:
        """Return `inputs` multiplied by the scale, each tensor in its own format."""
        return run_library(_mapped, (scaled, inputs, self.state.loss_scale), {})

    def unscale(self, inputs: Any) -> Any:
        """Return `inputs` divided by the scale, each tensor in its own format; None stays None."""
        return run_library(_mapped, (unscaled, inputs, self.state.loss_scale), {})


class StaticLossScaler(_StateScaler):
    """A scaler whose scale stays.

    Args:
        scale_value: The scale, at least 1.

    Raises:
        TypeError: `scale_value` is not a number.
        ValueError: It is under 1 or not finite in float32.

    Example:
        >>> import mixtrain
        >>> float(StaticLossScaler(8).scale(mixtrain.Tensor(2.0)))
        16.0

    Source: MindSpore, `mindspore.amp.StaticLossScaler`.
    """

    def __init__(self, scale_value: float) -> None:
        super().__init__(LossScaleState(checked_scale("StaticLossScaler", "scale_value", scale_value), STATIC))

    def adjust(self, grads_finite: Any) -> bool:
        """Do nothing and return False: the scale stays."""
        return False


class DynamicLossScaler(_StateScaler):
    """A scaler whose scale an overflow lowers and a window of good steps raises.

    Args:
        scale_value: The first scale, at least 1.
        scale_factor: What it is divided by and multiplied by, greater than 1.
        scale_window: Good steps in a row before it grows.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> import mixtrain
        >>> scaler = DynamicLossScaler(scale_value=16, scale_factor=2, scale_window=3)
        >>> scaler.adjust(mixtrain.Tensor(False)), float(scaler.scale_value)
        (True, 8.0)

    Source: MindSpore, `mindspore.amp.DynamicLossScaler`.
    """

    def __init__(self, scale_value: float, scale_factor: float, scale_window: int) -> None:
        where = "DynamicLossScaler"
        start, rule = checked_scale(where, "scale_value", scale_value), checked_rule(where, scale_factor, scale_window)
        super().__init__(LossScaleState(start, rule))
        self.scale_factor, self.scale_window = rule.factor, rule.window

    @property
    def counter(self) -> Any:
        """Good steps since the scale last moved, an int32 scalar."""
        return self.state.good_steps

    def adjust(self, grads_finite: Any) -> bool:
        """Move the scale by one step and return True.

        Args:
            grads_finite: bool scalar: whether the step's gradients were finite.
        """
        self.state.advance(settled(grads_finite))
        return True


def _mapped(function: Callable[[Any, Any], Any], inputs: Any, loss_scale: Any) -> Any:
    """Apply a function of a value and the scale to each tensor of a structure, and go back to its own format."""

    def one(value: Any) -> Any:
        if value is None:
            return None
        value = backend.to_tensor(value)
        result = function(value, loss_scale)
        return backend.map_values(lambda values: keras.ops.cast(values, value.dtype), result)

    return keras.tree.map_structure(one, inputs)
