"""Lookup of activations by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.lazy_names import serve_names
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
from mixtrain.typing import Layer, Tensor

# A name, a Cell, a Keras layer, or a function.
ActivationLike: TypeAlias = str | Layer | Callable[[Tensor], Tensor]

# By MindSpore's name, which scripts import to list the names.
_activation: Final[dict[str, Callable[[], Cell]]] = {
    "relu": ReLU, "relu6": ReLU6, "rrelu": RReLU, "leakyrelu": LeakyReLU, "prelu": PReLU, "elu": ELU, "silu": SiLU,
    "gelu": GELU, "fast_gelu": FastGelu, "mish": Mish, "hswish": HSwish, "sigmoid": Sigmoid, "hsigmoid": HSigmoid,
    "logsigmoid": LogSigmoid, "tanh": Tanh, "tanhshrink": Tanhshrink, "hardtanh": Hardtanh, "softsign": Softsign,
    "softshrink": SoftShrink, "hshrink": HShrink, "softmax": Softmax, "logsoftmax": LogSoftmax, "softmin": Softmin,
    "softmax2d": Softmax2d,
}


def get_activation(name: str | None, prim_name: str | None = None) -> Cell | None:
    """Create the activation cell of a lowercase `name` ("relu", "hswish", ...), or None; `prim_name` is the caller, for
    errors.

    Returns: The cell; None if `name` is None.

    Example:
        >>> get_activation("relu6")
        ReLU6()
    """
    if name is None:
        return None
    return _activation[checks.one_of(prim_name or "get_activation", "name", name, tuple(_activation))]()


def activation_of(where: str, activation: ActivationLike | None) -> Any:
    """Resolve a layer's `activation` argument: create a cell for a name, return cells and functions unchanged."""
    if isinstance(activation, str):
        return _activation[checks.one_of(where, "activation", activation, tuple(_activation))]()
    if activation is None or (callable(activation) and not isinstance(activation, type)):
        return activation
    raise checks.fail_type(where, "activation must be a name, a Cell or a function", activation, 'activation="relu"')


serve_names(__name__)
