"""Resizing by a matrix of weights along each axis: volumes, sequences, areas and cubic curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import keras
import numpy as np

from mixtrain import checks
from mixtrain.dtype import float32
from mixtrain.ops.inputs import rank_of, tensor, values_of
from mixtrain.ops.primitive import configured


def _places(old: int, new: int, grid: str, scale: float | None) -> np.ndarray:
    """Where the new places lie among the old: "corners" stay, or "centers" are spread, or "starts" are."""
    numbers = np.arange(new, dtype=np.float64)
    if grid == "corners":
        return numbers * ((old - 1) / (new - 1) if new > 1 else 0.0)
    ratio = old / new if scale is None else 1 / scale
    return (numbers + 0.5) * ratio - 0.5 if grid == "centers" else numbers * ratio


def _nearest(old: int, new: int, grid: str, scale: float | None) -> np.ndarray:
    return np.eye(old)[np.minimum(np.floor(_places(old, new, "starts", scale)).astype(int), old - 1)]


def _linear(old: int, new: int, grid: str, scale: float | None) -> np.ndarray:
    places = np.clip(_places(old, new, grid, scale), 0, old - 1)
    return np.maximum(0.0, 1 - np.abs(places[:, None] - np.arange(old)))


def _area(old: int, new: int, grid: str, scale: float | None) -> np.ndarray:
    """The share of each old cell in each new one."""
    if grid == "corners":
        starts = _places(old, new, grid, scale)
        ends = starts + ((old - 1) / (new - 1) if new > 1 else old / new)
    else:
        starts = np.arange(new) * old / new
        ends = starts + old / new
    cells = np.arange(old)
    shares = np.clip(np.minimum(ends[:, None], cells + 1) - np.maximum(starts[:, None], cells), 0, None)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _cubic(old: int, new: int, grid: str, scale: float | None) -> np.ndarray:
    """Keys's curve: -0.75 where places count from the start or corners, as in MindSpore; -0.5 for centers."""
    bend = -0.5 if grid == "centers" else -0.75
    places, found = _places(old, new, grid, scale), np.zeros((new, old))
    first = np.floor(places).astype(int)
    # MindSpore reads the curve at 1024 places between two pixels.
    places = first + np.rint((places - first) * 1024) / 1024
    for shift in (-1, 0, 1, 2):
        far = np.abs(places - (first + shift))
        near = ((bend + 2) * far - (bend + 3)) * far**2 + 1
        beyond = bend * (((far - 5) * far + 8) * far - 4)
        weights, cells = np.where(far <= 1, near, beyond), first + shift
        if grid == "centers":
            weights = np.where((cells < 0) | (cells >= old), 0.0, weights)
        np.add.at(found, (np.arange(new), np.clip(cells, 0, old - 1)), weights)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


_WEIGHTS: Final[dict[str, Callable[..., np.ndarray]]] = {
    "nearest": _nearest, "linear": _linear, "area": _area, "cubic": _cubic,
}


def resampled(x: Any, axes: Sequence[int], sizes: Sequence[int], mode: str, grid: str, scales: Any = None) -> Any:
    """Return `x` with `axes` of other sizes, in its dtype."""
    found = keras.ops.cast(x, float32)
    for number, (axis, size) in enumerate(zip(axes, sizes, strict=True)):
        weights = _WEIGHTS[mode](x.shape[axis], int(size), grid, None if scales is None else scales[number])
        moved = keras.ops.tensordot(found, weights.astype(np.float32), axes=[[axis], [1]])
        found = keras.ops.moveaxis(moved, -1, axis)
    return keras.ops.cast(found, x.dtype)


def _sizes(where: str, x: Any, size: Any, scales: Any) -> list[int]:
    if size is None and scales is None:
        raise checks.fail_value(where, "output_size or scales must be given", None, "output_size=[4, 4, 4]")
    if size is None:
        return [int(old * scale) for old, scale in zip(x.shape[2:], scales, strict=True)]
    return [int(one) for one in values_of(where, size).reshape(-1)]


def _volume(mode: str) -> Callable[..., Any]:
    def compute(x: Any, output_size: Any = None, scales: Any = None, *, align_corners: bool = False) -> Any:
        value = tensor("ops.Upsample3D", x)
        sizes = _sizes("ops.Upsample3D", value, output_size, scales)
        return resampled(value, (2, 3, 4), sizes, mode, "corners" if align_corners else "centers", scales)

    return compute


def _images(mode: str, first: int) -> Callable[..., Any]:
    def compute(images: Any, size: Any, *, align_corners: bool, half_pixel_centers: bool = False) -> Any:
        value = tensor("ops.Resize", images)
        grid = "corners" if align_corners else "centers" if half_pixel_centers else "starts"
        found = resampled(keras.ops.cast(value, float32), (first, first + 1), values_of("", size).tolist(), mode, grid)
        return found if mode == "area" else keras.ops.cast(found, value.dtype)

    return compute


_GRIDS: Final = {"align_corners": "corners", "half_pixel": "centers", "asymmetric": "starts"}


def _line(x: Any, size: Any, *, coordinate_transformation_mode: str) -> Any:
    grid = _GRIDS[checks.one_of(
        "ops.ResizeLinear1D", "coordinate_transformation_mode", coordinate_transformation_mode, tuple(_GRIDS)
    )]
    value = tensor("ops.ResizeLinear1D", x)
    return resampled(value, (rank_of(value) - 1,), values_of("", size).reshape(-1).tolist(), "linear", grid)


UpsampleNearest3D: Final = configured("UpsampleNearest3D", _volume("nearest"))
UpsampleTrilinear3D: Final = configured("UpsampleTrilinear3D", _volume("linear"), align_corners=False)
ResizeArea: Final = configured("ResizeArea", _images("area", 1), align_corners=False)
ResizeBicubic: Final = configured("ResizeBicubic", _images("cubic", 2), align_corners=False, half_pixel_centers=False)
ResizeLinear1D: Final = configured("ResizeLinear1D", _line, coordinate_transformation_mode="align_corners")
