"""Parameter groups read into one treatment per parameter: its learning rate and its weight decay."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.common.parameter import Parameter
from mixtrain.optim.schedule import RatePerStep, as_learning_rate

_KEYS = ("params", "lr", "weight_decay", "grad_centralization", "order_params")
_NOT_DECAYED = ("beta", "gamma")


@dataclasses.dataclass(frozen=True)
class Treatment:
    """How an optimizer treats one parameter.

    Attributes:
        parameter: The Parameter or `keras.Variable`.
        weight_decay: A number, or a Cell that computes it from the step.
        decayed: Whether the decay applies.
        learning_rate: Its group's own rate, or None for the optimizer's.
        centralized: Whether the mean is taken off its gradients.
    """

    parameter: Any
    weight_decay: float | Cell
    decayed: bool
    learning_rate: Parameter | Cell | None = None
    centralized: bool = False


def read_parameters(
    where: str, parameters: Any, weight_decay: Any, learning_rate: Parameter | Cell
) -> tuple[list[Treatment], bool]:
    """Return the treatment of each parameter, in the optimizer's order, and whether there are groups.

    Args:
        where: Who asks, for errors.
        parameters: An iterable of parameters, or of dicts with the keys "params", "lr", "weight_decay",
            "grad_centralization" and "order_params".
        weight_decay: The optimizer's own: a number or a Cell.
        learning_rate: The optimizer's own.

    Raises:
        TypeError: `parameters` is no such iterable, or mixes parameters and dicts.
        ValueError: It is empty, a group has an unknown key or a bad value, or lists of rates differ in length.
    """
    items = _as_list(where, "params", parameters)
    decay = as_weight_decay(where, weight_decay)
    dicts = [isinstance(item, dict) for item in items]
    if not any(dicts):
        return [Treatment(parameter, decay, _decayed_by_name(parameter)) for parameter in items], False
    if not all(dicts):
        raise checks.fail_type(
            where, "params must be all parameters or all dicts", items, 'params=[{"params": [...], "lr": 0.01}]'
        )
    treatments: list[Treatment] = []
    order: list[Any] | None = None
    for index, group in enumerate(items):
        _check_keys(where, group)
        if "order_params" in group:
            order = _as_list(where, "order_params", group["order_params"])
        else:
            treatments += _read_group(where, group, index, decay)
    _check_lengths(where, [learning_rate, *(treatment.learning_rate for treatment in treatments)])
    return (treatments if order is None else _ordered(where, treatments, order)), True


def as_weight_decay(where: str, value: Any) -> float | Cell:
    """Return a weight decay as a number or as the Cell that computes it.

    Raises:
        TypeError: `value` is neither.
        ValueError: It is negative.
    """
    if isinstance(value, Cell):
        return value
    return checks.number(where, "weight_decay", value, at_least=0.0, example=1e-4)


def _as_list(where: str, name: str, value: Any) -> list[Any]:
    write = f"{name}=network.trainable_params()"
    if isinstance(value, (str, dict)) or not isinstance(value, Iterable):
        raise checks.fail_type(where, f"{name} must be a list of parameters or of dicts", value, write)
    items = list(value)
    if not items:
        raise checks.fail_value(where, f"{name} must not be empty", items, write)
    return items


def _decayed_by_name(parameter: Any) -> bool:
    """Whether a parameter outside groups is decayed: not where its name holds "beta" or "gamma"."""
    name = getattr(parameter, "name", "")
    return not any(word in name for word in _NOT_DECAYED)


def _check_lengths(where: str, rates: Sequence[Any]) -> None:
    """Refuse lists of learning rates of different lengths."""
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


def _read_group(where: str, group: dict[str, Any], index: int, decay: float | Cell) -> list[Treatment]:
    own_decay = as_weight_decay(where, group["weight_decay"]) if "weight_decay" in group else decay
    rate = as_learning_rate(where, group["lr"], f"learning_rate_group_{index}") if "lr" in group else None
    decayed = isinstance(own_decay, Cell) or own_decay > 0.0
    centralized = bool(group.get("grad_centralization", False))
    items = _as_list(where, "params", group["params"])
    return [Treatment(parameter, own_decay, decayed, rate, centralized) for parameter in items]


def _ordered(where: str, treatments: Sequence[Treatment], order: Sequence[Any]) -> list[Treatment]:
    by_identity = {id(treatment.parameter): treatment for treatment in treatments}
    if len(order) != len(treatments) or {id(parameter) for parameter in order} != set(by_identity):
        raise checks.fail_value(
            where, "order_params must hold every parameter of the groups, once",
            f"{len(order)} in order_params, {len(treatments)} in the groups",
            '{"order_params": network.trainable_params()}',
        )
    return [by_identity[id(parameter)] for parameter in order]
