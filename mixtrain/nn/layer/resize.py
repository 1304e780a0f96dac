"""`ResizeBilinear` and `Upsample`: images and sequences of another size."""

from __future__ import annotations

from typing import Any, Final, Literal

import keras
import numpy as np

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.dtype import float32
from mixtrain.nn.layer.inputs import channels_first, channels_last, check_rank, float_tensor, name_of

_Rule = Literal["corners", "centers", "edges"]
_LINEAR: Final = {"linear": 3, "bilinear": 4, "trilinear": 5}


class ResizeBilinear(Cell):
    """Resize images, each new pixel a mean of the nearest four old ones.

    Args:
        half_pixel_centers: Whether a pixel's place is its center (else its corner); not with `align_corners`.

    Inputs:
        x (N, C, H, W), floating point. size: None, or the new (height, width). scale_factor: None, or an int that
        multiplies both. align_corners: whether corner pixels stay corner pixels.

    Returns:
        (N, C, height, width), format of `x`.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: Not exactly one of size and scale_factor is given, or `x` has the wrong number of axes.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.ResizeBilinear()(mixtrain.Tensor([[[[1.0, 3.0]]]]), size=(1, 4)).numpy().tolist()
        [[[[1.0, 2.0, 3.0, 3.0]]]]

    Source: MindSpore 1.x, `mindspore.nn.ResizeBilinear`.
    """

    def __init__(self, half_pixel_centers: bool = False) -> None:
        super().__init__()
        self.half_pixel_centers = checks.boolean(self.cls_name, "half_pixel_centers", half_pixel_centers)

    def construct(self, x: Any, size: Any = None, scale_factor: int | None = None, align_corners: bool = False) -> Any:
        """Resize `x`."""
        x = float_tensor(self, x)
        check_rank(self, x, (4,), "(N, C, H, W)")
        checks.boolean(self.cls_name, "align_corners", align_corners)
        if align_corners and self.half_pixel_centers:
            raise checks.fail_value(
                self.cls_name, "align_corners must be False with half_pixel_centers", align_corners,
                "align_corners=False",
            )
        rule: _Rule = "corners" if align_corners else "centers" if self.half_pixel_centers else "edges"
        return _interpolated(x, _new_sizes(self, x, size, scale_factor), rule)


class Upsample(Cell):
    """Resize sequences, images or volumes.

    Args:
        size: The new size of each axis after the channels, an int or a tuple.
        scale_factor: What the sizes are multiplied by, in place of `size`: a number or a tuple.
        mode: "nearest", or "linear" (N, C, L), "bilinear" (N, C, H, W), "trilinear" (N, C, D, H, W).
        align_corners: With the linear ones: whether corner elements stay corner elements.
        recompute_scale_factor: Accepted for MindSpore scripts; new sizes are whole numbers, and say the scale.

    Inputs:
        x (N, C, ...), floating point.

    Returns:
        (N, C, new sizes), format of `x`.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range, or `x` has a number of axes that the mode does not fit.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.Upsample(scale_factor=2.0)(mixtrain.Tensor([[[1.0, 3.0]]])).numpy().tolist()
        [[[1.0, 1.0, 3.0, 3.0]]]

    Source: MindSpore, `mindspore.nn.Upsample`.
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: Literal["nearest", "linear", "bilinear", "trilinear"] = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size, self.scale_factor = size, scale_factor
        self.mode = checks.one_of(self.cls_name, "mode", mode, ("nearest", *_LINEAR))
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def construct(self, x: Any) -> Any:
        """Resize `x`."""
        x = float_tensor(self, x)
        check_rank(self, x, (_LINEAR[self.mode],) if self.mode in _LINEAR else (3, 4, 5), "(N, C, ...)")
        sizes = _new_sizes(self, x, self.size, self.scale_factor)
        if self.mode != "nearest":
            return _interpolated(x, sizes, "corners" if self.align_corners else "centers")
        y = channels_last(x)
        for axis, new in enumerate(sizes, start=1):
            places = np.arange(new) * y.shape[axis] // new
            y = keras.ops.take(y, places, axis=axis)
        return channels_first(y)


def _new_sizes(cell: Cell, x: Any, size: Any, scale: Any) -> tuple[int, ...]:
    """Return the new sizes of the axes after the channels."""
    where, old = name_of(cell), tuple(x.shape)[2:]
    if (size is None) == (scale is None):
        raise checks.fail_value(where, "one of size and scale_factor must be given", (size, scale), "size=(64, 64)")
    given = size if scale is None else scale
    values = tuple(given) if isinstance(given, (tuple, list)) else (given,) * len(old)
    if len(values) != len(old):
        raise checks.fail_value(where, f"{len(old)} numbers must be given", given, f"{(2,) * len(old)}")
    if scale is None:
        return tuple(checks.integer(where, "size", value, at_least=1) for value in values)
    if None in old:
        raise checks.fail_value(where, "scale_factor needs an input of known sizes", tuple(x.shape), "size=(64, 64)")
    factors = [checks.number(where, "scale_factor", value, above=0, example=2) for value in values]
    return tuple(int(length * factor) for length, factor in zip(old, factors, strict=True))


def _interpolated(x: Any, sizes: tuple[int, ...], rule: _Rule) -> Any:
    """Resize the axes after the channels one by one, in float32."""
    y = keras.ops.cast(channels_last(x), float32)
    for axis, new in enumerate(sizes, start=1):
        old = y.shape[axis]
        if old is None:
            raise checks.fail_value("resize", "the input's sizes must be known", tuple(x.shape), "images of one size")
        at = _places(old, new, rule)
        low = np.floor(at).astype(np.int32)
        share = (at - low).astype(np.float32).reshape((-1,) + (1,) * (len(y.shape) - axis - 1))
        high = np.minimum(low + 1, old - 1)
        below, above = keras.ops.take(y, low, axis=axis), keras.ops.take(y, high, axis=axis)
        y = below + (above - below) * share
    return channels_first(keras.ops.cast(y, x.dtype))


def _places(old: int, new: int, rule: str) -> np.ndarray:
    """Return where on an axis of `old` elements each of `new` elements lies."""
    steps = np.arange(new, dtype=np.float64)
    if rule == "corners":
        return steps * ((old - 1) / (new - 1) if new > 1 else 0.0)
    if rule == "edges":
        return np.minimum(steps * (old / new), old - 1)
    return np.clip((steps + 0.5) * (old / new) - 0.5, 0, old - 1)
