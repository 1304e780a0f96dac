"""Kernel sizes, strides, padding and dilation of convolution and pooling: checked arguments and padded tensors."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import keras

from mixtrain import checks
from mixtrain.dtype import is_float
from mixtrain.ops.inputs import rank_of, tensor
from mixtrain.typing import Tensor, TensorLike

Pair = tuple[int, int]
Window = tuple[int, ...]
Pads = tuple[Pair, ...]

NO_PADS: Pads = ((0, 0), (0, 0))


def window(where: str, name: str, value: Any) -> Pair:
    """Return an int, (height, width), or the reference's (1, 1, height, width), as (height, width)."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    if len(values) == 4 and values[:2] == (1, 1):
        values = values[2:]
    if len(values) != 2:
        raise checks.fail_value(where, f"{name} must be an int or (height, width)", value, f"{name}=(3, 3)")
    height, width = (checks.integer(where, name, item, at_least=1, example=3) for item in values)
    return height, width


def pads_of(where: str, name: str, value: Any) -> Pads:
    """Return padding, an int, (height, width) or (top, bottom, left, right), as ((top, bottom), (left, right))."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * 4
    if len(values) == 2:
        values = (values[0], values[0], values[1], values[1])
    if len(values) != 4:
        raise checks.fail_value(where, f"{name} must be an int, two or four of them", value, f"{name}=1")
    top, bottom, left, right = (checks.integer(where, name, item, at_least=0) for item in values)
    return (top, bottom), (left, right)


def mode_of(where: str, pad_mode: Any, allowed: tuple[str, ...]) -> str:
    """Return a padding mode in lower case."""
    mode = pad_mode.lower() if isinstance(pad_mode, str) else pad_mode
    return str(checks.one_of(where, "pad_mode", mode, allowed))


def pad(x: Tensor, padding: Pads, value: float = 0.0) -> Tensor:
    """Pad the spatial axes of a channels-last tensor."""
    if not any(map(any, padding)):
        return x
    return keras.ops.pad(x, ((0, 0), *padding, (0, 0)), constant_values=value)


def window_elements(x: Tensor, kernel_size: Window, stride: Window, dilation: Window, axis: int = 2) -> list[Tensor]:
    """Return, for each position in the kernel, the elements of all windows there; windows are of axes from `axis` on.

    By default `x` is (N, C, *sizes).
    """
    counts = [
        (length - (size - 1) * gap - 1) // step + 1
        for length, size, step, gap in zip(x.shape[axis:], kernel_size, stride, dilation, strict=False)
    ]
    return [
        x[(*[slice(None)] * axis, *(
            slice(offset * gap, offset * gap + (count - 1) * step + 1, step)
            for offset, count, step, gap in zip(offsets, counts, stride, dilation, strict=True)
        ))]
        for offsets in itertools.product(*map(range, kernel_size))
    ]


def same_pads(sizes: Window, window: Window, stride: Window) -> Pads:
    """Return the padding of "same": outputs of ceil(size / stride), the odd element at the end."""
    axes = zip(sizes, window, stride, strict=True)
    totals = [max((-(-size // step) - 1) * step + length - size, 0) for size, length, step in axes]
    return tuple((total // 2, total - total // 2) for total in totals)


def ceil_padding(sizes: Sequence[int], window: Window, stride: Window, padding: Pads) -> Pads:
    """Return the padding at the end of each axis, beyond `padding`, that the last, partial window needs."""
    pads = []
    for size, length, step, (before, after) in zip(sizes, window, stride, padding, strict=True):
        start = -(-(size + before + after - length) // step) * step
        # A window that would start in the padding at the end is left out.
        start -= step if start >= size + before else 0
        pads.append((0, max(start + length - size - before - after, 0)))
    return tuple(pads)


def is_same(padding: Pads, window: Window, stride: Window, dilation: Window) -> bool:
    """Whether explicit padding is what the backend's "same" does, whatever the input's size."""
    if any(step != 1 for step in stride):
        return False
    totals = [(size - 1) * step for size, step in zip(window, dilation, strict=True)]
    return all((total // 2, total - total // 2) == pair for total, pair in zip(totals, padding, strict=True))


def dilated(kernel: Tensor, dilation: Window) -> Tensor:
    """Return a dilated kernel (*window, in, out) as a larger one with zeros between its elements."""
    for axis, gap in enumerate(dilation):
        if gap == 1:
            continue
        shape, size = tuple(kernel.shape), kernel.shape[axis]
        widths = [(0, 0)] * (len(shape) + 1)
        widths[axis + 1] = (0, gap - 1)
        kernel = keras.ops.pad(keras.ops.expand_dims(kernel, axis + 1), widths)
        kernel = keras.ops.reshape(kernel, (*shape[:axis], size * gap, *shape[axis + 1 :]))
        kernel = keras.ops.take(kernel, range((size - 1) * gap + 1), axis=axis)
    return kernel


def image(where: str, value: TensorLike) -> Tensor:
    """Return a float tensor (N, C, H, W)."""
    x = tensor(where, value)
    if not is_float(x.dtype):
        raise checks.fail_type(where, "the input must hold floats", value, "ops.cast(x, mixtrain.float32)")
    if rank_of(x) != 4:
        raise checks.fail_value(where, "the input must have axes (N, C, H, W)", tuple(x.shape), "x of 4 axes")
    return x


def check_fits(where: str, x: Tensor, window_size: Pair, padding: Pads) -> None:
    """Raise a ValueError where a window does not fit into padded images (N, C, H, W)."""
    for size, length, (before, after) in zip(x.shape[2:], window_size, padding, strict=True):
        if size is not None and size + before + after < length:
            raise checks.fail_value(
                where, f"the input must be at least {length - before - after} high or wide, as the window needs it",
                tuple(x.shape), "a smaller window",
            )


def check_data_format(where: str, data_format: Any) -> str:
    """Return "NCHW", the only supported layout."""
    return str(checks.one_of(where, "data_format", data_format, ("NCHW",)))
