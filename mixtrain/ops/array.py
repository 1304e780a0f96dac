"""Shape and order of the same elements: reshape, transpose, squeeze, flip, roll, with their primitives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras

from mixtrain import checks
from mixtrain.ops.elementwise import renamed
from mixtrain.ops.inputs import axes_of, axis_of, rank_of, sizes_of, tensor
from mixtrain.ops.primitive import REQUIRED, as_primitive, configured, primitives
from mixtrain.typing import Tensor, TensorLike


def reshape(input: TensorLike, shape: int | Sequence[int] | Tensor) -> Tensor:
    """`input` in a new `shape`; one entry may be -1, for what is left. Example: ``ops.reshape(x, (2, -1))``."""
    x = tensor("ops.reshape", input)
    sizes = sizes_of("ops.reshape", shape)
    if None in sizes:
        # None, as in `x.shape`, is an axis of unknown size: it keeps the size of the same axis of `x`.
        shape = keras.ops.shape(x)
        sizes = tuple(
            (shape[axis] if axis < len(shape) else -1) if size is None else size for axis, size in enumerate(sizes)
        )
    _check_count(x, sizes)
    return _to_sizes(x, sizes)


def _to_sizes(x: Tensor, sizes: Sequence[Any]) -> Tensor:
    """Return `x` in a shape in which an axis of a symbolic tensor may have no size: that one is what is left."""
    return keras.ops.reshape(x, tuple(-1 if size is None else size for size in sizes))


def _check_count(x: Tensor, sizes: tuple[Any, ...]) -> None:
    """Raise a ValueError where the shape is known to hold another number of elements."""
    shape = tuple(x.shape)
    if None in shape or not all(isinstance(size, int) for size in sizes):
        return
    count, known = math.prod(shape), math.prod(size for size in sizes if size != -1)
    unknown = sizes.count(-1)
    if unknown > 1 or min(sizes, default=0) < -1 or (count % known if unknown and known else count != known):
        raise ValueError(
            f"ops.reshape: expected a shape of {count} elements, as the input of shape {tuple(x.shape)} has; "
            f"got {checks.short_repr(tuple(sizes))}. Write -1 for one size that follows from the others."
        )


def transpose(input: TensorLike, dims: int | Sequence[int]) -> Tensor:
    """`input` with its axes in the order `dims`. Example: ``ops.transpose(x, (1, 0))``."""
    x = tensor("ops.transpose", input)
    if dims is None:
        write = f"dims={tuple(reversed(range(rank_of(x))))}"
        raise checks.fail_type("ops.transpose", "dims must be a tuple of ints", dims, write)
    order = axes_of("ops.transpose", dims, rank_of(x), name="dims")
    if len(order) != rank_of(x):
        raise checks.fail_value(
            "ops.transpose", f"dims must name each of the {rank_of(x)} axes", dims, f"{tuple(range(rank_of(x)))}"
        )
    return keras.ops.transpose(x, order)


def squeeze(input: TensorLike, axis: int | Sequence[int] | None = None) -> Tensor:
    """Remove from `input` the axes of size 1 that `axis` names; None: all. Example: ``ops.squeeze(x)``."""
    x = tensor("ops.squeeze", input)
    if axis is None or axis in ((), []):
        return keras.ops.squeeze(x)
    axes = axes_of("ops.squeeze", axis, rank_of(x))
    for index in axes:
        if x.shape[index] not in (1, None):
            raise checks.fail_value(
                "ops.squeeze", f"axis must have size 1 in an input of shape {tuple(x.shape)}", axis, "axis=None"
            )
    return keras.ops.squeeze(x, axis=axes) if axes else x


def expand_dims(input_x: TensorLike, axis: int) -> Tensor:
    """Insert an axis of size 1 into `input_x` at position `axis`. Example: ``ops.expand_dims(x, 0)``."""
    x = tensor("ops.expand_dims", input_x)
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    for index in sorted(axis_of("ops.expand_dims", item, rank_of(x) + len(axes)) for item in axes):
        x = keras.ops.expand_dims(x, index)
    return x


def flatten(input: TensorLike, order: str = "C", *, start_dim: int = 1, end_dim: int = -1) -> Tensor:
    """Flatten the axes of `input` from `start_dim` to `end_dim` into one; by default all but the first.

    `order`: "C" for row-major order, "F" for column-major order. Example: ``ops.flatten(x)``.
    """
    checks.one_of("ops.flatten", "order", order, ("C", "F"))
    x = tensor("ops.flatten", input)
    rank = rank_of(x)
    if order == "F":
        x = keras.ops.transpose(x, tuple(reversed(range(rank))))
    if rank < 2 and start_dim in (0, 1):
        return keras.ops.reshape(x, (-1,))
    first = axis_of("ops.flatten", start_dim, rank, name="start_dim")
    last = axis_of("ops.flatten", end_dim, rank, name="end_dim")
    if first > last:
        raise checks.fail_value("ops.flatten", "start_dim must not come after end_dim", start_dim, "start_dim=1")
    sizes = keras.ops.shape(x)
    flattened = sizes[first:last + 1]
    size = math.prod(flattened) if all(isinstance(item, int) for item in flattened) else -1
    result = _to_sizes(x, (*sizes[:first], size, *sizes[last + 1:]))
    # In MindSpore it is a copy; JAX returns the tensor itself where its shape stays.
    return keras.ops.copy(x) if result is x else result


def ravel(input: TensorLike) -> Tensor:
    """Flatten `input` to a vector. Example: ``ops.ravel(x)``."""
    return keras.ops.reshape(tensor("ops.ravel", input), (-1,))


def swapaxes(input: TensorLike, axis0: int, axis1: int) -> Tensor:
    """Exchange the axes `axis0` and `axis1` of `input`."""
    x = tensor("ops.swapaxes", input)
    axes = [axis_of("ops.swapaxes", axis, rank_of(x)) for axis in (axis0, axis1)]
    return keras.ops.swapaxes(x, *axes)


def movedim(x: TensorLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Move the axes `source` of `x` to the positions `destination`."""
    value = tensor("ops.movedim", x)
    axes = [axes_of("ops.movedim", axis, rank_of(value)) for axis in (source, destination)]
    return keras.ops.moveaxis(value, *axes)


def flip(input: TensorLike, dims: int | Sequence[int]) -> Tensor:
    """Reverse the order of elements of `input` along the axes `dims`."""
    return _flip("ops.flip", input, "dims", dims)


def reverse(x: TensorLike, axis: int | Sequence[int]) -> Tensor:
    """`flip`: reverse the order of elements of `x` along `axis`."""
    return _flip("ops.reverse", x, "axis", axis)


def _flip(where: str, x: TensorLike, name: str, axes: int | Sequence[int]) -> Tensor:
    x = tensor(where, x)
    for axis in axes_of(where, axes, rank_of(x), name=name):  # `keras.ops.flip` of Keras 3.10 takes one axis.
        x = keras.ops.flip(x, axis=axis)
    return x


def roll(input: TensorLike, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """Roll the elements of `input` by `shifts` along `dims` (the flat tensor for None), the last ones to the front."""
    x = tensor("ops.roll", input)
    if dims is None:
        return keras.ops.roll(x, shifts)
    axes = axes_of("ops.roll", dims, rank_of(x), name="dims")
    amounts = tuple(shifts) if isinstance(shifts, (tuple, list)) else (shifts,)
    for shift, axis in zip(amounts, axes, strict=True):
        x = keras.ops.roll(x, shift, axis=axis)
    return x


def t(input: TensorLike) -> Tensor:
    """The transpose of a matrix `input`; a vector is returned unchanged."""
    x = tensor("ops.t", input)
    if rank_of(x) > 2:
        raise ValueError(f"ops.t: expected at most 2 axes; got shape {tuple(x.shape)}. Write ops.transpose(x, dims).")
    return keras.ops.transpose(x)


@as_primitive
def Flatten(input_x: TensorLike) -> Tensor:
    """Flatten all axes but the first. Example: ``ops.Flatten()(x)``."""
    return flatten(input_x)


permute = renamed(transpose, "permute", axis="dims")
unsqueeze = renamed(expand_dims, "unsqueeze", input="input_x", dim="axis")
swapdims = renamed(swapaxes, "swapdims", dim0="axis0", dim1="axis1")
moveaxis = renamed(movedim, "moveaxis")
Reshape, Transpose, ExpandDims = primitives(Reshape=reshape, Transpose=transpose, ExpandDims=expand_dims)
ReverseV2 = configured("ReverseV2", lambda input, axis: flip(input, axis), axis=REQUIRED)
Squeeze = configured("Squeeze", squeeze, axis=())
