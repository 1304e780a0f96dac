"""Bilinear, nearest and area resizing of images and sequences."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.dtype import float32, is_float
from mixtrain.ops import nhwc
from mixtrain.ops.adaptive import pool_to
from mixtrain.ops.inputs import rank_of, tensor
from mixtrain.ops.primitive import Primitive
from mixtrain.typing import Tensor, TensorLike

Grid = Literal["corners", "centers", "starts"]
_MODES: Final = ("nearest", "nearest-exact", "linear", "bilinear", "area")


def interpolate(
    input: TensorLike, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest", align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
) -> Tensor:
    """Resize images (N, C, H, W) or sequences (N, C, L), in their dtype.

    Args:
        input: Tensor; floats, or for the nearest modes any dtype.
        size: New size: an int or a tuple, one for each axis that is resized.
        scale_factor: Instead of `size`, the factor of the old size; the result is rounded down.
        mode: "nearest", "nearest-exact", "area", and "bilinear" for images, "linear" for sequences.
        align_corners: With "bilinear" and "linear": whether the centers of the outermost pixels are aligned.
        recompute_scale_factor: Accepted for MindSpore scripts; the scale is always that of the sizes.

    Example: ``ops.interpolate(ops.ones((1, 1, 2, 2)), size=(4, 6), mode="bilinear")``.
    """
    where, x = "ops.interpolate", tensor("ops.interpolate", input)
    checks.one_of(where, "mode", mode, _MODES)
    if rank_of(x) not in (3, 4) or mode == ("linear" if rank_of(x) == 4 else "bilinear"):
        raise checks.fail_value(
            where, f'input must have axes that mode="{mode}" is for', tuple(x.shape), '"bilinear" for (N, C, H, W)'
        )
    sizes = _sizes(where, x, size, scale_factor)
    if rank_of(x) == 3:
        x, sizes = keras.ops.expand_dims(x, 2), (1, *sizes)
        return keras.ops.squeeze(_resized(where, x, sizes, mode, bool(align_corners)), 2)
    return _resized(where, x, sizes, mode, bool(align_corners))


def _resized(where: str, x: Tensor, sizes: tuple[int, ...], mode: str, align_corners: bool) -> Tensor:
    if mode == "area":
        return nhwc.from_channels_last(pool_to(nhwc.to_channels_last(x), sizes, keras.ops.mean))
    if mode in ("linear", "bilinear"):
        return bilinear(where, x, sizes, "corners" if align_corners else "centers")
    return nearest(where, x, sizes, "centers" if mode == "nearest-exact" else "starts")


def _sizes(where: str, x: Tensor, size: Any, scale: Any) -> tuple[int, ...]:
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
    """Resize (N, C, H, W) by bilinear interpolation; integers become float32."""
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
