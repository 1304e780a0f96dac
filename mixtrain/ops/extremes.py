"""Maxima, minima and medians with their indices, and cumulative sums and products, with their primitives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import keras

from mixtrain import backend, checks
from mixtrain.dtype import as_dtype, bool_, int32, int64, is_complex, is_float
from mixtrain.ops.elementwise import named
from mixtrain.ops.inputs import axes_of, axis_of, rank_of, tensor
from mixtrain.ops.primitive import Primitive, as_primitive, configured
from mixtrain.ops.reduction import reduce
from mixtrain.typing import DTypeLike, Tensor, TensorLike


def _extreme(
    where: str, largest: bool, x: TensorLike, axis: int | Sequence[int] | None, keepdims: bool,
    initial: TensorLike | None, mask: TensorLike | None,
) -> Tensor:
    """Compute the maximum or minimum of the elements that `mask` selects and of `initial`."""
    x = tensor(where, x)
    bound, compute = (keras.ops.maximum, keras.ops.max) if largest else (keras.ops.minimum, keras.ops.min)
    if mask is not None:
        if initial is None:
            raise checks.fail_value(where, "initial must be given with where", initial, "initial=0.0")
        x = keras.ops.where(tensor(where, mask), x, keras.ops.cast(initial, x.dtype))
    result = reduce(where, compute, x, axis, keepdims)
    return result if initial is None else bound(result, keras.ops.cast(initial, result.dtype))


def _arg_extreme(where: str, largest: bool, x: TensorLike, axis: int | None, keepdims: bool, dtype: str) -> Tensor:
    """Return the index of the largest or smallest element along one axis; of the flat tensor for None."""
    x = tensor(where, x)
    if x.dtype == bool_:
        x = keras.ops.cast(x, int32)
    axis = None if axis is None else axis_of(where, axis, rank_of(x))
    if rank_of(x) == 0:
        return backend.to_tensor(keras.ops.zeros(()), dtype)
    compute = keras.ops.argmax if largest else keras.ops.argmin
    if rank_of(x) > 7 and axis is not None:  # More axes than TensorFlow searches.
        before, after = tuple(x.shape[:axis]), tuple(x.shape[axis + 1:])
        flat = compute(keras.ops.reshape(x, (math.prod(before), x.shape[axis], math.prod(after))), axis=1)
        return backend.to_tensor(keras.ops.reshape(flat, before + (1,) * keepdims + after), dtype)
    return backend.to_tensor(compute(x, axis=axis, keepdims=keepdims), dtype)


def _extreme_with_index(
    where: str, largest: bool, x: TensorLike, axis: int | None, keepdims: bool, initial: TensorLike | None,
    mask: TensorLike | None,
) -> Tensor:
    x = tensor(where, x)
    if axis is None:
        values = _extreme(where, largest, x, None, False, initial, mask)
        return values, backend.to_tensor(keras.ops.zeros(()), int64)
    bounded = x
    if initial is not None:
        start = keras.ops.cast(initial, x.dtype)
        bounded = x if mask is None else keras.ops.where(tensor(where, mask), x, start)
        # Where no element is beyond `initial`, all are equal, and the index is 0.
        bounded = (keras.ops.maximum if largest else keras.ops.minimum)(bounded, start)
    if rank_of(x) == 0:
        indices = _arg_extreme(where, largest, bounded, axis, False, int64)
        return _extreme(where, largest, x, axis, keepdims, initial, mask), indices
    axis = axis_of(where, axis, rank_of(x))
    places = _first_places(bounded, largest, axis)
    if initial is None and mask is None:
        values = _at(x, places, axis, keepdims)
    else:
        values = _extreme(where, largest, x, axis, keepdims, initial, mask)
    return values, backend.to_tensor(places if keepdims else keras.ops.squeeze(places, axis), int64)


def first_extreme(x: Tensor, largest: bool, axis: int, keepdims: bool = False) -> Tensor:
    """Return the maximum or minimum along `axis`, whose gradient is that of the first of equal elements."""
    return _at(x, _first_places(x, largest, axis), axis, keepdims)


def _places(x: Tensor, axis: int) -> Tensor:
    """Return the numbers of the elements along `axis`."""
    if x.shape[axis] is None:
        return keras.ops.cumsum(keras.ops.ones_like(x, dtype="int32"), axis) - 1
    shape = [1] * rank_of(x)
    shape[axis] = -1
    return keras.ops.reshape(keras.ops.arange(x.shape[axis], dtype="int32"), shape)


def _first_places(x: Tensor, largest: bool, axis: int) -> Tensor:
    """Return the place along `axis`, which is kept, of the first extreme element, or of a NaN.

    Two reductions of elements compile to a fraction of the time of Keras's `argmax`.
    """
    if is_float(x.dtype):
        x = keras.ops.where(keras.ops.isnan(x), math.inf if largest else -math.inf, x)
    extreme = (keras.ops.max if largest else keras.ops.min)(x, axis, keepdims=True)
    return keras.ops.min(keras.ops.where(keras.ops.equal(x, extreme), _places(x, axis), 2**31 - 1), axis, keepdims=True)


def _at(x: Tensor, places: Tensor, axis: int, keepdims: bool) -> Tensor:
    """Return the elements at `places`, which keep `axis`; the others have no part in the gradient."""
    chosen = keras.ops.where(keras.ops.equal(_places(x, axis), places), x, keras.ops.zeros_like(x))
    return keras.ops.cast(keras.ops.sum(chosen, axis, keepdims=keepdims), x.dtype)


def _index_of_nan(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """Return `indices` along `axis`, or that of the first NaN where there is one: backends disagree about NaN."""
    if not is_float(x.dtype) or rank_of(x) == 0:
        return indices
    missing = keras.ops.cast(keras.ops.isnan(x), int32)
    first = keras.ops.cast(keras.ops.argmax(missing, axis=axis, keepdims=True), indices.dtype)
    return keras.ops.where(keras.ops.max(missing, axis=axis, keepdims=True) > 0, first, indices)


def max(
    input: TensorLike, axis: int | None = None, keepdims: bool = False, *, initial: TensorLike | None = None,
    where: TensorLike | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """The maximum of `input` along `axis`, and its index; of all elements for None, with index 0, as in MindSpore.

    `keepdims` keeps the axis with size 1; `initial` is the least value of the result; `where` selects the elements to
    compare, and needs `initial`. Example: ``ops.max(Tensor([[1.0, 3.0], [4.0, 2.0]]), axis=1)`` is
    ``([3.0, 4.0], [1, 0])``.
    """
    return _extreme_with_index("ops.max", True, input, axis, keepdims, initial, where)


def min(
    input: TensorLike, axis: int | None = None, keepdims: bool = False, *, initial: TensorLike | None = None,
    where: TensorLike | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """The minimum of `input` along `axis`, and its index; `keepdims`, `initial`, `where` as in `max`."""
    return _extreme_with_index("ops.min", False, input, axis, keepdims, initial, where)


def amax(
    input: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False, *,
    initial: TensorLike | None = None, where: TensorLike | None = None,
) -> Tensor:
    """The maximum of `input` over one or several `axis`; `keepdims`, `initial`, `where` as in `max`."""
    return _extreme("ops.amax", True, input, axis, keepdims, initial, where)


def amin(
    input: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False, *,
    initial: TensorLike | None = None, where: TensorLike | None = None,
) -> Tensor:
    """The minimum of `input` over one or several `axis`; `keepdims`, `initial`, `where` as in `max`."""
    return _extreme("ops.amin", False, input, axis, keepdims, initial, where)


def argmax(input: TensorLike, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The int64 indices of the maximum of `input` along `dim`, the first of equal elements; None: in the flat tensor.

    `keepdim` keeps the axis with size 1. Example: ``ops.argmax(Tensor([[1.0, 3.0], [4.0, 2.0]]), dim=1)`` is
    ``[1, 0]``.
    """
    return _arg_extreme("ops.argmax", True, input, dim, keepdim and dim is not None, int64)


def argmin(input: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The indices of the minimum of `input` along `axis`, kept with size 1 by `keepdims`; int32."""
    return _arg_extreme("ops.argmin", False, input, axis, keepdims and axis is not None, int32)


def median(input: TensorLike, axis: int = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The medians of `input` along `axis` (the lower of two) and their indices; `keepdims` keeps the axis."""
    x = tensor("ops.median", input)
    axis = axis_of("ops.median", axis, rank_of(x))
    order = keras.ops.argsort(x, axis=axis)
    middle = (x.shape[axis] - 1) // 2
    indices = keras.ops.take(order, keras.ops.convert_to_tensor([middle]), axis=axis)
    return _elements_at(x, _index_of_nan(x, indices, axis), axis, keepdims)


def nanmedian(input: TensorLike, axis: int = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """`median` of `input` along `axis`, ignoring NaN; `keepdims` keeps the axis."""
    x = tensor("ops.nanmedian", input)
    if not is_float(x.dtype):
        return median(x, axis, keepdims)
    # NaN is sorted last, behind the `count` numbers.
    order = keras.ops.argsort(keras.ops.where(keras.ops.isnan(x), math.inf, x), axis=axis)
    count = keras.ops.sum(keras.ops.cast(keras.ops.logical_not(keras.ops.isnan(x)), "int32"), axis, keepdims=True)
    middle = keras.ops.cast(keras.ops.maximum(count - 1, 0) // 2, order.dtype)
    return _elements_at(x, keras.ops.take_along_axis(order, middle, axis=axis), axis, keepdims)


def _elements_at(x: Tensor, indices: Tensor, axis: int, keepdims: bool) -> tuple[Tensor, Tensor]:
    """Return the elements at `indices` along `axis`, one for each row, and the indices as int64."""
    values = keras.ops.take_along_axis(x, indices, axis=axis)
    if not keepdims:
        values, indices = keras.ops.squeeze(values, axis), keras.ops.squeeze(indices, axis)
    return values, backend.to_tensor(indices, int64)


def _median(
    x: TensorLike, *, global_median: bool, axis: int, keep_dims: bool, ignore_nan: bool
) -> tuple[Tensor, Tensor]:
    compute = nanmedian if ignore_nan else median
    if not global_median:
        return compute(x, axis, keep_dims)
    value, _ = compute(keras.ops.reshape(tensor("Median", x), (-1,)), 0)
    return value, backend.to_tensor(0, int64)


Median = configured("Median", _median, global_median=False, axis=0, keep_dims=False, ignore_nan=False)


def _cumulative(
    where: str, compute: Callable[..., Tensor], x: TensorLike, axis: int, dtype: DTypeLike | None
) -> Tensor:
    x = tensor(where, x)
    axis = axis_of(where, axis, rank_of(x))
    dtype = as_dtype(dtype) if dtype is not None else int64 if x.dtype == bool_ else x.dtype
    return compute(backend.to_tensor(x, dtype), axis=axis)


def cumsum(x: TensorLike, axis: int, dtype: DTypeLike | None = None) -> Tensor:
    """The cumulative sum of `x` along `axis`, in `dtype` unless it is None. Example: ``ops.cumsum(x, 0)``."""
    return _cumulative("ops.cumsum", keras.ops.cumsum, x, axis, dtype)


def cumprod(input: TensorLike, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """The cumulative product of `input` along `dim`, in `dtype`; if it is None, of integers in int64."""
    x = tensor("ops.cumprod", input)
    dtype = int64 if dtype is None and not is_float(x.dtype) and not is_complex(x.dtype) else dtype
    return _cumulative("ops.cumprod", keras.ops.cumprod, input, dim, dtype)


@as_primitive
def CumSum(input: TensorLike, axis: int, *, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """The cumulative sum, `exclusive` of the element itself, or `reverse`, from the end: ``ops.CumSum()(x, 0)``."""
    x = tensor("ops.CumSum", input)
    axis = axis_of("ops.CumSum", axis, rank_of(x))
    x = keras.ops.flip(x, axis=axis) if reverse else x
    if exclusive:
        # Shifted by one, as the difference of the inclusive sum and `x` loses digits, and is NaN for infinities.
        widths = [(1, 0) if index == axis else (0, 0) for index in range(rank_of(x))]
        x = keras.ops.pad(x, widths)[(slice(None),) * axis + (slice(0, -1),)]
    total = keras.ops.cumsum(x, axis=axis)
    return keras.ops.flip(total, axis=axis) if reverse else total


def _argument_of(name: str, word: str) -> type[Primitive]:
    def index(input_x: Tensor, *, axis: int = -1, output_type: DTypeLike = "int32") -> Tensor:
        return _arg_extreme(f"ops.{name}", word == "largest", input_x, axis, False, as_dtype(output_type))

    named(index, name, f"Index of the {word} element along `axis`, as `output_type`. Example: ``ops.{name}()(x)``.")
    return as_primitive(index)


def _argument_with_value(name: str, word: str) -> type[Primitive]:
    where, largest = f"ops.{name}", word == "largest"

    def extreme(input: TensorLike, *, axis: int = 0, keep_dims: bool = False) -> tuple[Tensor, Tensor]:
        axes_of(where, axis, rank_of(tensor(where, input)))
        return _extreme_with_index(where, largest, input, axis, keep_dims, None, None)[::-1]

    named(extreme, name, (
        f"(index, value) of the {word} element along `axis`; `keep_dims` keeps the axis with size 1. "
        f"Example: ``ops.{name}()(x)``."
    ))
    return as_primitive(extreme)


Argmax, Argmin = _argument_of("Argmax", "largest"), _argument_of("Argmin", "smallest")
ArgMaxWithValue = _argument_with_value("ArgMaxWithValue", "largest")
ArgMinWithValue = _argument_with_value("ArgMinWithValue", "smallest")
