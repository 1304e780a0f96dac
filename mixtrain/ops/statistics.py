"""Counts, running extremes, sums that pass over NaN, and places in sorted sequences."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.dtype import bool_, is_float
from mixtrain.ops.extremes import amax, amin
from mixtrain.ops.inputs import as_floats, axes_of, axis_of, format_of, rank_of, tensor
from mixtrain.ops.ordering import sort
from mixtrain.ops.primitive import Primitive


def aminmax(input: Any, *, axis: Any = 0, keepdims: bool = False) -> tuple[Any, Any]:
    """(smallest, largest) elements of `input` along `axis`; `keepdims` keeps it.

    Source: MindSpore, `mindspore.ops.aminmax`.
    """
    x = tensor("ops.aminmax", input)
    if rank_of(x) == 0:
        return x, x
    if not is_float(format_of(x)):
        return amin(x, axis, keepdims), amax(x, axis, keepdims)
    # NaN does not count.
    missing = keras.ops.isnan(x)
    infinite = keras.ops.full_like(x, float("inf"))
    low, high = (keras.ops.where(missing, edge, x) for edge in (infinite, -infinite))
    return amin(low, axis, keepdims), amax(high, axis, keepdims)


def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:
    """How often each number from 0 on occurs in the vector `input`, or the sums of their `weights`; float32.

    Args:
        input: Vector of integers that are not negative.
        weights: What each element counts; 1 without them.
        minlength: The least length of the result.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> ops.bincount(mixtrain.Tensor([1, 1, 3])).asnumpy().tolist()
        [0.0, 2.0, 0.0, 1.0]

    Source: MindSpore, `mindspore.ops.bincount`.
    """
    x = keras.ops.cast(tensor("ops.bincount", input), "int32")
    length = max(int(keras.ops.max(x)) + 1, minlength)
    counted = keras.ops.cast(keras.ops.one_hot(x, length), "float32")
    if weights is not None:
        counted = counted * keras.ops.cast(tensor("ops.bincount", weights), "float32")[:, None]
    return keras.ops.sum(counted, axis=0)


def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """The covariances of the rows of `input`, divided by their number less `correction`.

    Args:
        input: A row of observations for each variable.
        correction: What is taken from the number of observations.
        fweights: How often each observation counts.
        aweights: How much each observation counts.

    Source: MindSpore, `mindspore.ops.cov`.
    """
    x = as_floats("ops.cov", input)
    weights = keras.ops.ones((x.shape[-1],), dtype=x.dtype)
    for given in (fweights, aweights):
        weights = weights if given is None else weights * keras.ops.cast(tensor("ops.cov", given), x.dtype)
    total = keras.ops.sum(weights)
    apart = x - keras.ops.sum(x * weights, axis=-1, keepdims=True) / total
    lost = correction if aweights is None else (
        correction * keras.ops.sum(weights * keras.ops.cast(tensor("ops.cov", aweights), x.dtype)) / total
    )
    if rank_of(x) > 1:
        return backend.product(keras.ops.matmul, apart * weights, keras.ops.transpose(apart)) / (total - lost)
    return keras.ops.sum(apart * apart * weights) / (total - lost)


def _running(where: str, input: Any, axis: int, largest: bool) -> tuple[Any, Any]:
    """Return the extreme so far along an axis, and the place of the last such element."""
    x = tensor(where, input)
    number = axis_of(where, axis, rank_of(x))
    rows = keras.ops.moveaxis(x, number, -1)
    size = rows.shape[-1]
    so_far = keras.ops.tril(keras.ops.ones((size, size), dtype=bool_))
    spread = keras.ops.broadcast_to(rows[..., None, :], (*rows.shape[:-1], size, size))
    best = (keras.ops.max if largest else keras.ops.min)(keras.ops.where(so_far, spread, rows[..., :1, None]), axis=-1)
    hits = keras.ops.logical_and(so_far, spread == best[..., None])
    places = keras.ops.max(keras.ops.where(hits, keras.ops.arange(size, dtype="int32"), 0), axis=-1)
    places = keras.ops.cast(places, backend.held_format("int64") if largest else "int32")
    return keras.ops.moveaxis(best, -1, number), keras.ops.moveaxis(places, -1, number)


def cummax(input: Any, axis: int) -> tuple[Any, Any]:
    """(largest so far, its place) along `axis` of `input`. Source: MindSpore, `mindspore.ops.cummax`."""
    return _running("ops.cummax", input, axis, largest=True)


def cummin(input: Any, axis: int) -> tuple[Any, Any]:
    """(smallest so far, its place) along `axis` of `input`. Source: MindSpore, `mindspore.ops.cummin`."""
    return _running("ops.cummin", input, axis, largest=False)


def logcumsumexp(input: Any, axis: int) -> Any:
    """log(cumsum(exp(`input`))) along `axis`. Source: MindSpore, `mindspore.ops.logcumsumexp`."""
    x = as_floats("ops.logcumsumexp", input)
    top = keras.ops.max(x, axis=axis, keepdims=True)
    return keras.ops.log(keras.ops.cumsum(keras.ops.exp(x - top), axis=axis)) + top


def histc(input: Any, bins: int = 100, min: float = 0.0, max: float = 0.0) -> Any:
    """How many elements of `input` lie in each of so many `bins` between `min` and `max` (of the elements, if equal).

    Source: MindSpore, `mindspore.ops.histc`.
    """
    x = keras.ops.reshape(as_floats("ops.histc", input), (-1,))
    low, high = (float(backend.to_numpy(end)) for end in (keras.ops.min(x), keras.ops.max(x))) if min == max else (
        min, max
    )
    place = keras.ops.cast(keras.ops.floor((x - low) * (bins / ((high - low) or 1))), "int32")
    place = keras.ops.where(x == high, bins - 1, place)
    inside = keras.ops.logical_and(x >= low, x <= high)
    counted = keras.ops.one_hot(keras.ops.where(inside, place, -1), bins, dtype=x.dtype)
    return keras.ops.sum(counted, axis=0)


def nanmean(input: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Any:
    """The mean of `input` along `axis` without NaN, in `dtype`; `keepdims` keeps it.

    Source: MindSpore, `mindspore.ops.nanmean`.
    """
    x = as_floats("ops.nanmean", input)
    total = nansum(x, axis, keepdims, dtype=dtype)
    numbers = keras.ops.cast(keras.ops.logical_not(keras.ops.isnan(x)), total.dtype)
    return total / keras.ops.sum(numbers, axis=axes_of("ops.nanmean", axis, rank_of(x)), keepdims=keepdims)


def nansum(input: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Any:
    """The sum of `input` along `axis` without NaN, in `dtype`; `keepdims` keeps it.

    Source: MindSpore, `mindspore.ops.nansum`.
    """
    x = as_floats("ops.nansum", input)
    x = x if dtype is None else keras.ops.cast(x, dtype)
    x = keras.ops.where(keras.ops.isnan(x), keras.ops.zeros_like(x), x)
    return keras.ops.sum(x, axis=axes_of("ops.nansum", axis, rank_of(x)), keepdims=keepdims)


def quantile(input: Any, q: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The quantiles `q` of `input` along `axis`; `keepdims` keeps it. Source: MindSpore, `mindspore.ops.quantile`."""
    x = as_floats("ops.quantile", input)
    return keras.ops.quantile(x, keras.ops.cast(tensor("ops", q), x.dtype), axis=axis, keepdims=keepdims)


def nanquantile(input: Any, q: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The quantiles `q` of `input` along `axis` without NaN; `keepdims` keeps it.

    Source: MindSpore, `mindspore.ops.nanquantile`.
    """
    ops = keras.ops
    x, share = as_floats("ops.nanquantile", input), ops.cast(tensor("ops.nanquantile", q), "float32")
    number = None if axis is None else axis_of("ops.nanquantile", axis, rank_of(x))
    rows = ops.reshape(x, (-1,)) if number is None else ops.moveaxis(x, number, -1)
    missing = ops.isnan(rows)
    ordered = ops.sort(ops.where(missing, ops.full_like(rows, float("inf")), rows), axis=-1)
    count = ops.sum(ops.cast(ops.logical_not(missing), "float32"), axis=-1, keepdims=True)
    place = ops.maximum(count - 1, 0) * ops.reshape(share, (-1,))
    ends = (ops.cast(end, "int32") for end in (ops.floor(place), ops.ceil(place)))
    below, above = (ops.take_along_axis(ordered, end, axis=-1) for end in ends)
    weight = ops.cast(place - ops.floor(place), x.dtype)
    found = ops.where(count > 0, below * (1 - weight) + above * weight, ops.full_like(below, float("nan")))
    found = ops.reshape(ops.moveaxis(found, -1, 0), (*share.shape, *rows.shape[:-1]))
    if not keepdims:
        return found
    kept = [1] * rank_of(x) if number is None else [*x.shape[:number], 1, *x.shape[number + 1:]]
    return ops.reshape(found, (*share.shape, *kept))


def renorm(input: Any, p: float, axis: int, maxnorm: float) -> Any:
    """`input` with its slices along `axis` scaled down to norms of order `p` of at most `maxnorm`.

    Source: MindSpore, `mindspore.ops.renorm`.
    """
    x = as_floats("ops.renorm", input)
    number = axis_of("ops.renorm", axis, rank_of(x))
    others = tuple(place for place in range(rank_of(x)) if place != number)
    norms = keras.ops.sum(keras.ops.abs(x) ** p, axis=others, keepdims=True) ** (1 / p)
    return x * keras.ops.where(norms > maxnorm, maxnorm / (norms + 1e-7), keras.ops.ones_like(norms))


def searchsorted(
    sorted_sequence: Any, values: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Any = None,
) -> Any:
    """The places at which `values` would have to go into `sorted_sequence` to keep it sorted.

    Args:
        sorted_sequence: Sorted vectors along the last axis.
        values: What would be put in.
        out_int32: Whether the places are int32; int64 otherwise.
        right: Whether equal elements stay before it.
        side: "right" for `right`, "left" for not.
        sorter: The order that sorts `sorted_sequence`, if it is not sorted.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> ops.searchsorted(mixtrain.Tensor([1.0, 3.0, 5.0]), mixtrain.Tensor([4.0])).asnumpy().tolist()
        [2]

    Source: MindSpore, `mindspore.ops.searchsorted`.
    """
    where = "ops.searchsorted"
    if side is not None:
        checks.one_of(where, "side", side, ("left", "right"))
    x = tensor(where, sorted_sequence)
    if sorter is not None:
        x = keras.ops.take_along_axis(x, tensor(where, sorter), axis=-1)
    sought = keras.ops.cast(tensor(where, values), x.dtype)
    after = right or side == "right"
    if rank_of(x) == rank_of(sought) == 1:
        found = keras.ops.searchsorted(x, sought, side="right" if after else "left")
    else:
        below = (x[..., None, :] <= sought[..., None]) if after else (x[..., None, :] < sought[..., None])
        found = keras.ops.reshape(keras.ops.sum(keras.ops.cast(below, "int32"), axis=-1), sought.shape)
    return keras.ops.cast(found, "int32" if out_int32 else backend.held_format("int64"))


def bucketize(input: Any, boundaries: Any, *, right: bool = False) -> Any:
    """The number of the bucket of each element of `input`; `boundaries` end them, inclusive unless `right`.

    Source: MindSpore, `mindspore.ops.bucketize`.
    """
    ends = tensor("ops.bucketize", list(boundaries) if isinstance(boundaries, (list, tuple)) else boundaries)
    sought = tensor("ops.bucketize", input)
    found = searchsorted(keras.ops.cast(ends, "float32"), keras.ops.reshape(sought, (-1,)), out_int32=True, right=right)
    return keras.ops.reshape(found, sought.shape)


def msort(input: Any) -> Any:
    """`input` sorted along its first axis. Source: MindSpore, `mindspore.ops.msort`."""
    return sort(input, 0)[0]


def argwhere(input: Any) -> Any:
    """The places of the elements of `input` that are not zero, a row each; int64.

    Source: MindSpore, `mindspore.ops.argwhere`.
    """
    places = keras.ops.stack(keras.ops.nonzero(tensor("ops.argwhere", input)), axis=-1)
    return keras.ops.cast(places, backend.held_format("int64"))


def trapz(y: Any, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Any:
    """The integral of `y` along `dim` by the trapezoidal rule, at the points `x` or `dx` apart.

    Source: MindSpore, `mindspore.ops.trapz`.
    """
    value = as_floats("ops.trapz", y)
    value = keras.ops.moveaxis(value, dim, -1)
    if x is not None:
        places = as_floats("ops.trapz", x)
        places = places if len(places.shape) == 1 else keras.ops.moveaxis(places, dim, -1)
        dx = places[..., 1:] - places[..., :-1]
    return keras.ops.sum((value[..., 1:] + value[..., :-1]) / 2 * dx, axis=-1)


def intopk(x1: Any, x2: Any, k: int) -> Any:
    """Whether the class `x2` of each row of `x1` is among its `k` largest.

    Source: MindSpore, `mindspore.ops.intopk`.
    """
    scores, classes = as_floats("ops.intopk", x1), keras.ops.cast(tensor("ops.intopk", x2), "int32")
    own = keras.ops.take_along_axis(scores, classes[:, None], axis=1)
    return keras.ops.sum(keras.ops.cast(scores > own, "int32"), axis=1) < k


class Cummin(Primitive):
    """`cummin` along `axis`. Example: ``ops.Cummin(0)(x)``. Source: MindSpore, `mindspore.ops.Cummin`."""

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def __call__(self, input: Any) -> tuple[Any, Any]:
        return cummin(input, self.axis)


class Cummax(Cummin):
    """`cummax` along `axis`. Example: ``ops.Cummax(0)(x)``. Source: MindSpore, `mindspore.ops.Cummax`."""

    def __call__(self, input: Any) -> tuple[Any, Any]:
        return cummax(input, self.axis)


class InTopK(Primitive):
    """`intopk` of the `k` largest. Example: ``ops.InTopK(3)(x1, x2)``. Source: MindSpore, `mindspore.ops.InTopK`."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k

    def __call__(self, x1: Any, x2: Any) -> Any:
        return intopk(x1, x2, self.k)


class SearchSorted(Primitive):
    """`searchsorted` of `dtype`, with `right`. Example: ``ops.SearchSorted()(sequence, values)``.

    Source: MindSpore, `mindspore.ops.SearchSorted`.
    """

    def __init__(self, dtype: Any = "int64", right: bool = False) -> None:
        super().__init__()
        self.dtype, self.right = dtype, right

    def __call__(self, sorted_sequence: Any, values: Any, sorter: Any = None) -> Any:
        return searchsorted(
            sorted_sequence, values, out_int32=str(self.dtype).endswith("32"), right=self.right, sorter=sorter
        )
