"""Deformable convolution: each element of the kernel samples the image at an offset of its own."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import keras

from mixtrain import checks
from mixtrain.ops.inputs import as_floats, rank_of
from mixtrain.ops.volumes import pads_from, sizes_of
from mixtrain.typing import Tensor, TensorLike


def deformable_conv2d(
    x: TensorLike, weight: TensorLike, offsets: TensorLike, kernel_size: int | Sequence[int],
    strides: int | Sequence[int], padding: int | Sequence[int], bias: TensorLike | None = None,
    dilations: int | Sequence[int] = (1, 1, 1, 1), groups: int = 1, deformable_groups: int = 1, modulated: bool = True,
) -> Tensor:
    """The modulated deformable convolution of `x` (N, C, H, W), with bilinear sampling (Zhu et al., 2018).

    Args:
        x: Images.
        weight: (channels of the output, C / groups, height, width).
        offsets: (N, 3 * deformable_groups * height * width, H', W'): offsets along x, then along y, then weights.
        kernel_size: (height, width) of the kernel.
        strides: (1, 1, height, width).
        padding: Zeros around the images: (top, bottom, left, right).
        bias: (channels of the output,), or None.
        dilations: Dilation rates (1, 1, height, width).
        groups: Number of groups that channels are split into.
        deformable_groups: Number of groups of channels with offsets of their own.
        modulated: Only True.
    """
    where, ops = "ops.deformable_conv2d", keras.ops
    checks.one_of(where, "modulated", modulated, (True,))
    image, kernel, shifts = as_floats(where, x), as_floats(where, weight), as_floats(where, offsets)
    height, width = sizes_of(where, "kernel_size", kernel_size, 2)
    strides, dilations = sizes_of(where, "strides", strides, 2), sizes_of(where, "dilations", dilations, 2)
    pads = pads_from(where, padding, 2)
    batch, channels, *sizes = image.shape
    rows, columns = (
        (size + sum(sides) - (length - 1) * dilation - 1) // stride + 1
        for size, sides, length, dilation, stride in zip(
            sizes, pads, (height, width), dilations, strides, strict=True
        )
    )
    expected = (batch, 3 * deformable_groups * height * width, rows, columns)
    if rank_of(image) != 4 or channels % deformable_groups or tuple(shifts.shape) != expected:
        raise checks.fail_value(
            where, f"offsets must have shape {expected} for images (N, C, H, W)", tuple(shifts.shape), "such offsets"
        )
    # (N, 3, groups, kernel elements, H' * W')
    shifts = ops.reshape(shifts, (batch, 3, deformable_groups, height * width, rows * columns))

    def positions(axis: int, starts: Any, elements: Any) -> Tensor:
        """Return the positions (kernel elements, H' * W') along one axis without offsets."""
        starts = starts * strides[axis] - pads[axis][0]
        return ops.cast(elements[:, None] * dilations[axis] + starts[None], image.dtype)

    y = positions(0, ops.repeat(ops.arange(rows), columns), ops.repeat(ops.arange(height), width))
    x = positions(1, ops.tile(ops.arange(columns), (rows,)), ops.tile(ops.arange(width), (height,)))
    grouped = ops.reshape(image, (batch, deformable_groups, -1, *sizes))
    values = _bilinear_samples(grouped, y + shifts[:, 1], x + shifts[:, 0])
    values = values * shifts[:, 2][:, :, None]
    # (N, C, kernel elements, H' * W') -> (N, groups, C / groups * kernel elements, H' * W')
    values = ops.reshape(values, (batch, groups, channels // groups * height * width, rows * columns))
    kernels = ops.reshape(ops.cast(kernel, image.dtype), (groups, kernel.shape[0] // groups, -1))
    result = ops.reshape(ops.matmul(kernels, values), (batch, kernel.shape[0], rows, columns))
    return result if bias is None else result + ops.reshape(as_floats(where, bias), (1, -1, 1, 1))


def _bilinear_samples(image: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Sample images (N, G, C, H, W) at positions (N, G, K, L), with 0 outside: (N, G, C, K, L)."""
    ops = keras.ops
    batch, groups, channels, height, width = image.shape
    flat = ops.reshape(image, (batch, groups, channels, height * width))
    top, left = ops.floor(y), ops.floor(x)
    total: Tensor = 0.0
    for row, column in itertools.product((top, top + 1), (left, left + 1)):
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        weight = (1 - ops.abs(y - row)) * (1 - ops.abs(x - column)) * ops.cast(inside, image.dtype)
        index = ops.clip(row, 0, height - 1) * width + ops.clip(column, 0, width - 1)
        index = ops.reshape(ops.cast(index, "int32"), (batch, groups, 1, -1))
        index = ops.broadcast_to(index, (batch, groups, channels, index.shape[-1]))
        pixels = ops.reshape(ops.take_along_axis(flat, index, axis=3), (batch, groups, channels, *y.shape[2:]))
        total = total + pixels * weight[:, :, None]
    return total
