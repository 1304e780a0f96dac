"""Scaling and translation of images by a separable resampling kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import keras
import numpy as np

from mixtrain import checks
from mixtrain.ops.inputs import as_floats, rank_of, values_of
from mixtrain.ops.primitive import configured
from mixtrain.typing import Tensor, TensorLike


def _lanczos(radius: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.where(x <= radius, np.sinc(x) * np.sinc(x / radius), 0.0)


def _cubic(x: np.ndarray, b: float, c: float) -> np.ndarray:
    """Mitchell and Netravali's family of cubic kernels."""
    near = ((12 - 9 * b - 6 * c) * x**3 + (-18 + 12 * b + 6 * c) * x**2 + 6 - 2 * b) / 6
    far = ((-b - 6 * c) * x**3 + (6 * b + 30 * c) * x**2 + (-12 * b - 48 * c) * x + 8 * b + 24 * c) / 6
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))


# By the distance from a pixel.
_KERNELS: Final[dict[str, Callable[[np.ndarray], np.ndarray]]] = {
    "lanczos1": _lanczos(1.0),
    "lanczos3": _lanczos(3.0),
    "lanczos5": _lanczos(5.0),
    "gaussian": lambda x: np.where(x <= 1.5, np.exp(-2.0 * x**2), 0.0),
    "box": lambda x: np.where(x < 0.5, 1.0, np.where(x == 0.5, 0.5, 0.0)),
    "triangle": lambda x: np.maximum(1.0 - x, 0.0),
    "keyscubic": lambda x: _cubic(x, 0.0, 0.5),
    "mitchellcubic": lambda x: _cubic(x, 1 / 3, 1 / 3),
}


def _weights(old: int, new: int, scale: float, shift: float, kernel: str, antialias: bool) -> np.ndarray:
    """The weight of each old element in each new one; 0 for a new one from outside of the image."""
    centers = (np.arange(new) + 0.5 - shift) / scale
    # A reduced image averages over a wider kernel.
    width = max(1.0 / scale, 1.0) if antialias else 1.0
    weights = _KERNELS[kernel](np.abs(np.arange(old) + 0.5 - centers[:, None]) / width)
    total = weights.sum(1, keepdims=True)
    inside = ((centers >= 0) & (centers <= old))[:, None]
    return np.where(inside & (np.abs(total) > 1e-3), weights / np.where(total == 0, 1.0, total), 0.0)


def scale_and_translate(
    images: TensorLike, size: TensorLike, scale: TensorLike, translation: TensorLike, *, kernel_type: str = "lanczos3",
    antialias: bool = True,
) -> Tensor:
    """Scale images (N, H, W, C) by `scale`, translate them by `translation`, and crop or pad to `size`; float32.

    Scale and translation, in pixels of the result, are vertical, then horizontal. `kernel_type`: "lanczos1",
    "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic" or "mitchellcubic"; `antialias` widens it where
    images become smaller.
    """
    where = "ops.ScaleAndTranslate"
    checks.one_of(where, "kernel_type", kernel_type, tuple(_KERNELS))
    x = as_floats(where, images)
    x = keras.ops.cast(x, "float32")
    if rank_of(x) != 4:
        raise checks.fail_value(where, "images must be (N, H, W, C)", tuple(x.shape), "images[None]")
    lengths, scales, shifts = (values_of(where, value).reshape(-1) for value in (size, scale, translation))
    if not len(lengths) == len(scales) == len(shifts) == 2 or min(*lengths, *scales) <= 0:
        raise checks.fail_value(
            where, "size, scale and translation must be two numbers each, the first four above 0",
            [values.tolist() for values in (lengths, scales, shifts)], "size=Tensor([8, 8], int32)",
        )
    rows, columns = (
        _weights(old, int(new), float(factor), float(shift), kernel_type, antialias).astype(np.float32)
        for old, new, factor, shift in zip(x.shape[1:3], lengths, scales, shifts, strict=True)
    )
    return keras.ops.einsum("ih,jw,nhwc->nijc", rows, columns, x)


ScaleAndTranslate = configured("ScaleAndTranslate", scale_and_translate, kernel_type="lanczos3", antialias=True)
