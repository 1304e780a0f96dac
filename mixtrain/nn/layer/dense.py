"""`Dense` and `BiDense`: linear and bilinear layers."""

from __future__ import annotations

import math

import keras

from mixtrain import backend, checks
from mixtrain.cell.cell import Cell
from mixtrain.cell.tree import name_of
from mixtrain.common.initializer import HeUniform, InitializerLike, Uniform, initializer
from mixtrain.common.parameter import Parameter
from mixtrain.dtype import float32
from mixtrain.nn.layer.activation import ActivationLike, activation_of
from mixtrain.nn.layer.inputs import check_width, float_tensor, promote
from mixtrain.ops import bidense
from mixtrain.typing import DTypeLike, Tensor


class Dense(Cell):
    """Fully connected layer: ``activation(x @ weight.T + bias)`` over the last axis.

    Args:
        in_channels, out_channels: Size of the last axis of the input and of the output.
        weight_init, bias_init: Initial values, anything that `initializer` accepts; default: uniform within 1 /
            sqrt(in_channels).
        has_bias: Whether a bias is added.
        activation: A name ("relu", "softmax", ...), a Cell, a Keras layer or a function of a tensor.
        dtype: Dtype of the parameters.

    Inputs: x (..., in_channels), floating point.
    Returns: (..., out_channels), in the wider of the dtypes of `x` and the weight.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> tuple(nn.Dense(4, 2, activation="relu")(mixtrain.Tensor(np.ones((3, 4), np.float32))).shape)
        (3, 2)
    """

    precision_family = "matmul"
    product_equation = "...k,nk->...n"

    def __init__(
        self, in_channels: int, out_channels: int, weight_init: InitializerLike | None = None,
        bias_init: InitializerLike | None = None, has_bias: bool = True, activation: ActivationLike | None = None,
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        where = self.cls_name
        self.in_channels = checks.integer(where, "in_channels", in_channels, at_least=1)
        self.out_channels = checks.integer(where, "out_channels", out_channels, at_least=1)
        self.has_bias = checks.boolean(where, "has_bias", has_bias)
        # HeUniform(sqrt(5)) is uniform within 1 / sqrt(fan in), MindSpore's and PyTorch's default.
        init = HeUniform(math.sqrt(5)) if weight_init is None else weight_init
        self.weight = Parameter(initializer(init, (self.out_channels, self.in_channels), dtype), name="weight")
        self.bias = None
        if has_bias:
            init = Uniform(1 / math.sqrt(self.in_channels)) if bias_init is None else bias_init
            self.bias = Parameter(initializer(init, (self.out_channels,), dtype), name="bias")
        self.activation = activation_of(where, activation)
        self.activation_flag = self.activation is not None

    @property
    def product_shape(self) -> tuple[int, int]:
        """Shape of the weight in `product_equation`."""
        return self.out_channels, self.in_channels

    def multiply(self, x: Tensor, weight: Tensor) -> Tensor:
        """Return ``x @ weight.T``; a plan may replace it."""
        return backend.times_transposed(x, weight)

    def construct(self, x: Tensor) -> Tensor:
        """Compute ``activation(x @ weight.T + bias)``."""
        x = float_tensor(self, x)
        if len(x.shape) == 0:
            raise checks.fail_value(name_of(self), "the input must have an axis", (), "x.reshape(1, -1)")
        check_width(self, x, len(x.shape) - 1, self.in_channels, noun="channels", argument="in_channels")
        parameters = [self.weight.value] if self.bias is None else [self.weight.value, self.bias.value]
        x, weight, *bias = promote(x, *parameters)
        lead = keras.ops.shape(x)[:-1]
        if len(lead) != 1:
            x = keras.ops.reshape(x, (-1, self.in_channels))
        y = self.multiply(x, weight)
        if bias:
            y = keras.ops.add(y, bias[0])
        if len(lead) != 1:
            y = keras.ops.reshape(y, (*lead, self.out_channels))
        return y if self.activation is None else self.activation(y)

    def extend_repr(self) -> str:
        text = f"input_channels={self.in_channels}, output_channels={self.out_channels}"
        return f"{text}, has_bias=True" if self.has_bias else text


class BiDense(Cell):
    """Bilinear layer: ``input1 @ weight @ input2 + bias`` for each output.

    Args:
        out_channels, bias_init, has_bias, dtype: As in `Dense`.
        in1_channels, in2_channels: Size of the last axis of the first and of the second input.
        weight_init: Initial weight; by default uniform within 1 / sqrt(in1_channels).

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> x = mixtrain.Tensor(np.ones((3, 4), np.float32))
        >>> tuple(nn.BiDense(4, 4, 2)(x, x).shape)
        (3, 2)
    """

    precision_family = "matmul"

    def __init__(
        self, in1_channels: int, in2_channels: int, out_channels: int, weight_init: InitializerLike | None = None,
        bias_init: InitializerLike | None = None, has_bias: bool = True, dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        where = self.cls_name
        self.in1_channels = checks.integer(where, "in1_channels", in1_channels, at_least=1)
        self.in2_channels = checks.integer(where, "in2_channels", in2_channels, at_least=1)
        self.out_channels = checks.integer(where, "out_channels", out_channels, at_least=1)
        self.has_bias = checks.boolean(where, "has_bias", has_bias)
        default = Uniform(1 / math.sqrt(in1_channels))
        shape = (self.out_channels, self.in1_channels, self.in2_channels)
        init = default if weight_init is None else weight_init
        self.weight = Parameter(initializer(init, shape, dtype), name="weight")
        self.bias = None
        if has_bias:
            init = default if bias_init is None else bias_init
            self.bias = Parameter(initializer(init, (self.out_channels,), dtype), name="bias")

    def construct(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Apply the bilinear form to `input1` and `input2`."""
        return bidense(input1, input2, self.weight, self.bias)
