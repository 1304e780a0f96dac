"""State of an optimizer: its parameters, the step count, and learning rates and weight decays per parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.boundary import library, to_backend_tensors, to_tensors
from mixtrain.cell.cell import Cell
from mixtrain.common.parameter import Parameter
from mixtrain.optim.groups import ParameterOptions, ParamsLike, WeightDecayLike, parse_parameters
from mixtrain.optim.schedule import LearningRateLike, as_learning_rate
from mixtrain.optim.trained import TrainedParameters
from mixtrain.precision.cast import CastRule
from mixtrain.typing import Tensor, Variable


class OptimizerCell(Cell):
    """State of an optimizer, its learning rates and its weight decays; see `Optimizer` for the arguments.

    Attributes:
        parameters: The parameters, in the order of the gradients.
        learning_rate: A scalar Parameter or a schedule; if groups have their own rates, a tuple with one per parameter.
        weight_decay: A scalar tensor, already multiplied by `loss_scale`, or a Cell; with groups, a tuple with one per
            parameter.
        decay_flags: Per parameter, whether weight decay applies.
        exec_weight_decay: Whether `Optimizer.decay_weight` has any effect.
        loss_scale: Divisor of the gradients.
        need_scale: Whether `Optimizer.scale_grad` has any effect.
        reciprocal_scale: Factor that `Optimizer.scale_grad` multiplies by.
        param_length: Number of parameters.
        optim_filter: Per parameter, whether this device updates it; always True on one device.
        global_step: Steps so far, an int32 Parameter of shape (1,).
        is_group: Whether there are parameter groups; `is_group_params_ordered`: in an order of their own.
        is_group_lr: Whether any group has its own learning rate.
        dynamic_lr: Whether any learning rate changes with the step.
        grad_centralization_flags: Per parameter, whether its gradient is centralized.
        dynamic_weight_decay: Whether any weight decay changes with the step.
    """

    # MindSpore: whether the indices of sparse gradients are unique. Gradients are dense here.
    unique = True

    learning_rate: Any
    weight_decay: Any

    def __init__(
        self, learning_rate: LearningRateLike, parameters: ParamsLike, weight_decay: WeightDecayLike = 0.0,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(auto_prefix=False)
        where = type(self).__name__
        default_lr = as_learning_rate(where, learning_rate, "learning_rate")
        options, self.is_group, self.is_group_params_ordered = parse_parameters(
            where, parameters, weight_decay, default_lr
        )
        trained = TrainedParameters.checked(where, [option.parameter for option in options])
        # Bypass Cell's registration: they belong to the network and keep the names it gave them.
        object.__setattr__(self, "parameters", trained)
        object.__setattr__(self, "_parameters", trained)
        self.loss_scale = checks.number(where, "loss_scale", loss_scale, above=0.0, example=1.0)
        self.need_scale = self.loss_scale != 1.0
        self.reciprocal_scale = 1.0 / self.loss_scale
        self.param_length = len(trained)
        self.optim_filter = (True,) * len(trained)
        self.global_step = Parameter(np.zeros(1, np.int32), "global_step", requires_grad=False)
        self._set_weight_decay(options, weight_decay)
        self._set_learning_rate(options, default_lr)
        self.grad_centralization_flags = tuple(option.centralized for option in options)

    def _set_weight_decay(self, options: Sequence[ParameterOptions], weight_decay: WeightDecayLike) -> None:
        decays = tuple(option.weight_decay for option in options)
        self._decays = decays
        values = tuple(map_unique(self._prescale, decays))
        self.weight_decay = values if self.is_group else self._prescale(weight_decay)
        self.dynamic_weight_decay = any(isinstance(decay, Cell) for decay in decays)
        self.exec_weight_decay = any(isinstance(decay, Cell) or decay > 0.0 for decay in decays)
        self.decay_flags = tuple(option.decayed for option in options)

    def _set_learning_rate(self, options: Sequence[ParameterOptions], default_lr: Parameter | Cell) -> None:
        rates = tuple(default_lr if option.learning_rate is None else option.learning_rate for option in options)
        # Bypass Cell's registration: if every group has its own rate, the default is not part of the optimizer's state.
        object.__setattr__(self, "_default_lr", default_lr)
        self.is_group_lr = any(option.learning_rate is not None for option in options)
        self.dynamic_lr = any(isinstance(rate, Cell) for rate in rates)
        if not self.is_group_lr:
            self.learning_rate = default_lr
            return
        self.learning_rate = rates
        for index, rate in enumerate({id(rate): rate for rate in rates}.values()):
            name = rate.name if isinstance(rate, Parameter) else f"learning_rate_{index}"
            (self._params if isinstance(rate, Parameter) else self._cells)[name] = rate

    def _prescale(self, decay: float | Cell) -> Any:
        """Return a constant weight decay times `loss_scale` as a Tensor, and a Cell as it is."""
        return decay if isinstance(decay, Cell) else to_tensors(backend.to_tensor(np.float32(decay * self.loss_scale)))

    # ---- learning rates and weight decays ---------------------------------------------------------------------
    @library
    def get_lr(self) -> Tensor | tuple[Tensor, ...]:
        """Return the learning rate of the next step: a scalar, or one per parameter if groups have their own."""
        if self.is_group_lr:
            return tuple(map_unique(self._rate, self.learning_rate))
        return self._rate(self.learning_rate)

    def _own_lr(self) -> Any:
        """Return the default learning rate of the next step, which groups without their own use: a scalar."""
        return self._rate(self._default_lr) if self.is_group_lr else self._next_lr()

    def _next_lr(self) -> Any:
        """Return what `get_lr` does, for those who only look: what a subclass writes there, as a count, is not kept."""
        if type(self).get_lr is OptimizerCell.get_lr:
            return self.get_lr()
        state = [(variable, backend.snapshot(variable)) for variable in self.state_variables()]
        with keras.StatelessScope(state):
            return self.get_lr()

    def get_lr_parameter(self, param: Any) -> Any:
        """Return the Parameter or schedule of a parameter's learning rate, or a list of them for a list.

        Raises: TypeError if `param` is no Parameter. ValueError if the optimizer does not train it.
        """
        if isinstance(param, list):
            return [self.get_lr_parameter(item) for item in param]
        checks.instance("get_lr_parameter", "param", param, keras.Variable, "one of optimizer.parameters")
        for index, parameter in enumerate(self.parameters):
            if parameter is param:
                rate = self.learning_rate[index] if self.is_group_lr else self.learning_rate
                return getattr(rate, "learning_rate", rate)
        raise checks.fail_value(
            f"{type(self).__name__}.get_lr_parameter", "param must be one that it trains", param,
            "one of optimizer.parameters",
        )

    @library
    def get_weight_decay(self) -> Any:
        """Return the weight decay of the next step times `loss_scale`: a scalar, or a tuple for groups."""
        if self.is_group:
            return tuple(map_unique(self._scaled_decay, self.weight_decay))
        return self._scaled_decay(self.weight_decay)

    def step_sizes(self) -> list[Tensor]:
        """Return the learning rate of each parameter in this step as tensors; each distinct rate is read once."""
        if self.is_group_lr:
            return map_unique(lambda rate: keras.ops.convert_to_tensor(self._rate(rate)), self.learning_rate)
        return [keras.ops.convert_to_tensor(self.get_lr())] * len(self.parameters)

    def _at_step(self, schedule: Cell) -> Tensor:
        """Evaluate a schedule at the current step, as a scalar."""
        return keras.ops.reshape(schedule(self.global_step), ())

    def _rate(self, rate: Parameter | Cell) -> Tensor:
        return rate if isinstance(rate, Parameter) else self._at_step(rate)

    def _scaled_decay(self, decay: Any) -> Tensor:
        """Return an entry of `weight_decay` times `loss_scale`; constants are already multiplied by it."""
        if isinstance(decay, Cell):
            return self._at_step(decay) * self.loss_scale
        return to_backend_tensors(decay)

    def _unscaled_decay(self, index: int) -> Tensor:
        """Return the weight decay of one parameter in this step, not multiplied by `loss_scale`."""
        decay = self._decays[index]
        return self._at_step(decay) if isinstance(decay, Cell) else decay

    # ---- variables --------------------------------------------------------------------------------------------
    @property
    def _counter(self) -> keras.Variable:
        """The variable that counts the steps."""
        return self.global_step

    def state_variables(self) -> list[Variable]:
        """Return the optimizer's own variables: the step count, the slots, and the learning rate."""
        trained = {id(parameter) for parameter in self.parameters}
        return [parameter for parameter in self.get_parameters() if id(parameter) not in trained]

    def own_parameters(self) -> dict[str, Parameter]:
        """Return the optimizer's own parameters and the ones it trains, by name."""
        result = super().own_parameters()
        for name, parameter in zip(self.parameters.names, self.parameters, strict=True):
            name_taken = name in result and result[name] is not parameter
            result[f"parameters.{name}" if name_taken else name] = parameter
        return result

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        """Prefix the names of the optimizer's own parameters; those of the network keep their names."""
        previous = [(parameter, parameter.name) for parameter in self.parameters if isinstance(parameter, Parameter)]
        super().update_parameters_name(prefix, recurse)
        for parameter, name in previous:
            parameter.name = name

    @property
    def cast_rule(self) -> CastRule:
        """A rule that casts nothing: updates stay in float32 regardless of the mixed-precision level of the network."""
        return CastRule()


def map_unique(function: Callable[[Any], Any], values: Sequence[Any]) -> list[Any]:
    """Apply `function` to each value, calling it once per distinct object."""
    results: dict[int, Any] = {}
    for value in values:
        if id(value) not in results:
            results[id(value)] = function(value)
    return [results[id(value)] for value in values]
