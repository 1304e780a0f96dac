"""`MathMethods`: mathematical methods of tensors, elementwise and along axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.dtype import DType, is_float
from mixtrain.ops import (
    activation,
    arithmetic,
    comparison,
    complex_numbers,
    extremes,
    linear_algebra,
    numeric,
    ordering,
    special,
    statistics,
    unary,
)
from mixtrain.ops.inputs import as_floats, rank_of, tensor, tensor_dtype
from mixtrain.ops.operator import tensor_method
from mixtrain.typing import Tensor, TensorLike

_Method = Callable[..., Any]


def _allclose(
    self: TensorLike, other: TensorLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    return bool(backend.to_numpy(keras.ops.all(comparison.isclose(self, other, rtol, atol, equal_nan))))


def _with_index(largest: bool) -> _Method:
    def compute(self: TensorLike, axis: int = 0, keep_dims: bool = False) -> tuple[Tensor, Tensor]:
        values = (extremes.max if largest else extremes.min)(self, axis, keep_dims)
        return values[0], keras.ops.cast(values[1], backend.canonical_dtype("int64"))

    return compute


def _ptp(self: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    x = tensor("Tensor.ptp", self)
    return keras.ops.max(x, axis=axis, keepdims=keepdims) - keras.ops.min(x, axis=axis, keepdims=keepdims)


def _searchsorted(
    self: TensorLike, v: TensorLike, side: str = "left", sorter: TensorLike | None = None, *, right: bool = False
) -> Tensor:
    checks.one_of("Tensor.searchsorted", "side", side, ("left", "right"))
    x = tensor("Tensor.searchsorted", self)
    return statistics.searchsorted(x, v, out_int32=True, right=right, side=side, sorter=sorter)


def _sum_to_size(self: TensorLike, *size: Any) -> Tensor:
    x = tensor("Tensor.sum_to_size", self)
    shape = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    leading = rank_of(x) - len(shape)
    axes = [*range(leading), *(n + leading for n, dim in enumerate(shape) if dim == 1 != x.shape[n + leading])]
    total = keras.ops.sum(x, axis=tuple(axes)) if axes else x
    return keras.ops.reshape(total, shape)


def _qr(self: TensorLike, some: bool = True) -> tuple[Tensor, Tensor]:
    return tuple(keras.ops.qr(as_floats("Tensor.qr", self), mode="reduced" if some else "complete"))  # type: ignore


def _is_signed(self: TensorLike) -> bool:
    dtype: DType = tensor_dtype(tensor("Tensor", self))
    return is_float(dtype) or dtype.startswith("int")


class MathMethods:
    """Mathematical methods."""

    __slots__ = ()

    arccosh = unary.acosh
    arcsinh = unary.asinh
    arctanh = unary.atanh
    arctan2 = arithmetic.arctan2
    approximate_equal = comparison.approximate_equal
    bitwise_xor = comparison.bitwise_xor
    bitwise_not = invert = numeric.invert
    bitwise_left_shift = numeric.bitwise_left_shift
    bitwise_right_shift = numeric.bitwise_right_shift
    conj = real = positive = numeric.positive
    imag = complex_numbers.imag
    angle = complex_numbers.angle
    copysign = numeric.copysign
    deg2rad = numeric.deg2rad
    rad2deg = numeric.rad2deg
    erfinv = numeric.erfinv
    float_power = numeric.float_power
    fmax = numeric.fmax
    fmin = numeric.fmin
    frac = numeric.frac
    gcd = numeric.gcd
    lcm = numeric.lcm
    ger = linear_algebra.ger
    hardshrink = activation.hardshrink
    heaviside = numeric.heaviside
    i0 = special.i0
    inv = numeric.inv
    isneginf = numeric.isneginf
    isposinf = numeric.isposinf
    isreal = complex_numbers.isreal
    ldexp = numeric.ldexp
    logaddexp2 = numeric.logaddexp2
    logit = numeric.logit
    nextafter = numeric.nextafter
    sgn = complex_numbers.sgn
    signbit = numeric.signbit
    soft_shrink = activation.softshrink
    xdivy = arithmetic.xdivy
    xlogy = numeric.xlogy
    addbmm = linear_algebra.addbmm
    addmv = linear_algebra.addmv
    addr = linear_algebra.addr
    adjoint = linear_algebra.adjoint
    mH = property(linear_algebra.adjoint)
    allclose = tensor_method("allclose", _allclose)
    aminmax = statistics.aminmax
    argmax_with_value = tensor_method("argmax_with_value", _with_index(True))
    argmin_with_value = tensor_method("argmin_with_value", _with_index(False))
    argwhere = statistics.argwhere
    bincount = statistics.bincount
    cov = statistics.cov
    cross = linear_algebra.cross
    cummax = statistics.cummax
    cummin = statistics.cummin
    logcumsumexp = statistics.logcumsumexp
    histc = statistics.histc
    inner = linear_algebra.inner
    is_complex = complex_numbers.is_complex
    is_floating_point = complex_numbers.is_floating_point
    is_signed = tensor_method("is_signed", _is_signed)
    msort = statistics.msort
    nanmean = statistics.nanmean
    nansum = statistics.nansum
    quantile = statistics.quantile
    nanquantile = statistics.nanquantile
    ptp = tensor_method("ptp", _ptp)
    renorm = statistics.renorm
    searchsorted = tensor_method("searchsorted", _searchsorted)
    sum_to_size = tensor_method("sum_to_size", _sum_to_size)
    top_k = ordering.topk
    trace = linear_algebra.trace
    cholesky = linear_algebra.cholesky
    cholesky_inverse = linear_algebra.cholesky_inverse
    cholesky_solve = linear_algebra.cholesky_solve
    det = linear_algebra.det
    matrix_determinant = linear_algebra.det
    inverse = linear_algebra.inverse
    logdet = linear_algebra.logdet
    lstsq = linear_algebra.lstsq
    matrix_power = linear_algebra.matrix_power
    qr = tensor_method("qr", _qr)
    slogdet = linear_algebra.slogdet
    log_matrix_determinant = linear_algebra.slogdet
    svd = linear_algebra.svd
    lgamma = numeric.lgamma
    digamma = numeric.digamma
    mvlgamma = numeric.mvlgamma
