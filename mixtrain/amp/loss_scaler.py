"""Loss scalers for custom training loops: scale the loss, unscale gradients, adjust the scale."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.boundary import library, run_library, to_backend_tensors
from mixtrain.loss_scale.rule import STATIC, Count, LossScaleState, checked_rule, checked_scale
from mixtrain.loss_scale.scaling import scaled, unscaled
from mixtrain.typing import Tensor, Tree


@library
def all_finite(inputs: Tree) -> Tensor:
    """Whether every value of every tensor is finite, a bool scalar tensor.

    Args:
        inputs: A tuple or list of tensors, which may be nested and contain None.

    Raises: TypeError if `inputs` is a single tensor or empty.

    Example: ``all_finite(gradients)``.
    """
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise checks.fail_type("all_finite", "inputs must be a tuple or list of tensors", inputs, "all_finite([x])")
    return backend.all_finite(keras.tree.flatten(inputs))


class LossScaler(abc.ABC):
    """Base class of loss scalers; subclasses define `scale`, `unscale` and `adjust`."""

    __module__ = "mixtrain.loss_scale.scaler"  # By which pickles name it.

    @abc.abstractmethod
    def scale(self, inputs: Tree) -> Tree:
        """Return the loss (or a structure of tensors) multiplied by the scale."""

    @abc.abstractmethod
    def unscale(self, inputs: Tree) -> Tree:
        """Return gradients (a tensor or a structure of tensors) divided by the scale."""

    @abc.abstractmethod
    def adjust(self, grads_finite: Tensor) -> bool:
        """Update the scale after a step; return whether the scale is dynamic."""


class _StateScaler(LossScaler):
    """Common part of both scalers: the state and the arithmetic."""

    def __init__(self, state: LossScaleState) -> None:
        self.state = state

    @property
    def scale_value(self) -> Any:
        """The current scale, a float32 scalar."""
        return backend.public_tensor(backend.to_tensor(self.state.loss_scale))

    def scale(self, inputs: Tree) -> Tree:
        """Return `inputs` multiplied by the scale, each tensor in its own dtype."""
        return run_library(_map_tensors, (scaled, inputs, self.state.loss_scale), {})

    def unscale(self, inputs: Tree) -> Tree:
        """Return `inputs` divided by the scale, each tensor in its own dtype; None stays None.

        The next values of float8 scales, which `value_and_grad` returns among gradients, stay as they are.
        """
        return run_library(_map_tensors, (_unscaled_gradient, inputs, self.state.loss_scale), {})


class StaticLossScaler(_StateScaler):
    """A scaler with a constant scale.

    Args:
        scale_value: The scale, at least 1.

    Raises: TypeError if `scale_value` is not a number. ValueError if it is under 1 or not finite in float32.

    Example: ``StaticLossScaler(8).scale(loss)``.
    """

    __module__ = "mixtrain.loss_scale.scaler"  # By which pickles name it.

    def __init__(self, scale_value: float) -> None:
        super().__init__(LossScaleState(checked_scale("StaticLossScaler", "scale_value", scale_value), STATIC))

    def adjust(self, grads_finite: Tensor) -> bool:
        """Do nothing and return False: the scale is constant."""
        return False


class DynamicLossScaler(_StateScaler):
    """A scaler with a dynamic scale, which an overflow lowers and a window of good steps raises.

    Args:
        scale_value: The first scale, at least 1.
        scale_factor: Factor by which the scale is divided and multiplied, greater than 1.
        scale_window: Number of consecutive good steps before the scale grows.

    Raises: TypeError if an argument has the wrong type. ValueError if an argument is out of range.

    Example: ``DynamicLossScaler(scale_value=16, scale_factor=2, scale_window=3).adjust(all_finite(grads))``.
    """

    __module__ = "mixtrain.loss_scale.scaler"  # By which pickles name it.

    def __init__(self, scale_value: float, scale_factor: float, scale_window: int) -> None:
        where = "DynamicLossScaler"
        start, rule = checked_scale(where, "scale_value", scale_value), checked_rule(where, scale_factor, scale_window)
        super().__init__(LossScaleState(start, rule))
        self.scale_factor, self.scale_window = rule.factor, rule.window

    @property
    def counter(self) -> Any:
        """Good steps since the scale last changed, an int32 scalar."""
        return self.state.good_steps

    @counter.setter
    def counter(self, value: Any) -> None:
        counts = np.array(backend.to_numpy(self.state.counts))
        counts[Count.GOOD_STEPS] = backend.to_numpy(to_backend_tensors(value))
        self.state.counts.assign(counts)

    def adjust(self, grads_finite: Tensor) -> bool:
        """Update the scale after a step and return True. `grads_finite`: Whether its gradients are finite, bool."""
        self.state.advance(to_backend_tensors(grads_finite))
        return True


def _unscaled_gradient(value: Tensor, loss_scale: Tensor) -> Tensor:
    return value if backend.is_next_value(value) else unscaled(value, loss_scale)


def _map_tensors(function: Callable[[Tensor, Tensor], Tensor], inputs: Tree, loss_scale: Tensor) -> Tree:
    """Apply a function of a tensor and the scale to each tensor of a structure, and cast the result back."""

    def apply(value: Tensor) -> Tensor:
        if value is None:
            return None
        value = backend.to_tensor(value)
        result = function(value, loss_scale)
        if result is value:
            return value
        return backend.map_values(lambda values: keras.ops.cast(values, value.dtype), result)

    return keras.tree.map_structure(apply, inputs)
