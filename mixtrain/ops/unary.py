"""Elementwise functions of one tensor: powers, logarithms, rounding, signs and trigonometry, with their primitives."""

from __future__ import annotations

import math

import keras

from mixtrain import checks
from mixtrain.dtype import is_complex, is_float
from mixtrain.ops.elementwise import keep_integers, renamed, unary, unary_function
from mixtrain.ops.inputs import tensor
from mixtrain.ops.primitive import as_primitive, primitives
from mixtrain.typing import Tensor, TensorLike, Tree


def _negative(x: Tensor) -> Tensor:
    # TensorFlow cannot negate unsigned integers; their difference wraps around.
    unsigned = "uint" in keras.backend.standardize_dtype(x.dtype)
    return keras.ops.zeros_like(x) - x if unsigned else keras.ops.negative(x)


def _sign(x: Tensor) -> Tensor:
    signs = keras.ops.sign(x)
    return keras.ops.where(keras.ops.isnan(x), keras.ops.zeros_like(x), signs) if is_float(x.dtype) else signs


exp = unary_function("exp", keras.ops.exp, "e to the power of each element of `input`.")
expm1 = unary_function("expm1", keras.ops.expm1, "e to the power `input`, minus 1, exact near 0.")
exp2 = unary_function("exp2", keras.ops.exp2, "2 to the power of each element of `input`.")
log = unary_function("log", keras.ops.log, "The natural logarithm of `input`.")
log1p = unary_function("log1p", keras.ops.log1p, "The natural logarithm of 1 + `input`, exact near 0.")
log2 = unary_function("log2", keras.ops.log2, "The logarithm of `input` to base 2.")
log10 = unary_function("log10", keras.ops.log10, "The logarithm of `input` to base 10.")
sqrt = unary_function("sqrt", keras.ops.sqrt, "The square root of `x`.", parameter="x")
rsqrt = unary_function("rsqrt", keras.ops.rsqrt, "1 / sqrt(`input`).")
square = unary_function("square", keras.ops.square, "`input` times itself.", floats=False)
reciprocal = unary_function("reciprocal", keras.ops.reciprocal, "1 / `input`.")


def _inv(x: Tensor) -> Tensor:
    if is_float(x.dtype) or is_complex(x.dtype):
        return keras.ops.reciprocal(x)
    return keras.ops.where(keras.ops.equal(keras.ops.abs(x), 1), x, keras.ops.zeros_like(x))


inv = unary_function("inv", _inv, "1 / `input`, of integers rounded towards zero.", floats=False)



def magnitude(x: Tensor) -> Tensor:
    """Return the absolute value of a backend tensor, whose derivative at 0 is 0 on both backends (on JAX it is 1)."""
    return x * keras.ops.stop_gradient(keras.ops.sign(x)) if is_float(x.dtype) else keras.ops.abs(x)


abs = unary_function("abs", magnitude, "The absolute value of `input`.", floats=False)
neg = unary_function("neg", _negative, "-`input`.", floats=False)
sign = unary_function("sign", _sign, "-1, 0 or 1: the sign of `input`, 0 of NaN.", floats=False)
absolute = renamed(abs, "absolute")
negative = renamed(neg, "negative")

floor = unary_function("floor", keep_integers(keras.ops.floor), "The largest integer not above `input`.", floats=False)
ceil = unary_function("ceil", keep_integers(keras.ops.ceil), "The smallest integer not below `input`.", floats=False)
trunc = unary_function("trunc", keep_integers(keras.ops.trunc), "`input` without its fraction.", floats=False)

sin = unary_function("sin", keras.ops.sin, "The sine of `input`, in radians.")
cos = unary_function("cos", keras.ops.cos, "The cosine of `input`, in radians.")
tan = unary_function("tan", keras.ops.tan, "The tangent of `input`, in radians.")
asin = unary_function("asin", keras.ops.arcsin, "The angle whose sine is `input`.")
acos = unary_function("acos", keras.ops.arccos, "The angle whose cosine is `input`.")
atan = unary_function("atan", keras.ops.arctan, "The angle whose tangent is `input`.")
sinh = unary_function("sinh", keras.ops.sinh, "The hyperbolic sine of `input`.")
cosh = unary_function("cosh", keras.ops.cosh, "The hyperbolic cosine of `input`.")
asinh = unary_function("asinh", keras.ops.arcsinh, "The number whose hyperbolic sine is `input`.")
acosh = unary_function("acosh", keras.ops.arccosh, "The number whose hyperbolic cosine is `input`.")
atanh = unary_function("atanh", keras.ops.arctanh, "The number whose hyperbolic tangent is `input`.")
erf = unary_function("erf", keras.ops.erf, "The error function of `input`.")
erfc = unary_function("erfc", lambda x: 1 - keras.ops.erf(x), "1 minus the error function of `input`.")
arcsin = renamed(asin, "arcsin")
arccos = renamed(acos, "arccos")
arctan = renamed(atan, "arctan")

isnan = unary_function("isnan", keras.ops.isnan, "Whether each element of `input` is not a number.")
isnan_ext = renamed(isnan, "isnan_ext")
isinf = unary_function("isinf", keras.ops.isinf, "Whether each element of `input` is infinite.")
isfinite = unary_function("isfinite", keras.ops.isfinite, "Whether each element of `input` is finite.")
logical_not = unary_function("logical_not", keras.ops.logical_not, "True where `input` is False or zero.", floats=False)


def round(input: TensorLike, *, decimals: int = 0) -> Tensor:
    """Round `input` to `decimals`, halves to even; negative for tens, hundreds and so on. Integers are not rounded.

    Example: ``ops.round(Tensor([0.5, 1.5, -2.6]))`` is ``[0.0, 2.0, -3.0]``.
    """
    decimals = checks.integer("ops.round", "decimals", decimals, at_least=-(2**31), example=0)

    def compute(x: Tensor) -> Tensor:
        if not is_float(x.dtype):
            return x
        return keras.ops.round(x) if decimals == 0 else keras.ops.round(x * 10.0**decimals) / 10.0**decimals

    return unary("ops.round", compute, input)


def nan_to_num(
    input: TensorLike, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Replace NaN in `input` by `nan` (0), infinities by `posinf` and `neginf` (the largest): ``ops.nan_to_num(x)``."""
    return unary(
        "ops.nan_to_num",
        lambda x: keras.ops.nan_to_num(x, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf),
        input,
        floats=True,
    )


def sinc(input: TensorLike) -> Tensor:
    """sin(pi * `input`) / (pi * `input`), and 1 at 0."""

    def compute(x: Tensor) -> Tensor:
        angle = x * math.pi
        # The 1 keeps the unused quotient and its gradient finite.
        safe = keras.ops.where(keras.ops.equal(angle, 0), keras.ops.ones_like(angle), angle)
        return keras.ops.where(keras.ops.equal(angle, 0), keras.ops.ones_like(angle), keras.ops.sin(safe) / safe)

    return unary("ops.sinc", compute, input, floats=True)


def identity(x: Tree) -> Tree:
    """Return `x` itself. Example: ``ops.identity((x, y))``."""
    return x


def deepcopy(input_x: TensorLike) -> Tensor:
    """A copy of `input_x` as a Tensor."""
    # A new backend tensor: one that is returned as it came would be shown as the very Tensor that was passed, and a
    # write to it be seen there.
    return keras.ops.copy(tensor("ops.deepcopy", input_x))


(
    Exp, Expm1, Log, Log1p, Sqrt, Rsqrt, Square, Reciprocal, Inv, Abs, Neg, Sign, Floor, Ceil, Trunc, Rint, Sin, Cos,
    Tan, Asin, ACos, Atan, Sinh, Cosh, Asinh, Acosh, Atanh, Erf, Erfc, IsNan, IsInf, IsFinite, LogicalNot, Identity,
) = primitives(
    Exp=exp, Expm1=expm1, Log=log, Log1p=log1p, Sqrt=sqrt, Rsqrt=rsqrt, Square=square, Reciprocal=reciprocal,
    Inv=inv, Abs=abs, Neg=neg, Sign=sign, Floor=floor, Ceil=ceil, Trunc=trunc, Rint=round, Sin=sin, Cos=cos,
    Tan=tan, Asin=asin, ACos=acos, Atan=atan, Sinh=sinh, Cosh=cosh, Asinh=asinh, Acosh=acosh, Atanh=atanh, Erf=erf,
    Erfc=erfc, IsNan=isnan, IsInf=isinf, IsFinite=isfinite, LogicalNot=logical_not, Identity=deepcopy,
)


@as_primitive
def FloatStatus(x: TensorLike) -> Tensor:
    """Whether an element is not finite, 1.0 or 0.0 of shape (1,). Example: ``ops.FloatStatus()(gradient)``."""
    finite = keras.ops.all(keras.ops.isfinite(tensor("ops.FloatStatus", x)))
    return keras.ops.cast(keras.ops.reshape(keras.ops.logical_not(finite), (1,)), "float32")


@as_primitive
def Round(input: TensorLike, decimals: int = 0) -> Tensor:
    """`round` as an object. Example: ``ops.Round()(x)``."""
    return round(input, decimals=decimals)
