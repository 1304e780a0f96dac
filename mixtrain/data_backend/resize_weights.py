"""The weights by which images are resized along one axis: OpenCV's interpolations, and Pillow's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mixtrain.data_backend.arrays import cast, choose, lanczos, numbers_to, one_hot, space
from mixtrain.data_backend.interface.images import Method
from mixtrain.typing import Tensor

Size = Tensor | int


def weights(method: Method, new: Size, old: Size, other_new: Size, other_old: Size) -> Tensor:
    """Return the weights (new, old) that resize one axis; the other axis is resized from and to other sizes."""
    xp, *sizes = space(new, old, other_new, other_old)
    after, before, other_after, other_before = (cast(size, "float32") for size in sizes)
    scale = before / after
    if method == "area":
        shrinks = (scale >= 1.0) & (other_before / other_after >= 1.0)
        parts = [functools.partial(kind, xp, new, old, scale) for kind in (_area_weights, _enlarging_weights)]
        return choose(shrinks, *parts)
    if method == "cubic":
        return _cubic_weights(xp, new, old, scale)
    kernel, support = _KERNELS[method]
    stretch = xp.maximum(scale, 1.0)
    center = (numbers_to(new, "float32") + 0.5)[:, None] * scale
    distance = (numbers_to(old, "float32")[None, :] + 0.5 - center) / stretch
    raw = xp.where(xp.abs(distance) < support, kernel(xp, distance), 0.0)
    return raw / xp.sum(raw, axis=1, keepdims=True)


def _area_weights(xp: Any, new: Size, old: Size, scale: Tensor) -> Tensor:
    start = numbers_to(new, "float32")[:, None] * scale
    pixel = numbers_to(old, "float32")[None, :]
    overlap = xp.minimum(start + scale, pixel + 1.0) - xp.maximum(start, pixel)
    return xp.maximum(overlap, 0.0) / scale


def _enlarging_weights(xp: Any, new: Size, old: Size, scale: Tensor) -> Tensor:
    """Return OpenCV's area weights for enlarging: two pixels are mixed only where the new pixel covers both."""
    index = numbers_to(new, "float32")
    first = xp.floor(index * scale)
    fraction = (index + 1.0) - (first + 1.0) / scale
    fraction = xp.where(fraction <= 0.0, 0.0, fraction - xp.floor(fraction))
    first = cast(first, "int32")
    second = xp.minimum(first + 1, old - 1)
    return (1.0 - fraction)[:, None] * one_hot(first, old) + fraction[:, None] * one_hot(second, old)


def _cubic_weights(xp: Any, new: Size, old: Size, scale: Tensor) -> Tensor:
    """Return OpenCV's cubic weights (a = -0.75), with the border repeated."""
    center = (numbers_to(new, "float32") + 0.5) * scale - 0.5
    first = xp.floor(center)
    fraction = center - first
    total: Any = 0.0
    for offset in (-1, 0, 1, 2):
        index = xp.clip(cast(first, "int32") + offset, 0, old - 1)
        total += _cubic(xp, fraction - offset, -0.75)[:, None] * one_hot(index, old)
    return total


def _cubic(xp: Any, distance: Tensor, a: float) -> Tensor:
    x = xp.abs(distance)
    near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    far = ((x - 5.0) * x + 8.0) * x * a - 4.0 * a
    return xp.where(x < 1.0, near, xp.where(x < 2.0, far, 0.0))


_KERNELS: dict[str, tuple[Callable[[Any, Tensor], Tensor], float]] = {
    "pil_linear": (lambda xp, x: xp.maximum(0.0, 1.0 - xp.abs(x)), 1.0),
    "pil_cubic": (lambda xp, x: _cubic(xp, x, -0.5), 2.0),
    "pil_lanczos": (lambda xp, x: lanczos(x), 3.0),
}
