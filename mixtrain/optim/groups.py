"""Parsing of parameter groups into the options of each parameter."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.common.parameter import Parameter
from mixtrain.optim.schedule import RatePerStep, as_learning_rate
from mixtrain.typing import Variable

# Parameters, or groups of them: dicts with "params" and options.
ParamsLike: TypeAlias = Iterable[Variable] | Iterable[dict[str, Any]]
# A number, or a Cell that computes it from the step.
WeightDecayLike: TypeAlias = float | Cell

_KEYS = ("params", "lr", "weight_decay", "grad_centralization", "order_params")
_NOT_DECAYED = ("beta", "gamma")


@dataclasses.dataclass(frozen=True)
class ParameterOptions:
    """Options with which an optimizer updates one parameter.

    Attributes:
        parameter: The Parameter or `keras.Variable`.
        weight_decay: A number, or a Cell that computes it from the step.
        decayed: Whether weight decay applies.
        learning_rate: Rate of its group, or None for the optimizer's default.
        centralized: Whether its gradient is centralized: its mean over each output subtracted.
    """

    parameter: Variable
    weight_decay: float | Cell
    decayed: bool
    learning_rate: Parameter | Cell | None = None
    centralized: bool = False


def parse_parameters(
    where: str, parameters: Any, weight_decay: WeightDecayLike, learning_rate: Parameter | Cell
) -> tuple[list[ParameterOptions], bool, bool]:
    """Return the options of each parameter, in the optimizer's order, whether there are groups, and "order_params".

    `where`: Name of the optimizer, for error messages. `parameters`: An iterable of parameters, or of dicts with the
    keys "params", "lr", "weight_decay", "grad_centralization" and "order_params". `weight_decay`: Default of the
    optimizer: a number or a Cell. `learning_rate`: Default of the optimizer.

    Raises: ValueError: `parameters` is empty, a group has an invalid key or value, or lists of rates differ in length.
    """
    items = _as_list(where, "params", parameters)
    decay = as_weight_decay(where, weight_decay)
    is_dict = [isinstance(item, dict) for item in items]
    if not any(is_dict):
        options = [ParameterOptions(parameter, decay, _is_decayed_by_default(parameter)) for parameter in items]
        return options, False, False
    if not all(is_dict):
        raise checks.fail_type(
            where, "params must be all parameters or all dicts", items, 'params=[{"params": [...], "lr": 0.01}]'
        )
    options = []
    order: list[Any] | None = None
    for index, group in enumerate(items):
        _check_keys(where, group)
        if "order_params" in group:
            order = _as_list(where, "order_params", group["order_params"])
        else:
            options += _parse_group(where, group, index, decay)
    _check_lengths(where, [learning_rate, *(option.learning_rate for option in options)])
    return (options, True, False) if order is None else (_ordered(where, options, order), True, True)


def as_weight_decay(where: str, value: Any) -> float | Cell:
    """Return a weight decay as a number or as the Cell that computes it."""
    if isinstance(value, Cell):
        return value
    return checks.number(where, "weight_decay", value, at_least=0.0, example=1e-4)


def _as_list(where: str, name: str, value: Any) -> list[Any]:
    write = f"{name}=network.trainable_params()"
    if isinstance(value, (str, dict)) or not isinstance(value, Iterable):
        # As in MindSpore, whose scripts catch it, None is a ValueError.
        fail = checks.fail_value if value is None else checks.fail_type
        raise fail(where, f"{name} must be a list of parameters or of dicts", value, write)
    items = list(value)
    if not items:
        raise checks.fail_value(where, f"{name} must not be empty", items, write)
    return items


def _is_decayed_by_default(parameter: Variable) -> bool:
    """Whether weight decay applies to a parameter outside groups: unless its name contains "beta" or "gamma"."""
    name = getattr(parameter, "name", "")
    return not any(word in name for word in _NOT_DECAYED)


def _check_lengths(where: str, rates: Sequence[Any]) -> None:
    """Raise a ValueError if lists of learning rates differ in length."""
    lengths = sorted({len(rate) for rate in rates if isinstance(rate, RatePerStep)})
    if len(lengths) > 1:
        raise checks.fail_value(
            where, "lists of learning rates must have one length", f"lengths {lengths}", "one value a step in each"
        )


def _check_keys(where: str, group: dict[str, Any]) -> None:
    for key in group:
        checks.one_of(where, "a key of a parameter group", key, _KEYS)
    if "order_params" in group:
        if len(group) > 1:
            raise checks.fail_value(
                where, '"order_params" must be alone in its dict', sorted(group), '{"order_params": [...]} by itself'
            )
    elif "params" not in group:
        raise checks.fail_value(where, 'a parameter group must have "params"', sorted(group), '{"params": [...]}')
    if "grad_centralization" in group:
        checks.boolean(where, "grad_centralization", group["grad_centralization"])


def _parse_group(where: str, group: dict[str, Any], index: int, decay: float | Cell) -> list[ParameterOptions]:
    """Return the options of the parameters of one group; `decay` is the optimizer's default."""
    if "weight_decay" in group:
        decay = as_weight_decay(where, group["weight_decay"])
    rate = as_learning_rate(where, group["lr"], f"learning_rate_group_{index}") if "lr" in group else None
    decayed = isinstance(decay, Cell) or decay > 0.0
    centralized = bool(group.get("grad_centralization", False))
    items = _as_list(where, "params", group["params"])
    return [ParameterOptions(parameter, decay, decayed, rate, centralized) for parameter in items]


def _ordered(where: str, options: Sequence[ParameterOptions], order: Sequence[Any]) -> list[ParameterOptions]:
    """Return the options in the order of the parameters in "order_params"."""
    by_id = {id(option.parameter): option for option in options}
    if len(order) != len(options) or {id(parameter) for parameter in order} != set(by_id):
        raise checks.fail_value(
            where, "order_params must hold every parameter of the groups, once",
            f"{len(order)} in order_params, {len(options)} in the groups",
            '{"order_params": network.trainable_params()}',
        )
    return [by_id[id(parameter)] for parameter in order]
