"""Largest and smallest elements, where they are, and running sums, with their primitives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import keras

from mixtrain import backend, checks
from mixtrain.dtype import as_dtype, bool_, int32, int64
from mixtrain.ops.inputs import as_floats, axes_of, axis_of, rank_of, tensor
from mixtrain.ops.primitive import Primitive, configured
from mixtrain.ops.reduction import reduce


def _extreme(where: str, largest: bool, x: Any, axis: Any, keepdims: bool, initial: Any, given: Any) -> Any:
    """Return the largest or smallest elements, those that `given` marks, and `initial`, alone counting."""
    x = tensor(where, x)
    bound, compute = (keras.ops.maximum, keras.ops.max) if largest else (keras.ops.minimum, keras.ops.min)
    if given is not None:
        if initial is None:
            raise checks.fail_value(where, "initial must be given with where", initial, "initial=0.0")
        x = keras.ops.where(tensor(where, given), x, keras.ops.cast(initial, x.dtype))
    found = reduce(where, compute, x, axis, keepdims)
    return found if initial is None else bound(found, keras.ops.cast(initial, found.dtype))


def _place(where: str, largest: bool, x: Any, axis: int | None, keepdims: bool, dtype: Any) -> Any:
    """Return the index of the largest or smallest element along one axis; of the flat tensor for None."""
    x = tensor(where, x)
    if x.dtype == bool_:
        x = keras.ops.cast(x, int32)
    number = None if axis is None else axis_of(where, axis, rank_of(x))
    if rank_of(x) == 0:
        return backend.to_tensor(keras.ops.zeros(()), dtype)
    compute = keras.ops.argmax if largest else keras.ops.argmin
    return backend.to_tensor(compute(x, axis=number, keepdims=keepdims), dtype)


def _with_place(where: str, largest: bool, x: Any, axis: Any, keepdims: bool, initial: Any, given: Any) -> Any:
    x = tensor(where, x)
    if axis is None:
        values = _extreme(where, largest, x, None, False, initial, given)
        return values, backend.to_tensor(keras.ops.zeros(()), int64)
    counted = x
    if initial is not None:
        start = keras.ops.cast(initial, x.dtype)
        counted = x if given is None else keras.ops.where(tensor(where, given), x, start)
        # Where no element is beyond `initial`, the place is the first.
        counted = (keras.ops.maximum if largest else keras.ops.minimum)(counted, start)
    places = _place(where, largest, counted, axis, keepdims, int64)
    return _extreme(where, largest, x, axis, keepdims, initial, given), places


def max(input: Any, axis: int | None = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Any:
    """Find the largest elements and where they are.

    Args:
        input: Tensor.
        axis: The axis; None: all elements.
        keepdims: Whether the axis stays, with size 1.
        initial: A value that the result is at least.
        where: Bool tensor: the elements that count.

    Returns:
        (values, indices); with `axis` None the index is 0, as in MindSpore.

    Raises:
        ValueError: There is no such axis, or `where` is given without `initial`.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> values, indices = ops.max(mixtrain.Tensor([[1.0, 3.0], [4.0, 2.0]]), axis=1)
        >>> values.asnumpy().tolist(), indices.asnumpy().tolist()
        ([3.0, 4.0], [1, 0])

    Source: MindSpore, `mindspore.ops.max`.
    """
    return _with_place("ops.max", True, input, axis, keepdims, initial, where)


def min(input: Any, axis: int | None = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Any:
    """`max` for the smallest: (values, indices) of `input` over `axis`; `keepdims`, `initial`, `where` as there.

    Source: MindSpore, `mindspore.ops.min`.
    """
    return _with_place("ops.min", False, input, axis, keepdims, initial, where)


def amax(input: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Any:
    """The largest elements of `input` over one or several `axis`; `keepdims`, `initial`, `where` as in `max`.

    Source: MindSpore, `mindspore.ops.amax`.
    """
    return _extreme("ops.amax", True, input, axis, keepdims, initial, where)


def amin(input: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Any:
    """The smallest elements of `input` over one or several `axis`; `keepdims`, `initial`, `where` as in `max`.

    Source: MindSpore, `mindspore.ops.amin`.
    """
    return _extreme("ops.amin", False, input, axis, keepdims, initial, where)


def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Find where the largest elements are; the first of equal ones.

    Args:
        input: Tensor.
        dim: The axis; None: the index in the flat tensor.
        keepdim: Whether the axis stays, with size 1.

    Returns:
        Tensor of int64.

    Raises:
        ValueError: There is no such axis.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> ops.argmax(mixtrain.Tensor([[1.0, 3.0], [4.0, 2.0]]), dim=1).asnumpy().tolist()
        [1, 0]

    Source: MindSpore, `mindspore.ops.argmax`.
    """
    return _place("ops.argmax", True, input, dim, keepdim and dim is not None, int64)


def argmin(input: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """`argmax` for the smallest: of `input` along `axis`, kept with size 1 by `keepdims`; int32.

    Source: MindSpore, `mindspore.ops.argmin`.
    """
    return _place("ops.argmin", False, input, axis, keepdims and axis is not None, int32)


def median(input: Any, axis: int = -1, keepdims: bool = False) -> tuple[Any, Any]:
    """The middle elements of `input` along `axis` (the lower of two) and their indices; `keepdims` keeps the axis.

    Source: MindSpore, `mindspore.ops.median`.
    """
    x = tensor("ops.median", input)
    number = axis_of("ops.median", axis, rank_of(x))
    order = keras.ops.argsort(x, axis=number)
    middle = (x.shape[number] - 1) // 2
    places = keras.ops.take(order, keras.ops.convert_to_tensor([middle]), axis=number)
    values = keras.ops.take_along_axis(x, places, axis=number)
    if not keepdims:
        values, places = keras.ops.squeeze(values, number), keras.ops.squeeze(places, number)
    return values, backend.to_tensor(places, int64)


def nanmedian(input: Any, axis: int = -1, keepdims: bool = False) -> tuple[Any, Any]:
    """`median` of what is a number in `input` along `axis`; `keepdims` keeps the axis.

    Source: MindSpore, `mindspore.ops.nanmedian`.
    """
    x = as_floats("ops.nanmedian", input)
    order = keras.ops.argsort(keras.ops.where(keras.ops.isnan(x), math.inf, x), axis=axis)
    count = keras.ops.sum(keras.ops.cast(keras.ops.logical_not(keras.ops.isnan(x)), "int32"), axis, keepdims=True)
    middle = keras.ops.cast(keras.ops.maximum(count - 1, 0) // 2, order.dtype)
    places = keras.ops.take_along_axis(order, middle, axis=axis)
    values = keras.ops.take_along_axis(x, places, axis=axis)
    if not keepdims:
        values, places = keras.ops.squeeze(values, axis), keras.ops.squeeze(places, axis)
    return values, backend.to_tensor(places, int64)


def _median(x: Any, *, global_median: bool, axis: int, keep_dims: bool, ignore_nan: bool) -> tuple[Any, Any]:
    compute = nanmedian if ignore_nan else median
    if not global_median:
        return compute(x, axis, keep_dims)
    found, _ = compute(keras.ops.reshape(tensor("Median", x), (-1,)), 0)
    return found, backend.to_tensor(0, int64)


Median: Final = configured("Median", _median, global_median=False, axis=0, keep_dims=False, ignore_nan=False)


def _running(where: str, compute: Callable[..., Any], x: Any, axis: Any, dtype: Any) -> Any:
    x = tensor(where, x)
    number = axis_of(where, axis, rank_of(x))
    wanted = as_dtype(dtype) if dtype is not None else int64 if x.dtype == bool_ else x.dtype
    return compute(backend.to_tensor(x, wanted), axis=number)


def cumsum(x: Any, axis: int, dtype: Any = None) -> Any:
    """Running sums of `x` along `axis`, in `dtype` where given.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> ops.cumsum(mixtrain.Tensor([1.0, 2.0, 3.0]), 0).asnumpy().tolist()
        [1.0, 3.0, 6.0]

    Source: MindSpore, `mindspore.ops.cumsum`.
    """
    return _running("ops.cumsum", keras.ops.cumsum, x, axis, dtype)


def cumprod(input: Any, dim: int, dtype: Any = None) -> Any:
    """Running products of `input` along `dim`, in `dtype` where given. Source: MindSpore, `mindspore.ops.cumprod`."""
    return _running("ops.cumprod", keras.ops.cumprod, input, dim, dtype)


class CumSum(Primitive):
    """Running sums: `exclusive` leaves the element itself out, `reverse` runs from the end.

    Example: ``ops.CumSum()(x, 0)``. Source: MindSpore, `mindspore.ops.CumSum`.
    """

    def __init__(self, exclusive: bool = False, reverse: bool = False) -> None:
        super().__init__()
        self.exclusive = checks.boolean("CumSum", "exclusive", exclusive)
        self.reverse = checks.boolean("CumSum", "reverse", reverse)

    def __call__(self, input: Any, axis: int) -> Any:
        x = tensor("ops.CumSum", input)
        number = axis_of("ops.CumSum", axis, rank_of(x))
        turned = keras.ops.flip(x, axis=number) if self.reverse else x
        total = keras.ops.cumsum(turned, axis=number)
        if self.exclusive:
            total = total - turned
        return keras.ops.flip(total, axis=number) if self.reverse else total


class _Place(Primitive):
    """The index of the extreme element along a fixed axis."""

    _largest = True

    def __init__(self, axis: int = -1, output_type: Any = "int32") -> None:
        super().__init__()
        self.axis = axis
        self.output_type = checks.one_of(self.name, "output_type", as_dtype(output_type), (int32, int64))

    def __call__(self, input_x: Any) -> Any:
        return _place(f"ops.{self.name}", self._largest, input_x, self.axis, False, self.output_type)


class _PlaceWithValue(Primitive):
    """The index of the extreme element along a fixed axis, and the element: (index, value)."""

    _largest = True

    def __init__(self, axis: int = 0, keep_dims: bool = False) -> None:
        super().__init__()
        self.axis = axis
        self.keep_dims = checks.boolean(self.name, "keep_dims", keep_dims)

    def __call__(self, input: Any) -> tuple[Any, Any]:
        where = f"ops.{self.name}"
        axes_of(where, self.axis, rank_of(tensor(where, input)))
        index = _place(where, self._largest, input, self.axis, self.keep_dims, int64)
        return index, _extreme(where, self._largest, input, self.axis, self.keep_dims, None, None)


def _rows(base: type[Primitive], largest: str, smallest: str, says: str) -> tuple[type[Primitive], type[Primitive]]:
    """Return the two classes of a pair, for the largest and for the smallest."""
    made = [
        type(name, (base,), {
            "_largest": name == largest, "__module__": __name__,
            "__doc__": f"{says.format(word)} Example: ``ops.{name}()(x)``. Source: MindSpore, `mindspore.ops.{name}`.",
        })
        for name, word in ((largest, "largest"), (smallest, "smallest"))
    ]
    return made[0], made[1]


Argmax, Argmin = _rows(_Place, "Argmax", "Argmin", "Index of the {} element along `axis`, as `output_type`.")
ArgMaxWithValue, ArgMinWithValue = _rows(
    _PlaceWithValue, "ArgMaxWithValue", "ArgMinWithValue",
    "(index, value) of the {} element along `axis`; `keep_dims` keeps the axis with size 1.",
)
