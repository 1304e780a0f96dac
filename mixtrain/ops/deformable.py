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
    settings = (strides, padding, kernel_size, dilations, deformable_groups, modulated)
    # (N, deformable groups, C / groups, kernel elements, H' * W'), in the order of (N, C, kernel elements, H' * W')
    values, (rows, columns), _ = _samples(where, x, offsets, *settings)
    kernel = as_floats(where, weight)
    kernels = ops.reshape(ops.cast(kernel, values.dtype), (groups, kernel.shape[0] // groups, -1))
    values = ops.reshape(values, (values.shape[0], groups, kernels.shape[2], rows * columns))
    result = ops.reshape(ops.matmul(kernels, values), (values.shape[0], kernel.shape[0], rows, columns))
    return result if bias is None else result + ops.reshape(as_floats(where, bias), (1, -1, 1, 1))


def deformable_offsets(
    x: TensorLike, offsets: TensorLike, strides: Sequence[int], pads: Sequence[int], kernel_size: Sequence[int],
    dilations: Sequence[int] = (1, 1, 1, 1), data_format: str = "NCHW", deformable_groups: int = 1,
    modulated: bool = True,
) -> Tensor:
    """The samples of `deformable_conv2d`, (N, C, H' * height, W' * width): a window of the kernel for each element."""
    where, ops = "ops.DeformableOffsets", keras.ops
    wide, shifts = (ops.cast(as_floats(where, value), "float32") for value in (x, offsets))
    if data_format == "NHWC":
        wide, shifts = ops.moveaxis(wide, -1, 1), ops.moveaxis(shifts, -1, 1)
    values, (rows, columns), (height, width) = _samples(
        where, wide, shifts, strides, pads, kernel_size, dilations, deformable_groups, modulated
    )
    values = ops.reshape(values, (values.shape[0], -1, height, width, rows, columns))
    values = ops.cast(ops.transpose(values, (0, 1, 4, 2, 5, 3)), as_floats(where, x).dtype)
    result = ops.reshape(values, (*values.shape[:2], rows * height, columns * width))
    return ops.moveaxis(result, 1, -1) if data_format == "NHWC" else result


def _samples(
    where: str, x: TensorLike, offsets: TensorLike, strides: Any, padding: Any, kernel_size: Any, dilations: Any,
    deformable_groups: int, modulated: bool,
) -> tuple[Tensor, tuple[int, int], tuple[int, int]]:
    """Return samples (N, groups, C / groups, kernel elements, H' * W'), the sizes of the output and of the kernel."""
    ops = keras.ops
    checks.one_of(where, "modulated", modulated, (True,))
    image, shifts = as_floats(where, x), as_floats(where, offsets)
    height, width = sizes_of(where, "kernel_size", kernel_size, 2)
    strides, dilations = sizes_of(where, "strides", strides, 2), sizes_of(where, "dilations", dilations, 2)
    pads = pads_from(where, padding, 2)
    batch, channels, *sizes = image.shape
    most = (batch, 3 * deformable_groups * height * width, *(
        (size + sum(sides) - (length - 1) * dilation - 1) // stride + 1
        for size, sides, length, dilation, stride in zip(
            sizes, pads, (height, width), dilations, strides, strict=True
        )
    ))
    rows, columns = shifts.shape[2:]
    fits = tuple(shifts.shape[:2]) == most[:2] and rows <= most[2] and columns <= most[3]
    if rank_of(image) != 4 or channels % deformable_groups or not fits:
        raise checks.fail_value(
            where, f"offsets must have shape {most} for images (N, C, H, W)", tuple(shifts.shape), "such offsets"
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
    return values * shifts[:, 2][:, :, None], (rows, columns), (height, width)


def _bilinear_samples(image: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Sample images (N, G, C, H, W) at positions (N, G, K, L), with 0 outside: (N, G, C, K, L)."""
    ops = keras.ops
    batch, groups, channels, height, width = image.shape
    flat = ops.reshape(image, (batch, groups, channels, height * width))
    top, left = ops.floor(y), ops.floor(x)
    # Weights without absolute values: at whole positions these have derivatives from one side, as in MindSpore.
    rows, columns = ([(low, 1 - (at - low)), (low + 1, at - low)] for at, low in ((y, top), (x, left)))
    total: Tensor = 0.0
    for (row, row_weight), (column, column_weight) in itertools.product(rows, columns):
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        weight = row_weight * column_weight * ops.cast(inside, image.dtype)
        index = ops.clip(row, 0, height - 1) * width + ops.clip(column, 0, width - 1)
        index = ops.reshape(ops.cast(index, "int32"), (batch, groups, 1, -1))
        index = ops.broadcast_to(index, (batch, groups, channels, index.shape[-1]))
        pixels = ops.reshape(ops.take_along_axis(flat, index, axis=3), (batch, groups, channels, *y.shape[2:]))
        total = total + pixels * weight[:, :, None]
    return total
