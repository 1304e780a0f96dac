"""`Optimizer`: base of optimizers with `param_groups`, dicts of options that schedulers and scripts change."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.common.parameter import Parameter
from mixtrain.common.tensor import Tensor
from mixtrain.network.uncompiled import KEEPS_STATE, note_in_steps
from mixtrain.optim.groups import ParamsLike
from mixtrain.optim.optimizer import Optimizer as StepOptimizer

_DECAY = "weight_decay"


class _Group(dict[str, Any]):
    """The options of a group; setting "lr" sets the rate that steps read."""

    def __setitem__(self, name: str, value: Any) -> None:
        rate = self.get(name)
        if name == "lr" and isinstance(rate, Parameter) and value is not rate:
            rate.set_data(Tensor(np.float32(value) if isinstance(value, int | float) else value))
        else:
            super().__setitem__(name, value)


class Optimizer(StepOptimizer):
    """Base class of optimizers with `param_groups`; a subclass defines `update`, or the whole step in `construct`.

    Args:
        params: Parameters, or groups: dicts with "params" and the options that differ from the defaults.
        defaults: The default options of a group, at least "lr".

    Attributes:
        param_groups: One dict per group; its "lr" is a Parameter, which schedulers assign.
        lrs: The learning rate of each group, a Parameter.
        group_start_id: Index in `parameters` of the first parameter of each group.

    Raises: ValueError: There is no parameter, or one is in two groups.

    Example:
        >>> import mixtrain, numpy as np
        >>> from mixtrain.experimental import optim
        >>> w = mixtrain.Parameter(np.ones(2, np.float32), name="w")
        >>> optim.SGD([w], lr=0.5).param_groups[0]["lr"].asnumpy().tolist()
        0.5
    """

    def __init__(self, params: ParamsLike, defaults: dict[str, Any]) -> None:
        items = list(params)
        groups = items if items and isinstance(items[0], dict) else [{"params": items}]
        object.__setattr__(self, "_state", collections.defaultdict(dict))
        self._set_groups([dict(group) for group in groups], dict(defaults))

    def _set_groups(self, groups: list[dict[str, Any]], defaults: dict[str, Any]) -> None:
        where = type(self).__name__
        for group in groups:
            parameters = group.get("params")
            group["params"] = [parameters] if isinstance(parameters, keras.Variable) else list(parameters or ())
            for name, value in defaults.items():
                group.setdefault(name, value)
        rates = [{"params": group["params"], "lr": _rate(where, group["lr"], n)} for n, group in enumerate(groups)]
        super().__init__(0.0, [rate for rate in rates if rate["params"]])
        # Bypass attribute tracking: lists and dicts of variables are not child cells or parameters.
        groups = [_Group(group) for group in groups]
        for name, value in (("defaults", defaults), ("param_groups", groups), ("lrs", []), ("group_start_id", [0])):
            object.__setattr__(self, name, value)
        for group in groups:
            # The rate of a group without parameters is there for schedules.
            rate = self.learning_rate[self.group_start_id[-1]] if group["params"] else Parameter(
                np.float32(_rate(where, group["lr"], len(self.lrs))), f"learning_rate_group_{len(self.lrs)}",
                requires_grad=False,
            )
            group["lr"] = rate
            self.lrs.append(rate)
            self.group_start_id.append(self.group_start_id[-1] + len(group["params"]))
        group_indices = [n for n, group in enumerate(groups) for _ in group["params"]]
        object.__setattr__(self, "_group_indices", group_indices)
        self.make_slots()

    @property
    def state(self) -> Any:
        """A dict for each parameter, for what a subclass keeps of it; a step that reads it runs uncompiled."""
        if backend.is_tracing():
            note_in_steps(KEEPS_STATE)
            raise TypeError(f"{type(self).__name__}.state: keeps no values in a compiled function. {KEEPS_STATE[1]}")
        return self._state

    @state.setter
    def state(self, value: Any) -> None:
        object.__setattr__(self, "_state", value)

    def make_slots(self) -> None:
        """Create the slots of each parameter; a subclass with slots defines it. Example: ``optimizer.make_slots()``."""

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters; call it before the first step, as it resets all slots.

        Args: param_group: A dict with "params" and the group's options.
        """
        self._set_groups([*self.param_groups, dict(param_group)], self.defaults)

    def group(self, index: int) -> dict[str, Any]:
        """Return the options of the group of a parameter. `index`: index of the parameter in `parameters`."""
        return self.param_groups[self._group_indices[index]]

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        """Update each parameter with its group's options; weight decay is part of `update`."""
        gradients = [
            -gradient if self.group(index).get("maximize") else gradient
            for index, gradient in enumerate(self.scale_grad(gradients))
        ]
        return self.apply_updates(gradients)

    def decayed(self, index: int, weight: Tensor, gradient: Tensor) -> Tensor:
        """Return a gradient with its group's weight decay added.

        Args:
            index: Index of the parameter.
            weight: Its value.
            gradient: Its gradient.
        """
        decay = self.group(index).get(_DECAY, 0.0)
        return gradient + weight * decay if decay else gradient

    def step_number(self) -> Tensor:
        """Return the number of the current step, counted from 1, as a float32 scalar."""
        return keras.ops.cast(keras.ops.reshape(self.global_step.value, ()), "float32") + 1.0

    def slots(self, prefix: str, value: float = 0.0) -> Sequence[Parameter]:
        """Return a Parameter for each of `parameters`, named after `prefix` and filled with `value`."""
        slots = self.parameters.clone(prefix, "zeros")
        for slot in slots if value else ():
            slot.assign(keras.ops.full_like(slot.value, value))
        return slots

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            for name in sorted(group):
                if name != "params":
                    value = group[name].asnumpy() if isinstance(group[name], Parameter) else group[name]
                    lines.append(f"    {name}: {value}")
        return "\n".join([*lines, ")"])


def _rate(where: str, value: Any, number: int) -> float:
    """Return a group's learning rate as a number."""
    if isinstance(value, keras.Variable) or not isinstance(value, (int, float)):
        value = float(np.asarray(value))
    return checks.number(where, f"the lr of group {number}", value, at_least=0.0, example=0.01)
