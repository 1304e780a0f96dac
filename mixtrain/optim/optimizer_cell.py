"""What an optimizer holds: its parameters, the step count, and the learning rate and weight decay of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.cell.cell import Cell
from mixtrain.common.parameter import Parameter
from mixtrain.context import get_context
from mixtrain.optim.groups import Treatment, read_parameters
from mixtrain.optim.schedule import as_learning_rate
from mixtrain.optim.trained import TrainedParameters
from mixtrain.precision.cast import CastRule


class OptimizerCell(Cell):
    """What an optimizer holds, and how it reads its rates and decays; see `Optimizer` for the arguments.

    Attributes:
        parameters: The parameters, in the order of the gradients.
        learning_rate: A scalar Parameter or a schedule; where groups have rates, a tuple with one per parameter.
        weight_decay: A scalar tensor, already times `loss_scale`, or a Cell; where there are groups, a tuple with one
            per parameter.
        decay_flags: Whether each parameter may be decayed.
        exec_weight_decay: Whether `Optimizer.decay_weight` does anything.
        loss_scale: What the gradients are divided by.
        need_scale: Whether `Optimizer.scale_grad` does anything.
        reciprocal_scale: What `Optimizer.scale_grad` multiplies by.
        param_length: How many parameters there are.
        optim_filter: Whether this device updates each parameter: one device updates all.
        global_step: Steps so far, an int32 Parameter of shape (1,).
        is_group: Whether there are groups.
        is_group_lr: Whether groups have learning rates.
        dynamic_lr: Whether a learning rate changes with the step.
        grad_centralization_flags: Whether the mean is taken off the gradients of each parameter.
        dynamic_weight_decay: Whether a weight decay changes with the step.
    """

    # Whether a sparse gradient counts each row once; gradients are dense here.
    unique = True

    learning_rate: Any
    weight_decay: Any

    def __init__(self, learning_rate: Any, parameters: Any, weight_decay: Any = 0.0, loss_scale: float = 1.0) -> None:
        super().__init__(auto_prefix=False)
        where = type(self).__name__
        own = as_learning_rate(where, learning_rate, "learning_rate")
        treatments, self.is_group = read_parameters(where, parameters, weight_decay, own)
        trained = TrainedParameters.checked(where, [treatment.parameter for treatment in treatments])
        # Past Cell's registration: they are the network's own, and keep the names it gave them.
        object.__setattr__(self, "parameters", trained)
        object.__setattr__(self, "_parameters", trained)
        self.loss_scale = checks.number(where, "loss_scale", loss_scale, above=0.0, example=1.0)
        self.need_scale = self.loss_scale != 1.0
        self.reciprocal_scale = 1.0 / self.loss_scale
        self.param_length = len(trained)
        self.optim_filter = (True,) * len(trained)
        self.global_step = Parameter(np.zeros(1, np.int32), "global_step", requires_grad=False)
        self._set_weight_decay(treatments, weight_decay)
        self._set_learning_rate(own, treatments)
        self.grad_centralization_flags = tuple(treatment.centralized for treatment in treatments)

    def _set_weight_decay(self, treatments: Sequence[Treatment], weight_decay: Any) -> None:
        decays = tuple(treatment.weight_decay for treatment in treatments)
        self._decays = decays
        self.weight_decay = tuple(each_once(self._held, decays)) if self.is_group else self._held(weight_decay)
        self.dynamic_weight_decay = any(isinstance(decay, Cell) for decay in decays)
        self.exec_weight_decay = any(isinstance(decay, Cell) or decay > 0.0 for decay in decays)
        self.decay_flags = tuple(treatment.decayed for treatment in treatments)

    def _set_learning_rate(self, own: Parameter | Cell, treatments: Sequence[Treatment]) -> None:
        rates = tuple(own if item.learning_rate is None else item.learning_rate for item in treatments)
        # Past Cell's registration: where every group has a rate of its own, this one is not a part of the optimizer.
        object.__setattr__(self, "_own_rate", own)
        self.is_group_lr = any(treatment.learning_rate is not None for treatment in treatments)
        self.dynamic_lr = any(isinstance(rate, Cell) for rate in rates)
        if not self.is_group_lr:
            self.learning_rate = own
            return
        self.learning_rate = rates
        for index, rate in enumerate({id(rate): rate for rate in rates}.values()):
            name = rate.name if isinstance(rate, Parameter) else f"learning_rate_{index}"
            (self._params if isinstance(rate, Parameter) else self._cells)[name] = rate

    def _held(self, decay: Any) -> Any:
        return decay if isinstance(decay, Cell) else backend.to_tensor(np.float32(decay * self.loss_scale))

    # ---- rates and decays -------------------------------------------------------------------------------------
    def get_lr(self) -> Any:
        """Return the learning rate of the coming step: a scalar, or where groups have rates a tuple of them."""
        if self.is_group_lr:
            return tuple(each_once(self._rate, self.learning_rate))
        return self._rate(self.learning_rate)

    def _own_lr(self) -> Any:
        """Return the learning rate of the coming step of parameters whose group has none of its own: a scalar."""
        return self._rate(self._own_rate) if self.is_group_lr else self.get_lr()

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

    @property
    def target(self) -> str:
        """The device that the step is computed on."""
        return str(get_context("device_target"))

    @target.setter
    def target(self, value: str) -> None:
        # In MindSpore, whether a host computes it.
        checks.one_of(f"{type(self).__name__}.target", "target", value, ("CPU", "GPU", "Ascend"))

    def get_weight_decay(self) -> Any:
        """Return the weight decay of the coming step times `loss_scale`: a scalar, or for groups a tuple of them."""
        if self.is_group:
            return tuple(each_once(self._scaled_decay, self.weight_decay))
        return self._scaled_decay(self.weight_decay)

    def step_sizes(self) -> list[Any]:
        """Return the learning rate of each parameter in this step, as tensors; read once per distinct rate."""
        if self.is_group_lr:
            return each_once(lambda rate: keras.ops.convert_to_tensor(self._rate(rate)), self.learning_rate)
        return [keras.ops.convert_to_tensor(self.get_lr())] * len(self.parameters)

    def _rate(self, rate: Any) -> Any:
        return rate if isinstance(rate, Parameter) else keras.ops.reshape(rate(self.global_step), ())

    def _decay(self, decay: Any) -> Any:
        """Return a weight decay as it was given, asked with the step where it is a Cell."""
        return keras.ops.reshape(decay(self.global_step), ()) if isinstance(decay, Cell) else decay

    def _scaled_decay(self, decay: Any) -> Any:
        return self._decay(decay) * self.loss_scale if isinstance(decay, Cell) else decay

    # ---- what it holds ----------------------------------------------------------------------------------------
    @property
    def _counter(self) -> keras.Variable:
        """The variable that counts the steps."""
        return self.global_step

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


def each_once(function: Callable[[Any], Any], values: Sequence[Any]) -> list[Any]:
    """Return `function` of each value, called once per distinct object."""
    results: dict[int, Any] = {}
    for value in values:
        if id(value) not in results:
            results[id(value)] = function(value)
    return [results[id(value)] for value in values]
