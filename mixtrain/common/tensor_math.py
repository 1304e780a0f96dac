"""`MathMethods`: mathematical methods of tensors, elementwise and along axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras

from mixtrain import backend, checks, ops
from mixtrain.common.method_forms import with_aliases
from mixtrain.dtype import DType, is_float
from mixtrain.ops.inputs import as_floats, rank_of, tensor, tensor_dtype
from mixtrain.ops.operator import tensor_method
from mixtrain.typing import Tensor, TensorLike

_Method = Callable[..., Any]


def _allclose(
    self: TensorLike, other: TensorLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    return bool(backend.to_numpy(keras.ops.all(ops.isclose(self, other, rtol, atol, equal_nan))))


def _with_index(largest: bool) -> _Method:
    def compute(self: TensorLike, axis: int = 0, keep_dims: bool = False) -> tuple[Tensor, Tensor]:
        values = (ops.max if largest else ops.min)(self, axis, keep_dims)
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
    return ops.searchsorted(x, v, out_int32=True, right=right, side=side, sorter=sorter)


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

    arccosh, arcsinh, arctanh, arctan2 = ops.acosh, ops.asinh, ops.atanh, ops.arctan2
    bitwise_xor, bitwise_left_shift = ops.bitwise_xor, ops.bitwise_left_shift
    approximate_equal = with_aliases(ops.approximate_equal, other="y")
    float_power = with_aliases(ops.float_power, other="exponent")
    bitwise_right_shift, imag, angle, copysign = ops.bitwise_right_shift, ops.imag, ops.angle, ops.copysign
    deg2rad, rad2deg, erfinv, fmax = ops.deg2rad, ops.rad2deg, ops.erfinv, ops.fmax
    fmin, frac, gcd, lcm, ger, hardshrink = ops.fmin, ops.frac, ops.gcd, ops.lcm, ops.ger, ops.hardshrink
    heaviside, i0, inv, isneginf, isposinf = ops.heaviside, ops.i0, ops.inv, ops.isneginf, ops.isposinf
    isreal, ldexp, logaddexp2, logit, nextafter = ops.isreal, ops.ldexp, ops.logaddexp2, ops.logit, ops.nextafter
    sgn, signbit, soft_shrink, xdivy, xlogy = ops.sgn, ops.signbit, ops.softshrink, ops.xdivy, ops.xlogy
    addbmm, addmv, addr, adjoint, aminmax = ops.addbmm, ops.addmv, ops.addr, ops.adjoint, ops.aminmax
    argwhere, bincount, cov, cross, cummax = ops.argwhere, ops.bincount, ops.cov, ops.cross, ops.cummax
    cummin, logcumsumexp, histc, inner, is_complex = ops.cummin, ops.logcumsumexp, ops.histc, ops.inner, ops.is_complex
    is_floating_point, msort, nanmean, nansum = ops.is_floating_point, ops.msort, ops.nanmean, ops.nansum
    quantile, nanquantile, renorm, trace = ops.quantile, ops.nanquantile, ops.renorm, ops.trace
    top_k = tensor_method("top_k", lambda self, k, sorted=True: ops.topk(self, k, sorted=sorted))
    cholesky, cholesky_inverse, cholesky_solve, det = ops.cholesky, ops.cholesky_inverse, ops.cholesky_solve, ops.det
    matrix_determinant, inverse, logdet, lstsq = ops.det, ops.inverse, ops.logdet, ops.lstsq
    geqrf, lu_solve, orgqr, igamma, igammac, nanmedian = (
        ops.geqrf, ops.lu_solve, ops.orgqr, ops.igamma, ops.igammac, ops.nanmedian
    )
    matrix_power, slogdet, log_matrix_determinant, svd = ops.matrix_power, ops.slogdet, ops.slogdet, ops.svd
    lgamma, digamma, mvlgamma = ops.lgamma, ops.digamma, ops.mvlgamma
    bitwise_not = invert = ops.invert
    conj, real, positive = ops.conj, ops.real, ops.positive
    mH = property(ops.adjoint)
    allclose = tensor_method("allclose", _allclose)
    argmax_with_value = tensor_method("argmax_with_value", _with_index(True))
    argmin_with_value = tensor_method("argmin_with_value", _with_index(False))
    is_signed = tensor_method("is_signed", _is_signed)
    ptp = tensor_method("ptp", _ptp)
    searchsorted = tensor_method("searchsorted", _searchsorted)
    sum_to_size = tensor_method("sum_to_size", _sum_to_size)
    qr = tensor_method("qr", _qr)
