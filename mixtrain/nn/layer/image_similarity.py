"""`PSNR`, `SSIM` and `MSSSIM`: how similar two batches of images are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import keras
import numpy as np

from mixtrain import checks
from mixtrain.dtype import DType, as_dtype, is_float
from mixtrain.nn.layer.operation_cells import operation_cell
from mixtrain.ops.inputs import rank_of, tensor
from mixtrain.typing import Tensor


def _as_pair(where: str, img1: Any, img2: Any, max_val: float) -> tuple[Tensor, Tensor, float]:
    """Return two batches as float32 and the range of their values; integers are divided by their dtype's maximum."""
    images = tensor(where, img1), tensor(where, img2)
    shapes, dtypes = [tuple(x.shape) for x in images], [as_dtype(x.dtype) for x in images]
    if rank_of(images[0]) != 4 or shapes[0] != shapes[1] or dtypes[0] != dtypes[1]:
        alike = shapes[0] == shapes[1] and dtypes[0] == dtypes[1]
        fail = checks.fail_value if alike else checks.fail_type  # As in MindSpore.
        raise fail(
            where, "the images must be of one dtype and one shape (N, C, H, W)", list(zip(shapes, dtypes, strict=True)),
            "two batches of the same size",
        )
    unit = _maximum(dtypes[0])
    first, second = (keras.ops.cast(x, "float32") / unit for x in images)
    return first, second, max_val / unit


def _maximum(dtype: DType) -> float:
    return 1.0 if is_float(dtype) else float(np.iinfo(dtype.name).max)


def _psnr(img1: Tensor, img2: Tensor, *, max_val: float) -> Tensor:
    first, second, max_val = _as_pair("PSNR", img1, img2, max_val)
    error = keras.ops.mean(keras.ops.square(first - second), axis=(1, 2, 3))
    return 10 * keras.ops.log(max_val**2 / error) / math.log(10)


def _window(size: int, sigma: float) -> np.ndarray:
    """Return a normal distribution over `size` x `size` points."""
    points = np.arange(-size // 2 + 1, size // 2 + 1, dtype=np.float32) ** 2
    weights = np.exp(-(points[:, None] + points) / (2 * sigma**2)).astype(np.float32)
    return weights / weights.sum()


def _similarity(
    first: Tensor, second: Tensor, max_val: float, filter_size: int, filter_sigma: float, k1: float, k2: float
) -> tuple[Tensor, Tensor]:
    """Return the means over each channel of the structural similarity, and of its part without brightness."""
    batch, channels, height, width = first.shape
    # A channel is an image of its own, in the layout that convolutions of every device take.
    x, y = (keras.ops.reshape(image, (-1, height, width, 1)) for image in (first, second))
    kernel = keras.ops.convert_to_tensor(_window(filter_size, filter_sigma)[:, :, None, None])
    mean_x, mean_y, mean_xx, mean_yy, mean_xy = (
        keras.ops.conv(values, kernel, padding="valid", data_format="channels_last")
        for values in (x, y, x * x, y * y, x * y)
    )
    c1, c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2
    contrast = (2 * (mean_xy - mean_x * mean_y) + c2) / (mean_xx - mean_x**2 + mean_yy - mean_y**2 + c2)
    brightness = (2 * mean_x * mean_y + c1) / (mean_x**2 + mean_y**2 + c1)
    structure, contrast = (
        keras.ops.reshape(keras.ops.mean(values, axis=(1, 2, 3)), (-1, channels))
        for values in (brightness * contrast, contrast)
    )
    return structure, contrast


def _checked(where: str, img1: Tensor, filter_size: int) -> None:
    if min(img1.shape[2:]) < filter_size:
        raise checks.fail_value(
            where, f"height and width must be at least filter_size, {filter_size}", tuple(img1.shape),
            f"filter_size={max(1, min(img1.shape[2:]))}, or larger images",
        )


def _ssim(img1: Tensor, img2: Tensor, *, max_val: float, **settings: Any) -> Tensor:
    first, second, max_val = _as_pair("SSIM", img1, img2, max_val)
    _checked("SSIM", first, settings["filter_size"])
    return keras.ops.mean(_similarity(first, second, max_val, **settings)[0], axis=-1)


def _scales(first: Tensor, second: Tensor, count: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the images, and each time those of half the size."""
    for scale in range(count):
        if scale:
            first, second = (
                keras.ops.transpose(
                    keras.ops.average_pool(
                        keras.ops.transpose(x, (0, 2, 3, 1)), 2, 2, "valid", data_format="channels_last"
                    ), (0, 3, 1, 2),
                ) for x in (first, second)
            )
        yield first, second


def _msssim(img1: Tensor, img2: Tensor, *, max_val: float, power_factors: Sequence[float], **settings: Any) -> Tensor:
    first, second, max_val = _as_pair("MSSSIM", img1, img2, max_val)
    values = []
    for x, y in _scales(first, second, len(power_factors)):
        _checked("MSSSIM", x, settings["filter_size"])
        structure, contrast = _similarity(x, y, max_val, **settings)
        values.append(contrast)
    values[-1] = structure
    powers = [keras.ops.relu(value) ** power for value, power in zip(values, power_factors, strict=True)]
    return keras.ops.mean(math.prod(powers[1:], start=powers[0]), axis=-1)


_SETTINGS: Final[dict[str, Any]] = {"filter_size": 11, "filter_sigma": 1.5, "k1": 0.01, "k2": 0.03}

PSNR: Final = operation_cell(
    "PSNR", _psnr, "The peak signal-to-noise ratio of two batches of images, in decibels, one for each image.",
    max_val=1.0,
)
SSIM: Final = operation_cell(
    "SSIM", _ssim, "The structural similarity of two batches of images (Wang et al., 2004), one for each image.",
    max_val=1.0, **_SETTINGS,
)
MSSSIM: Final = operation_cell(
    "MSSSIM", _msssim, "The structural similarity at several scales (Wang et al., 2003), one for each image.",
    max_val=1.0, power_factors=(0.0448, 0.2856, 0.3001, 0.2363, 0.1333), **_SETTINGS,
)
