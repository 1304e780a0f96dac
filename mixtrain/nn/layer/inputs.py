"""Checks and dtype promotion of layer inputs."""

from __future__ import annotations

import keras

from mixtrain import backend, checks
from mixtrain.cell.tree import name_of
from mixtrain.dtype import as_dtype, is_float, wider
from mixtrain.ops.windows import Pads
from mixtrain.typing import Layer, Tensor, TensorLike


def float_tensor(cell: Layer, x: TensorLike) -> Tensor:
    """Check that an input is a floating-point tensor, and return it."""
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


def check_rank(cell: Layer, x: Tensor, ranks: tuple[int, ...], axes: str) -> None:
    """Raise a ValueError unless the rank of `x` is one of `ranks`; `axes` says what the axes mean."""
    if len(x.shape) not in ranks:
        expected = " or ".join(str(rank) for rank in ranks)
        raise ValueError(
            f"{name_of(cell)}: expected {expected} axes {axes}; got input shape {tuple(x.shape)}. "
            f"Write an input with axes {axes}."
        )


def check_width(cell: Layer, x: Tensor, axis: int, size: int, *, noun: str, argument: str) -> None:
    """Raise a ValueError that names `cell` if the size of one axis is known and is not `size`.

    Args: noun, argument: Name of the elements along the axis ("channels"), and constructor argument that defines the
        size.
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


_AXIS_UNITS = ("planes", "rows", "columns")


def check_fits(cell: Layer, x: Tensor, kernel_size: tuple[int, ...], padding: Pads) -> None:
    """Raise a ValueError if a (dilated) kernel is larger than the padded input (N, C, *sizes)."""
    rank = len(x.shape) - 2
    sizes, units = tuple(x.shape)[2:], _AXIS_UNITS[-rank:] if rank > 1 else ("elements",)
    rows = zip(sizes, units, kernel_size[-rank:], padding[-rank:], strict=True)
    for size, unit, kernel, (before, after) in rows:
        if size is not None and size + before + after < kernel:
            raise ValueError(
                f"{name_of(cell)}: expected at least {kernel - before - after} {unit}, as the window needs them; got "
                f'input shape {tuple(x.shape)}. Write pad_mode="same", a smaller window or a larger input.'
            )


def promote(x: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
    """Cast `x` and the weights to the widest of their dtypes."""
    dtype = x.dtype
    for weight in weights:
        if weight.dtype != dtype:
            dtype = wider(dtype, weight.dtype)
    return (backend.cast_keeping_layout(x, dtype), *(keras.ops.cast(weight, dtype) for weight in weights))
