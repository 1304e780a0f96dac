"""Gathering, masking and slicing, with their primitives."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.dtype import bool_, is_float
from mixtrain.ops.elementwise import renamed
from mixtrain.ops.indexing import check_places
from mixtrain.ops.inputs import as_mask, axis_of, is_number, pair, rank_of, sizes_of, tensor, tensor_dtype
from mixtrain.ops.primitive import configured, primitives
from mixtrain.typing import Tensor, TensorLike


def _indices(where: str, value: TensorLike) -> Tensor:
    """Return a tensor of integers. Raises: TypeError if it holds floats or bools."""
    x = tensor(where, value)
    if is_float(x.dtype) or x.dtype == bool_:
        raise TypeError(
            f"{where}: expected integers as indices; got {tensor_dtype(x).name}. Write x.astype(mixtrain.int32)."
        )
    return x


def gather(input_params: TensorLike, input_indices: TensorLike, axis: int, batch_dims: int = 0) -> Tensor:
    """Gather the slices of `input_params` at `input_indices` along `axis`.

    `batch_dims`: the number of leading batch axes that both tensors share. Example:
    ``ops.gather(Tensor([10, 20, 30]), Tensor([2, 0]), 0)`` is ``[30, 10]``.
    """
    x, indices = tensor("ops.gather", input_params), _indices("ops.gather", input_indices)
    axis = axis_of("ops.gather", axis, rank_of(x))
    batch_dims = checks.integer("ops.gather", "batch_dims", batch_dims, at_least=0)
    if not batch_dims:
        return keras.ops.take(x, indices, axis=axis)
    return backend.gather_in_batches(x, indices, axis=axis, batch_axes=batch_dims)


def gather_nd(input_x: TensorLike, indices: TensorLike) -> Tensor:
    """The slices of `input_x` at `indices`, whose last axis indexes its leading ones: ``ops.gather_nd(x, index)``."""
    x, places = tensor("ops.gather_nd", input_x), _indices("ops.gather_nd", indices)
    check_places("ops.gather_nd", places, x.shape[: places.shape[-1]])
    return backend.gather_nd(x, places)


def gather_elements(input: TensorLike, dim: int, index: TensorLike) -> Tensor:
    """One element of `input` along `dim` for each of `index`. Example: ``ops.gather_elements(x, 1, index)``."""
    x, indices = tensor("ops.gather_elements", input), _indices("ops.gather_elements", index)
    dim = axis_of("ops.gather_elements", dim, rank_of(x), name="dim")
    # The other axes may be longer than those of the indices.
    block = tuple(
        builtins.slice(None) if axis == dim else builtins.slice(0, size) for axis, size in enumerate(indices.shape)
    )
    return keras.ops.take_along_axis(x[block], indices, axis=dim)


def index_select(input: TensorLike, axis: int, index: TensorLike) -> Tensor:
    """Gather the slices of `input` along `axis` at the vector `index`."""
    return gather(input, index, axis)


def where(condition: TensorLike, input: TensorLike, other: TensorLike) -> Tensor:
    """`input` where `condition` is True, `other` elsewhere, broadcast. Example: ``ops.where(x > 0, x, 0.0)``."""
    return _select("ops.where", condition, input, other)


def select(condition: TensorLike, input: TensorLike, other: TensorLike) -> Tensor:
    """`where`: `input` where `condition` is True, else `other`."""
    return _select("ops.select", condition, input, other)


def _select(name: str, condition: TensorLike, x: TensorLike, y: TensorLike) -> Tensor:
    x, y = pair(name, x, y)
    dtype = (y if is_number(x) else x).dtype
    return keras.ops.where(as_mask(name, condition), keras.ops.cast(x, dtype), keras.ops.cast(y, dtype))


def masked_fill(input_x: TensorLike, mask: TensorLike, value: TensorLike) -> Tensor:
    """`input_x` with `value` where `mask` is True; the dtype stays. Example: ``ops.masked_fill(x, x < 0, 0.0)``."""
    x = tensor("ops.masked_fill", input_x)
    filled = keras.ops.cast(tensor("ops.masked_fill", value), x.dtype)
    return keras.ops.where(as_mask("ops.masked_fill", mask), filled, x)


def masked_select(input: TensorLike, mask: TensorLike) -> Tensor:
    """The elements of `input` where `mask` is True, in a vector. (Its length is not known while compiling with XLA.)

    Example: ``ops.masked_select(x, x > 0)``.
    """
    x, marks = tensor("ops.masked_select", input), as_mask("ops.masked_select", mask)
    marks = keras.ops.logical_and(marks, keras.ops.ones_like(x, dtype=bool_))
    return backend.boolean_mask(keras.ops.broadcast_to(x, keras.ops.shape(marks)), marks)


def slice(input_x: TensorLike, begin: Sequence[int] | Tensor, size: Sequence[int] | Tensor) -> Tensor:
    """`input_x` from the indices `begin`, of shape `size` (-1: to the end): ``ops.slice(x, (0, 1), (2, -1))``."""
    x = tensor("ops.slice", input_x)
    starts, sizes = sizes_of("ops.slice", begin, name="begin"), sizes_of("ops.slice", size, name="size")
    shape = tuple(x.shape)
    if len(starts) != len(shape) or len(sizes) != len(shape):
        raise checks.fail_value(
            "ops.slice", f"begin and size must have {len(shape)} entries", (starts, sizes), "begin=(0, 0)"
        )
    slices = []
    for start, size, length in zip(starts, sizes, shape, strict=True):
        end = None if isinstance(size, int) and size == -1 else start + size
        known = isinstance(start, int) and isinstance(end, int) and length is not None
        if known and not 0 <= start <= end <= length:
            raise ValueError(
                f"ops.slice: expected a block inside shape {shape}; got begin {starts} and size {sizes}. "
                "Write -1 for the size of an axis to go to its end."
            )
        slices.append(builtins.slice(start, end))
    return x[tuple(slices)] if slices else x


def strided_slice(
    input_x: TensorLike, begin: Sequence[int] | Tensor, end: Sequence[int] | Tensor, strides: Sequence[int] | Tensor,
    begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0,
) -> Tensor:
    """``input_x[begin:end:strides]``, with one entry for each axis. Bit i of a mask is about entry i:

    `begin_mask` and `end_mask` ignore the bound; `ellipsis_mask`: the entry is an Ellipsis; `new_axis_mask`: it inserts
    an axis of size 1; `shrink_axis_mask`: it takes the one index `begin` and removes the axis. Example:
    ``ops.strided_slice(Tensor([1, 2, 3, 4]), (0,), (4,), (2,))`` is ``[1, 3]``.
    """
    x = tensor("ops.strided_slice", input_x)
    bounds = [sizes_of("ops.strided_slice", value, name="begin, end, strides") for value in (begin, end, strides)]
    if len(set(map(len, bounds))) > 1:
        raise checks.fail_value(
            "ops.strided_slice", "begin, end and strides must be equally long", [len(bound) for bound in bounds],
            "strides=(1, 1)",
        )
    index: list[Any] = []
    for entry, (start, stop, step) in enumerate(zip(*bounds, strict=True)):
        bit = 1 << entry
        if ellipsis_mask & bit:
            index.append(Ellipsis)
        elif new_axis_mask & bit:
            index.append(None)
        elif shrink_axis_mask & bit:
            index.append(start)
        else:
            index.append(builtins.slice(None if begin_mask & bit else start, None if end_mask & bit else stop, step))
    return x[tuple(index)]


def nonzero(input: TensorLike, *, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """The indices of the nonzero elements of `input`: (n, axes), or with `as_tuple` a vector for each axis."""
    indices = keras.ops.nonzero(tensor("ops.nonzero", input))
    indices = tuple(backend.to_tensor(index, "int64") for index in indices)
    return indices if as_tuple else keras.ops.stack(indices, axis=-1)


gather_d = renamed(gather_elements, "gather_d", x="input")
Gather = configured("Gather", gather, batch_dims=0)
StridedSlice = configured(
    "StridedSlice", strided_slice, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0
)


GatherNd, GatherD, Select, MaskedFill, MaskedSelect, Slice = primitives(
    GatherNd=gather_nd, GatherD=gather_d, Select=select, MaskedFill=masked_fill, MaskedSelect=masked_select,
    Slice=slice,
)
