"""Resizing by an interpolation matrix along each axis: nearest, linear, area and cubic."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import keras
import numpy as np

from mixtrain import checks
from mixtrain.dtype import float32
from mixtrain.ops.inputs import rank_of, tensor, values_of
from mixtrain.ops.primitive import configured
from mixtrain.typing import Tensor, TensorLike


def _coordinates(old: int, new: int, grid: str, scale: float | None) -> np.ndarray:
    """The coordinates of new elements among the old: "corners" or "starts" aligned, or "centers" of pixels."""
    index = np.arange(new, dtype=np.float64)
    if grid == "corners":
        return index * ((old - 1) / (new - 1) if new > 1 else 0.0)
    ratio = old / new if scale is None else 1 / scale
    return (index + 0.5) * ratio - 0.5 if grid == "centers" else index * ratio


def _nearest(old: int, new: int, grid: str, scale: float | None) -> np.ndarray:
    return np.eye(old)[np.minimum(np.floor(_coordinates(old, new, "starts", scale)).astype(int), old - 1)]


def _linear(old: int, new: int, grid: str, scale: float | None) -> np.ndarray:
    coordinates = np.clip(_coordinates(old, new, grid, scale), 0, old - 1)
    return np.maximum(0.0, 1 - np.abs(coordinates[:, None] - np.arange(old)))


def _area(old: int, new: int, grid: str, scale: float | None) -> np.ndarray:
    """The fraction of each new pixel that each old one covers."""
    if grid == "corners":
        starts = _coordinates(old, new, grid, scale)
        ends = starts + ((old - 1) / (new - 1) if new > 1 else old / new)
    else:
        starts = np.arange(new) * old / new
        ends = starts + old / new
    cells = np.arange(old)
    shares = np.clip(np.minimum(ends[:, None], cells + 1) - np.maximum(starts[:, None], cells), 0, None)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _cubic(old: int, new: int, grid: str, scale: float | None, *, exact: bool = False) -> np.ndarray:
    """Keys's cubic kernel; its parameter is -0.5 for centers, else -0.75, as in MindSpore.

    `exact`: As in PyTorch: -0.75 for both, neither tabulated nor cut at the edges.
    """
    a = -0.5 if grid == "centers" and not exact else -0.75
    coordinates, matrix = _coordinates(old, new, grid, scale), np.zeros((new, old))
    first = np.floor(coordinates).astype(int)
    # MindSpore tabulates the kernel at 1024 positions between two pixels.
    coordinates = coordinates if exact else first + np.rint((coordinates - first) * 1024) / 1024
    for shift in (-1, 0, 1, 2):
        distance = np.abs(coordinates - (first + shift))
        near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
        far = a * (((distance - 5) * distance + 8) * distance - 4)
        weights, pixels = np.where(distance <= 1, near, far), first + shift
        if grid == "centers" and not exact:
            weights = np.where((pixels < 0) | (pixels >= old), 0.0, weights)
        np.add.at(matrix, (np.arange(new), np.clip(pixels, 0, old - 1)), weights)
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


_WEIGHTS: Final[dict[str, Callable[..., np.ndarray]]] = {
    "nearest": _nearest, "linear": _linear, "area": _area, "cubic": _cubic,
    "exact_cubic": functools.partial(_cubic, exact=True),
}


def resampled(
    x: TensorLike, axes: Sequence[int], sizes: Sequence[int], mode: str, grid: str,
    scales: Sequence[float | None] | None = None,
) -> Tensor:
    """Return `x` resized to `sizes` along `axes`, in its dtype."""
    output = keras.ops.cast(x, float32)
    scales = [None] * len(axes) if scales is None else scales
    for axis, size, scale in zip(axes, sizes, scales, strict=True):
        matrix = _WEIGHTS[mode](x.shape[axis], int(size), grid, scale).astype(np.float32)
        output = keras.ops.moveaxis(keras.ops.tensordot(output, matrix, axes=[[axis], [1]]), -1, axis)
    return keras.ops.cast(output, x.dtype)


def _sizes(where: str, x: Tensor, size: Any, scales: Any) -> list[int]:
    if size is None and scales is None:
        raise checks.fail_value(where, "output_size or scales must be given", None, "output_size=[4, 4, 4]")
    if size is None:
        return [int(old * scale) for old, scale in zip(x.shape[2:], scales, strict=True)]
    return [int(item) for item in values_of(where, size).reshape(-1)]


def _volume(mode: str) -> Callable[..., Tensor]:
    def compute(
        x: TensorLike, output_size: int | Sequence[int] | None = None, scales: Sequence[float] | None = None, *,
        align_corners: bool = False,
    ) -> Tensor:
        value = tensor("ops.Upsample3D", x)
        sizes = _sizes("ops.Upsample3D", value, output_size, scales)
        return resampled(value, (2, 3, 4), sizes, mode, "corners" if align_corners else "centers", scales)

    return compute


def _images(mode: str, first: int) -> Callable[..., Tensor]:
    def compute(
        images: TensorLike, size: int | Sequence[int], *, align_corners: bool, half_pixel_centers: bool = False
    ) -> Tensor:
        value = tensor("ops.Resize", images)
        grid = "corners" if align_corners else "centers" if half_pixel_centers else "starts"
        output = resampled(keras.ops.cast(value, float32), (first, first + 1), values_of("", size).tolist(), mode, grid)
        return output if mode == "area" else keras.ops.cast(output, value.dtype)

    return compute


_GRIDS: Final = {"align_corners": "corners", "half_pixel": "centers", "asymmetric": "starts"}


def _line(x: TensorLike, size: int, *, coordinate_transformation_mode: str) -> Tensor:
    grid = _GRIDS[checks.one_of(
        "ops.ResizeLinear1D", "coordinate_transformation_mode", coordinate_transformation_mode, tuple(_GRIDS)
    )]
    value = tensor("ops.ResizeLinear1D", x)
    return resampled(value, (rank_of(value) - 1,), values_of("", size).reshape(-1).tolist(), "linear", grid)


UpsampleNearest3D = configured("UpsampleNearest3D", _volume("nearest"))
UpsampleTrilinear3D = configured("UpsampleTrilinear3D", _volume("linear"), align_corners=False)
ResizeArea = configured("ResizeArea", _images("area", 1), align_corners=False)
ResizeBicubic = configured("ResizeBicubic", _images("cubic", 2), align_corners=False, half_pixel_centers=False)
ResizeLinear1D = configured("ResizeLinear1D", _line, coordinate_transformation_mode="align_corners")
