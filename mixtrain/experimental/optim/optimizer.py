"""`Optimizer`: groups of parameters as a list of dicts, whose options schedulers and scripts read and change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import checks
from mixtrain.common.parameter import Parameter
from mixtrain.optim.optimizer import Optimizer as StepOptimizer

_DECAY = "weight_decay"


class Optimizer(StepOptimizer):
    """The base of optimizers with `param_groups`; a subclass defines `update`, or `construct`, the whole step.

    Args:
        params: Parameters, or groups: dicts with "params" and the options in which a group differs.
        defaults: The options of every group, with at least "lr".

    Attributes:
        param_groups: A dict a group; its "lr" is a Parameter, which schedulers assign.
        lrs: The learning rate of each group, a Parameter.
        group_start_id: Where the parameters of each group begin in `parameters`.

    Raises:
        TypeError: `params` are neither parameters nor dicts.
        ValueError: They are empty, or a parameter is in two groups.

    Example:
        >>> import mixtrain, numpy as np
        >>> from mixtrain.experimental import optim
        >>> w = mixtrain.Parameter(np.ones(2, np.float32), name="w")
        >>> optim.SGD([w], lr=0.5).param_groups[0]["lr"].asnumpy().tolist()
        0.5

    Source: MindSpore, `mindspore.experimental.optim.Optimizer`.
    """

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        items = list(params)
        groups = items if items and isinstance(items[0], dict) else [{"params": items}]
        self._arrange([dict(group) for group in groups], dict(defaults))

    def _arrange(self, groups: list[dict[str, Any]], defaults: dict[str, Any]) -> None:
        where = type(self).__name__
        for group in groups:
            given = group.get("params")
            group["params"] = [given] if isinstance(given, keras.Variable) else list(given or ())
            for name, value in defaults.items():
                group.setdefault(name, value)
        rates = [{"params": group["params"], "lr": _rate(where, group["lr"], n)} for n, group in enumerate(groups)]
        super().__init__(0.0, rates)
        # Lists and dicts of variables belong to nobody but this optimizer: Keras and Cell are to leave them alone.
        for name, value in (("defaults", defaults), ("param_groups", groups), ("lrs", []), ("group_start_id", [0])):
            object.__setattr__(self, name, value)
        for group in groups:
            rate = self.learning_rate[self.group_start_id[-1]]
            group["lr"] = rate
            self.lrs.append(rate)
            self.group_start_id.append(self.group_start_id[-1] + len(group["params"]))
        numbers = [n for n, group in enumerate(groups) for _ in group["params"]]
        object.__setattr__(self, "_group_of", numbers)
        self.make_slots()

    def make_slots(self) -> None:
        """Make the state of each parameter; a subclass with state defines it. Example: ``optimizer.make_slots()``."""

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Train more parameters; before the first step, for the state of all is made anew.

        Args:
            param_group: A dict with "params" and the group's options.
        """
        self._arrange([*self.param_groups, dict(param_group)], self.defaults)

    def group(self, index: int) -> dict[str, Any]:
        """Return the options of the group that a parameter is in.

        Args:
            index: The place of the parameter in `parameters`.
        """
        return self.param_groups[self._group_of[index]]

    def construct(self, gradients: Any) -> Any:
        """Apply the rule to each parameter, with its group's options; weight decay belongs to the rule."""
        gradients = [
            -gradient if self.group(index).get("maximize") else gradient
            for index, gradient in enumerate(self.scale_grad(gradients))
        ]
        return self.apply_updates(gradients)

    def decayed(self, index: int, weight: Any, gradient: Any) -> Any:
        """Return a gradient with its group's weight decay added.

        Args:
            index: The place of the parameter.
            weight: Its value.
            gradient: Its gradient.
        """
        decay = self.group(index).get(_DECAY, 0.0)
        return gradient + weight * decay if decay else gradient

    def step_number(self) -> Any:
        """Return the number of the step that is being made, from 1 on, as a float32 scalar."""
        return keras.ops.cast(keras.ops.reshape(self.global_step.value, ()), "float32") + 1.0

    def slots(self, prefix: str, value: float = 0.0) -> Sequence[Any]:
        """Return a Parameter for each of `parameters`, filled with a value.

        Args:
            prefix: What their names begin with.
            value: The number in them.
        """
        made = self.parameters.clone(prefix, "zeros")
        for slot in made if value else ():
            slot.assign(keras.ops.full_like(slot.value, value))
        return made

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            for name in sorted(group):
                if name != "params":
                    value = group[name].asnumpy() if isinstance(group[name], Parameter) else group[name]
                    lines.append(f"    {name}: {value}")
        return "\n".join([*lines, ")"])


def _rate(where: str, value: Any, number: int) -> Any:
    """Return a group's learning rate as a number."""
    if isinstance(value, keras.Variable) or not isinstance(value, (int, float)):
        value = float(np.asarray(value))
    return checks.number(where, f"the lr of group {number}", value, at_least=0.0, example=0.01)
