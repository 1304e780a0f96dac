"""`Optimizer`: the update step that all rules share, and the helpers for writing a custom rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from mixtrain import backend, checks, context
from mixtrain.boundary import library
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import int32
from mixtrain.ops.hyper_map import HyperMap, Map
from mixtrain.optim.groups import ParamsLike, WeightDecayLike
from mixtrain.optim.init_args import opt_init_args_register
from mixtrain.optim.optimizer_cell import OptimizerCell
from mixtrain.optim.schedule import LearningRateLike
from mixtrain.optim.trained import working_dtype
from mixtrain.typing import TensorLike, Variable

__all__ = ["Optimizer", "opt_init_args_register"]


class Optimizer(OptimizerCell):
    """Base class of optimizers: ``optimizer(gradients)`` updates its parameters in place, eagerly or compiled.

    A subclass defines `update`, which computes the new value of one weight. Alternatively it defines `construct`, the
    whole step, from `get_lr`, `get_weight_decay`, `decay_weight`, `scale_grad`, `hyper_map` and `assignadd`. Parameters
    that do not require a gradient are not updated.

    Args:
        learning_rate: A number; a list, 1-D array or tensor with one value per step, whose last value is used for all
            later steps (MindSpore raises an error there); a `LearningRateSchedule`; or a
            `keras.optimizers.schedules.LearningRateSchedule`. The first step uses the first value.
        parameters: An iterable of Parameters and `keras.Variable` objects, or of groups: dicts with "params" and,
            optionally, "lr", "weight_decay" and "grad_centralization"; ``{"order_params": [...]}`` sets the order of
            the gradients.
        weight_decay: L2 penalty, a number or a Cell of the step. Without groups it does not apply to parameters whose
            name contains "beta" or "gamma"; with groups it applies to all.
        loss_scale: Divisor of the gradients; the scale of a `FixedLossScaleManager` that does not drop updates.

    Attributes:
        map_: A `mixtrain.ops.Map`, called with a function as its first argument; likewise `map_reverse`, and
            `hyper_map` and `hyper_map_reverse`, which are `mixtrain.ops.HyperMap`.
        global_step_increase_tensor: Increment of `global_step`: 1, int32 (1,).
        use_parallel: False: the state is not sharded over devices.

    Raises: ValueError: `parameters` is empty, contains duplicates or duplicate names, or an argument is out of range.

    Example:
        >>> import mixtrain, numpy as np
        >>> class Descent(Optimizer):
        ...     def update(self, index, weight, gradient, rate):
        ...         return weight - rate * gradient
        >>> w = mixtrain.Parameter(np.ones(2, np.float32), name="w")
        >>> done = Descent(0.5, [w])((mixtrain.Tensor([1.0, 0.0]),))
        >>> w.asnumpy().tolist()
        [0.5, 1.0]
    """

    # What MindSpore's distributed optimizers read.
    use_parallel, param_rank, enable_tuple_broaden, skip_auto_parallel_compile = False, None, True, True

    def __init__(
        self, learning_rate: LearningRateLike, parameters: ParamsLike, weight_decay: WeightDecayLike = 0.0,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, loss_scale)
        self.map_, self.hyper_map = Map(), HyperMap()
        self.map_reverse, self.hyper_map_reverse = Map(None, True), HyperMap(None, True)
        self.global_step_increase_tensor = Tensor([1], int32)

    # ---- the step ---------------------------------------------------------------------------------------------
    def __call__(self, gradients: Sequence[Tensor | None], *args: Any, **kwargs: Any) -> Any:
        """Run one step.

        Args: gradients: One per parameter, in the order of `parameters`: a dense or sparse tensor of the parameter's
            shape, or None for a gradient of zero (weight decay and momentum still act).
        Returns: A tuple of True, one per parameter.
        """
        checked = self._checked_gradients(gradients)
        self._refuse_changed_next_values(gradients)
        # A next value is stored as it is; to the rule, its decay and its momentum it is a gradient of zero.
        values = [pair for pair in backend.next_values(checked, self.parameters) if pair[0].trainable]
        true_gradients = backend.without_next_values(checked, self.parameters)
        result = super().__call__(self._checked_gradients(true_gradients) if values else checked, *args, **kwargs)
        for parameter, value in values:
            parameter.assign(value)
        return result

    def _refuse_changed_next_values(self, gradients: Sequence[Any]) -> None:
        """Refuse a Tensor that code of the user computed from a next value, as by dividing all gradients."""
        for name, parameter, gradient in zip(self.parameters.names, self.parameters, gradients, strict=True):
            if backend.takes_next_value(parameter) and isinstance(gradient, Tensor):
                if not backend.is_next_value(gradient):
                    raise checks.fail_value(
                        type(self).__name__,
                        f"the gradient of {name}, a scale of a float8 layer, is its next value, which must stay as "
                        "value_and_grad returns it", "a Tensor computed from it",
                        "scaler.unscale(grads) of amp.DynamicLossScaler or amp.StaticLossScaler, and "
                        "ops.clip_by_global_norm(grads), which leave it as it is",
                    )

    def construct(self, gradients: Sequence[Tensor]) -> Any:
        """Add weight decay, undo the loss scale, and apply the rule to each parameter."""
        # decay_weight adds weight_decay * loss_scale * weight, so it must run before scale_grad divides.
        return self.apply_updates(self.scale_grad(self.gradients_centralization(self.decay_weight(gradients))))

    def apply_updates(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        """Assign the result of `update` to every trainable parameter, and increment the step count."""
        rates = self.step_sizes()
        for index, parameter in enumerate(self.parameters):
            if parameter.trainable:
                parameter.assign(self.update(index, _working_value(parameter), gradients[index], rates[index]))
        self.global_step.assign_add([1])
        return (True,) * len(self.parameters)

    def update(self, index: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """Compute the new value of one weight and update its slots; a subclass defines it.

        Args:
            index: Index of the parameter in `parameters`.
            weight: Value of the parameter, at least float32.
            gradient: Gradient with weight decay added and the loss scale undone, same shape and dtype as `weight`.
            rate: Learning rate of the parameter, a scalar tensor.
        """
        raise NotImplementedError(
            f"{type(self).__name__}: an Optimizer must define its rule. "
            "Write def update(self, index, weight, gradient, rate): return weight - rate * gradient"
        )

    # ---- helpers for custom rules -----------------------------------------------------------------------------
    @library
    def decay_weight(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the gradients plus ``weight_decay * loss_scale * weight`` for parameters with weight decay."""
        if not self.exec_weight_decay:
            return tuple(gradients)
        decay = self.get_weight_decay()
        decays = decay if self.is_group else (decay,) * len(self.parameters)
        rows = zip(self.parameters, self.decay_flags, decays, gradients, strict=True)
        return tuple(
            gradient + keras.ops.cast(decay, gradient.dtype) * _working_value(parameter)
            if flag and parameter.trainable else gradient
            for parameter, flag, decay, gradient in rows
        )

    @library
    def gradients_centralization(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Subtract from the gradients of groups with ``"grad_centralization": True`` their mean over each output.

        As in MindSpore, only gradients whose second axis is a multiple of 16 are centralized.
        """
        rows = zip(self.grad_centralization_flags, gradients, strict=True)
        return tuple(_centralize(gradient) if flag else gradient for flag, gradient in rows)

    @library
    def flatten_gradients(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the gradients unchanged: parameters are never fused into one flat tensor, as MindSpore can do."""
        return tuple(gradients)

    @library
    def scale_grad(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the gradients divided by `loss_scale`."""
        if not self.need_scale:
            return tuple(gradients)
        return tuple(gradient * self.reciprocal_scale for gradient in gradients)

    @property
    def target(self) -> str:
        """The device that updates the parameters: the one that computes, whatever is assigned here."""
        return context.get_context("device_target")

    @target.setter
    def target(self, value: str) -> None:
        self._set_base_target(value)

    # Private methods of MindSpore's Optimizer that custom optimizers written for it call.
    def _set_base_target(self, value: str) -> None:
        checks.one_of(type(self).__name__, "target", value, ("CPU", "Ascend", "GPU"))

    def _grad_sparse_indices_deduplicate(self, gradients: Sequence[Tensor]) -> Sequence[Tensor]:
        return gradients

    def _is_dynamic_lr_or_weight_decay(self) -> bool:
        return self.dynamic_lr or self.dynamic_weight_decay

    def assignadd(self, variable: Variable, value: TensorLike) -> Variable:
        """Add `value` to a Parameter `variable` in place and return it, as ``self.assignadd(self.global_step, 1)``.

        Returns: The variable.
        """
        variable.assign_add(keras.ops.broadcast_to(keras.ops.cast(value, variable.dtype), variable.shape))
        return variable

    def broadcast_params(self, optim_result: Any) -> Any:
        """Return `optim_result`: on one device there is nothing to broadcast. `optim_result`: result of the updates."""
        return optim_result

    def _checked_gradients(self, gradients: Any) -> tuple[Tensor, ...]:
        where = type(self).__name__
        if not isinstance(gradients, (tuple, list)):
            raise checks.fail_type(where, "gradients must be a tuple or list", gradients, "optimizer((gradient,))")
        if len(gradients) != len(self.parameters):
            raise checks.fail_value(
                where, f"there must be one gradient for each of the {len(self.parameters)} parameters",
                f"{len(gradients)} gradients", "the gradients of optimizer.parameters, in that order",
            )
        rows = zip(self.parameters, self.parameters.names, gradients, strict=True)
        return tuple(_dense_gradient(where, name, parameter, gradient) for parameter, name, gradient in rows)


def _centralize(gradient: Tensor) -> Tensor:
    if len(gradient.shape) < 2 or gradient.shape[1] % 16:
        return gradient
    return gradient - keras.ops.mean(gradient, axis=tuple(range(1, len(gradient.shape))), keepdims=True)


def _working_value(parameter: Variable) -> Tensor:
    return keras.ops.cast(parameter.value, working_dtype(parameter))


def _dense_gradient(where: str, name: str, parameter: Variable, gradient: Tensor | None) -> Tensor:
    """Return a gradient as a dense tensor in the dtype of the update."""
    dtype = working_dtype(parameter)
    if gradient is None:
        return keras.ops.zeros(tuple(parameter.shape), dtype)
    gradient = keras.ops.cast(backend.to_tensor(backend.densified(gradient)), dtype)
    sizes = zip(gradient.shape, parameter.shape, strict=False)
    if len(gradient.shape) != len(parameter.shape) or any(size not in (None, expected) for size, expected in sizes):
        raise checks.fail_value(
            where, f"the gradient of {name} must have shape {tuple(parameter.shape)}", tuple(gradient.shape),
            "the gradients in the order of optimizer.parameters",
        )
    return gradient
