"""Patches of images: windows as columns, blocks, crops and samples on a grid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import keras

from mixtrain import checks
from mixtrain.dtype import bool_
from mixtrain.ops import nhwc
from mixtrain.ops.inputs import as_floats, rank_of, tensor, values_of, widened
from mixtrain.ops.primitive import configured
from mixtrain.ops.volumes import pads_from, sizes_of
from mixtrain.ops.windows import Window, pad, window_elements
from mixtrain.typing import Tensor, TensorLike


def _columns(
    where: str, x: TensorLike, kernel_size: int | Sequence[int], dilation: int | Sequence[int],
    padding: int | Sequence[int], stride: int | Sequence[int],
) -> tuple[Tensor, Window]:
    """Return the windows of images as (N, C, elements of a window, windows), and the size of a window."""
    value = tensor(where, x)
    size, gap, step = _geometry(where, kernel_size, dilation, stride)
    padded = nhwc.from_channels_last(pad(nhwc.to_channels_last(value), pads_from(where, padding, 2)))
    parts = keras.ops.stack(window_elements(padded, size, step, gap), axis=2)
    return keras.ops.reshape(parts, (*parts.shape[:3], -1)), size


def _geometry(
    where: str, kernel_size: int | Sequence[int], dilation: int | Sequence[int], stride: int | Sequence[int]
) -> tuple[Window, ...]:
    settings = {"kernel_size": kernel_size, "dilation": dilation, "stride": stride}
    return tuple(sizes_of(where, name, value, 2) for name, value in settings.items())


def unfold(
    input: TensorLike, kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0, stride: int | Sequence[int] = 1,
) -> Tensor:
    """The windows of images `input` (N, C, H, W) as columns (N, C * window, windows).

    `kernel_size`, `dilation`, `padding` and `stride` are an int or (height, width).
    """
    columns, size = _columns("ops.unfold", input, kernel_size, dilation, padding, stride)
    return keras.ops.reshape(columns, (columns.shape[0], columns.shape[1] * math.prod(size), -1))


def fold(
    input: TensorLike, output_size: int | Sequence[int], kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, stride: int | Sequence[int] = 1,
) -> Tensor:
    """Add up columns `input` (N, C * window, windows) to images of `output_size`, the adjoint of `unfold`.

    `kernel_size`, `dilation`, `padding` and `stride` are an int or (height, width).
    """
    where, value = "ops.fold", tensor("ops.fold", input)
    high, wide = sizes_of(where, "output_size", output_size, 2)
    size, gap, step = _geometry(where, kernel_size, dilation, stride)
    (top, bottom), (left, right) = pads_from(where, padding, 2)
    lengths = high + top + bottom, wide + left + right
    pixels = keras.ops.reshape(keras.ops.arange(math.prod(lengths)), (1, 1, *lengths))
    indices = keras.ops.concatenate(
        [keras.ops.reshape(part, (-1,)) for part in window_elements(pixels, size, step, gap)], axis=0
    )
    rows = math.prod(value.shape[:2]) // math.prod(size)
    values = keras.ops.reshape(value, (rows, -1))
    indices = indices[None, :] + keras.ops.arange(rows)[:, None] * math.prod(lengths)
    total = keras.ops.scatter(
        keras.ops.reshape(indices, (-1, 1)), keras.ops.reshape(values, (-1,)), (rows * math.prod(lengths),)
    )
    images = keras.ops.reshape(total, (value.shape[0], -1, *lengths))
    return images[:, :, top : top + high, left : left + wide]


def _im2col(
    x: Tensor, *, ksizes: int | Sequence[int], strides: int | Sequence[int], dilations: int | Sequence[int],
    pads: int | Sequence[int],
) -> Tensor:
    return _columns("Im2Col", x, ksizes, dilations, pads, strides)[0]


def _col2im(
    x: Tensor, output_size: int | Sequence[int], *, kernel_size: int | Sequence[int], dilation: int | Sequence[int],
    padding: int | Sequence[int], stride: int | Sequence[int],
) -> Tensor:
    columns = keras.ops.reshape(x, (x.shape[0], -1, x.shape[-1]))
    return fold(columns, output_size, kernel_size, dilation, padding, stride)


def col2im(
    input_x: TensorLike, output_size: int | Sequence[int], kernel_size: int | Sequence[int],
    dilation: int | Sequence[int], padding_value: int | Sequence[int], stride: int | Sequence[int],
) -> Tensor:
    """`fold` of columns `input_x` (N, C, window, windows) into images of `output_size`.

    `kernel_size`, `dilation`, `padding_value` and `stride` are pairs.
    """
    return _col2im(
        input_x, output_size, kernel_size=kernel_size, dilation=dilation, padding=padding_value, stride=stride
    )


def space_to_batch_nd(
    input_x: TensorLike, block_size: int | Sequence[int], paddings: Sequence[Sequence[int]]
) -> Tensor:
    """Pad `input_x` (N, C, ...) by `paddings`, and move each position in blocks of `block_size` to the batch axis."""
    x = tensor("ops.space_to_batch_nd", input_x)
    sizes = sizes_of("ops.space_to_batch_nd", "block_size", block_size, rank_of(x) - 2)
    x = keras.ops.pad(x, ((0, 0), (0, 0), *(tuple(pair) for pair in paddings)))
    return keras.ops.concatenate(
        [x[(slice(None), slice(None), *(slice(start, None, step) for start, step in zip(starts, sizes, strict=True)))]
         for starts in itertools.product(*map(range, sizes))], axis=0,
    )


def batch_to_space_nd(input_x: TensorLike, block_shape: int | Sequence[int], crops: Sequence[Sequence[int]]) -> Tensor:
    """The inverse of `space_to_batch_nd`: images of blocks of `block_shape` of `input_x`, cropped by `crops`."""
    x = tensor("ops.batch_to_space_nd", input_x)
    rank = rank_of(x) - 2
    sizes = sizes_of("ops.batch_to_space_nd", "block_shape", block_shape, rank)
    count, *rest = x.shape
    x = keras.ops.reshape(x, (*sizes, count // math.prod(sizes), *rest))
    axes = [rank, rank + 1]
    for axis in range(rank):
        axes += [rank + 2 + axis, axis]
    lengths = [length * size for length, size in zip(rest[1:], sizes, strict=True)]
    x = keras.ops.reshape(keras.ops.transpose(x, axes), (count // math.prod(sizes), rest[0], *lengths))
    cropped = (slice(low, length - high) for (low, high), length in zip(crops, lengths, strict=True))
    return x[(slice(None), slice(None), *cropped)]


def affine_grid(theta: TensorLike, size: Sequence[int], align_corners: bool = False) -> Tensor:
    """The sampling grid of affine maps `theta`, (N, 2, 3) or (N, 3, 4), for an output of shape `size`.

    `align_corners`: whether -1 and 1 are the centers of the outermost elements; else their edges.
    """
    matrix = as_floats("ops.affine_grid", theta)
    lengths = [int(length) for length in size][2:]
    coordinates = [
        keras.ops.linspace(-1.0, 1.0, length) * (1 if align_corners or length == 1 else (length - 1) / length)
        if length > 1 else keras.ops.zeros((1,))
        for length in lengths
    ]
    axes = keras.ops.meshgrid(*coordinates, indexing="ij")
    homogeneous = keras.ops.stack([*reversed(axes), keras.ops.ones_like(axes[0])], axis=-1)
    flat = keras.ops.cast(keras.ops.reshape(homogeneous, (-1, len(lengths) + 1)), matrix.dtype)
    points = keras.ops.matmul(flat[None], keras.ops.swapaxes(matrix, 1, 2))
    return keras.ops.reshape(points, (matrix.shape[0], *lengths, len(lengths)))


def _reflected(x: Tensor, low: float, high: float) -> Tensor:
    if high <= low:
        return keras.ops.zeros_like(x)
    span = high - low
    offset = keras.ops.mod(keras.ops.abs(x - low), 2 * span)
    return low + keras.ops.minimum(offset, 2 * span - offset)


def grid_sample(
    input: TensorLike, grid: TensorLike, mode: str = "bilinear", padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Tensor:
    """Sample `input` (N, C, H, W) or (N, C, D, H, W) at the points `grid` (N, ..., 2 or 3), x first, from -1 to 1.

    `mode`: "bilinear" or "nearest"; `padding_mode`: values outside of the input, "zeros", "border" or "reflection";
    `align_corners` as in `affine_grid`.
    """
    where = "ops.grid_sample"
    checks.one_of(where, "mode", mode, ("bilinear", "nearest"))
    checks.one_of(where, "padding_mode", padding_mode, ("zeros", "border", "reflection"))
    x = as_floats(where, input)
    coordinates = keras.ops.cast(tensor(where, grid), x.dtype)
    lengths, batch = x.shape[2:], x.shape[0]
    if rank_of(x) not in (4, 5) or rank_of(coordinates) != rank_of(x) or coordinates.shape[-1] != len(lengths):
        raise checks.fail_value(
            where,
            "input and grid must have axes (N, C, H, W) and (N, H, W, 2), or (N, C, D, H, W) and (N, D, H, W, 3)",
            (tuple(x.shape), tuple(coordinates.shape)), "a grid with one point for each element of the result",
        )
    # The points in elements of the input, first axis first.
    points = []
    for length, coordinate in zip(lengths, reversed(keras.ops.unstack(coordinates, axis=-1)), strict=True):
        point = (coordinate + 1) / 2 * (length - 1) if align_corners else ((coordinate + 1) * length - 1) / 2
        if padding_mode == "reflection":
            edges = (0.0, length - 1.0) if align_corners else (-0.5, length - 0.5)
            point = _reflected(point, *edges)
        points.append(point if padding_mode == "zeros" else keras.ops.clip(point, 0.0, length - 1.0))
    flat = keras.ops.reshape(nhwc.to_channels_last(x), (batch, -1, x.shape[1]))
    shape, total = tuple(points[0].shape), 0.0
    starts = [keras.ops.floor(point) for point in points]
    corners = [(0,) * len(lengths)] if mode == "nearest" else itertools.product((0, 1), repeat=len(lengths))
    for corner in corners:
        weight, index, inside = 1.0, 0, True
        for length, point, start, step in zip(lengths, points, starts, corner, strict=True):
            neighbor = keras.ops.round(point) if mode == "nearest" else start + step
            fraction = 1.0 if mode == "nearest" else (point - start if step else 1 - (point - start))
            inside = keras.ops.logical_and(inside, keras.ops.logical_and(neighbor >= 0, neighbor <= length - 1))
            weight = weight * fraction
            index = index * length + keras.ops.cast(keras.ops.clip(neighbor, 0, length - 1), "int32")
        rows = keras.ops.reshape(index, (batch, -1, 1))
        values = keras.ops.take_along_axis(flat, keras.ops.broadcast_to(rows, (*rows.shape[:2], x.shape[1])), axis=1)
        scale = keras.ops.reshape(keras.ops.cast(inside, x.dtype) * weight, (batch, -1, 1))
        total = total + values * scale
    return nhwc.from_channels_last(keras.ops.reshape(total, (*shape, x.shape[1])))


def crop_and_resize(
    image: TensorLike, boxes: TensorLike, box_indices: TensorLike, crop_size: Sequence[int], method: str = "bilinear",
    extrapolation_value: float = 0.0,
) -> Tensor:
    """Crops of `image` (N, H, W, C) at `boxes` (y1, x1, y2, x2 from 0 to 1), resized to `crop_size`.

    `box_indices`: the index of the image of each crop; `method`: "bilinear", "nearest" or "bilinear_v2", which resizes
    the whole pixels of a box; `extrapolation_value`: the value of elements outside of the image, of which
    "bilinear_v2" has none.
    """
    where = "ops.crop_and_resize"
    checks.one_of(where, "method", method, ("bilinear", "nearest", "bilinear_v2"))
    pixels = keras.ops.cast(tensor(where, image), "float32")  # As in MindSpore, whatever the dtype.
    x = keras.ops.take(pixels, keras.ops.cast(box_indices, "int32"), axis=0)
    corners = keras.ops.unstack(keras.ops.cast(as_floats(where, boxes), "float32"), axis=-1)
    sizes = sizes_of(where, "crop_size", crop_size, 2)
    rows, columns = (
        _points_of_box(method, *axis) for axis in zip(x.shape[1:3], sizes, corners[:2], corners[2:], strict=True)
    )
    flat = keras.ops.reshape(x, (x.shape[0], -1, x.shape[-1]))
    crops: Tensor = 0.0
    for (row, row_weight), (column, column_weight) in itertools.product(rows.neighbours, columns.neighbours):
        index = row[:, :, None] * x.shape[2] + column[:, None, :]
        values = keras.ops.take_along_axis(flat, keras.ops.reshape(index, (x.shape[0], -1, 1)), axis=1)
        weight = (row_weight[:, :, None] * column_weight[:, None, :])[..., None]
        crops = crops + keras.ops.reshape(values, (x.shape[0], *sizes, x.shape[-1])) * weight
    inside = keras.ops.logical_and(rows.inside[:, :, None], columns.inside[:, None, :])
    return keras.ops.where(inside[..., None], crops, float(extrapolation_value))


class _Points(NamedTuple):
    """Where the elements of crops lie along an axis: pixels with their weights, and whether that is in the image."""

    neighbours: list[tuple[Tensor, Tensor]]
    inside: Tensor


def _points_of_box(method: str, length: int, size: int, low: Tensor, high: Tensor) -> _Points:
    low, high = low[:, None], high[:, None]
    steps = keras.ops.arange(size, dtype="float32")[None]
    if method == "bilinear_v2":
        first, last = (keras.ops.trunc(end * length) for end in (low, high))
        pixels = keras.ops.maximum(last - first + 1, 1)
        point = (steps + 0.5) * (pixels / size) - 0.5
        lower, upper = (keras.ops.clip(edge(point), 0, pixels - 1) for edge in (keras.ops.floor, keras.ops.ceil))
        fraction, inside = point - lower, keras.ops.ones_like(point, dtype=bool_)
        lower, upper = first + lower, first + upper
    else:
        point = low + steps / (size - 1) * (high - low) if size > 1 else (low + high) / 2
        point = point * (length - 1)
        inside = keras.ops.logical_and(point >= 0, point <= length - 1)
        nearest = keras.ops.floor(point + 0.5)
        lower, upper = (nearest, nearest) if method == "nearest" else (keras.ops.floor(point), keras.ops.ceil(point))
        fraction = point - lower
    neighbours = [(keras.ops.cast(keras.ops.clip(edge, 0, length - 1), "int32"), weight) for edge, weight in (
        (lower, 1 - fraction), (upper, fraction),
    )]
    return _Points([(neighbours[0][0], keras.ops.ones_like(point))] if method == "nearest" else neighbours, inside)


def lrn(
    x: TensorLike, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5,
    norm_region: str = "ACROSS_CHANNELS",
) -> Tensor:
    """`x` / (`bias` + `alpha` * the sum of squares of the channels within `depth_radius`) ^ `beta`.

    `norm_region` is "ACROSS_CHANNELS". Source: Krizhevsky et al., 2012; MindSpore, `mindspore.ops.lrn`.
    """
    value = as_floats("ops.lrn", x)
    checks.one_of("ops.lrn", "norm_region", norm_region, ("ACROSS_CHANNELS",))
    squares, channels = keras.ops.square(widened(value)), value.shape[1]
    padded = keras.ops.pad(squares, [(0, 0), (depth_radius, depth_radius), *[(0, 0)] * (rank_of(value) - 2)])
    total = sum(padded[:, start : start + channels] for start in range(2 * depth_radius + 1))
    return keras.ops.cast(widened(value) / (bias + alpha * total) ** beta, value.dtype)


def padding(x: TensorLike, pad_dim_size: int = 8) -> Tensor:
    """`x` with its last axis, of length 1, padded with zeros to `pad_dim_size`."""
    value = tensor("ops.padding", x)
    return keras.ops.pad(value, [*[(0, 0)] * (rank_of(value) - 1), (0, pad_dim_size - value.shape[-1])])


def mirror_pad(input_x: TensorLike, paddings: TensorLike, mode: str) -> Tensor:
    """Pad `input_x` by `paddings` with mirrored elements, including the edge itself for `mode` "SYMMETRIC"."""
    pairs = [(int(low), int(high)) for low, high in values_of("ops.mirror_pad", paddings).tolist()]
    return keras.ops.pad(tensor("ops.mirror_pad", input_x), pairs, mode=mode.lower())


def _grid_sampler(
    x: Tensor, grid: Tensor, *, interpolation_mode: str, padding_mode: str, align_corners: bool
) -> Tensor:
    return grid_sample(x, grid, interpolation_mode, padding_mode, align_corners)


_SAMPLING: Final = {"interpolation_mode": "bilinear", "padding_mode": "zeros", "align_corners": False}

GridSampler2D = configured("GridSampler2D", _grid_sampler, **_SAMPLING)
GridSampler3D = configured("GridSampler3D", _grid_sampler, **_SAMPLING)
AffineGrid = configured("AffineGrid", affine_grid, align_corners=False)
Im2Col = configured("Im2Col", _im2col, ksizes=1, strides=1, dilations=1, pads=0)
Col2Im = configured("Col2Im", _col2im, kernel_size=1, dilation=1, padding=0, stride=1)
SpaceToBatchND = configured(
    "SpaceToBatchND", lambda x, *, block_shape, paddings: space_to_batch_nd(x, block_shape, paddings),
    block_shape=1, paddings=(),
)
BatchToSpaceND = configured("BatchToSpaceND", batch_to_space_nd, block_shape=1, crops=())
CropAndResize = configured("CropAndResize", crop_and_resize, method="bilinear", extrapolation_value=0.0)
LRN = configured("LRN", lrn, depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, norm_region="ACROSS_CHANNELS")
Padding = configured("Padding", padding, pad_dim_size=8)
