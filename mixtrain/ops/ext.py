"""MindSpore's functions whose names end in `_ext`, with the parameter names of `mindspore.mint`."""

from __future__ import annotations

from typing import Any

from mixtrain.ops.numeric import float_power
from mixtrain.ops.slicing import diff
from mixtrain.ops.unary import isnan


def diff_ext(input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """The `n`-th `diff` of `input` along `dim`, with `prepend` and `append` joined to it first.

    Source: MindSpore, `mindspore.ops.diff_ext`.
    """
    return diff(input, n, dim, prepend, append)


def float_power_ext(input: Any, exponent: Any) -> Any:
    """`input` ** `exponent` in float64. Source: MindSpore, `mindspore.ops.function.math_func.float_power_ext`."""
    return float_power(input, exponent)


def isnan_ext(input: Any) -> Any:
    """Whether each element of `input` is NaN. Source: MindSpore, `mindspore.ops.function.math_func.isnan_ext`."""
    return isnan(input)
