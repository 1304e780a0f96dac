"""`ResizeBilinear` and `Upsample`: resizing of sequences, images and volumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import keras
import numpy as np

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.cell.tree import name_of
from mixtrain.dtype import float32
from mixtrain.nn.layer.inputs import channels_first, channels_last, check_rank, float_tensor
from mixtrain.typing import Tensor

_Coordinates = Literal["corners", "centers", "edges"]
_LINEAR: Final = {"linear": 3, "bilinear": 4, "trilinear": 5}


class ResizeBilinear(Cell):
    """Resize images with bilinear interpolation.

    Args: half_pixel_centers: Whether pixel coordinates refer to centers instead of corners; not with `align_corners`.

    Inputs:
        x (N, C, H, W), floating point. size: None, or the new (height, width). scale_factor: None, or an int that
        multiplies both. align_corners: whether the corner pixels of input and output are aligned.

    Returns: (N, C, height, width), dtype of `x`.
    Raises: ValueError: Not exactly one of size and scale_factor is given, or `x` has the wrong number of axes.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.ResizeBilinear()(mixtrain.Tensor([[[[1.0, 3.0]]]]), size=(1, 4)).numpy().tolist()
        [[[[1.0, 2.0, 3.0, 3.0]]]]

    Source: MindSpore 1.x, `mindspore.nn.ResizeBilinear`.
    """

    def __init__(self, half_pixel_centers: bool = False) -> None:
        super().__init__()
        self.half_pixel_centers = checks.boolean(self.cls_name, "half_pixel_centers", half_pixel_centers)

    def construct(
        self, x: Tensor, size: int | Sequence[int] | None = None, scale_factor: int | None = None,
        align_corners: bool = False,
    ) -> Tensor:
        """Resize `x`."""
        x = float_tensor(self, x)
        check_rank(self, x, (4,), "(N, C, H, W)")
        checks.boolean(self.cls_name, "align_corners", align_corners)
        if align_corners and self.half_pixel_centers:
            raise checks.fail_value(
                self.cls_name, "align_corners must be False with half_pixel_centers", align_corners,
                "align_corners=False",
            )
        coordinates: _Coordinates = "corners" if align_corners else "centers" if self.half_pixel_centers else "edges"
        return _interpolate(x, _new_sizes(self, x, size, scale_factor), coordinates)


class Upsample(Cell):
    """Resize sequences, images or volumes.

    Args:
        size: The new size of each axis after the channels, an int or a tuple.
        scale_factor: Factor of the sizes, instead of `size`: a number or a tuple.
        mode: "nearest", or "linear" (N, C, L), "bilinear" (N, C, H, W), "trilinear" (N, C, D, H, W).
        align_corners: With linear modes: whether the corner elements of input and output are aligned.
        recompute_scale_factor: Accepted for compatibility with MindSpore; the scale is that of the integer sizes.

    Inputs: x (N, C, ...), floating point.
    Returns: (N, C, new sizes), dtype of `x`.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.Upsample(scale_factor=2.0)(mixtrain.Tensor([[[1.0, 3.0]]])).numpy().tolist()
        [[[1.0, 1.0, 3.0, 3.0]]]
    """

    def __init__(
        self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None,
        mode: Literal["nearest", "linear", "bilinear", "trilinear"] = "nearest", align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size, self.scale_factor = size, scale_factor
        self.mode = checks.one_of(self.cls_name, "mode", mode, ("nearest", *_LINEAR))
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def construct(self, x: Tensor) -> Tensor:
        """Resize `x`."""
        x = float_tensor(self, x)
        check_rank(self, x, (_LINEAR[self.mode],) if self.mode in _LINEAR else (3, 4, 5), "(N, C, ...)")
        sizes = _new_sizes(self, x, self.size, self.scale_factor)
        if self.mode != "nearest":
            return _interpolate(x, sizes, "corners" if self.align_corners else "centers")
        y = channels_last(x)
        for axis, new_size in enumerate(sizes, start=1):
            indices = np.arange(new_size) * y.shape[axis] // new_size
            y = keras.ops.take(y, indices, axis=axis)
        return channels_first(y)


def _new_sizes(
    cell: Cell, x: Tensor, size: int | Sequence[int] | None, scale: float | Sequence[float] | None
) -> tuple[int, ...]:
    """Return the new sizes of the axes after the channels."""
    where, old_sizes = name_of(cell), tuple(x.shape)[2:]
    if (size is None) == (scale is None):
        raise checks.fail_value(where, "one of size and scale_factor must be given", (size, scale), "size=(64, 64)")
    argument, rank = size if scale is None else scale, len(old_sizes)
    values = tuple(argument) if isinstance(argument, (tuple, list)) else (argument,) * rank
    if len(values) != rank:
        raise checks.fail_value(where, f"{rank} numbers must be given", argument, f"{(2,) * rank}")
    if scale is None:
        return tuple(checks.integer(where, "size", value, at_least=1) for value in values)
    if None in old_sizes:
        raise checks.fail_value(where, "scale_factor needs an input of known sizes", tuple(x.shape), "size=(64, 64)")
    factors = [checks.number(where, "scale_factor", value, above=0, example=2) for value in values]
    return tuple(int(old_size * factor) for old_size, factor in zip(old_sizes, factors, strict=True))


def _interpolate(x: Tensor, sizes: tuple[int, ...], coordinates: _Coordinates) -> Tensor:
    """Resize the axes after the channels by linear interpolation, one axis at a time, in float32."""
    y = keras.ops.cast(channels_last(x), float32)
    for axis, new_size in enumerate(sizes, start=1):
        old_size = y.shape[axis]
        if old_size is None:
            raise checks.fail_value("resize", "the input's sizes must be known", tuple(x.shape), "images of one size")
        positions = _source_positions(old_size, new_size, coordinates)
        low = np.floor(positions).astype(np.int32)
        weight = (positions - low).astype(np.float32).reshape((-1,) + (1,) * (len(y.shape) - axis - 1))
        high = np.minimum(low + 1, old_size - 1)
        below, above = keras.ops.take(y, low, axis=axis), keras.ops.take(y, high, axis=axis)
        y = below + (above - below) * weight
    return channels_first(keras.ops.cast(y, x.dtype))


def _source_positions(old_size: int, new_size: int, coordinates: _Coordinates) -> np.ndarray:
    """Return the position of each of `new_size` elements on an axis of `old_size` elements."""
    indices = np.arange(new_size, dtype=np.float64)
    if coordinates == "corners":
        return indices * ((old_size - 1) / (new_size - 1) if new_size > 1 else 0.0)
    if coordinates == "edges":
        return np.minimum(indices * (old_size / new_size), old_size - 1)
    return np.clip((indices + 0.5) * (old_size / new_size) - 0.5, 0, old_size - 1)
