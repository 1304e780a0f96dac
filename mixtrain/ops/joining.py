"""Concatenate, stack, split and unstack tensors, with their primitives."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import keras

from mixtrain import backend, checks
from mixtrain.ops import nhwc
from mixtrain.ops.elementwise import renamed
from mixtrain.ops.inputs import axis_of, is_number, rank_of, sizes_of, tensor, tensor_dtype
from mixtrain.ops.primitive import as_primitive
from mixtrain.ops.promotion import promoted
from mixtrain.typing import Tensor, TensorLike


def _tensors(where: str, values: Sequence[TensorLike]) -> list[Tensor]:
    """Return the values as tensors of the dtype they promote to."""
    if not isinstance(values, (tuple, list)) or not values:
        raise checks.fail_type(where, "a tuple or list of tensors was needed", values, f"{where}((x, y))")
    tensors = [tensor(where, value) for value in values]
    dtype = functools.reduce(promoted, (tensor_dtype(value) for value in tensors))
    return [backend.cast_keeping_layout(value, dtype) for value in tensors]


def _check_shapes(where: str, values: list[Tensor], skipped_axis: int | None) -> None:
    """Raise a ValueError unless the tensors have one shape, apart from `skipped_axis`."""
    shapes = [tuple(value.shape) for value in values]
    for shape in shapes:
        same = len(shape) == len(shapes[0]) and all(
            axis == skipped_axis or size == expected or None in (size, expected)
            for axis, (size, expected) in enumerate(zip(shape, shapes[0], strict=True))
        )
        if not same:
            aside = "" if skipped_axis is None else f", axis {skipped_axis} aside"
            raise ValueError(
                f"{where}: expected tensors of one shape{aside}; got {shapes[0]} and {shape}. "
                "Write tensors whose other sizes are equal."
            )


def cat(tensors: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """Concatenate `tensors` along `axis`, in the dtype that all promote to. Example: ``ops.cat((x, y))``."""
    return _concat("ops.cat", tensors, axis)


def concat(tensors: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """`cat`: concatenate `tensors` along `axis`."""
    return _concat("ops.concat", tensors, axis)


def _concat(where: str, tensors: Sequence[TensorLike], axis: int) -> Tensor:
    values = _tensors(where, tensors)
    if not rank_of(values[0]):
        raise ValueError(f"{where}: expected tensors with axes; got a scalar. Write ops.stack((x, y)).")
    axis = axis_of(where, axis, rank_of(values[0]))
    _check_shapes(where, values, axis)
    return nhwc.join_along(keras.ops.concatenate, values, axis)


def stack(tensors: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """Stack the `tensors` of one shape along a new `axis`. Example: ``ops.stack((x, y), axis=1)``."""
    values = _tensors("ops.stack", tensors)
    axis = axis_of("ops.stack", axis, rank_of(values[0]) + 1)
    _check_shapes("ops.stack", values, None)
    return keras.ops.stack(values, axis=axis)


def split(tensor: TensorLike, split_size_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Split `tensor` along `axis` into a tuple of pieces.

    `split_size_or_sections`: the size of each piece (the last may be smaller), or a tuple of their sizes. Example:
    ``ops.split(Tensor([1, 2, 3]), 2)`` is ``([1, 2], [3])``.
    """
    x = _as_tensor("ops.split", tensor)
    index = axis_of("ops.split", axis, rank_of(x))
    size = known_size("ops.split", x, index)
    if is_number(split_size_or_sections):
        step = checks.integer("ops.split", "split_size_or_sections", split_size_or_sections, at_least=1, example=2)
        return _split(x, list(range(step, size, step)), index)
    sections = sizes_of("ops.split", split_size_or_sections, name="split_size_or_sections")
    if sum(sections) != size or min(sections) < 0:
        raise checks.fail_value(
            "ops.split", f"the sections must add up to {size}, the size of axis {axis}", sections, f"({size},)"
        )
    return _split(x, [sum(sections[:end]) for end in range(1, len(sections))], index)


# The parameter `tensor` of `split` hides the function.
_as_tensor = tensor


def known_size(where: str, x: Tensor, axis: int) -> int:
    """Return the size of an axis, which must be known while compiling."""
    size = x.shape[axis]
    if size is None:
        raise ValueError(
            f"{where}: expected an axis whose size is known while compiling; got shape {tuple(x.shape)}. "
            "Write batch(..., drop_remainder=True), or cut another axis."
        )
    return int(size)


def _split(x: Tensor, indices: list[int], axis: int) -> tuple[Tensor, ...]:
    return tuple(keras.ops.split(x, indices, axis=axis)) if indices else (x,)


def chunk(input: TensorLike, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    """Split `input` along `axis` into `chunks` pieces of one size; the last may be smaller: ``ops.chunk(x, 2)``."""
    x = tensor("ops.chunk", input)
    axis = axis_of("ops.chunk", axis, rank_of(x))
    count = checks.integer("ops.chunk", "chunks", chunks, at_least=1, example=2)
    return split(x, max(1, -(-known_size("ops.chunk", x, axis) // count)), axis)


def unstack(input_x: TensorLike, axis: int = 0) -> tuple[Tensor, ...]:
    """Unstack `input_x` along `axis` into tensors without that axis."""
    x = tensor("ops.unstack", input_x)
    axis = axis_of("ops.unstack", axis, rank_of(x))
    known_size("ops.unstack", x, axis)
    return tuple(keras.ops.unstack(x, axis=axis))


unbind = renamed(unstack, "unbind", input="input_x", dim="axis")


def hstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Concatenate `tensors` along their second axis, vectors along their only one."""
    return keras.ops.hstack(_tensors("ops.hstack", tensors))


def vstack(inputs: Sequence[TensorLike]) -> Tensor:
    """Concatenate `inputs` along their first axis, vectors as rows."""
    values = _tensors("ops.vstack", inputs)
    rows = [value if rank_of(value) > 1 else keras.ops.reshape(value, (1, -1)) for value in values]
    return keras.ops.concatenate(rows)


@as_primitive
def Concat(*tensors: TensorLike, axis: int = 0) -> Tensor:
    """`concat` along a fixed `axis`. Example: ``ops.Concat(1)((x, y))``."""
    return _concat("ops.Concat", tensors[0] if len(tensors) == 1 else tensors, axis)


@as_primitive
def Stack(*tensors: TensorLike, axis: int = 0) -> Tensor:
    """`stack` along a fixed new `axis`. Example: ``ops.Stack(1)((x, y))``."""
    return stack(tensors[0] if len(tensors) == 1 else tensors, axis)


@as_primitive
def Unstack(input_x: TensorLike, *, axis: int = 0, num: int | None = None) -> tuple[Tensor, ...]:
    """`unstack` along a fixed `axis` into `num` tensors. Example: ``ops.Unstack()(x)``."""
    pieces = unstack(input_x, axis)
    if num not in (None, len(pieces)):
        raise checks.fail_value("Unstack", f"num must be {len(pieces)}, the size of the axis", num, "num=None")
    return pieces


@as_primitive
def Split(input_x: TensorLike, *, axis: int = 0, output_num: int = 1) -> tuple[Tensor, ...]:
    """Split a tensor along `axis` into `output_num` pieces of one size. Example: ``ops.Split(0, 2)(x)``."""
    x = tensor("ops.Split", input_x)
    index = axis_of("ops.Split", axis, rank_of(x))
    size = known_size("ops.Split", x, index)
    if size % output_num:
        raise checks.fail_value(
            "ops.Split", f"output_num must divide {size}, the size of axis {axis}", output_num, f"output_num={size}"
        )
    step = size // output_num
    return _split(x, list(range(step, size, step)), index)
