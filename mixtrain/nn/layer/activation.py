"""Activations: functions of a tensor that learn nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

import keras

from mixtrain import checks, engine
from mixtrain.nn.cell import Cell
from mixtrain.nn.layer.inputs import float_tensor, name_of
from mixtrain.nn.layer.windows import is_integral
from mixtrain.precision.families import Family


class _Elementwise(Cell):
    """A cell that applies one function to every element."""

    def construct(self, x: Any) -> Any:
        """Apply the function; shape and format of `x` stay."""
        return engine.elementwise(self._function, float_tensor(self, x))

    def _function(self, x: Any) -> Any:
        raise NotImplementedError(f"{self.cls_name}: a subclass must define _function(self, x).")


class ReLU(_Elementwise):
    """max(x, 0). Example: ``nn.ReLU()(x)``. Source: MindSpore, `mindspore.nn.ReLU`."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, x: Any) -> Any:
        """Apply the function; shape and format of `x`, which may be integer, stay."""
        return engine.elementwise(self._function, engine.to_tensor(x))

    def _function(self, x: Any) -> Any:
        return keras.ops.relu(x)


class ReLU6(_Elementwise):
    """min(max(x, 0), 6). Example: ``nn.ReLU6()(x)``. Source: MindSpore, `mindspore.nn.ReLU6`."""

    def __init__(self) -> None:
        super().__init__()

    def _function(self, x: Any) -> Any:
        return keras.ops.relu6(x)


class LeakyReLU(_Elementwise):
    """x where x > 0, else alpha * x.

    Args:
        alpha: Slope of the negative side.

    Raises:
        TypeError: `alpha` is no number.

    Example:
        >>> import mixtrain.nn as nn
        >>> nn.LeakyReLU()
        LeakyReLU(alpha=0.2)

    Source: MindSpore, `mindspore.nn.LeakyReLU`.
    """

    def __init__(self, alpha: float = 0.2) -> None:
        super().__init__()
        self.alpha = checks.number(self.cls_name, "alpha", alpha)

    def _function(self, x: Any) -> Any:
        return keras.ops.leaky_relu(x, negative_slope=self.alpha)

    def extend_repr(self) -> str:
        """Return the slope."""
        return f"alpha={self.alpha}"


class Sigmoid(_Elementwise):
    """1 / (1 + exp(-x)). Example: ``nn.Sigmoid()(x)``. Source: MindSpore, `mindspore.nn.Sigmoid`."""

    def __init__(self) -> None:
        super().__init__()

    def _function(self, x: Any) -> Any:
        return keras.ops.sigmoid(x)


class Tanh(_Elementwise):
    """The hyperbolic tangent. Example: ``nn.Tanh()(x)``. Source: MindSpore, `mindspore.nn.Tanh`."""

    def __init__(self) -> None:
        super().__init__()

    def _function(self, x: Any) -> Any:
        return keras.ops.tanh(x)


class GELU(_Elementwise):
    """x times the normal distribution function of x.

    Args:
        approximate: Whether to use the formula with tanh; else the one with erf.

    Raises:
        TypeError: `approximate` is no bool.

    Example:
        >>> import mixtrain.nn as nn
        >>> nn.GELU(approximate=False).approximate
        'none'

    Source: Hendrycks and Gimpel, 2016; MindSpore, `mindspore.nn.GELU`.
    """

    def __init__(self, approximate: bool = True) -> None:
        super().__init__()
        self.approximate = "tanh" if checks.boolean(self.cls_name, "approximate", approximate) else "none"

    def _function(self, x: Any) -> Any:
        return keras.ops.gelu(x, approximate=self.approximate == "tanh")


class Softmax(Cell):
    """exp(x) / sum(exp(x)) along one axis.

    Args:
        axis: The axis.

    Raises:
        TypeError: `axis` is no int.
        ValueError: `x` has no such axis.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.Softmax()(mixtrain.Tensor([0.0, 0.0])).numpy().tolist()
        [0.5, 0.5]

    Source: MindSpore, `mindspore.nn.Softmax`.
    """

    precision_family: ClassVar[Family] = "softmax"

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        if not is_integral(axis):
            raise checks.fail_type(self.cls_name, "axis must be an int", axis, "axis=-1")
        self.axis = int(axis)

    def construct(self, x: Any) -> Any:
        """Normalise `x` along the axis; its shape and format stay."""
        return self._function(self._checked(x))

    def _checked(self, x: Any) -> Any:
        x = float_tensor(self, x)
        if not -len(x.shape) <= self.axis < len(x.shape):
            raise checks.fail_value(
                name_of(self), f"axis must be one of the {len(x.shape)} of the input", self.axis, "axis=-1"
            )
        return x

    def _function(self, x: Any) -> Any:
        return keras.ops.softmax(x, axis=self.axis)


class LogSoftmax(Softmax):
    """The logarithm of `Softmax`, computed without overflow.

    Args:
        axis: The axis.

    Raises:
        TypeError: `axis` is no int.
        ValueError: `x` has no such axis.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.LogSoftmax()(mixtrain.Tensor([[3.0]])).numpy().tolist()
        [[0.0]]

    Source: MindSpore, `mindspore.nn.LogSoftmax`.
    """

    def _function(self, x: Any) -> Any:
        return keras.ops.log_softmax(x, axis=self.axis)


class Identity(Cell):
    """Return the input. Example: ``nn.Identity()(x)``. Source: MindSpore, `mindspore.nn.Identity`."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, x: Any) -> Any:
        """Return `x`."""
        return x


_BY_NAME: Final[dict[str, Callable[[], Cell]]] = {
    "relu": ReLU, "relu6": ReLU6, "leakyrelu": LeakyReLU, "sigmoid": Sigmoid, "tanh": Tanh, "gelu": GELU,
    "softmax": Softmax, "logsoftmax": LogSoftmax,
}


def get_activation(where: str, activation: Any) -> Any:
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
