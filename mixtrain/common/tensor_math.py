"""`MathMethods`: methods of tensors for numbers, element by element and along axes, that no function of ops has."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.dtype import DType, is_float
from mixtrain.ops import activation, arithmetic, array, comparison, extremes, ordering, products, unary
from mixtrain.ops.elementwise import binary, unary as each
from mixtrain.ops.inputs import as_floats, axes_of, axis_of, format_of, pair, rank_of, tensor
from mixtrain.ops.operator import operator

_Method = Callable[..., Any]


def _one(name: str, compute: Callable[[Any], Any], floats: bool = True) -> _Method:
    """Return a method that computes every element; with `floats`, integers become float32 before."""
    return operator(name, lambda self: each(f"Tensor.{name}", compute, self, floats=floats))


def _two(name: str, compute: Callable[[Any, Any], Any], floats: bool = False) -> _Method:
    """Return a method that computes every pair of elements."""
    return operator(
        name, lambda self, other: binary(f"Tensor.{name}", compute, self, other, floats=floats, tensors=True)
    )


def _same(self: Any) -> Any:
    return tensor("Tensor", self)


def _adjoint(self: Any) -> Any:
    return array.swapaxes(self, -1, -2)


def _xlogy(x: Any, y: Any) -> Any:
    return keras.ops.where(x == 0, keras.ops.zeros_like(x), x * keras.ops.log(y))


def _logit(x: Any) -> Any:
    return keras.ops.log(x / (1 - x))


def _copysign(x: Any, y: Any) -> Any:
    return keras.ops.where(keras.ops.signbit(y), -keras.ops.abs(x), keras.ops.abs(x))


def _float_power(self: Any, exponent: Any) -> Any:
    wide = keras.ops.cast(tensor("Tensor.float_power", self), backend.held_format("float64"))
    return arithmetic.pow(wide, exponent)


def _allclose(
    self: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Any:
    return bool(backend.to_numpy(keras.ops.all(comparison.isclose(self, other, rtol, atol, equal_nan))))


def _aminmax(self: Any, *, axis: Any = 0, keepdims: bool = False) -> tuple[Any, Any]:
    return extremes.amin(self, axis, keepdims), extremes.amax(self, axis, keepdims)


def _with_place(largest: bool) -> _Method:
    def compute(self: Any, axis: int = 0, keep_dims: bool = False) -> tuple[Any, Any]:
        values = (extremes.max if largest else extremes.min)(self, axis, keep_dims)
        return values[0], keras.ops.cast(values[1], backend.held_format("int64"))

    return compute


def _argwhere(self: Any) -> Any:
    places = keras.ops.stack(keras.ops.nonzero(tensor("Tensor.argwhere", self)), axis=-1)
    return keras.ops.cast(places, backend.held_format("int64"))


def _bincount(self: Any, weights: Any = None, minlength: int = 0) -> Any:
    x = keras.ops.cast(tensor("Tensor.bincount", self), "int32")
    length = max(int(keras.ops.max(x)) + 1, minlength)
    counted = keras.ops.cast(keras.ops.one_hot(x, length), "float32")
    if weights is not None:
        counted = counted * keras.ops.cast(tensor("Tensor.bincount", weights), "float32")[:, None]
    return keras.ops.sum(counted, axis=0)


def _cov(self: Any, *, correction: int = 1) -> Any:
    x = as_floats("Tensor.cov", self)
    apart = x - keras.ops.mean(x, axis=-1, keepdims=True)
    count = x.shape[-1] - correction
    return backend.product(keras.ops.matmul, apart, keras.ops.transpose(apart)) / count if rank_of(x) > 1 else (
        keras.ops.sum(apart * apart) / count
    )


def _cross(self: Any, other: Any, dim: int | None = None) -> Any:
    x, y = pair("Tensor.cross", self, other)
    axis = next(n for n, size in enumerate(x.shape) if size == 3) if dim is None else dim
    return keras.ops.cross(x, y, axis=axis)


def _running(largest: bool) -> _Method:
    """Return a method for the extreme so far along an axis, and the place of the last such element."""

    def compute(self: Any, axis: int) -> tuple[Any, Any]:
        x = tensor("Tensor.cummax" if largest else "Tensor.cummin", self)
        number = axis_of("Tensor.cummax" if largest else "Tensor.cummin", axis, rank_of(x))
        rows = keras.ops.moveaxis(x, number, -1)
        size = rows.shape[-1]
        so_far = keras.ops.tril(keras.ops.ones((size, size), dtype="bool"))
        spread = keras.ops.broadcast_to(rows[..., None, :], (*rows.shape[:-1], size, size))
        best = (keras.ops.max if largest else keras.ops.min)(
            keras.ops.where(so_far, spread, rows[..., :1, None]), axis=-1
        )
        hits = keras.ops.logical_and(so_far, spread == best[..., None])
        places = keras.ops.max(keras.ops.where(hits, keras.ops.arange(size, dtype="int32"), 0), axis=-1)
        places = keras.ops.cast(places, backend.held_format("int64") if largest else "int32")
        return keras.ops.moveaxis(best, -1, number), keras.ops.moveaxis(places, -1, number)

    return compute


def _logcumsumexp(self: Any, axis: int) -> Any:
    x = as_floats("Tensor.logcumsumexp", self)
    top = keras.ops.max(x, axis=axis, keepdims=True)
    return keras.ops.log(keras.ops.cumsum(keras.ops.exp(x - top), axis=axis)) + top


def _histc(self: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    x = keras.ops.reshape(as_floats("Tensor.histc", self), (-1,))
    low, high = (float(backend.to_numpy(end)) for end in (keras.ops.min(x), keras.ops.max(x))) if min == max else (
        min, max
    )
    place = keras.ops.cast(keras.ops.floor((x - low) * (bins / ((high - low) or 1))), "int32")
    place = keras.ops.where(x == high, bins - 1, place)
    inside = keras.ops.logical_and(x >= low, x <= high)
    counted = keras.ops.one_hot(keras.ops.where(inside, place, -1), bins, dtype=x.dtype)
    return keras.ops.sum(counted, axis=0)


def _inner(self: Any, other: Any) -> Any:
    return keras.ops.inner(*pair("Tensor.inner", self, other))


def _nan(name: str) -> _Method:
    def compute(self: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Any:
        x = as_floats(f"Tensor.{name}", self)
        x = x if dtype is None else keras.ops.cast(x, dtype)
        return getattr(keras.ops, name)(x, axis=axes_of(f"Tensor.{name}", axis, rank_of(x)), keepdims=keepdims)

    return compute


def _ptp(self: Any, axis: Any = None, keepdims: bool = False) -> Any:
    x = tensor("Tensor.ptp", self)
    return keras.ops.max(x, axis=axis, keepdims=keepdims) - keras.ops.min(x, axis=axis, keepdims=keepdims)


def _quantile(name: str) -> _Method:
    def compute(self: Any, q: Any, axis: Any = None, keepdims: bool = False) -> Any:
        x = as_floats(f"Tensor.{name}", self)
        return getattr(keras.ops, name)(x, keras.ops.cast(tensor("Tensor", q), x.dtype), axis=axis, keepdims=keepdims)

    return compute


def _renorm(self: Any, p: float, axis: int, maxnorm: float) -> Any:
    x = as_floats("Tensor.renorm", self)
    number = axis_of("Tensor.renorm", axis, rank_of(x))
    others = tuple(place for place in range(rank_of(x)) if place != number)
    norms = keras.ops.sum(keras.ops.abs(x) ** p, axis=others, keepdims=True) ** (1 / p)
    return x * keras.ops.where(norms > maxnorm, maxnorm / (norms + 1e-7), keras.ops.ones_like(norms))


def _searchsorted(
    self: Any, v: Any, side: str = "left", sorter: Any = None, *, right: bool = False
) -> Any:
    checks.one_of("Tensor.searchsorted", "side", side, ("left", "right"))
    x = tensor("Tensor.searchsorted", self)
    x = x if sorter is None else keras.ops.take(x, tensor("Tensor.searchsorted", sorter), axis=-1)
    sought = keras.ops.cast(tensor("Tensor.searchsorted", v), x.dtype)
    found = keras.ops.searchsorted(x, sought, side="right" if right else side)
    return keras.ops.cast(found, "int32")


def _sum_to_size(self: Any, *size: Any) -> Any:
    x = tensor("Tensor.sum_to_size", self)
    wanted = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    ahead = rank_of(x) - len(wanted)
    axes = [*range(ahead), *(n + ahead for n, width in enumerate(wanted) if width == 1 != x.shape[n + ahead])]
    total = keras.ops.sum(x, axis=tuple(axes)) if axes else x
    return keras.ops.reshape(total, wanted)


def _addbmm(self: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    product = keras.ops.sum(products.bmm(batch1, batch2), axis=0)
    return arithmetic.add(arithmetic.mul(self, beta), arithmetic.mul(product, alpha))


def _addmv(self: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return arithmetic.add(arithmetic.mul(self, beta), arithmetic.mul(products.mv(mat, vec), alpha))


def _addr(self: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return arithmetic.add(arithmetic.mul(self, beta), arithmetic.mul(products.outer(vec1, vec2), alpha))


def _linear(name: str, compute: Callable[[Any], Any]) -> _Method:
    """Return a method of linear algebra, for floats."""
    return operator(name, lambda self: compute(as_floats(f"Tensor.{name}", self)))


def _cholesky(self: Any, upper: bool = False) -> Any:
    return keras.ops.cholesky(as_floats("Tensor.cholesky", self), upper=upper)


def _cholesky_inverse(self: Any, upper: bool = False) -> Any:
    x = as_floats("Tensor.cholesky_inverse", self)
    turned = keras.ops.swapaxes(x, -1, -2)
    return keras.ops.inv(keras.ops.matmul(*((turned, x) if upper else (x, turned))))


def _cholesky_solve(self: Any, input2: Any, upper: bool = False) -> Any:
    factor = as_floats("Tensor.cholesky_solve", input2)
    inverse = _cholesky_inverse(keras.ops.triu(factor) if upper else keras.ops.tril(factor), upper)
    return keras.ops.matmul(inverse, as_floats("Tensor.cholesky_solve", self))


def _slogdet(self: Any) -> tuple[Any, Any]:
    found = keras.ops.det(as_floats("Tensor.slogdet", self))
    return keras.ops.sign(found), keras.ops.log(keras.ops.abs(found))


def _matrix_power(self: Any, n: int) -> Any:
    x = as_floats("Tensor.matrix_power", self)
    x = x if n >= 0 else keras.ops.inv(x)
    product = keras.ops.broadcast_to(keras.ops.eye(x.shape[-1], dtype=x.dtype), x.shape)
    for _ in range(abs(n)):
        product = keras.ops.matmul(product, x)
    return product


def _lstsq(self: Any, A: Any) -> Any:
    return keras.ops.lstsq(as_floats("Tensor.lstsq", self), as_floats("Tensor.lstsq", A))


def _qr(self: Any, some: bool = True) -> tuple[Any, Any]:
    return tuple(keras.ops.qr(as_floats("Tensor.qr", self), mode="reduced" if some else "complete"))  # type: ignore


def _svd(self: Any, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    x = as_floats("Tensor.svd", self)
    if not compute_uv:
        return keras.ops.svd(x, full_matrices, compute_uv=False)
    u, s, v = keras.ops.svd(x, full_matrices)
    return s, u, keras.ops.swapaxes(v, -1, -2)


def _has_sign(self: Any) -> bool:
    dtype: DType = format_of(tensor("Tensor", self))
    return is_float(dtype) or dtype.startswith("int")


class MathMethods:
    """Methods for numbers."""

    __slots__ = ()

    arccosh = unary.acosh
    arcsinh = unary.asinh
    arctanh = unary.atanh
    arctan2 = arithmetic.arctan2
    approximate_equal = comparison.approximate_equal
    bitwise_xor = comparison.bitwise_xor
    bitwise_not = invert = _one("bitwise_not", keras.ops.bitwise_not, floats=False)
    bitwise_left_shift = _two("bitwise_left_shift", keras.ops.left_shift)
    bitwise_right_shift = _two("bitwise_right_shift", keras.ops.right_shift)
    conj = real = positive = operator("positive", _same)
    imag = operator("imag", lambda self: keras.ops.zeros_like(tensor("Tensor.imag", self)))
    angle = _one("angle", lambda x: keras.ops.where(x < 0, math.pi * keras.ops.ones_like(x), keras.ops.zeros_like(x)))
    copysign = _two("copysign", _copysign, floats=True)
    deg2rad = _one("deg2rad", lambda x: x * (math.pi / 180))
    rad2deg = _one("rad2deg", lambda x: x * (180 / math.pi))
    erfinv = _one("erfinv", keras.ops.erfinv)
    float_power = operator("float_power", _float_power)
    fmax = _two("fmax", keras.ops.fmax)
    fmin = _two("fmin", keras.ops.fmin)
    frac = _one("frac", lambda x: x - keras.ops.trunc(x))
    gcd = _two("gcd", keras.ops.gcd)
    lcm = _two("lcm", keras.ops.lcm)
    ger = products.outer
    hardshrink = activation.hardshrink
    heaviside = _two("heaviside", keras.ops.heaviside)
    i0 = _one("i0", keras.ops.i0)
    inv = unary.reciprocal
    isneginf = _one("isneginf", keras.ops.isneginf)
    isposinf = _one("isposinf", keras.ops.isposinf)
    isreal = operator("isreal", lambda self: keras.ops.ones_like(tensor("Tensor.isreal", self), dtype="bool"))
    ldexp = operator("ldexp", lambda self, other: arithmetic.mul(self, unary.exp2(other)))
    logaddexp2 = _two("logaddexp2", keras.ops.logaddexp2, floats=True)
    logit = operator("logit", lambda self, eps=None: each(
        "Tensor.logit", lambda x: _logit(x if eps is None else keras.ops.clip(x, eps, 1 - eps)), self, floats=True
    ))
    nextafter = _two("nextafter", keras.ops.nextafter, floats=True)
    sgn = unary.sign
    signbit = _one("signbit", keras.ops.signbit, floats=False)
    soft_shrink = activation.softshrink
    xdivy = _two("xdivy", keras.ops.divide_no_nan, floats=True)
    xlogy = _two("xlogy", _xlogy, floats=True)
    addbmm = operator("addbmm", _addbmm)
    addmv = operator("addmv", _addmv)
    addr = operator("addr", _addr)
    adjoint = operator("adjoint", _adjoint)
    mH = property(operator("adjoint", _adjoint))
    allclose = operator("allclose", _allclose)
    aminmax = operator("aminmax", _aminmax)
    argmax_with_value = operator("argmax_with_value", _with_place(True))
    argmin_with_value = operator("argmin_with_value", _with_place(False))
    argwhere = operator("argwhere", _argwhere)
    bincount = operator("bincount", _bincount)
    cov = operator("cov", _cov)
    cross = operator("cross", _cross)
    cummax = operator("cummax", _running(True))
    cummin = operator("cummin", _running(False))
    logcumsumexp = operator("logcumsumexp", _logcumsumexp)
    histc = operator("histc", _histc)
    inner = operator("inner", _inner)
    is_complex = operator("is_complex", lambda self: False)
    is_floating_point = operator("is_floating_point", lambda self: is_float(tensor("Tensor", self).dtype))
    is_signed = operator("is_signed", _has_sign)
    msort = operator("msort", lambda self: ordering.sort(self, 0)[0])
    nanmean = operator("nanmean", _nan("nanmean"))
    nansum = operator("nansum", _nan("nansum"))
    quantile = operator("quantile", _quantile("quantile"))
    nanquantile = operator("nanquantile", _quantile("nanquantile"))
    ptp = operator("ptp", _ptp)
    renorm = operator("renorm", _renorm)
    searchsorted = operator("searchsorted", _searchsorted)
    sum_to_size = operator("sum_to_size", _sum_to_size)
    top_k = ordering.topk
    trace = operator("trace", lambda self: keras.ops.trace(tensor("Tensor.trace", self)))
    cholesky = operator("cholesky", _cholesky)
    cholesky_inverse = operator("cholesky_inverse", _cholesky_inverse)
    cholesky_solve = operator("cholesky_solve", _cholesky_solve)
    det = _linear("det", keras.ops.det)
    matrix_determinant = _linear("matrix_determinant", keras.ops.det)
    inverse = _linear("inverse", keras.ops.inv)
    logdet = _linear("logdet", lambda x: keras.ops.log(keras.ops.det(x)))
    lstsq = operator("lstsq", _lstsq)
    matrix_power = operator("matrix_power", _matrix_power)
    qr = operator("qr", _qr)
    slogdet = operator("slogdet", _slogdet)
    log_matrix_determinant = operator("log_matrix_determinant", _slogdet)
    svd = operator("svd", _svd)
