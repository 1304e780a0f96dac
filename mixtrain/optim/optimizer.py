"""`Optimizer`: the step that every update rule shares, and the tools that users write their own with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from mixtrain import backend, checks, context
from mixtrain.boundary import library
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import int32
from mixtrain.ops.hyper_map import HyperMap, Map
from mixtrain.optim.init_args import opt_init_args_register
from mixtrain.optim.optimizer_cell import OptimizerCell
from mixtrain.optim.trained import working_dtype

__all__ = ["Optimizer", "opt_init_args_register"]


class Optimizer(OptimizerCell):
    """The base of optimizers: ``optimizer(gradients)`` changes its parameters in place, eagerly or compiled.

    A subclass defines `update`, the new value of one weight; or `construct`, the whole step, with the help of
    `get_lr`, `get_weight_decay`, `decay_weight`, `scale_grad`, `hyper_map` and `assignadd`. Parameters that do not
    require a gradient are left as they are.

    Args:
        learning_rate: A number; a list, 1-D array or tensor with one value a step, whose last value holds from then
            on (MindSpore stops with an error there); a `LearningRateSchedule`; or a
            `keras.optimizers.schedules.LearningRateSchedule`. The first step takes the first value.
        parameters: An iterable of Parameters and `keras.Variable` objects, or of groups: dicts with "params" and, where
            they differ, "lr", "weight_decay" and "grad_centralization"; ``{"order_params": [...]}`` gives the order of
            the gradients.
        weight_decay: L2 penalty, a number or a Cell of the step. Outside groups it spares parameters whose name holds
            "beta" or "gamma"; in groups it spares none.
        loss_scale: What the gradients are divided by; the scale of a `FixedLossScaleManager` that does not drop.

    Attributes:
        map_: `mixtrain.ops.Map`, with a function as its first argument; so are `map_reverse`, and `hyper_map` and
            `hyper_map_reverse` for `mixtrain.ops.HyperMap`.
        global_step_increase_tensor: What `global_step` is increased by: 1, int32 (1,).
        use_parallel: False: one device keeps the state of every parameter.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: `parameters` is empty, lists one twice or under the same name, or an argument is out of range.

    Example:
        >>> import mixtrain, numpy as np
        >>> class Descent(Optimizer):
        ...     def update(self, index, weight, gradient, rate):
        ...         return weight - rate * gradient
        >>> w = mixtrain.Parameter(np.ones(2, np.float32), name="w")
        >>> done = Descent(0.5, [w])((mixtrain.Tensor([1.0, 0.0]),))
        >>> w.asnumpy().tolist()
        [0.5, 1.0]

    Source: MindSpore, `mindspore.nn.Optimizer`.
    """

    use_parallel = False

    def __init__(self, learning_rate: Any, parameters: Any, weight_decay: Any = 0.0, loss_scale: float = 1.0) -> None:
        super().__init__(learning_rate, parameters, weight_decay, loss_scale)
        self.map_, self.hyper_map = Map(), HyperMap()
        self.map_reverse, self.hyper_map_reverse = Map(None, True), HyperMap(None, True)
        self.global_step_increase_tensor = Tensor([1], int32)

    # ---- the step ---------------------------------------------------------------------------------------------
    def __call__(self, gradients: Any, *args: Any, **kwargs: Any) -> Any:
        """Run one step.

        Args:
            gradients: One per parameter, in the order of `parameters`: tensors, dense or sparse, of their shapes, or
                None for a gradient of zero (weight decay and momentum still act).

        Returns:
            A tuple of True, one per parameter.

        Raises:
            TypeError: `gradients` is no tuple or list.
            ValueError: Their number, or the shape of one, is not that of the parameters.
        """
        return super().__call__(self._dense(gradients), *args, **kwargs)

    def construct(self, gradients: Any) -> Any:
        """Decay the weights, undo the loss scale, and apply the rule to each parameter."""
        return self.apply_updates(self.scale_grad(self.gradients_centralization(self.decay_weight(gradients))))

    def apply_updates(self, gradients: Sequence[Any]) -> tuple[bool, ...]:
        """Give every trained parameter the value that `update` returns, and count the step."""
        rates = self.step_sizes()
        for index, parameter in enumerate(self.parameters):
            if parameter.trainable:
                parameter.assign(self.update(index, _read(parameter), gradients[index], rates[index]))
        self.global_step.assign_add([1])
        return (True,) * len(self.parameters)

    def update(self, index: int, weight: Any, gradient: Any, rate: Any) -> Any:
        """Return one weight's new value, and write its slots; a subclass defines it.

        Args:
            index: Place of the parameter in `parameters`.
            weight: Its value, float32.
            gradient: Its gradient, decayed and unscaled, of the same shape and dtype.
            rate: Its learning rate, a scalar tensor.

        Raises:
            NotImplementedError: The subclass defines neither this nor `construct`.
        """
        raise NotImplementedError(
            f"{type(self).__name__}: an Optimizer must define its rule. "
            "Write def update(self, index, weight, gradient, rate): return weight - rate * gradient"
        )

    # ---- what custom rules call -------------------------------------------------------------------------------
    @library
    def decay_weight(self, gradients: Sequence[Any]) -> tuple[Any, ...]:
        """Return the gradients plus ``weight_decay * loss_scale * weight``, where there is decay."""
        if not self.exec_weight_decay:
            return tuple(gradients)
        decay = self.get_weight_decay()
        decays = decay if self.is_group else (decay,) * len(self.parameters)
        rows = zip(self.parameters, self.decay_flags, decays, gradients, strict=True)
        return tuple(
            gradient + keras.ops.cast(decay, gradient.dtype) * _read(parameter)
            if flag and parameter.trainable else gradient
            for parameter, flag, decay, gradient in rows
        )

    @library
    def gradients_centralization(self, gradients: Sequence[Any]) -> tuple[Any, ...]:
        """Return the gradients, those of groups with ``"grad_centralization": True`` less their mean over each output.

        As in MindSpore, only gradients whose second axis is a multiple of 16 are centralized.
        """
        rows = zip(self.grad_centralization_flags, gradients, strict=True)
        return tuple(_centralized(gradient) if flag else gradient for flag, gradient in rows)

    @library
    def flatten_gradients(self, gradients: Sequence[Any]) -> tuple[Any, ...]:
        """Return the gradients: parameters are never laid out in one block, as MindSpore can."""
        return tuple(gradients)

    @library
    def scale_grad(self, gradients: Sequence[Any]) -> tuple[Any, ...]:
        """Return the gradients divided by `loss_scale`."""
        if not self.need_scale:
            return tuple(gradients)
        return tuple(gradient * self.reciprocal_scale for gradient in gradients)

    @property
    def target(self) -> str:
        """Where the parameters are updated: on the device that computes, whatever is assigned here."""
        return context.get_context("device_target")

    @target.setter
    def target(self, value: str) -> None:
        self._set_base_target(value)

    # What optimizers that were written after MindSpore's own call too.
    def _set_base_target(self, value: str) -> None:
        checks.one_of(type(self).__name__, "target", value, ("CPU", "Ascend", "GPU"))

    def _grad_sparse_indices_deduplicate(self, gradients: Sequence[Any]) -> Sequence[Any]:
        return gradients

    def _is_dynamic_lr_or_weight_decay(self) -> bool:
        return self.dynamic_lr or self.dynamic_weight_decay

    def assignadd(self, variable: Any, value: Any) -> Any:
        """Add to a variable in place, as ``self.assignadd(self.global_step, self.global_step_increase_tensor)``.

        Args:
            variable: A Parameter.
            value: A number or tensor.

        Returns:
            The variable.
        """
        variable.assign_add(keras.ops.broadcast_to(keras.ops.cast(value, variable.dtype), variable.shape))
        return variable

    def broadcast_params(self, optim_result: Any) -> Any:
        """Return `optim_result`: one device has no others to send its parameters to.

        Args:
            optim_result: What the updates returned.
        """
        return optim_result

    def _dense(self, gradients: Any) -> tuple[Any, ...]:
        where = type(self).__name__
        if not isinstance(gradients, (tuple, list)):
            raise checks.fail_type(where, "gradients must be a tuple or list", gradients, "optimizer((gradient,))")
        if len(gradients) != len(self.parameters):
            raise checks.fail_value(
                where, f"there must be one gradient for each of the {len(self.parameters)} parameters",
                f"{len(gradients)} gradients", "gradients taken of optimizer.parameters, in that order",
            )
        rows = zip(self.parameters, self.parameters.names, gradients, strict=True)
        return tuple(_dense_gradient(where, name, parameter, gradient) for parameter, name, gradient in rows)


def _centralized(gradient: Any) -> Any:
    if len(gradient.shape) < 2 or gradient.shape[1] % 16:
        return gradient
    return gradient - keras.ops.mean(gradient, axis=tuple(range(1, len(gradient.shape))), keepdims=True)


def _read(parameter: Any) -> Any:
    return keras.ops.cast(parameter.value, working_dtype(parameter))


def _dense_gradient(where: str, name: str, parameter: Any, gradient: Any) -> Any:
    """Return a gradient as a dense tensor in the dtype that the update is computed in."""
    dtype = working_dtype(parameter)
    if gradient is None:
        return keras.ops.zeros(tuple(parameter.shape), dtype)
    gradient = keras.ops.cast(backend.to_tensor(backend.densified(gradient)), dtype)
    sizes = zip(gradient.shape, parameter.shape, strict=False)
    if len(gradient.shape) != len(parameter.shape) or any(size not in (None, known) for size, known in sizes):
        raise checks.fail_value(
            where, f"the gradient of {name} must have shape {tuple(parameter.shape)}", tuple(gradient.shape),
            "the gradients in the order of optimizer.parameters",
        )
    return gradient
