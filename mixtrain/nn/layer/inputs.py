"""What a layer asks of its input before it computes: a float tensor of the right rank and width."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.dtype import as_dtype, is_float, wider


def name_of(cell: Any) -> str:
    """Return a cell's class and its path in the network, for errors: "Conv2d block.conv1"."""
    return f"{cell.cls_name} {cell.name_prefix.rstrip('.')}".rstrip()


def float_tensor(cell: Any, x: Any) -> Any:
    """Return an input as a tensor.

    Raises:
        TypeError: It is not a tensor, or holds no floating-point numbers.
    """
    if isinstance(x, keras.Variable):
        x = backend.to_tensor(x)
    if not backend.is_tensor(x):
        raise checks.fail_type(name_of(cell), "the input must be a Tensor", x, "mixtrain.Tensor(x, mixtrain.float32)")
    if not is_float(x.dtype):
        raise TypeError(
            f"{name_of(cell)}: expected a floating-point input; got {as_dtype(x.dtype).name}. "
            "Write mixtrain.Tensor(x, mixtrain.float32)."
        )
    return x


def check_rank(cell: Any, x: Any, ranks: tuple[int, ...], axes: str) -> None:
    """Raise a ValueError unless the rank of `x` is one of `ranks`; `axes` says what the axes mean."""
    if len(x.shape) not in ranks:
        expected = " or ".join(str(rank) for rank in ranks)
        raise ValueError(
            f"{name_of(cell)}: expected {expected} axes {axes}; got input shape {tuple(x.shape)}. "
            f"Write an input with axes {axes}."
        )


def check_width(cell: Any, x: Any, axis: int, size: int, *, noun: str, argument: str) -> None:
    """Raise a ValueError where the size of one axis is known and is not `size`.

    Args:
        cell: Who asks.
        x: The input.
        axis: The axis, counted from the front.
        size: The size it must have.
        noun: What the axis counts ("channels").
        argument: The constructor's argument that fixes the size.
    """
    shape = tuple(x.shape)
    got = shape[axis]
    if got is None or got == size:
        return
    if len(shape) == 4 and axis == 1 and shape[-1] == size:
        write = "keras.ops.transpose(x, (0, 3, 1, 2)), as channels come first"
    else:
        write = f"{cell.cls_name}({argument}={got}, ...)"
    raise ValueError(
        f"{name_of(cell)}: expected {size} {noun} on axis {axis}; got {got} (input shape {shape}). Write {write}."
    )


_LENGTHS = ("planes", "rows", "columns")


def check_fits(cell: Any, x: Any, span: tuple[int, ...], around: Any) -> None:
    """Raise a ValueError where a window that reaches over `span` does not fit into a padded input (N, C, *sizes)."""
    count = len(x.shape) - 2
    sizes, names = tuple(x.shape)[2:], _LENGTHS[-count:] if count > 1 else ("elements",)
    for size, name, reach, (before, after) in zip(sizes, names, span[-count:], around[-count:], strict=True):
        if size is not None and size + before + after < reach:
            raise ValueError(
                f"{name_of(cell)}: expected at least {reach - before - after} {name}, as the window needs them; got "
                f'input shape {tuple(x.shape)}. Write pad_mode="same", a smaller window or a larger input.'
            )


def channels_last(x: Any) -> Any:
    """Return a tensor (N, C, ...) as (N, ..., C); of a channels-last view, the tensor that it views."""
    return backend.to_channels_last(x) if len(x.shape) == 4 else keras.ops.moveaxis(x, 1, -1)


def channels_first(y: Any) -> Any:
    """Return a tensor (N, ..., C) as (N, C, ...); images remember where they came from."""
    return backend.from_channels_last(y) if len(y.shape) == 4 else keras.ops.moveaxis(y, -1, 1)


def promote(x: Any, *weights: Any) -> tuple[Any, ...]:
    """Return `x` and the weights in the widest of their formats."""
    dtype = x.dtype
    for weight in weights:
        if weight.dtype != dtype:
            dtype = wider(dtype, weight.dtype)
    return (backend.cast_keeping_layout(x, dtype), *(keras.ops.cast(weight, dtype) for weight in weights))
