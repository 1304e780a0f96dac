"""Elementwise functions: bits, angles, extremes that ignore NaN, divisors and special functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.ops.arithmetic import mul, pow
from mixtrain.ops.comparison import bitwise_and, bitwise_or, bitwise_xor
from mixtrain.ops.elementwise import binary, binary_function, named, renamed, unary, unary_function
from mixtrain.ops.inputs import as_floats, is_number, tensor, tensor_dtype
from mixtrain.ops.primitive import REQUIRED, as_primitive, configured, primitives
from mixtrain.ops.unary import exp2, magnitude
from mixtrain.typing import Tensor, TensorLike


def _copysign(x: Tensor, y: Tensor) -> Tensor:
    size = magnitude(x)
    return keras.ops.where(keras.ops.signbit(y), -size, size)


def _xlogy(x: Tensor, y: Tensor) -> Tensor:
    zero = keras.ops.equal(x, 0)
    return keras.ops.where(zero, keras.ops.zeros_like(x), x * keras.ops.log(keras.ops.where(zero, 1.0, y)))


def _ignoring_nan(extreme: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """Return `extreme` of two numbers, or the other number where one is NaN.

    Of equal numbers the first has the gradient.
    """

    def compute(x: Tensor, y: Tensor) -> Tensor:
        return keras.ops.where(keras.ops.isnan(x), y, keras.ops.where(
            keras.ops.logical_or(keras.ops.isnan(y), keras.ops.equal(x, y)), x, extreme(x, y)
        ))

    return compute


def _gcd(x: Tensor, y: Tensor) -> Tensor:
    """Euclid's algorithm."""

    def step(a: Tensor, b: Tensor) -> Tensor:
        running = b != 0
        return keras.ops.where(running, b, a), keras.ops.where(running, a % keras.ops.where(running, b, 1), b)

    # The variables of a loop keep their shape, so both are broadcast first.
    zeros = keras.ops.zeros_like(x + y)
    pair = keras.ops.abs(x + zeros), keras.ops.abs(y + zeros)
    return keras.ops.while_loop(lambda a, b: keras.ops.any(b != 0), step, pair)[0]


def _lcm(x: Tensor, y: Tensor) -> Tensor:
    return keras.ops.abs(x // keras.ops.maximum(_gcd(x, y), 1) * y)


def _heaviside(x: Tensor, at_zero: Tensor) -> Tensor:
    step = keras.ops.where(x < 0, keras.ops.zeros_like(x), keras.ops.where(x > 0, keras.ops.ones_like(x), x))
    return keras.ops.where(keras.ops.equal(x, 0), at_zero, step)


def _shift(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a shift of 32 or 64 bits, by the count modulo their number, as processors shift."""

    def compute(x: Tensor, y: Tensor) -> Tensor:
        bits = 64 if "64" in tensor_dtype(x) else 32
        wide = x if str(bits) in tensor_dtype(x) else keras.ops.cast(x, "int32")
        count = keras.ops.mod(keras.ops.cast(y, wide.dtype), bits)
        return keras.ops.cast(function(wide, count), x.dtype)

    return compute


def _truncated_remainder(x: Tensor, y: Tensor) -> Tensor:
    return x - keras.ops.cast(keras.ops.trunc(keras.ops.divide(x, y)), x.dtype) * y


def _truncated_quotient(x: Tensor, y: Tensor) -> Tensor:
    return keras.ops.cast(keras.ops.trunc(keras.ops.divide(x, y)), x.dtype)


# Coefficients of the Lanczos approximation for g = 7, exact to float64.
_LANCZOS: Final = (
    676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905,
    -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
)


def _lgamma_above_half(x: Tensor) -> Tensor:
    z = x - 1
    total = keras.ops.ones_like(z) * 0.99999999999980993
    for index, coefficient in enumerate(_LANCZOS, start=1):
        total = total + coefficient / (z + index)
    t = z + 7.5
    return 0.5 * math.log(2 * math.pi) + (z + 0.5) * keras.ops.log(t) - t + keras.ops.log(total)


def _lgamma(x: Tensor) -> Tensor:
    wide = keras.ops.cast(x, backend.canonical_dtype("float64"))
    low = wide < 0.5
    above = _lgamma_above_half(keras.ops.where(low, 1 - wide, wide))
    # Euler's reflection formula.
    reflected = keras.ops.log(math.pi / keras.ops.abs(keras.ops.sin(math.pi * wide))) - above
    values = keras.ops.where(low, reflected, above)
    # At 0, -1, -2, ... the rounded sine is not 0, so the formula is finite there.
    return keras.ops.cast(keras.ops.where(_is_pole(wide), math.inf, values), x.dtype)


def _is_pole(x: Tensor) -> Tensor:
    return keras.ops.logical_and(x <= 0, keras.ops.equal(x, keras.ops.floor(x)))


def _digamma_above(x: Tensor) -> Tensor:
    """Return the asymptotic series at `x` + 6, taken back to `x` by the recurrence."""
    total = keras.ops.zeros_like(x)
    for _ in range(6):
        total, x = total - 1 / x, x + 1
    inverse = 1 / (x * x)
    series = inverse * (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * (1 / 240 - inverse / 132))))
    return total + keras.ops.log(x) - 0.5 / x - series


def _digamma(x: Tensor) -> Tensor:
    wide = keras.ops.cast(x, backend.canonical_dtype("float64"))
    low = wide < 0.5
    above = _digamma_above(keras.ops.where(low, 1 - wide, wide))
    reflected = above - math.pi / keras.ops.tan(math.pi * wide)
    values = keras.ops.where(low, reflected, above)
    # The limit at 0 is that from above; at -1, -2, ... there is none.
    at_pole = keras.ops.where(keras.ops.equal(wide, 0), -math.inf, math.nan)
    return keras.ops.cast(keras.ops.where(_is_pole(wide), at_pole, values), x.dtype)


invert = unary_function(
    "invert", lambda x: keras.ops.bitwise_not(x), "The bits of the integer `x`, inverted.", floats=False,
    parameter="x",
)
bitwise_left_shift = binary_function(
    "bitwise_left_shift", _shift(keras.ops.left_shift), "The bits of `input`, shifted left by `other`.",
    tensors=True,
)
bitwise_right_shift = binary_function(
    "bitwise_right_shift", _shift(keras.ops.right_shift), "The bits of `input`, shifted right by `other`.",
    tensors=True,
)
positive = unary_function("positive", lambda x: x, "`input` itself.", floats=False)
deg2rad = unary_function("deg2rad", lambda x: x * (math.pi / 180), "`x` degrees in radians.", parameter="x")
rad2deg = unary_function("rad2deg", lambda x: x * (180 / math.pi), "`x` radians in degrees.", parameter="x")
frac = unary_function("frac", lambda x: x - keras.ops.trunc(x), "The fraction of `x`.", parameter="x")
erfinv = unary_function("erfinv", keras.ops.erfinv, "The number whose error function is `input`.")
lgamma = unary_function("lgamma", _lgamma, "The logarithm of the gamma function of `input`.")
digamma = unary_function("digamma", _digamma, "The derivative of `lgamma` at `input`.")
signbit = unary_function("signbit", keras.ops.signbit, "Whether the sign bit of `input` is set.", floats=False)
isneginf = unary_function("isneginf", lambda x: keras.ops.equal(x, -math.inf), "Whether `input` is minus infinity.")
isposinf = unary_function("isposinf", lambda x: keras.ops.equal(x, math.inf), "Whether `input` is plus infinity.")

copysign = binary_function("copysign", _copysign, "`input` with the sign of `other`.", floats=True, tensors=True)
fmax = binary_function(
    "fmax", _ignoring_nan(keras.ops.maximum), "The larger of `input` and `other`; NaN is ignored.", tensors=True
)
fmin = binary_function(
    "fmin", _ignoring_nan(keras.ops.minimum), "The smaller of `input` and `other`; NaN is ignored.", tensors=True
)
gcd = binary_function("gcd", _gcd, "The greatest common divisor of `input` and `other`.", tensors=True)
lcm = binary_function("lcm", _lcm, "The least common multiple of `input` and `other`.", tensors=True)
nextafter = binary_function(
    "nextafter", backend.special.nextafter, "The next float after `input` towards `other`.", floats=True, tensors=True
)
xlogy = binary_function("xlogy", _xlogy, "`input` * log(`other`), and 0 where `input` is 0.", floats=True, tensors=True)


def heaviside(input: TensorLike, values: TensorLike) -> Tensor:
    """0 below zero, 1 above, and `values` where `input` is zero."""
    return binary("ops.heaviside", _heaviside, input, values, tensors=True)


def truncate_div(x: TensorLike, y: TensorLike) -> Tensor:
    """`x` / `y` rounded towards zero, for integers too."""
    return binary("ops.truncate_div", _truncated_quotient, x, y, tensors=True)


def truncate_mod(x: TensorLike, y: TensorLike) -> Tensor:
    """The remainder of `truncate_div` of `x` and `y`, with the sign of `x`."""
    return binary("ops.truncate_mod", _truncated_remainder, x, y, tensors=True)


def float_power(input: TensorLike, exponent: TensorLike) -> Tensor:
    """`input` ** `exponent` in float64."""
    return pow(keras.ops.cast(tensor("ops.float_power", input), backend.canonical_dtype("float64")), exponent)


def ldexp(x: TensorLike, other: TensorLike) -> Tensor:
    """`x` * 2 ** `other`."""
    return mul(x, exp2(other))


def logit(input: TensorLike, eps: float | None = None) -> Tensor:
    """log(p / (1 - p)) of `input`, clipped to [`eps`, 1 - `eps`] unless that is None. Example: ``ops.logit(p)``."""

    def compute(x: Tensor) -> Tensor:
        x = x if eps is None else keras.ops.clip(x, eps, 1 - eps)
        return keras.ops.log(x / (1 - x))

    return unary("ops.logit", compute, input, floats=True)


def mvlgamma(input: TensorLike, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of `p` dimensions at `input`."""

    def compute(x: Tensor) -> Tensor:
        total = keras.ops.zeros_like(x) + 0.25 * p * (p - 1) * math.log(math.pi)
        for index in range(p):
            total = total + _lgamma(x - index / 2)
        return total

    return unary("ops.mvlgamma", compute, input, floats=True)


def is_nonzero(input: TensorLike) -> bool:
    """Whether the one element of `input` is not zero."""
    return bool(np.any(backend.to_numpy(tensor("ops.is_nonzero", input))))


def eps(x: TensorLike) -> Tensor:
    """The machine epsilon of the dtype of `x`, for each of its elements."""
    value = as_floats("ops.eps", x)
    step = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 2.0**-52}.get(tensor_dtype(value), 2.0**-23)
    return keras.ops.full_like(value, step)


def _scalar(name: str, compute: Callable[[Any, Any], Any], doc: str) -> Callable[[Any, Any], Any]:
    """Return a function of two Python numbers; tensors are computed as tensors."""

    def of_numbers(x: TensorLike, y: TensorLike) -> Tensor | float:
        return compute(x, y) if is_number(x) and is_number(y) else compute(tensor(name, x), tensor(name, y))

    return named(of_numbers, name, f"{doc} Example: ``ops.{name}(3, 2)``.")


scalar_add = _scalar("scalar_add", lambda x, y: x + y, "The sum of the numbers `x` and `y`.")
scalar_sub = _scalar("scalar_sub", lambda x, y: x - y, "The difference of the numbers `x` and `y`.")
scalar_mul = _scalar("scalar_mul", lambda x, y: x * y, "The product of the numbers `x` and `y`.")
scalar_div = _scalar("scalar_div", lambda x, y: x / y, "The quotient of the numbers `x` and `y`.")
scalar_floordiv = _scalar("scalar_floordiv", lambda x, y: x // y, "The quotient of `x` and `y`, rounded down.")
scalar_mod = _scalar("scalar_mod", lambda x, y: x % y, "The remainder of the number `x` divided by `y`.")
scalar_pow = _scalar("scalar_pow", lambda x, y: x**y, "The number `x` to the power `y`.")
scalar_eq = _scalar("scalar_eq", lambda x, y: x == y, "Whether the numbers `x` and `y` are equal.")
scalar_lt = _scalar("scalar_lt", lambda x, y: x < y, "Whether the number `x` is less than `y`.")
scalar_le = _scalar("scalar_le", lambda x, y: x <= y, "Whether the number `x` is at most `y`.")
scalar_gt = _scalar("scalar_gt", lambda x, y: x > y, "Whether the number `x` is greater than `y`.")
scalar_ge = _scalar("scalar_ge", lambda x, y: x >= y, "Whether the number `x` is at least `y`.")

(
    BitwiseAnd, BitwiseOr, BitwiseXor, LeftShift, RightShift, Invert, Digamma, Lgamma, Erfinv, Lcm, Gcd, Heaviside,
    Xlogy, TruncateMod, Fmax, Fmin, Eps, NextAfter,
) = primitives(
    BitwiseAnd=bitwise_and, BitwiseOr=bitwise_or, BitwiseXor=bitwise_xor, LeftShift=bitwise_left_shift,
    RightShift=bitwise_right_shift, Invert=invert, Digamma=digamma, Lgamma=lgamma, Erfinv=erfinv, Lcm=lcm, Gcd=gcd,
    Heaviside=heaviside, Xlogy=xlogy, TruncateMod=truncate_mod, Fmax=fmax, Fmin=fmin, Eps=eps, NextAfter=nextafter,
)


@as_primitive
def Logit(input: TensorLike, *, eps: float = -1.0) -> Tensor:
    """`logit` with a fixed `eps`; negative for none. Example: ``ops.Logit(1e-5)(p)``."""
    return logit(input, None if eps < 0 else eps)


float_power_ext = renamed(float_power, "float_power_ext")
Mvlgamma = configured("Mvlgamma", mvlgamma, p=REQUIRED)
