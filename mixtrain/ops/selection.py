"""Elements chosen by index, mask, slice or condition, with their primitives."""

from __future__ import annotations

import builtins
from typing import Any, Final

import keras

from mixtrain import backend, checks
from mixtrain.dtype import bool_, is_float
from mixtrain.ops.inputs import as_mask, axis_of, format_of, is_number, pair, rank_of, sizes_of, tensor
from mixtrain.ops.primitive import Primitive, primitive


def _indices(where: str, value: Any) -> Any:
    """Return a tensor of integers.

    Raises:
        TypeError: It holds floats or bools.
    """
    x = tensor(where, value)
    if is_float(x.dtype) or x.dtype == bool_:
        raise TypeError(
            f"{where}: expected integers as indices; got {format_of(x).name}. Write x.astype(mixtrain.int32)."
        )
    return x


def gather(input_params: Any, input_indices: Any, axis: int, batch_dims: int = 0) -> Any:
    """Take slices by their numbers.

    Args:
        input_params: Tensor.
        input_indices: Tensor of int32 or int64: which slices.
        axis: The axis along which they lie.
        batch_dims: How many leading axes both tensors share; slices are taken in each of them on its own.

    Returns:
        Tensor whose axis `axis` is replaced by the axes of the indices.

    Raises:
        ValueError: There is no such axis.
        TypeError: The indices are no integers.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> ops.gather(mixtrain.Tensor([10, 20, 30]), mixtrain.Tensor([2, 0]), 0).asnumpy().tolist()
        [30, 10]

    Source: MindSpore, `mindspore.ops.gather`.
    """
    x, indices = tensor("ops.gather", input_params), _indices("ops.gather", input_indices)
    number = axis_of("ops.gather", axis, rank_of(x))
    shared = checks.integer("ops.gather", "batch_dims", batch_dims, at_least=0)
    if not shared:
        return keras.ops.take(x, indices, axis=number)
    return backend.gather_in_batches(x, indices, axis=number, batch_axes=shared)


def gather_nd(input_x: Any, indices: Any) -> Any:
    """Take what `indices`, whose last axis holds places in the leading axes of `input_x`, point at.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> ops.gather_nd(mixtrain.Tensor([[1, 2], [3, 4]]), mixtrain.Tensor([[0, 1], [1, 0]])).asnumpy().tolist()
        [2, 3]

    Source: MindSpore, `mindspore.ops.gather_nd`.
    """
    x, places = tensor("ops.gather_nd", input_x), _indices("ops.gather_nd", indices)
    return backend.gather_places(x, places)


def gather_elements(input: Any, dim: int, index: Any) -> Any:
    """Take one element of `input` for each of `index`, whose number counts along `dim`.

    Example: ``ops.gather_elements(x, 1, index)``. Source: MindSpore, `mindspore.ops.gather_elements`.
    """
    x, places = tensor("ops.gather_elements", input), _indices("ops.gather_elements", index)
    number = axis_of("ops.gather_elements", dim, rank_of(x), name="dim")
    cut = tuple(
        builtins.slice(None) if axis == number else builtins.slice(0, size) for axis, size in enumerate(places.shape)
    )
    return keras.ops.take_along_axis(x[cut], places, axis=number)


def gather_d(x: Any, dim: int, index: Any) -> Any:
    """`gather_elements` of `x` along `dim` by `index`. Source: MindSpore, `mindspore.ops.gather_d`."""
    return gather_elements(x, dim, index)


def index_select(input: Any, axis: int, index: Any) -> Any:
    """Take the slices of `input` along `axis` that the vector `index` names.

    Source: MindSpore, `mindspore.ops.index_select`.
    """
    return gather(input, index, axis)


def where(condition: Any, input: Any, other: Any) -> Any:
    """Choose between two values, element by element.

    Args:
        condition: Tensor of bools.
        input: Tensor or number: what stands where it is True.
        other: Tensor or number: what stands where it is False.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        ValueError: The shapes do not broadcast.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> ops.where(mixtrain.Tensor([True, False]), mixtrain.Tensor([1.0, 2.0]), 0.0).asnumpy().tolist()
        [1.0, 0.0]

    Source: MindSpore, `mindspore.ops.where`.
    """
    return _chosen("ops.where", condition, input, other)


def select(condition: Any, input: Any, other: Any) -> Any:
    """`where`: `input` where `condition` is True, else `other`. Source: MindSpore, `mindspore.ops.select`."""
    return _chosen("ops.select", condition, input, other)


def _chosen(place: str, condition: Any, x: Any, y: Any) -> Any:
    x, y = pair(place, x, y)
    dtype = (y if is_number(x) else x).dtype
    return keras.ops.where(as_mask(place, condition), keras.ops.cast(x, dtype), keras.ops.cast(y, dtype))


def masked_fill(input_x: Any, mask: Any, value: Any) -> Any:
    """Put `value` wherever `mask` is True in `input_x`; the format stays.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> ops.masked_fill(mixtrain.Tensor([1.0, 2.0]), mixtrain.Tensor([False, True]), 9.0).asnumpy().tolist()
        [1.0, 9.0]

    Source: MindSpore, `mindspore.ops.masked_fill`.
    """
    x = tensor("ops.masked_fill", input_x)
    return keras.ops.where(as_mask("ops.masked_fill", mask), keras.ops.cast(tensor("", value), x.dtype), x)


def masked_select(input: Any, mask: Any) -> Any:
    """The elements of `input` where `mask` is True, in a vector. (Its length is not known while compiling with XLA.)

    Example: ``ops.masked_select(x, x > 0)``. Source: MindSpore, `mindspore.ops.masked_select`.
    """
    x, marks = tensor("ops.masked_select", input), as_mask("ops.masked_select", mask)
    marks = keras.ops.logical_and(marks, keras.ops.ones_like(x, dtype=bool_))
    return backend.choose_marked(keras.ops.broadcast_to(x, keras.ops.shape(marks)), marks)


def slice(input_x: Any, begin: Any, size: Any) -> Any:
    """Cut out a block: from the places `begin`, of the shape `size` (-1: to the end of the axis), of `input_x`.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> ops.slice(mixtrain.Tensor([[1, 2, 3], [4, 5, 6]]), (0, 1), (2, 2)).asnumpy().tolist()
        [[2, 3], [5, 6]]

    Source: MindSpore, `mindspore.ops.slice`.
    """
    x = tensor("ops.slice", input_x)
    starts, sizes = sizes_of("ops.slice", begin, name="begin"), sizes_of("ops.slice", size, name="size")
    known = tuple(x.shape)
    if len(starts) != len(known) or len(sizes) != len(known):
        raise checks.fail_value(
            "ops.slice", f"begin and size must have {len(known)} entries", (starts, sizes), "begin=(0, 0)"
        )
    cuts = []
    for start, extent, whole in zip(starts, sizes, known, strict=True):
        end = None if isinstance(extent, int) and extent == -1 else start + extent
        numbers = isinstance(start, int) and isinstance(end, int) and whole is not None
        if numbers and not 0 <= start <= end <= whole:
            raise ValueError(
                f"ops.slice: expected a block inside shape {known}; got begin {starts} and size {sizes}. "
                "Write -1 for the size of an axis to go to its end."
            )
        cuts.append(builtins.slice(start, end))
    return x[tuple(cuts)] if cuts else x


def strided_slice(
    input_x: Any,
    begin: Any,
    end: Any,
    strides: Any,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Any:
    """What ``input_x[begin:end:strides]`` means, with one entry for each axis.

    Args:
        input_x: Tensor.
        begin: Where each axis starts.
        end: Before which place it ends.
        strides: The steps.
        begin_mask: Bit i set: entry i of `begin` does not count, the axis starts at its end.
        end_mask: Bit i set: entry i of `end` does not count.
        ellipsis_mask: Bit i set: entry i stands for all axes that are not named.
        new_axis_mask: Bit i set: entry i puts in an axis of size 1.
        shrink_axis_mask: Bit i set: entry i takes the one place `begin` and leaves the axis out.

    Returns:
        Tensor.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> ops.strided_slice(mixtrain.Tensor([1, 2, 3, 4]), (0,), (4,), (2,)).asnumpy().tolist()
        [1, 3]

    Source: MindSpore, `mindspore.ops.strided_slice`.
    """
    x = tensor("ops.strided_slice", input_x)
    sides = [sizes_of("ops.strided_slice", side, name="begin, end, strides") for side in (begin, end, strides)]
    cuts: list[Any] = []
    for at, (start, stop, step) in enumerate(zip(*sides, strict=True)):
        bit = 1 << at
        if ellipsis_mask & bit:
            cuts.append(Ellipsis)
        elif new_axis_mask & bit:
            cuts.append(None)
        elif shrink_axis_mask & bit:
            cuts.append(start)
        else:
            cuts.append(builtins.slice(None if begin_mask & bit else start, None if end_mask & bit else stop, step))
    return x[tuple(cuts)]


def nonzero(input: Any, *, as_tuple: bool = False) -> Any:
    """The places of the elements of `input` that are not zero: (n, axes), or with `as_tuple` a vector for each axis.

    Source: MindSpore, `mindspore.ops.nonzero`.
    """
    places = keras.ops.nonzero(tensor("ops.nonzero", input))
    found = tuple(backend.to_tensor(place, "int64") for place in places)
    return found if as_tuple else keras.ops.stack(found, axis=-1)


class Gather(Primitive):
    """`gather` with fixed `batch_dims`: ``ops.Gather()(x, k, 0)``. Source: MindSpore, `mindspore.ops.Gather`."""

    def __init__(self, batch_dims: int = 0) -> None:
        super().__init__()
        self.batch_dims = checks.integer("Gather", "batch_dims", batch_dims, at_least=0)

    def __call__(self, input_params: Any, input_indices: Any, axis: int) -> Any:
        return gather(input_params, input_indices, axis, self.batch_dims)


class StridedSlice(Primitive):
    """`strided_slice` with fixed masks.

    Args:
        begin_mask: See `strided_slice`.
        end_mask: See there.
        ellipsis_mask: See there.
        new_axis_mask: See there.
        shrink_axis_mask: See there.

    Example: ``ops.StridedSlice()(x, (0, 0), (2, 2), (1, 1))``.

    Source: MindSpore, `mindspore.ops.StridedSlice`.
    """

    def __init__(
        self,
        begin_mask: int = 0,
        end_mask: int = 0,
        ellipsis_mask: int = 0,
        new_axis_mask: int = 0,
        shrink_axis_mask: int = 0,
    ) -> None:
        super().__init__()
        self.masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)

    def __call__(self, input_x: Any, begin: Any, end: Any, strides: Any) -> Any:
        return strided_slice(input_x, begin, end, strides, *self.masks)


GatherNd: Final = primitive("GatherNd", gather_nd)
GatherD: Final = primitive("GatherD", gather_d)
Select: Final = primitive("Select", select)
MaskedFill: Final = primitive("MaskedFill", masked_fill)
MaskedSelect: Final = primitive("MaskedSelect", masked_select)
Slice: Final = primitive("Slice", slice)
