"""MindSpore's functions whose names end in ``_ext``, with the parameter names of `mindspore.mint`."""

from __future__ import annotations

from mixtrain.ops.numeric import float_power
from mixtrain.ops.slicing import diff
from mixtrain.ops.unary import isnan
from mixtrain.typing import Tensor, TensorLike


def diff_ext(
    input: TensorLike, n: int = 1, dim: int = -1, prepend: TensorLike | None = None, append: TensorLike | None = None
) -> Tensor:
    """The `n`-th `diff` of `input` along `dim`, with `prepend` and `append` joined to it first."""
    return diff(input, n, dim, prepend, append)


def float_power_ext(input: TensorLike, exponent: TensorLike) -> Tensor:
    """`input` ** `exponent` in float64."""
    return float_power(input, exponent)


def isnan_ext(input: TensorLike) -> Tensor:
    """Whether each element of `input` is NaN."""
    return isnan(input)
