"""Reductions: sums, means, products, deviations and logic over axes, with their primitives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.dtype import as_dtype, bool_, float32, int64, is_complex, is_float
from mixtrain.ops import nhwc
from mixtrain.ops.elementwise import named
from mixtrain.ops.inputs import as_floats, axes_of, rank_of, tensor, tensor_dtype, widened
from mixtrain.ops.primitive import Primitive, as_primitive
from mixtrain.typing import DTypeLike, Tensor, TensorLike

_Reduce = Callable[..., Any]


def reduce(where: str, compute: _Reduce, x: TensorLike, axis: int | Sequence[int] | None, keep_dims: bool) -> Tensor:
    """Apply a Keras reduction over checked axes."""
    checks.boolean(where, "keep_dims", keep_dims)
    return nhwc.reduce_axes(compute, x, axes_of(where, axis, rank_of(x)), keep_dims)


def _accumulated(
    where: str, compute: _Reduce, x: TensorLike, axis: int | Sequence[int] | None, keep_dims: bool,
    dtype: DTypeLike | None,
) -> Tensor:
    """Reduce in `dtype`, by default int64 for integers and bools and their own dtype for floats."""
    x = tensor(where, x)
    if dtype is not None:
        dtype = as_dtype(dtype)
    else:
        dtype = tensor_dtype(x) if is_float(x.dtype) or is_complex(x.dtype) else int64
    return backend.to_tensor(reduce(where, compute, backend.to_tensor(x, dtype), axis, keep_dims), dtype)


def sum(
    input: TensorLike, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
) -> Tensor:
    """The sum of `input` along `dim`, an axis, a tuple of them, or None for all; `keepdim` keeps them with size 1.

    `dtype` None is that of `input`, int64 for integers. Example: ``ops.sum(Tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)``
    is ``[3.0, 7.0]``.
    """
    return _accumulated("ops.sum", keras.ops.sum, input, dim, keepdim, dtype)


def prod(
    input: TensorLike, axis: int | Sequence[int] | None = None, keep_dims: bool = False, dtype: DTypeLike | None = None
) -> Tensor:
    """The product of `input` over `axis` (None: all), in `dtype`; `keep_dims` keeps them: ``ops.prod(x, axis=0)``."""
    return _accumulated("ops.prod", _product, input, axis, keep_dims, dtype)


def _product(x: Tensor, axis: tuple[int, ...], keepdims: bool) -> Tensor:
    # In float32 at least: TensorFlow multiplies float16 numbers in float16, where a partial product may overflow.
    return keras.ops.cast(keras.ops.prod(widened(x), axis=axis, keepdims=keepdims), x.dtype)


def mean(x: TensorLike, axis: int | Sequence[int] | None = None, keep_dims: bool = False) -> Tensor:
    """The mean of `x` along `axis`, an axis, a tuple of them, or None for all; `keep_dims` keeps them with size 1.

    Integers are averaged in float32, and the result is truncated. Example:
    ``ops.mean(Tensor([[1.0, 2.0], [3.0, 4.0]]), 0)`` is ``[2.0, 3.0]``.
    """
    value = tensor("ops.mean", x)
    return keras.ops.cast(
        reduce("ops.mean", keras.ops.mean, as_floats("ops.mean", value), axis, keep_dims), value.dtype
    )


def logsumexp(input: TensorLike, dim: int | Sequence[int], keepdim: bool = False) -> Tensor:
    """log(sum(exp(`input`))) over the axis `dim`, kept with `keepdim`. Example: ``ops.logsumexp(x, 1)``."""
    return reduce("ops.logsumexp", keras.ops.logsumexp, as_floats("ops.logsumexp", input), dim, keepdim)


def _logic(where: str, compute: _Reduce, x: TensorLike, axis: int | Sequence[int] | None, keep_dims: bool) -> Tensor:
    return reduce(where, compute, keras.ops.cast(tensor(where, x), bool_), axis, keep_dims)


def all(input: TensorLike, axis: int | Sequence[int] | None = None, keep_dims: bool = False) -> Tensor:
    """Whether all of `input` is True over `axis` (None: all); `keep_dims` keeps them. Example: ``ops.all(x > 0)``."""
    return _logic("ops.all", keras.ops.all, input, axis, keep_dims)


def any(input: TensorLike, axis: int | Sequence[int] | None = None, keep_dims: bool = False) -> Tensor:
    """Whether any of `input` is True over `axis` (None: all); `keep_dims` keeps them. Example: ``ops.any(x > 0)``."""
    return _logic("ops.any", keras.ops.any, input, axis, keep_dims)


def var(
    input: TensorLike, axis: int | Sequence[int] | None = None, ddof: int | bool = 0, keepdims: bool = False
) -> Tensor:
    """The variance of `input` along `axis`, an axis, a tuple of them, or None for all.

    `keepdims` keeps the axes with size 1; `ddof` is subtracted from the number of elements, True means 1. Example:
    ``ops.var(Tensor([1.0, 2.0, 3.0]), ddof=1)`` is 1.0.
    """
    x = as_floats("ops.var", input)
    return keras.ops.cast(_wide_variance("ops.var", x, axis, ddof, keepdims), x.dtype)


def _wide_variance(
    where: str, x: Tensor, axis: int | Sequence[int] | None, ddof: int | bool, keepdims: bool
) -> Tensor:
    """Compute the variance in float32 at least: that of float16 numbers may be beyond float16, and not its root."""
    axes, wide = axes_of(where, axis, rank_of(x)), widened(x)
    centered = keras.ops.square(wide - keras.ops.mean(wide, axis=axes, keepdims=True))
    total = reduce(where, keras.ops.sum, centered, axes or None, keepdims)
    sizes = [keras.ops.shape(x)[axis] for axis in axes]
    return total / keras.ops.cast(math.prod(sizes) - int(ddof), wide.dtype)


def std(
    input: TensorLike, axis: int | Sequence[int] | None = None, ddof: int | bool = 0, keepdims: bool = False
) -> Tensor:
    """The square root of `var`, with its `input`, `axis`, `ddof` and `keepdims`. Example: ``ops.std(x, axis=0)``."""
    x = as_floats("ops.std", input)
    return keras.ops.cast(keras.ops.sqrt(_wide_variance("ops.std", x, axis, ddof, keepdims)), x.dtype)


def var_mean(
    input: TensorLike, axis: int | Sequence[int] | None = None, ddof: int | bool = 0, keepdims: bool = False
) -> tuple[Tensor, Tensor]:
    """`var` and `mean` of `input` over `axis` (`ddof`, `keepdims`)."""
    return var(input, axis, ddof, keepdims), mean(input, axis, keepdims)


def std_mean(
    input: TensorLike, axis: int | Sequence[int] | None = None, ddof: int | bool = 0, keepdims: bool = False
) -> tuple[Tensor, Tensor]:
    """`std` and `mean` of `input` over `axis` (`ddof`, `keepdims`)."""
    return std(input, axis, ddof, keepdims), mean(input, axis, keepdims)


def count_nonzero(
    x: TensorLike, axis: int | Sequence[int] | None = (), keep_dims: bool = False, dtype: DTypeLike = "int32"
) -> Tensor:
    """Count the nonzero elements of `x` over `axis` (all for ()), as `dtype`; `keep_dims` keeps the axes."""
    where = "ops.count_nonzero"
    dtype = as_dtype(dtype)
    nonzero = backend.to_tensor(keras.ops.cast(tensor(where, x), bool_), dtype)
    return backend.to_tensor(reduce(where, keras.ops.sum, nonzero, axis, keep_dims), dtype)


def reduction(name: str, compute: _Reduce, doc: str) -> type[Primitive]:
    """Return the class of one reduction: MindSpore's name, Keras's function, the first sentence of its docstring."""

    def reduced(x: TensorLike, axis: int | Sequence[int] | None = (), *, keep_dims: bool = False) -> Tensor:
        x = tensor(f"ops.{name}", x)
        return keras.ops.cast(reduce(f"ops.{name}", compute, x, axis, keep_dims), x.dtype)

    named(reduced, name, (
        f"{doc} `keep_dims` keeps the axes with size 1; the dtype stays.\n\n"
        f"    Example: ``ops.{name}(keep_dims=True)(x, 1)``."
    ))
    return as_primitive(reduced)


def _mean(x: Tensor, **options: Any) -> Tensor:
    return keras.ops.mean(x if is_float(x.dtype) else keras.ops.cast(x, float32), **options)


ReduceMean = reduction("ReduceMean", _mean, "The mean over the axes given in the call.")
ReduceMax = reduction("ReduceMax", keras.ops.max, "The largest element over the axes given in the call.")
ReduceMin = reduction("ReduceMin", keras.ops.min, "The smallest element over the axes given in the call.")
ReduceProd = reduction("ReduceProd", keras.ops.prod, "The product over the axes given in the call.")
ReduceAll = reduction("ReduceAll", keras.ops.all, "Whether all is True over the axes given in the call.")
ReduceAny = reduction("ReduceAny", keras.ops.any, "Whether anything is True over the axes given in the call.")



@as_primitive
def ReduceSum(
    x: TensorLike, axis: int | Sequence[int] | None = (), *, keep_dims: bool = False, skip_mode: bool = False
) -> Tensor:
    """The sum over the axes given in the call; `keep_dims` keeps the axes with size 1; the dtype stays.

    With `skip_mode` no axis means no sum. Example: ``ops.ReduceSum(keep_dims=True)(x, 1)``.
    """
    x = tensor("ops.ReduceSum", x)
    if skip_mode and axis in ((), []):
        return x
    return keras.ops.cast(reduce("ops.ReduceSum", keras.ops.sum, x, axis, keep_dims), x.dtype)


reduce_mean, reduce_sum, reduce_max, reduce_min = ReduceMean(), ReduceSum(), ReduceMax(), ReduceMin()
