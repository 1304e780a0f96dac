"""Resizing of images, sequences and volumes."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.dtype import float32, is_float, is_half
from mixtrain.ops import nhwc
from mixtrain.ops.adaptive import pool_to
from mixtrain.ops.inputs import rank_of, tensor
from mixtrain.ops.primitive import Primitive
from mixtrain.ops.resampling import resampled
from mixtrain.typing import Tensor, TensorLike

Grid = Literal["corners", "centers", "starts"]
# The modes of `interpolate`, with the numbers of axes that they are for.
INTERPOLATION_MODES: Final = {
    "nearest": (3, 4, 5), "nearest-exact": (3, 4), "area": (3, 4, 5), "linear": (3,), "bilinear": (4,), "bicubic": (4,),
    "trilinear": (5,),
}


def interpolate(
    input: TensorLike, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest", align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
) -> Tensor:
    """Resize sequences (N, C, L), images (N, C, H, W) or volumes (N, C, D, H, W), in their dtype.

    Args:
        input: Tensor; floats, or for the nearest modes any dtype.
        size: New size: an int or a tuple, one for each axis that is resized.
        scale_factor: Instead of `size`, the factor of the old size; the result is rounded down.
        mode: "nearest", "area", or "nearest-exact" (not of volumes); "linear" for sequences, "bilinear" and "bicubic"
            for images, "trilinear" for volumes.
        align_corners: With the linear and cubic modes: whether the centers of the outermost pixels are aligned.
        recompute_scale_factor: Accepted for MindSpore scripts; the scale is always that of the sizes.

    Example: ``ops.interpolate(ops.ones((1, 1, 2, 2)), size=(4, 6), mode="bilinear")``.
    """
    where, x = "ops.interpolate", tensor("ops.interpolate", input)
    ranks = INTERPOLATION_MODES[checks.one_of(where, "mode", mode, tuple(INTERPOLATION_MODES))]
    if rank_of(x) not in ranks:
        modes = " or ".join(f'"{name}"' for name, others in INTERPOLATION_MODES.items() if rank_of(x) in others)
        raise checks.fail_value(
            where, f'input must have {" or ".join(map(str, ranks))} axes for mode="{mode}"', tuple(x.shape),
            modes or "an input (N, C, H, W)",
        )
    sizes = new_sizes(where, x, size, scale_factor)
    grid: Grid = "corners" if align_corners else "centers"
    if mode == "area" and rank_of(x) == 5:
        return keras.ops.moveaxis(pool_to(keras.ops.moveaxis(x, 1, -1), sizes, keras.ops.mean), -1, 1)
    if mode == "bicubic" or rank_of(x) == 5:
        kind = {"bicubic": "cubic", "trilinear": "linear", "nearest": "nearest"}[mode]
        return resampled(x, range(2, rank_of(x)), sizes, kind, grid)
    images, sizes = (keras.ops.expand_dims(x, 2), (1, *sizes)) if rank_of(x) == 3 else (x, sizes)
    if mode == "area":
        images = nhwc.from_channels_last(pool_to(nhwc.to_channels_last(images), sizes, keras.ops.mean))
    elif mode in ("linear", "bilinear"):
        images = bilinear(where, images, sizes, grid)
    else:
        images = nearest(where, images, sizes, "centers" if mode == "nearest-exact" else "starts")
    return keras.ops.squeeze(images, 2) if rank_of(x) == 3 else images


def new_sizes(where: str, x: Tensor, size: Any, scale: Any) -> tuple[int, ...]:
    """Return the sizes of (N, C, ...) after the channels for one of `size` and `scale`."""
    old = tuple(x.shape[2:])
    if (size is None) == (scale is None):
        raise checks.fail_value(where, "give one of size and scale_factor", (size, scale), "size=(32, 32)")
    value = size if scale is None else scale
    if backend.is_tensor(value):
        value = backend.to_numpy(value).tolist()
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * len(old)
    if len(values) != len(old):
        raise checks.fail_value(where, f"size or scale_factor must have {len(old)} entries", value, "one for each axis")
    if scale is not None:
        factors = [checks.number(where, "scale_factor", factor, above=0, example=2.0) for factor in values]
        values = tuple(int(length * factor) for length, factor in zip(old, factors, strict=True))
    return tuple(checks.integer(where, "size", item, at_least=1, example=32) for item in values)


def bilinear(where: str, x: TensorLike, sizes: tuple[int, ...], grid: Grid) -> Tensor:
    """Resize (N, C, H, W) by bilinear interpolation; integers become float32, in which half numbers are computed."""
    if is_half(x.dtype):
        wide = bilinear(where, backend.cast_keeping_layout(x, float32), sizes, grid)
        return backend.cast_keeping_layout(wide, keras.backend.standardize_dtype(x.dtype))
    if not is_float(x.dtype):
        x = keras.ops.cast(x, float32)

    def resize_axis(value: Tensor, axis: int, coordinates: np.ndarray) -> Tensor:
        low = np.floor(coordinates).astype(np.int32)
        high = np.minimum(low + 1, value.shape[axis] - 1)
        weight = keras.ops.cast((coordinates - low).reshape([-1, *[1] * (3 - axis)]), value.dtype)
        first, second = (keras.ops.take(value, index, axis=axis) for index in (low, high))
        return first + (second - first) * weight

    return _by_axis(where, resize_axis, x, sizes, grid)


def nearest(where: str, x: TensorLike, sizes: tuple[int, ...], grid: Grid) -> Tensor:
    """Resize (N, C, H, W) by nearest-neighbor interpolation."""

    def resize_axis(value: Tensor, axis: int, coordinates: np.ndarray) -> Tensor:
        shift = {"corners": 0.5, "centers": 0.5, "starts": 0.0}[grid]
        index = np.minimum(np.floor(coordinates + np.float32(shift)), value.shape[axis] - 1).astype(np.int32)
        return keras.ops.take(value, index, axis=axis)

    return _by_axis(where, resize_axis, x, sizes, grid)


def _by_axis(where: str, resize_axis: Callable[..., Tensor], x: Tensor, sizes: tuple[int, ...], grid: Grid) -> Tensor:
    if None in x.shape[2:]:
        raise checks.fail_value(where, "images must be of one known size", tuple(x.shape), "images of one size")
    value = nhwc.to_channels_last(x)
    for axis, size in enumerate(sizes, start=1):
        if value.shape[axis] != size:
            value = resize_axis(value, axis, _coordinates(value.shape[axis], size, grid))
    return nhwc.from_channels_last(value)


def _coordinates(old: int, new: int, grid: Grid) -> np.ndarray:
    """Return the coordinate on the old axis of each element of the new one, float32."""
    index = np.arange(new, dtype=np.float32)
    if grid == "corners":
        return index * np.float32((old - 1) / max(new - 1, 1))
    scale = np.float32(old / new)
    return index * scale if grid == "starts" else np.maximum((index + np.float32(0.5)) * scale - np.float32(0.5), 0)


class _Resize(Primitive):
    """A resize with fixed settings."""

    def __init__(self, size: Sequence[int], align_corners: bool = False, half_pixel_centers: bool = False) -> None:
        super().__init__()
        values = tuple(size) if isinstance(size, (tuple, list)) else (size,)
        if len(values) != 2 or not all(isinstance(item, numbers.Integral) for item in values):
            raise checks.fail_type(self.name, "size must be (height, width)", size, "size=(32, 32)")
        self.size = tuple(checks.integer(self.name, "size", item, at_least=1, example=32) for item in values)
        self.align_corners = checks.boolean(self.name, "align_corners", align_corners)
        self.half_pixel_centers = checks.boolean(self.name, "half_pixel_centers", half_pixel_centers)
        if align_corners and half_pixel_centers:
            raise checks.fail_value(
                self.name, "half_pixel_centers must be False with align_corners=True", True, "half_pixel_centers=False"
            )
        self._grid: Grid = "corners" if align_corners else "centers" if half_pixel_centers else "starts"

    def _checked(self, value: TensorLike) -> Tensor:
        x = tensor(self.name, value)
        if rank_of(x) != 4:
            raise checks.fail_value(self.name, "the input must have axes (N, C, H, W)", tuple(x.shape), "x of 4 axes")
        return x


class ResizeBilinear(_Resize):
    """Resize images (N, C, H, W) to `size` (height, width) by bilinear interpolation, as in MindSpore 1.

    `align_corners` aligns the centers of the outermost pixels, `half_pixel_centers` the edges of the images. Example:
    ``ops.ResizeBilinear((32, 32))(x)``.
    """

    def __call__(self, x: TensorLike) -> Tensor:
        """Resize `x`; integers become float32."""
        return bilinear(self.name, self._checked(x), self.size, self._grid)


class ResizeNearestNeighbor(_Resize):
    """Resize images (N, C, H, W) to `size` (height, width) by nearest-neighbor interpolation.

    `align_corners` and `half_pixel_centers` as in `ResizeBilinear`. Example:
    ``ops.ResizeNearestNeighbor((32, 32))(x)``.
    """

    def __call__(self, input_x: TensorLike) -> Tensor:
        """Resize `input_x`, of any dtype."""
        return nearest(self.name, self._checked(input_x), self.size, self._grid)
