"""Several tensors into one, and one into several, with their primitives."""

from __future__ import annotations

import functools
from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.dtype import promoted
from mixtrain.ops.inputs import axis_of, format_of, is_number, rank_of, sizes_of, tensor
from mixtrain.ops.primitive import Primitive


def _tensors(where: str, values: Any) -> list[Any]:
    """Return tensors in the format that all of them meet in."""
    if not isinstance(values, (tuple, list)) or not values:
        raise checks.fail_type(where, "a tuple or list of tensors was needed", values, f"{where}((x, y))")
    found = [tensor(where, value) for value in values]
    dtype = functools.reduce(promoted, (format_of(value) for value in found))
    return [backend.cast_keeping_layout(value, dtype) for value in found]


def _check_same(where: str, values: list[Any], but: int | None) -> None:
    """Raise a ValueError unless the tensors have one shape, the axis `but` aside."""
    shapes = [tuple(value.shape) for value in values]
    kept = [shape if but is None else (*shape[:but], *shape[but + 1:]) for shape in shapes]
    for shape, rest in zip(shapes, kept, strict=True):
        same = len(rest) == len(kept[0]) and all(
            None in (one, other) or one == other for one, other in zip(rest, kept[0], strict=True)
        )
        if len(shape) != len(shapes[0]) or not same:
            aside = "" if but is None else f", axis {but} aside"
            raise ValueError(
                f"{where}: expected tensors of one shape{aside}; got {shapes[0]} and {shape}. "
                "Write tensors whose other sizes are equal."
            )


def cat(tensors: Any, axis: int = 0) -> Any:
    """Put tensors one after the other.

    Args:
        tensors: Tuple or list of tensors whose shapes are equal but along the axis.
        axis: The axis along which they follow each other.

    Returns:
        Tensor, in the format that all of them meet in.

    Raises:
        ValueError: The shapes differ elsewhere, or there is no such axis.
        TypeError: `tensors` is no tuple or list.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> ops.cat((mixtrain.Tensor([1]), mixtrain.Tensor([2, 3]))).asnumpy().tolist()
        [1, 2, 3]

    Source: MindSpore, `mindspore.ops.cat`.
    """
    return _joined("ops.cat", tensors, axis)


def concat(tensors: Any, axis: int = 0) -> Any:
    """`cat`: put `tensors` one after the other along `axis`. Source: MindSpore, `mindspore.ops.concat`."""
    return _joined("ops.concat", tensors, axis)


def _joined(where: str, tensors: Any, axis: int) -> Any:
    values = _tensors(where, tensors)
    if not rank_of(values[0]):
        raise ValueError(f"{where}: expected tensors with axes; got a scalar. Write ops.stack((x, y)).")
    number = axis_of(where, axis, rank_of(values[0]))
    _check_same(where, values, number)
    return backend.join_along(keras.ops.concatenate, values, number)


def stack(tensors: Any, axis: int = 0) -> Any:
    """Put tensors of one shape side by side, along a new axis.

    Args:
        tensors: Tuple or list of tensors.
        axis: Where the new axis stands in the result.

    Returns:
        Tensor.

    Raises:
        ValueError: The shapes differ, or there is no such place.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> ops.stack((mixtrain.Tensor([1, 2]), mixtrain.Tensor([3, 4])), axis=1).asnumpy().tolist()
        [[1, 3], [2, 4]]

    Source: MindSpore, `mindspore.ops.stack`.
    """
    values = _tensors("ops.stack", tensors)
    number = axis_of("ops.stack", axis, rank_of(values[0]) + 1)
    _check_same("ops.stack", values, None)
    return keras.ops.stack(values, axis=number)


def split(tensor: Any, split_size_or_sections: Any, axis: int = 0) -> tuple[Any, ...]:
    """Cut a tensor into pieces.

    Args:
        tensor: Tensor.
        split_size_or_sections: The size of each piece (the last may be smaller), or a tuple of their sizes.
        axis: The axis along which to cut.

    Returns:
        Tuple of tensors.

    Raises:
        ValueError: The sizes do not add up to that of the axis, or there is no such axis.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> [piece.asnumpy().tolist() for piece in ops.split(mixtrain.Tensor([1, 2, 3]), 2)]
        [[1, 2], [3]]

    Source: MindSpore, `mindspore.ops.split`.
    """
    x = _as_tensor("ops.split", tensor)
    number = axis_of("ops.split", axis, rank_of(x))
    whole = known_size("ops.split", x, number)
    if is_number(split_size_or_sections):
        size = checks.integer("ops.split", "split_size_or_sections", split_size_or_sections, at_least=1, example=2)
        return _cut(x, list(range(size, whole, size)), number)
    sections = sizes_of("ops.split", split_size_or_sections, name="split_size_or_sections")
    if sum(sections) != whole or min(sections) < 0:
        raise checks.fail_value(
            "ops.split", f"the sections must add up to {whole}, the size of axis {axis}", sections, f"({whole},)"
        )
    return _cut(x, [sum(sections[:at]) for at in range(1, len(sections))], number)


# `split` has a parameter called tensor.
_as_tensor = tensor


def known_size(where: str, x: Any, axis: int) -> int:
    """Return the size of an axis.

    Raises:
        ValueError: It is not known while compiling.
    """
    size = x.shape[axis]
    if size is None:
        raise ValueError(
            f"{where}: expected an axis whose size is known while compiling; got shape {tuple(x.shape)}. "
            "Write batch(..., drop_remainder=True), or cut another axis."
        )
    return int(size)


def _cut(x: Any, places: list[int], axis: int) -> tuple[Any, ...]:
    return tuple(keras.ops.split(x, places, axis=axis)) if places else (x,)


def chunk(input: Any, chunks: int, axis: int = 0) -> tuple[Any, ...]:
    """Cut `input` along `axis` into at most `chunks` pieces of one size, the last perhaps smaller.

    Example: ``ops.chunk(x, 2)``. Source: MindSpore, `mindspore.ops.chunk`.
    """
    x = tensor("ops.chunk", input)
    number = axis_of("ops.chunk", axis, rank_of(x))
    count = checks.integer("ops.chunk", "chunks", chunks, at_least=1, example=2)
    return split(x, max(1, -(-known_size("ops.chunk", x, number) // count)), number)


def unstack(input_x: Any, axis: int = 0) -> tuple[Any, ...]:
    """The tensors that `input_x` holds along `axis`, without that axis. Source: MindSpore, `mindspore.ops.unstack`."""
    x = tensor("ops.unstack", input_x)
    number = axis_of("ops.unstack", axis, rank_of(x))
    known_size("ops.unstack", x, number)
    return tuple(keras.ops.unstack(x, axis=number))


def unbind(input: Any, dim: int = 0) -> tuple[Any, ...]:
    """`unstack`: the tensors that `input` holds along `dim`. Source: MindSpore, `mindspore.ops.unbind`."""
    return unstack(input, dim)


def hstack(tensors: Any) -> Any:
    """Put `tensors` one after the other along their second axis, vectors along the only one.

    Source: MindSpore, `mindspore.ops.hstack`.
    """
    return keras.ops.hstack(_tensors("ops.hstack", tensors))


def vstack(inputs: Any) -> Any:
    """Put `inputs` one below the other, vectors as rows. Source: MindSpore, `mindspore.ops.vstack`."""
    values = _tensors("ops.vstack", inputs)
    rows = [value if rank_of(value) > 1 else keras.ops.reshape(value, (1, -1)) for value in values]
    return keras.ops.concatenate(rows)


class _Joining(Primitive):
    """An operation on several tensors along a fixed axis."""

    def __init__(self, axis: int = 0) -> None:
        super().__init__()
        if not is_number(axis) or isinstance(axis, (bool, float)):
            raise checks.fail_type(self.name, "axis must be an int", axis, "axis=0")
        self.axis = axis


class Concat(_Joining):
    """`concat` along a fixed `axis`. Example: ``ops.Concat(1)((x, y))``. Source: MindSpore, `mindspore.ops.Concat`."""

    def __call__(self, *tensors: Any) -> Any:
        return _joined("ops.Concat", tensors[0] if len(tensors) == 1 else tensors, self.axis)


class Stack(_Joining):
    """`stack` along a fixed new `axis`. Example: ``ops.Stack(1)((x, y))``. Source: MindSpore, `mindspore.ops.Stack`."""

    def __call__(self, *tensors: Any) -> Any:
        return stack(tensors[0] if len(tensors) == 1 else tensors, self.axis)


class Unstack(_Joining):
    """`unstack` along a fixed `axis` into `num` tensors. Example: ``ops.Unstack()(x)``.

    Source: MindSpore, `mindspore.ops.Unstack`.
    """

    def __init__(self, axis: int = 0, num: int | None = None) -> None:
        super().__init__(axis)
        self.num = num

    def __call__(self, input_x: Any) -> tuple[Any, ...]:
        pieces = unstack(input_x, self.axis)
        if self.num not in (None, len(pieces)):
            raise checks.fail_value("Unstack", f"num must be {len(pieces)}, the size of the axis", self.num, "num=None")
        return pieces


class Split(Primitive):
    """Cut a tensor into pieces of one size.

    Args:
        axis: The axis along which to cut.
        output_num: How many pieces.

    Raises:
        ValueError: In the call: the axis cannot be cut into so many equal pieces.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> [piece.asnumpy().tolist() for piece in ops.Split(0, 2)(mixtrain.Tensor([1, 2, 3, 4]))]
        [[1, 2], [3, 4]]

    Source: MindSpore, `mindspore.ops.Split`.
    """

    def __init__(self, axis: int = 0, output_num: int = 1) -> None:
        super().__init__()
        self.axis = axis
        self.output_num = checks.integer("Split", "output_num", output_num, at_least=1)

    def __call__(self, input_x: Any) -> tuple[Any, ...]:
        x = tensor("ops.Split", input_x)
        number = axis_of("ops.Split", self.axis, rank_of(x))
        size = known_size("ops.Split", x, number)
        if size % self.output_num:
            raise checks.fail_value(
                "ops.Split", f"output_num must divide {size}, the size of axis {self.axis}", self.output_num,
                f"output_num={size}",
            )
        step = size // self.output_num
        return _cut(x, list(range(step, size, step)), number)
