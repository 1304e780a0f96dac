"""Counts, cumulative extremes, reductions that ignore NaN, and searches in sorted sequences."""

from __future__ import annotations

from collections.abc import Sequence

import keras

from mixtrain import backend, checks
from mixtrain.dtype import bool_, int64, is_float
from mixtrain.ops.extremes import amax, amin
from mixtrain.ops.inputs import as_floats, axes_of, axis_of, pair, rank_of, tensor, tensor_dtype, widened
from mixtrain.ops.ordering import sort
from mixtrain.ops.primitive import REQUIRED, as_primitive, configured
from mixtrain.typing import DTypeLike, Tensor, TensorLike


def aminmax(input: TensorLike, *, axis: int | None = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The minimum and the maximum of `input` along `axis`; `keepdims` keeps the axis."""
    x = tensor("ops.aminmax", input)
    if rank_of(x) == 0:
        return x, x
    if not is_float(tensor_dtype(x)):
        return amin(x, axis, keepdims), amax(x, axis, keepdims)
    # NaN is ignored.
    missing = keras.ops.isnan(x)
    infinite = keras.ops.full_like(x, float("inf"))
    low, high = (keras.ops.where(missing, fill, x) for fill in (infinite, -infinite))
    return amin(low, axis, keepdims), amax(high, axis, keepdims)


def bincount(input: TensorLike, weights: TensorLike | None = None, minlength: int = 0) -> Tensor:
    """Count each integer from 0 on in the vector `input`, or add up its `weights`; float32, at least `minlength` long.

    Example: ``ops.bincount(Tensor([1, 1, 3]))`` is ``[0.0, 2.0, 0.0, 1.0]``.
    """
    x = keras.ops.cast(tensor("ops.bincount", input), "int32")
    length = max(int(keras.ops.max(x)) + 1, minlength)
    marks = keras.ops.cast(keras.ops.one_hot(x, length), "float32")
    if weights is not None:
        marks = marks * keras.ops.cast(tensor("ops.bincount", weights), "float32")[:, None]
    return keras.ops.sum(marks, axis=0)


def cov(
    input: TensorLike, *, correction: int = 1, fweights: TensorLike | None = None, aweights: TensorLike | None = None
) -> Tensor:
    """The covariance matrix of the rows of `input`, divided by the number of observations less `correction`.

    `fweights` and `aweights`: the frequency and the weight of each observation.
    """
    x = as_floats("ops.cov", input)
    weights = keras.ops.ones((x.shape[-1],), dtype=x.dtype)
    for factors in (fweights, aweights):
        weights = weights if factors is None else weights * keras.ops.cast(tensor("ops.cov", factors), x.dtype)
    total = keras.ops.sum(weights)
    centered = x - keras.ops.sum(x * weights, axis=-1, keepdims=True) / total
    correction = correction if aweights is None else (
        correction * keras.ops.sum(weights * keras.ops.cast(tensor("ops.cov", aweights), x.dtype)) / total
    )
    if rank_of(x) > 1:
        products = backend.product(keras.ops.matmul, centered * weights, keras.ops.transpose(centered))
        return products / (total - correction)
    return keras.ops.sum(centered * centered * weights) / (total - correction)


def _cumulative(where: str, input: TensorLike, axis: int, largest: bool) -> tuple[Tensor, Tensor]:
    """Return the cumulative extreme along an axis, and the index of the last such element."""
    x = tensor(where, input)
    axis = axis_of(where, axis, rank_of(x))
    rows = keras.ops.moveaxis(x, axis, -1)
    size = rows.shape[-1]
    # A row of all elements for each of them, of which the mask keeps those up to it.
    mask = keras.ops.tril(keras.ops.ones((size, size), dtype=bool_))
    values = keras.ops.broadcast_to(rows[..., None, :], (*rows.shape[:-1], size, size))
    reduce = keras.ops.max if largest else keras.ops.min
    extremes = reduce(keras.ops.where(mask, values, rows[..., :1, None]), axis=-1)
    is_extreme = keras.ops.logical_or(  # After a NaN, that of the last NaN.
        values == extremes[..., None],
        keras.ops.logical_and(keras.ops.isnan(values), keras.ops.isnan(extremes[..., None])),
    ) if is_float(x.dtype) else values == extremes[..., None]
    hits = keras.ops.logical_and(mask, is_extreme)
    indices = keras.ops.max(keras.ops.where(hits, keras.ops.arange(size, dtype="int32"), 0), axis=-1)
    indices = keras.ops.cast(indices, backend.canonical_dtype("int64") if largest else "int32")
    return keras.ops.moveaxis(extremes, -1, axis), keras.ops.moveaxis(indices, -1, axis)


def cummax(input: TensorLike, axis: int) -> tuple[Tensor, Tensor]:
    """The cumulative maximum of `input` along `axis`, and its indices."""
    return _cumulative("ops.cummax", input, axis, largest=True)


def cummin(input: TensorLike, axis: int) -> tuple[Tensor, Tensor]:
    """The cumulative minimum of `input` along `axis`, and its indices."""
    return _cumulative("ops.cummin", input, axis, largest=False)


def logcumsumexp(input: TensorLike, axis: int) -> Tensor:
    """log(cumsum(exp(`input`))) along `axis`."""
    x = as_floats("ops.logcumsumexp", input)
    top = keras.ops.max(x, axis=axis, keepdims=True)
    return keras.ops.log(keras.ops.cumsum(keras.ops.exp(x - top), axis=axis)) + top


def histc(input: TensorLike, bins: int = 100, min: float = 0.0, max: float = 0.0) -> Tensor:
    """Count the elements of `input` in `bins` equal bins between `min` and `max` (those of `input`, if equal)."""
    x = keras.ops.reshape(as_floats("ops.histc", input), (-1,))
    low, high = (float(backend.to_numpy(end)) for end in (keras.ops.min(x), keras.ops.max(x))) if min == max else (
        min, max
    )
    index = keras.ops.cast(keras.ops.floor((x - low) * (bins / ((high - low) or 1))), "int32")
    index = keras.ops.where(x == high, bins - 1, index)
    inside = keras.ops.logical_and(x >= low, x <= high)
    # The one-hot row of -1 is zero.
    marks = keras.ops.one_hot(keras.ops.where(inside, index, -1), bins, dtype=x.dtype)
    return keras.ops.sum(marks, axis=0)


def nanmean(
    input: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False, *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The mean of `input` along `axis` without NaN, in `dtype`; `keepdims` keeps the axis."""
    x = as_floats("ops.nanmean", input)
    total = nansum(x, axis, keepdims, dtype=dtype)
    valid = keras.ops.cast(keras.ops.logical_not(keras.ops.isnan(x)), total.dtype)
    return total / keras.ops.sum(valid, axis=axes_of("ops.nanmean", axis, rank_of(x)), keepdims=keepdims)


def nansum(
    input: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False, *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The sum of `input` along `axis` without NaN, in `dtype`; `keepdims` keeps the axis."""
    x = tensor("ops.nansum", input)
    x = keras.ops.where(keras.ops.isnan(x), keras.ops.zeros_like(x), x) if is_float(x.dtype) else x
    dtype = tensor_dtype(x) if dtype is None else dtype
    dtype = int64 if dtype == bool_ else dtype
    total = keras.ops.sum(keras.ops.cast(x, dtype), axis=axes_of("ops.nansum", axis, rank_of(x)), keepdims=keepdims)
    return keras.ops.cast(total, dtype)


def quantile(
    input: TensorLike, q: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Tensor:
    """The quantiles `q` of `input` along `axis`; `keepdims` keeps it."""
    x = as_floats("ops.quantile", input)
    return keras.ops.quantile(x, keras.ops.cast(tensor("ops", q), x.dtype), axis=axis, keepdims=keepdims)


def nanquantile(
    input: TensorLike, q: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Tensor:
    """The quantiles `q` of `input` along `axis` without NaN; `keepdims` keeps the axis."""
    ops = keras.ops
    x, probabilities = as_floats("ops.nanquantile", input), ops.cast(tensor("ops.nanquantile", q), "float32")
    axis = None if axis is None else axis_of("ops.nanquantile", axis, rank_of(x))
    rows = ops.reshape(x, (-1,)) if axis is None else ops.moveaxis(x, axis, -1)
    missing = ops.isnan(rows)
    # NaN is sorted behind the `count` values.
    ordered = ops.sort(ops.where(missing, ops.full_like(rows, float("inf")), rows), axis=-1)
    count = ops.sum(ops.cast(ops.logical_not(missing), "float32"), axis=-1, keepdims=True)
    position = ops.maximum(count - 1, 0) * ops.reshape(probabilities, (-1,))
    indices = (ops.cast(index, "int32") for index in (ops.floor(position), ops.ceil(position)))
    below, above = (ops.take_along_axis(ordered, index, axis=-1) for index in indices)
    weight = ops.cast(position - ops.floor(position), x.dtype)
    quantiles = ops.where(count > 0, below * (1 - weight) + above * weight, ops.full_like(below, float("nan")))
    quantiles = ops.reshape(ops.moveaxis(quantiles, -1, 0), (*probabilities.shape, *rows.shape[:-1]))
    if not keepdims:
        return quantiles
    shape = [1] * rank_of(x) if axis is None else [*x.shape[:axis], 1, *x.shape[axis + 1:]]
    return ops.reshape(quantiles, (*probabilities.shape, *shape))


def renorm(input: TensorLike, p: float, axis: int, maxnorm: float) -> Tensor:
    """Scale down the slices of `input` along `axis` to norms of order `p` of at most `maxnorm`."""
    x = as_floats("ops.renorm", input)
    axis = axis_of("ops.renorm", axis, rank_of(x))
    others = tuple(other for other in range(rank_of(x)) if other != axis)
    norms = keras.ops.sum(keras.ops.abs(widened(x)) ** p, axis=others, keepdims=True) ** (1 / p)
    factors = keras.ops.where(norms > maxnorm, maxnorm / (norms + 1e-7), keras.ops.ones_like(norms))
    return keras.ops.cast(widened(x) * factors, x.dtype)


def searchsorted(
    sorted_sequence: TensorLike, values: TensorLike, *, out_int32: bool = False, right: bool = False,
    side: str | None = None, sorter: TensorLike | None = None,
) -> Tensor:
    """The indices at which to insert `values` into `sorted_sequence` to keep it sorted along the last axis.

    `out_int32`: int32 indices, else int64; `right`, or `side` "right": behind equal elements; `sorter`: the indices
    that sort `sorted_sequence`, if it is not sorted. Example:
    ``ops.searchsorted(Tensor([1.0, 3.0, 5.0]), Tensor([4.0]))`` is ``[2]``.
    """
    where = "ops.searchsorted"
    if side is not None:
        checks.one_of(where, "side", side, ("left", "right"))
    x = tensor(where, sorted_sequence)
    if sorter is not None:
        x = keras.ops.take_along_axis(x, tensor(where, sorter), axis=-1)
    x, values = pair(where, x, tensor(where, values), broadcast=False)
    right = right or side == "right"
    if rank_of(x) == rank_of(values) == 1:
        indices = keras.ops.searchsorted(x, values, side="right" if right else "left")
    else:
        # `keras.ops.searchsorted` takes vectors only.
        below = (x[..., None, :] <= values[..., None]) if right else (x[..., None, :] < values[..., None])
        indices = keras.ops.reshape(keras.ops.sum(keras.ops.cast(below, "int32"), axis=-1), values.shape)
    return keras.ops.cast(indices, "int32" if out_int32 else backend.canonical_dtype("int64"))


def bucketize(input: TensorLike, boundaries: TensorLike, *, right: bool = False) -> Tensor:
    """The bucket of each element of `input`; each of `boundaries` ends a bucket, inclusive unless `right`."""
    ends = tensor("ops.bucketize", list(boundaries) if isinstance(boundaries, (list, tuple)) else boundaries)
    x = tensor("ops.bucketize", input)
    buckets = searchsorted(keras.ops.cast(ends, "float32"), keras.ops.reshape(x, (-1,)), out_int32=True, right=right)
    return keras.ops.reshape(buckets, x.shape)


def msort(input: TensorLike) -> Tensor:
    """`input` sorted along its first axis."""
    return sort(input, 0)[0]


def argwhere(input: TensorLike) -> Tensor:
    """The indices of the nonzero elements of `input`, one row each; int64."""
    indices = keras.ops.stack(keras.ops.nonzero(tensor("ops.argwhere", input)), axis=-1)
    return keras.ops.cast(indices, backend.canonical_dtype("int64"))


def trapz(y: TensorLike, x: TensorLike | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The integral of `y` along `dim` by the trapezoidal rule, at the points `x` or `dx` apart."""
    value = as_floats("ops.trapz", y)
    value = keras.ops.moveaxis(value, dim, -1)
    if x is not None:
        points = as_floats("ops.trapz", x)
        points = points if rank_of(points) == 1 else keras.ops.moveaxis(points, dim, -1)
        dx = points[..., 1:] - points[..., :-1]
    return keras.ops.sum((value[..., 1:] + value[..., :-1]) / 2 * dx, axis=-1)


def intopk(x1: TensorLike, x2: TensorLike, k: int) -> Tensor:
    """Whether the class `x2` of each row of `x1` is among its `k` largest."""
    scores, classes = as_floats("ops.intopk", x1), keras.ops.cast(tensor("ops.intopk", x2), "int32")
    score = keras.ops.take_along_axis(scores, classes[:, None], axis=1)
    return keras.ops.sum(keras.ops.cast(scores > score, "int32"), axis=1) < k


Cummin, Cummax = configured("Cummin", cummin, axis=REQUIRED), configured("Cummax", cummax, axis=REQUIRED)


InTopK = configured("InTopK", intopk, k=REQUIRED)


@as_primitive
def SearchSorted(
    sorted_sequence: TensorLike, values: TensorLike, sorter: TensorLike | None = None, *, dtype: DTypeLike = "int64",
    right: bool = False,
) -> Tensor:
    """`searchsorted` of `dtype`, with `right`. Example: ``ops.SearchSorted()(sequence, values)``."""
    return searchsorted(sorted_sequence, values, out_int32=str(dtype).endswith("32"), right=right, sorter=sorter)
