"""`Optimizer`: what every update rule shares: the step count, the learning rate, weight decay and the loss scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import checks, engine
from mixtrain.common.parameter import Parameter
from mixtrain.nn.cell import Cell
from mixtrain.nn.optim.groups import Treatment, read_parameters
from mixtrain.nn.optim.schedule import as_learning_rate
from mixtrain.nn.optim.trained import TrainedParameters, working_dtype
from mixtrain.precision.cast import CastRule


class Optimizer(Cell):
    """The base of optimizers: ``optimizer(gradients)`` changes its parameters in place, eagerly or compiled.

    A subclass defines `update`, the new value of one weight; or `construct`, the whole step, with the help of
    `get_lr`, `decay_weight` and `scale_grad`. Parameters that do not require a gradient are left as they are.

    Args:
        learning_rate: A number; a list, 1-D array or tensor with one value a step, whose last value holds from then
            on (MindSpore stops with an error there); a `LearningRateSchedule`; or a
            `keras.optimizers.schedules.LearningRateSchedule`. The first step takes the first value.
        parameters: An iterable of Parameters and `keras.Variable` objects, or of groups: dicts with "params" and, where
            they differ, "lr" and "weight_decay"; ``{"order_params": [...]}`` gives the order of the gradients.
        weight_decay: L2 penalty, a number or a Cell of the step. Outside groups it spares parameters whose name holds
            "beta" or "gamma"; in groups it spares none.
        loss_scale: What the gradients are divided by; the scale of a `FixedLossScaleManager` that does not drop.

    Attributes:
        parameters: The parameters, in the order of the gradients.
        learning_rate: A scalar Parameter or a schedule; where groups have rates, a tuple with one per parameter.
        weight_decay: As given; where there are groups, a tuple with one per parameter.
        global_step: Steps so far, an int32 Parameter of shape (1,).

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

    learning_rate: Any
    weight_decay: Any

    def __init__(self, learning_rate: Any, parameters: Any, weight_decay: Any = 0.0, loss_scale: float = 1.0) -> None:
        super().__init__(auto_prefix=False)
        where = type(self).__name__
        treatments, self.is_group = read_parameters(where, parameters, weight_decay)
        trained = TrainedParameters.checked(where, [treatment.parameter for treatment in treatments])
        # Past Cell's registration: they are the network's own, and keep the names it gave them.
        object.__setattr__(self, "parameters", trained)
        self.loss_scale = checks.number(where, "loss_scale", loss_scale, above=0.0, example=1.0)
        self.global_step = Parameter(np.zeros(1, np.int32), "global_step", requires_grad=False)
        self._set_weight_decay(treatments, weight_decay)
        self._set_learning_rate(where, learning_rate, treatments)

    def _set_weight_decay(self, treatments: Sequence[Treatment], weight_decay: Any) -> None:
        decays = tuple(treatment.weight_decay for treatment in treatments)
        self._decays = decays
        self.weight_decay = decays if self.is_group else weight_decay
        self.decay_flags = tuple(isinstance(decay, Cell) or decay > 0.0 for decay in decays)

    def _set_learning_rate(self, where: str, learning_rate: Any, treatments: Sequence[Treatment]) -> None:
        own = as_learning_rate(where, learning_rate, "learning_rate")
        rates = tuple(own if item.learning_rate is None else item.learning_rate for item in treatments)
        self.is_group_lr = any(treatment.learning_rate is not None for treatment in treatments)
        self.dynamic_lr = any(isinstance(rate, Cell) for rate in rates)
        if not self.is_group_lr:
            self.learning_rate = own
            return
        self.learning_rate = rates
        for index, rate in enumerate({id(rate): rate for rate in rates}.values()):
            name = rate.name if isinstance(rate, Parameter) else f"learning_rate_{index}"
            (self._params if isinstance(rate, Parameter) else self._cells)[name] = rate

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
        return self.apply_updates(self.scale_grad(self.decay_weight(gradients)))

    def apply_updates(self, gradients: Sequence[Any]) -> tuple[bool, ...]:
        """Give every trained parameter the value that `update` returns, and count the step."""
        rates = self.step_sizes()
        for index, parameter in enumerate(self.parameters):
            if parameter.trainable:
                parameter.assign(self.update(index, _read(parameter), gradients[index], rates[index]))
        self.global_step.assign_add(1)
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

    def step_sizes(self) -> list[Any]:
        """Return the learning rate of each parameter in this step, as tensors; read once per distinct rate."""
        if self.is_group_lr:
            return each_once(lambda rate: keras.ops.convert_to_tensor(self._rate(rate)), self.learning_rate)
        return [keras.ops.convert_to_tensor(self.get_lr())] * len(self.parameters)

    # ---- what custom rules call -------------------------------------------------------------------------------
    def get_lr(self) -> Any:
        """Return the learning rate of the coming step: a scalar, or where groups have rates a tuple of them."""
        if self.is_group_lr:
            return tuple(each_once(self._rate, self.learning_rate))
        return self._rate(self.learning_rate)

    def get_lr_parameter(self, param: Any) -> Any:
        """Return what holds the learning rate of a parameter, or a list of them for a list.

        Raises:
            ValueError: The optimizer does not train it.
        """
        if isinstance(param, list):
            return [self.get_lr_parameter(item) for item in param]
        for index, own in enumerate(self.parameters):
            if own is param:
                rate = self.learning_rate[index] if self.is_group_lr else self.learning_rate
                return getattr(rate, "learning_rate", rate)
        raise checks.fail_value(
            f"{type(self).__name__}.get_lr_parameter", "param must be one that it trains", param,
            "one of optimizer.parameters",
        )

    def get_weight_decay(self) -> Any:
        """Return the weight decay of the coming step: a number or scalar, or for groups a tuple of them."""
        if self.is_group:
            return tuple(each_once(self._decay, self.weight_decay))
        return self._decay(self.weight_decay)

    def decay_weight(self, gradients: Sequence[Any]) -> tuple[Any, ...]:
        """Return the gradients plus ``weight_decay * loss_scale * weight``, where there is decay."""
        if not any(self.decay_flags):
            return tuple(gradients)
        decays = each_once(lambda decay: self._decay(decay) * self.loss_scale, self._decays)
        rows = zip(self.parameters, self.decay_flags, decays, gradients, strict=True)
        return tuple(
            gradient + decay * _read(parameter) if flag and parameter.trainable else gradient
            for parameter, flag, decay, gradient in rows
        )

    def gradients_centralization(self, gradients: Sequence[Any]) -> tuple[Any, ...]:
        """Return the gradients: centralization is not offered, and a group that asks for it is refused."""
        return tuple(gradients)

    def flatten_gradients(self, gradients: Sequence[Any]) -> tuple[Any, ...]:
        """Return the gradients: parameters are never laid out in one block, as MindSpore can."""
        return tuple(gradients)

    def scale_grad(self, gradients: Sequence[Any]) -> tuple[Any, ...]:
        """Return the gradients divided by `loss_scale`."""
        if self.loss_scale == 1.0:
            return tuple(gradients)
        return tuple(gradient * (1.0 / self.loss_scale) for gradient in gradients)

    # ---- what it holds ----------------------------------------------------------------------------------------
    def state_variables(self) -> list[Any]:
        """Return every variable of the optimizer's own: the step count, the slots, and the learning rate."""
        trained = {id(parameter) for parameter in self.parameters}
        return [parameter for parameter in self.get_parameters() if id(parameter) not in trained]

    def own_parameters(self) -> dict[str, Any]:
        """Return the optimizer's own parameters and those that it trains, by name."""
        own = super().own_parameters()
        for name, parameter in zip(self.parameters.names, self.parameters, strict=True):
            taken = name in own and own[name] is not parameter
            own[f"parameters.{name}" if taken else name] = parameter
        return own

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        """Put `prefix` before the names of the optimizer's own parameters; the network's keep theirs."""
        kept = [(parameter, parameter.name) for parameter in self.parameters if isinstance(parameter, Parameter)]
        super().update_parameters_name(prefix, recurse)
        for parameter, name in kept:
            parameter.name = name

    @property
    def cast_rule(self) -> CastRule:
        """Nothing is cast: updates are computed in float32 whatever the cells around compute in."""
        return CastRule()

    def _rate(self, rate: Any) -> Any:
        return rate if isinstance(rate, Parameter) else keras.ops.reshape(rate(self.global_step), ())

    def _decay(self, decay: Any) -> Any:
        return keras.ops.reshape(decay(self.global_step), ()) if isinstance(decay, Cell) else decay

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


def each_once(function: Callable[[Any], Any], values: Sequence[Any]) -> list[Any]:
    """Return `function` of each value, called once per distinct object."""
    results: dict[int, Any] = {}
    for value in values:
        if id(value) not in results:
            results[id(value)] = function(value)
    return [results[id(value)] for value in values]


def _read(parameter: Any) -> Any:
    return keras.ops.cast(parameter.value, working_dtype(parameter))


def _dense_gradient(where: str, name: str, parameter: Any, gradient: Any) -> Any:
    """Return a gradient as a dense tensor in the dtype that the update is computed in."""
    dtype = working_dtype(parameter)
    if gradient is None:
        return keras.ops.zeros(tuple(parameter.shape), dtype)
    gradient = keras.ops.cast(engine.to_tensor(gradient), dtype)
    if tuple(gradient.shape) != tuple(parameter.shape):
        raise checks.fail_value(
            where, f"the gradient of {name} must have shape {tuple(parameter.shape)}", tuple(gradient.shape),
            "the gradients in the order of optimizer.parameters",
        )
    return gradient
