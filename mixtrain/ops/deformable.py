"""A convolution whose windows are moved element by element, by offsets that come with the images."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import checks
from mixtrain.ops.inputs import as_floats, rank_of
from mixtrain.ops.volumes import around_of, sizes_of


def deformable_conv2d(
    x: Any, weight: Any, offsets: Any, kernel_size: Any, strides: Any, padding: Any, bias: Any = None,
    dilations: Any = (1, 1, 1, 1), groups: int = 1, deformable_groups: int = 1, modulated: bool = True,
) -> Any:
    """A convolution of `x` (N, C, H, W) whose elements are read at moved places, between pixels too, and weighed.

    Args:
        x: Images.
        weight: (channels of the output, C / groups, height, width).
        offsets: (N, 3 * deformable_groups * height * width, H', W'): shifts along x, then along y, then weights.
        kernel_size: (height, width) of the window.
        strides: Its steps, (1, 1, down, right).
        padding: Zeros around the images: (top, bottom, left, right).
        bias: (channels of the output,), or None.
        dilations: Distances between the window's elements, (1, 1, down, right).
        groups: Number of groups that channels are split into.
        deformable_groups: Number of groups of channels with shifts of their own.
        modulated: True, the only one.

    Returns:
        (N, channels of the output, H', W').

    Raises:
        ValueError: The shapes do not fit each other.

    Source: Zhu et al., 2018; MindSpore, `mindspore.ops.deformable_conv2d`.
    """
    where, ops = "ops.deformable_conv2d", keras.ops
    checks.one_of(where, "modulated", modulated, (True,))
    image, kernel, moved = as_floats(where, x), as_floats(where, weight), as_floats(where, offsets)
    high, wide = sizes_of(where, "kernel_size", kernel_size, 2)
    step, gap = sizes_of(where, "strides", strides, 2), sizes_of(where, "dilations", dilations, 2)
    around = around_of(where, padding, 2)
    batch, channels, *lengths = image.shape
    rows, columns = (
        (length + sum(sides) - (size - 1) * apart - 1) // one + 1
        for length, sides, size, apart, one in zip(lengths, around, (high, wide), gap, step, strict=True)
    )
    expected = (batch, 3 * deformable_groups * high * wide, rows, columns)
    if rank_of(image) != 4 or channels % deformable_groups or tuple(moved.shape) != expected:
        raise checks.fail_value(
            where, f"offsets must have shape {expected} for images (N, C, H, W)", tuple(moved.shape), "such offsets"
        )
    # (N, 3, groups, window, H' * W')
    moved = ops.reshape(moved, (batch, 3, deformable_groups, high * wide, rows * columns))
    places: list[Any] = []
    for count, one, apart, (before, _), numbers in (
        (rows, step[0], gap[0], around[0], ops.repeat(ops.arange(high), wide)),
        (columns, step[1], gap[1], around[1], ops.tile(ops.arange(wide), (high,))),
    ):
        start = ops.arange(count) * one - before
        grid = ops.repeat(start, columns) if not places else ops.tile(start, (rows,))
        places.append(ops.cast(numbers[:, None] * apart + grid[None], image.dtype))
    down, across = places[0] + moved[:, 1], places[1] + moved[:, 0]
    values = _between(ops.reshape(image, (batch, deformable_groups, -1, *lengths)), down, across)
    values = values * moved[:, 2][:, :, None]
    # (N, C, window, H' * W') -> (N, groups, C / groups * window, H' * W')
    values = ops.reshape(values, (batch, groups, channels // groups * high * wide, rows * columns))
    kernels = ops.reshape(ops.cast(kernel, image.dtype), (groups, kernel.shape[0] // groups, -1))
    result = ops.reshape(ops.matmul(kernels, values), (batch, kernel.shape[0], rows, columns))
    return result if bias is None else result + ops.reshape(as_floats(where, bias), (1, -1, 1, 1))


def _between(image: Any, down: Any, across: Any) -> Any:
    """Return the values of images (N, G, C, H, W) at places (N, G, K, L), 0 outside: (N, G, C, K, L)."""
    ops = keras.ops
    batch, groups, channels, height, width = image.shape
    flat = ops.reshape(image, (batch, groups, channels, height * width))
    top, left = ops.floor(down), ops.floor(across)
    total: Any = 0.0
    for row in (0, 1):
        for column in (0, 1):
            y, x = top + row, left + column
            inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            share = (1 - ops.abs(down - y)) * (1 - ops.abs(across - x)) * ops.cast(inside, image.dtype)
            index = ops.clip(y, 0, height - 1) * width + ops.clip(x, 0, width - 1)
            spot = ops.reshape(ops.cast(index, "int32"), (batch, groups, 1, -1))
            spot = ops.broadcast_to(spot, (batch, groups, channels, spot.shape[-1]))
            found = ops.reshape(ops.take_along_axis(flat, spot, axis=3), (batch, groups, channels, *down.shape[2:]))
            total = total + found * share[:, :, None]
    return total
