"""Activations by name: the table, and what a layer's argument `activation` means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.nn.layer.elementwise import (
    ELU,
    GELU,
    FastGelu,
    Hardtanh,
    HShrink,
    HSigmoid,
    HSwish,
    LeakyReLU,
    LogSigmoid,
    Mish,
    ReLU,
    ReLU6,
    RReLU,
    Sigmoid,
    SiLU,
    SoftShrink,
    Softsign,
    Tanh,
    Tanhshrink,
)
from mixtrain.nn.layer.prelu import PReLU
from mixtrain.nn.layer.softmax import LogSoftmax, Softmax, Softmax2d, Softmin

_BY_NAME: Final[dict[str, Callable[[], Cell]]] = {
    "relu": ReLU, "relu6": ReLU6, "rrelu": RReLU, "leakyrelu": LeakyReLU, "prelu": PReLU, "elu": ELU, "silu": SiLU,
    "gelu": GELU, "fast_gelu": FastGelu, "mish": Mish, "hswish": HSwish, "sigmoid": Sigmoid, "hsigmoid": HSigmoid,
    "logsigmoid": LogSigmoid, "tanh": Tanh, "tanhshrink": Tanhshrink, "hardtanh": Hardtanh, "softsign": Softsign,
    "softshrink": SoftShrink, "hshrink": HShrink, "softmax": Softmax, "logsoftmax": LogSoftmax, "softmin": Softmin,
    "softmax2d": Softmax2d,
}


def get_activation(name: str | None, prim_name: str | None = None) -> Cell | None:
    """Return a new activation cell.

    Args:
        name: Its name in lower case ("relu", "hswish", "softmax", ...); None for none.
        prim_name: Who asks, for the error.

    Returns:
        The cell; None for None.

    Raises:
        ValueError: The name is unknown; the message offers the nearest one.

    Example:
        >>> get_activation("relu6")
        ReLU6()

    Source: MindSpore, `mindspore.nn.get_activation`.
    """
    if name is None:
        return None
    return _BY_NAME[checks.one_of(prim_name or "get_activation", "name", name, tuple(_BY_NAME))]()


def activation_of(where: str, activation: Any) -> Any:
    """Return the activation that a layer's argument means: a new cell for a name; cells and functions as they are.

    Raises:
        ValueError: The name is unknown.
        TypeError: It is no name, Cell, Keras layer or function.
    """
    if isinstance(activation, str):
        return _BY_NAME[checks.one_of(where, "activation", activation, tuple(_BY_NAME))]()
    if activation is None or (callable(activation) and not isinstance(activation, type)):
        return activation
    raise checks.fail_type(
        where, "activation must be a name, a Cell or a function", activation, 'activation="relu"'
    )
