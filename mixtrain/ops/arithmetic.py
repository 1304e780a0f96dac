"""Elementwise arithmetic of two tensors: sums, products, quotients and powers, with their primitives."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence

import keras

from mixtrain import backend, checks
from mixtrain.dtype import float32, is_float, wider
from mixtrain.ops import nhwc
from mixtrain.ops.elementwise import binary, binary_function, renamed
from mixtrain.ops.inputs import is_number, pair, tensor
from mixtrain.ops.primitive import primitives
from mixtrain.typing import Tensor, TensorLike


def _fmod(x: Tensor, y: Tensor) -> Tensor:
    rest = keras.ops.multiply(keras.ops.sign(x), keras.ops.mod(keras.ops.abs(x), keras.ops.abs(y)))
    is_zero = keras.ops.logical_and(keras.ops.equal(x, 0), keras.ops.not_equal(y, 0))
    return keras.ops.where(is_zero, x, rest)  # Of which the derivative by `x` is 1 there too.


def _hypot(x: Tensor, y: Tensor) -> Tensor:
    # The squares are those of fractions of the larger number, which cannot overflow.
    wide_x, wide_y = (keras.ops.cast(value, wider(x.dtype, float32)) for value in (x, y))
    larger = keras.ops.stop_gradient(keras.ops.maximum(keras.ops.abs(wide_x), keras.ops.abs(wide_y)))
    usable = keras.ops.logical_and(larger > 0, keras.ops.isfinite(larger))
    scale = keras.ops.where(usable, larger, keras.ops.ones_like(larger))
    squares = keras.ops.square(wide_x / scale) + keras.ops.square(wide_y / scale)
    return keras.ops.cast(scale * keras.ops.sqrt(squares), x.dtype)


# `keras.ops.add` takes (n, 1) for a bias and adds it along the last axis of (n, n), so the operator is used.
add = binary_function("add", operator.add, "`input` + `other`.")
mul = binary_function("mul", keras.ops.multiply, "`input` times `other`.")
floor_divide = binary_function(
    "floor_divide", keras.ops.floor_divide, "`input` / `other`, rounded down to whole numbers."
)
floor_div = renamed(floor_divide, "floor_div")
floor_mod = binary_function(
    "floor_mod", keras.ops.mod, "The remainder of `input` / `other`, with the sign of `other`.", tensors=True
)
remainder = renamed(floor_mod, "remainder")
fmod = binary_function("fmod", _fmod, "The remainder of `input` / `other`, with the sign of `input`.")


def _shared_at_ties(compute: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a maximum or minimum whose gradient equal values share, as in MindSpore on a CPU, and in JAX."""

    def shared(x: TensorLike, y: TensorLike) -> Tensor:
        result = compute(x, y)
        if not is_float(result.dtype):
            return result
        return keras.ops.where(keras.ops.equal(x, y), 0.5 * x + 0.5 * y, result)

    return shared


larger, smaller = _shared_at_ties(keras.ops.maximum), _shared_at_ties(keras.ops.minimum)


def _logaddexp(x: Tensor, y: Tensor, log_of_base: float = 1.0) -> Tensor:
    # The difference of infinities of one sign would be NaN.
    distance = keras.ops.abs(keras.ops.where(keras.ops.equal(x, y), keras.ops.zeros_like(x), x - y))
    return larger(x, y) + keras.ops.log1p(keras.ops.exp(-distance * log_of_base)) / log_of_base


maximum = binary_function("maximum", larger, "The larger of `input` and `other`.")
minimum = binary_function("minimum", smaller, "The smaller of `input` and `other`.")
atan2 = binary_function(
    "atan2", keras.ops.arctan2, "The angle of the point (`other`, `input`), in radians.", floats=True
)
arctan2 = renamed(atan2, "arctan2")
hypot = binary_function("hypot", _hypot, "sqrt(`input`^2 + `other`^2).", floats=True, tensors=True)
logaddexp = binary_function(
    "logaddexp", _logaddexp, "log(exp(`input`) + exp(`other`)), without overflow.", floats=True, tensors=True
)
logaddexp2 = binary_function(
    "logaddexp2", lambda x, y: _logaddexp(x, y, math.log(2)), "log2(2 ** `input` + 2 ** `other`).", floats=True,
    tensors=True,
)
true_divide = binary_function("true_divide", keras.ops.true_divide, "`input` / `other`.", floats=True)
multiply = renamed(mul, "multiply")
tensor_add = renamed(add, "tensor_add")
squared_difference = binary_function(
    "squared_difference", lambda x, y: keras.ops.square(keras.ops.subtract(x, y)), "(`input` - `other`)^2."
)
sub = binary_function("sub", keras.ops.subtract, "`input` - `other`.")


def subtract(input: TensorLike, other: TensorLike, *, alpha: float = 1) -> Tensor:
    """`input` - `alpha` * `other`. Example: ``ops.subtract(x, y)``."""
    return sub(input, other if alpha == 1 else mul(other, alpha))


def div(input: TensorLike, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
    """`input` / `other`; `rounding_mode` None, "floor" or "trunc" (towards zero). Example: ``ops.div(x, 2)``."""
    checks.one_of("ops.div", "rounding_mode", rounding_mode, (None, "floor", "trunc"))
    if rounding_mode == "floor":
        return floor_divide(input, other)
    quotient = binary("ops.div", keras.ops.true_divide, input, other, floats=True)
    if rounding_mode is None:
        return quotient
    truncated = nhwc.elementwise(keras.ops.trunc, quotient)
    dtype = pair("ops.div", input, other)[1 if is_number(input) else 0].dtype
    return backend.cast_keeping_layout(truncated, keras.backend.standardize_dtype(dtype))


def pow(input: TensorLike, exponent: TensorLike) -> Tensor:
    """`input` to the power `exponent`. Example: ``ops.pow(Tensor([2.0, 3.0]), 2)`` is ``[4.0, 9.0]``."""
    return binary("ops.pow", keras.ops.power, input, exponent)


def _div_no_nan(x: TensorLike, y: TensorLike) -> Tensor:
    """`x` / `y`, and 0 where `y` is 0."""
    return binary("ops.DivNoNan", keras.ops.divide_no_nan, x, y, floats=True)


def _truncate_div(x: Tensor, y: Tensor) -> Tensor:
    """`x` / `y`, rounded towards zero."""
    return div(x, y, rounding_mode="trunc")


def _xdivy(x: Tensor, y: Tensor) -> Tensor:
    # The inner `where` keeps 0 / 0 out of the gradient.
    zero = keras.ops.equal(x, 0)
    return keras.ops.where(zero, keras.ops.zeros_like(x), x / keras.ops.where(zero, keras.ops.ones_like(y), y))


def xdivy(x: TensorLike, y: TensorLike) -> Tensor:
    """`x` / `y`, and 0 where `x` is 0."""
    return binary("ops.xdivy", _xdivy, x, y, floats=True, tensors=True)


def lerp(input: TensorLike, end: TensorLike, weight: TensorLike) -> Tensor:
    """`input` + `weight` * (`end` - `input`)."""
    return add(input, mul(weight, sub(end, input)))


def addcmul(input: TensorLike, tensor1: TensorLike, tensor2: TensorLike, value: TensorLike = 1) -> Tensor:
    """`input` + `value` * `tensor1` * `tensor2`."""
    return add(input, mul(mul(tensor1, tensor2), value))


def addcdiv(input: TensorLike, tensor1: TensorLike, tensor2: TensorLike, value: TensorLike = 1) -> Tensor:
    """`input` + `value` * `tensor1` / `tensor2`."""
    return add(input, mul(div(tensor1, tensor2), value))


def addn(x: Sequence[TensorLike]) -> Tensor:
    """The sum of the tensors in the tuple or list `x`."""
    if not isinstance(x, (list, tuple)) or not x:
        raise checks.fail_type("ops.addn", "x must be a tuple or list of tensors", x, "ops.addn([a, b])")
    total = tensor("ops.addn", x[0])
    for item in x[1:]:
        total = add(total, item)
    return total


divide = renamed(div, "divide")
(
    Add, TensorAdd, Sub, Mul, Div, RealDiv, DivNoNan, FloorDiv, FloorMod, Mod, TruncateDiv, Pow, Maximum, Minimum,
    Atan2, AddN, SquaredDifference, Xdivy,
) = primitives(
    Add=add, TensorAdd=add, Sub=sub, Mul=mul, Div=div, RealDiv=div, DivNoNan=_div_no_nan, FloorDiv=floor_divide,
    FloorMod=floor_mod, Mod=fmod, TruncateDiv=_truncate_div, Pow=pow, Maximum=maximum, Minimum=minimum, Atan2=atan2,
    AddN=addn, SquaredDifference=squared_difference, Xdivy=xdivy,
)
