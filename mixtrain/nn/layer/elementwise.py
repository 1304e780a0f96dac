"""Element-wise activations without parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, Final

import keras

from mixtrain import backend, checks
from mixtrain.cell.cell import Cell
from mixtrain.nn.layer.inputs import float_tensor
from mixtrain.ops import nhwc
from mixtrain.ops.activation import continuous_elu, hard_swish, leaky, relu_up_to_6, scaled_elu
from mixtrain.ops.limits import clipped
from mixtrain.seed import next_seed
from mixtrain.typing import Tensor

_ops = keras.ops


class Elementwise(Cell):
    """Base class of activations that apply the function `_of` to each element.

    Example:
        >>> import keras
        >>> class Cube(Elementwise):
        ...     _of = staticmethod(lambda x: x * x * x)
        >>> Cube()(keras.ops.convert_to_tensor([2.0])).numpy().tolist()
        [8.0]
    """

    _of: ClassVar[Callable[..., Tensor]]

    def __init__(self) -> None:
        super().__init__()

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function; the result has the shape and dtype of `x`."""
        return nhwc.elementwise(self._function, float_tensor(self, x))

    def _function(self, x: Tensor) -> Tensor:
        return type(self)._of(x)


class ReLU(Elementwise):
    """max(x, 0). Example: ``nn.ReLU()(x)``."""

    _of = staticmethod(_ops.relu)

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function; the result has the shape and dtype of `x`, which may be integer."""
        return nhwc.elementwise(self._function, backend.to_tensor(x))


def _activation(name: str, function: Callable[[Tensor], Tensor], summary: str) -> type[Elementwise]:
    """Create a class of activations without settings; a dot ends the summary."""
    doc = f"{summary}. Example: ``nn.{name}()(x)``."
    return type(name, (Elementwise,), {"_of": staticmethod(function), "__doc__": doc, "__module__": __name__})


ReLU6: Final = _activation("ReLU6", relu_up_to_6, "min(max(x, 0), 6)")
Sigmoid: Final = _activation("Sigmoid", _ops.sigmoid, "1 / (1 + exp(-x))")
LogSigmoid: Final = _activation("LogSigmoid", _ops.log_sigmoid, "log(sigmoid(x)), kept finite")
HSigmoid: Final = _activation("HSigmoid", _ops.hard_sigmoid, "relu6(x + 3) / 6")
HSwish: Final = _activation("HSwish", hard_swish, "x * relu6(x + 3) / 6")
SiLU: Final = _activation("SiLU", _ops.silu, "x * sigmoid(x)")
Mish: Final = _activation("Mish", lambda x: x * _ops.tanh(_ops.softplus(x)), "x * tanh(softplus(x)) (Misra, 2019)")
SeLU: Final = _activation("SeLU", scaled_elu, "The self-normalizing ELU")
Tanh: Final = _activation("Tanh", _ops.tanh, "The hyperbolic tangent")
Tanhshrink: Final = _activation("Tanhshrink", _ops.tanh_shrink, "x - tanh(x)")
Softsign: Final = _activation("Softsign", _ops.softsign, "x / (1 + abs(x))")
FastGelu: Final = _activation(
    "FastGelu",
    lambda x: x * _ops.exp(0.851 * (x - _ops.absolute(x))) / (1 + _ops.exp(-1.702 * _ops.absolute(x))),
    "x * sigmoid(1.702 x), in MindSpore's form",
)


class GELU(Elementwise):
    """x times the cumulative distribution function of the normal distribution at x.

    Args: approximate: Whether to use the tanh approximation instead of erf.

    Example:
        >>> import mixtrain.nn as nn
        >>> nn.GELU(approximate=False).approximate
        'none'

    Source: Hendrycks and Gimpel, 2016; MindSpore, `mindspore.nn.GELU`.
    """

    def __init__(self, approximate: bool = True) -> None:
        super().__init__()
        self.approximate = "tanh" if checks.boolean(self.cls_name, "approximate", approximate) else "none"

    def _function(self, x: Tensor) -> Tensor:
        return _ops.gelu(x, approximate=self.approximate == "tanh")


class _AlphaActivation(Elementwise):
    """Base class of activations with a parameter `alpha`."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = checks.number(self.cls_name, "alpha", alpha)

    def _function(self, x: Tensor) -> Tensor:
        return type(self)._of(x, self.alpha)


class LeakyReLU(_AlphaActivation):
    """x where x > 0, else alpha * x. `alpha`: slope for negative x.

    Example:
        >>> import mixtrain.nn as nn
        >>> nn.LeakyReLU()
        LeakyReLU(alpha=0.2)
    """

    _of = staticmethod(leaky)

    def __init__(self, alpha: float = 0.2) -> None:
        super().__init__(alpha)

    def extend_repr(self) -> str:
        return f"alpha={self.alpha}"


class ELU(_AlphaActivation):
    """x where x > 0, else alpha * (exp(x) - 1), with `alpha` a number.

    Example: ``nn.ELU(1.0)(x)``. Source: Clevert et al., 2015; MindSpore, `mindspore.nn.ELU`.
    """

    _of = staticmethod(_ops.elu)


class CELU(_AlphaActivation):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)), with `alpha` a number.

    Example: ``nn.CELU(1.0)(x)``. Source: Barron, 2017; MindSpore, `mindspore.nn.CELU`.
    """

    _of = staticmethod(continuous_elu)


class _Shrink(Elementwise):
    """Base class of activations that are zero within `lambd` of zero."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = checks.number(self.cls_name, "lambd", lambd, at_least=0)

    def _function(self, x: Tensor) -> Tensor:
        return type(self)._of(x, self.lambd)


class SoftShrink(_Shrink):
    """x moved toward zero by `lambd`, but not past it. Example: ``nn.SoftShrink(0.5)(x)``."""

    _of = staticmethod(_ops.soft_shrink)


class HShrink(_Shrink):
    """x, or 0 within `lambd` of zero. Example: ``nn.HShrink(0.5)(x)``."""

    _of = staticmethod(_ops.hard_shrink)


class Hardtanh(Elementwise):
    """x clipped to [`min_val`, `max_val`]. Example: ``nn.Hardtanh(-1.0, 1.0)(x)``."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        super().__init__()
        self.min_val = checks.number(self.cls_name, "min_val", min_val)
        self.max_val = checks.number(self.cls_name, "max_val", max_val, above=self.min_val, example=self.min_val + 1)

    def _function(self, x: Tensor) -> Tensor:
        return clipped(x, self.min_val, self.max_val)


class Threshold(Elementwise):
    """x where x > `threshold`, else `value`. Example: ``nn.Threshold(0.1, 20.0)(x)``."""

    def __init__(self, threshold: float, value: float) -> None:
        super().__init__()
        self.threshold = checks.number(self.cls_name, "threshold", threshold)
        self.value = checks.number(self.cls_name, "value", value)

    def _function(self, x: Tensor) -> Tensor:
        return _ops.threshold(x, self.threshold, self.value)


class RReLU(Cell):
    """x where x > 0, else x times a slope sampled from [`lower`, `upper`) for each element.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.RReLU(0.25, 0.25)(mixtrain.Tensor([-4.0, 2.0])).numpy().tolist()
        [-1.0, 2.0]

    Source: Xu et al., 2015; MindSpore, `mindspore.nn.RReLU`.
    """

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3) -> None:
        super().__init__()
        self.lower = checks.number(self.cls_name, "lower", lower)
        self.upper = checks.number(self.cls_name, "upper", upper, at_least=self.lower)
        # Its state is a variable, so each call of a compiled step samples anew; it is not a Parameter of the network.
        self.seed_generator = keras.random.SeedGenerator(seed=next_seed())

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function; the result has the shape and dtype of `x`."""
        x = float_tensor(self, x)
        upper = math.nextafter(self.upper, math.inf) if self.lower == self.upper else self.upper
        slopes = keras.random.uniform(_ops.shape(x), self.lower, upper, dtype="float32", seed=self.seed_generator)
        return _ops.where(x > 0, x, x * _ops.cast(slopes, x.dtype))
