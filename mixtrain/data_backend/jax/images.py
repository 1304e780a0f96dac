"""Images as tensors (..., height, width, channels): decoding, resizing, cropping, padding and flipping."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Literal

import jax
import numpy as np

from mixtrain.data_backend.interface.images import Border, Method
from mixtrain.data_backend.jax.array_namespace import exact, known_size, space
from mixtrain.typing import Tensor

_COMMON = ("JPEG", "PNG")  # Tried first: Pillow tries one format after the other.


def decode(contents: Any) -> Tensor:
    known_size(contents[0] if len(contents) else 0)  # Raises SizeUnknown for a traced tensor.
    return decode_files([np.asarray(contents)])[0]


def decode_files(files: Sequence[np.ndarray]) -> list[np.ndarray]:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise ImportError(
            "Decode: expected Pillow, which decodes images where TensorFlow does not; got none. "
            "Write pip install pillow, or set KERAS_BACKEND=tensorflow."
        ) from error

    def open_image(contents: np.ndarray) -> Image.Image:
        file = io.BytesIO(contents.tobytes())
        try:
            image: Image.Image = Image.open(file, formats=_COMMON)
        except UnidentifiedImageError:
            image = Image.open(file)
        return image if image.mode in ("L", "RGB") else image.convert("RGB")

    arrays: list[np.ndarray] = []
    try:
        # Consecutive images of one size become one sheet: to convert and copy it costs as much as a single image, which
        # is a third of the time for a small file.
        groups = itertools.groupby(map(open_image, files), key=lambda image: (image.mode, *image.size))
        for (mode, width, height), group in groups:
            images = list(group)
            sheet = images[0]
            if len(images) > 1:
                sheet = Image.new(mode, (width, height * len(images)))
                for index, image in enumerate(images):
                    sheet.paste(image, (0, index * height))
            pixels = (sheet if mode == "RGB" else sheet.convert("RGB")).tobytes()
            arrays.extend(map(np.array, np.frombuffer(pixels, np.uint8).reshape(len(images), height, width, 3)))
        return arrays
    except UnidentifiedImageError as error:
        raise ValueError("Unknown image file format. One of JPEG, PNG, GIF, BMP required") from error
    except OSError as error:
        raise ValueError(str(error)) from error


def decode_part(contents: Any, choose: Callable[[Any, Any], tuple[Any, Any, Any, Any]]) -> Tensor:
    image = decode(contents)
    return crop(image, *choose(*size_of(image)))


def size_of(image: Tensor) -> tuple[Tensor | int, Tensor | int]:
    return image.shape[-3], image.shape[-2]


def saturate(values: Tensor, dtype: Any) -> Tensor:
    xp, values = space(values)
    if not np.issubdtype(dtype, np.integer):
        return values.astype(dtype)
    bounds = np.iinfo(dtype)
    if bounds.bits > 16:
        values = values.astype(np.float64)
    rounded = xp.clip(xp.round(values), float(bounds.min), float(bounds.max))
    with np.errstate(invalid="ignore"):
        return rounded.astype(dtype)


def resize(image: Tensor, height: Tensor | int, width: Tensor | int, method: Method) -> Tensor:
    xp, image = space(image)
    height, width = known_size(height), known_size(width)
    rows, columns = size_of(image)
    if method in ("nearest", "pil_nearest"):
        shift = np.float32(0.5 if method == "pil_nearest" else 0.0)
        row_indices, column_indices = (_nearest(new, old, shift) for new, old in ((height, rows), (width, columns)))
        return xp.take(xp.take(image, row_indices, axis=-3), column_indices, axis=-2)
    values = image.astype(np.float32)
    if method == "linear":
        result = _interpolate(xp, _interpolate(xp, values, width, columns, -2), height, rows, -3)
        if image.dtype in (np.uint8, np.uint16):
            return (result + np.float32(0.5)).astype(image.dtype)  # In range, so only rounded, half up as in OpenCV.
        return saturate(result, image.dtype)
    column_weights = exact(_weights(method, width, columns, height, rows))
    row_weights = exact(_weights(method, height, rows, width, columns))
    result = xp.einsum("ow,...hwc->...hoc", column_weights, exact(values), optimize=True).astype(np.float32)
    if method.startswith("pil_"):  # Pillow rounds after each axis.
        result = saturate(result, image.dtype)
    result = xp.einsum("oh,...hwc->...owc", row_weights, exact(result), optimize=True).astype(np.float32)
    return saturate(result, image.dtype)


def _nearest(new: int, old: int, shift: np.float32) -> np.ndarray:
    scale = np.float32(old) / np.float32(new)
    return np.minimum(np.floor((np.arange(new, dtype=np.float32) + shift) * scale), old - 1).astype(np.int32)


def _interpolate(xp: ModuleType, values: Tensor, new: int, old: int, axis: int) -> Tensor:
    """Resize one axis by linear interpolation."""
    scale = np.float32(old) / np.float32(new)
    position = (np.arange(new, dtype=np.float32) + np.float32(0.5)) * scale - np.float32(0.5)
    lower = np.floor(position)
    fraction = (position - lower).reshape((-1,) + (1,) * (-1 - axis))
    first = xp.take(values, np.maximum(lower, 0).astype(np.int32), axis=axis)
    second = xp.take(values, np.minimum(np.ceil(position), old - 1).astype(np.int32), axis=axis)
    return (first + exact(second - first) * fraction).astype(np.float32)


def _weights(method: Method, new: int, old: int, other_new: int, other_old: int) -> np.ndarray:
    """Return the weights (new, old) that resize one axis."""
    scale = np.float32(old) / np.float32(new)
    if method == "area":
        shrinks = scale >= 1.0 and np.float32(other_old) / np.float32(other_new) >= 1.0
        return (_area_weights if shrinks else _enlarging_weights)(new, old, scale)
    if method == "cubic":
        return _cubic_weights(new, old, scale)
    kernel, support = _KERNELS[method]
    stretch = np.maximum(scale, np.float32(1.0))
    center = (_float_range(new) + np.float32(0.5))[:, None] * scale
    distance = (_float_range(old)[None, :] + np.float32(0.5) - center) / stretch
    raw = np.where(np.abs(distance) < support, kernel(distance), np.float32(0.0))
    return raw / np.sum(raw, axis=1, keepdims=True)


def _float_range(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.float32)


def _area_weights(new: int, old: int, scale: np.float32) -> np.ndarray:
    start = _float_range(new)[:, None] * scale
    pixel = _float_range(old)[None, :]
    overlap = np.minimum(start + scale, pixel + np.float32(1.0)) - np.maximum(start, pixel)
    return np.maximum(overlap, np.float32(0.0)) / scale


def _enlarging_weights(new: int, old: int, scale: np.float32) -> np.ndarray:
    """Return OpenCV's area weights for enlarging: two pixels are mixed only where the new pixel covers both."""
    index = _float_range(new)
    first = np.floor(index * scale)
    fraction = (index + np.float32(1.0)) - (first + np.float32(1.0)) / scale
    fraction = np.where(fraction <= 0.0, np.float32(0.0), fraction - np.floor(fraction))
    indices = first.astype(np.int32)
    second = np.minimum(indices + 1, old - 1)
    return (np.float32(1.0) - fraction)[:, None] * _one_hot(indices, old) + fraction[:, None] * _one_hot(second, old)


def _one_hot(indices: np.ndarray, count: int) -> np.ndarray:
    return (indices[:, None] == np.arange(count)).astype(np.float32)


def _cubic_weights(new: int, old: int, scale: np.float32) -> np.ndarray:
    """Return OpenCV's cubic weights (a = -0.75), with the border repeated."""
    center = (_float_range(new) + np.float32(0.5)) * scale - np.float32(0.5)
    first = np.floor(center)
    fraction = center - first
    total = np.zeros((new, old), np.float32)
    for offset in (-1, 0, 1, 2):
        index = np.clip(first.astype(np.int32) + offset, 0, old - 1)
        total += _cubic(fraction - np.float32(offset), -0.75)[:, None] * _one_hot(index, old)
    return total


def _cubic(distance: np.ndarray, a: float) -> np.ndarray:
    x = np.abs(distance)
    near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    far = ((x - 5.0) * x + 8.0) * x * a - 4.0 * a
    return np.where(x < 1.0, near, np.where(x < 2.0, far, np.float32(0.0)))


_KERNELS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "pil_linear": (lambda x: np.maximum(np.float32(0.0), 1.0 - np.abs(x)), 1.0),
    "pil_cubic": (lambda x: _cubic(x, -0.5), 2.0),
    "pil_lanczos": (lambda x: (np.sinc(x) * np.sinc(x / 3.0)).astype(np.float32), 3.0),
}


def crop(image: Tensor, top: Tensor | int, left: Tensor | int, height: Tensor | int, width: Tensor | int) -> Tensor:
    _, image, top, left = space(image, top, left)
    height, width = known_size(height), known_size(width)
    if isinstance(image, np.ndarray) or (isinstance(top, int) and isinstance(left, int)):
        return image[..., int(top) : int(top) + height, int(left) : int(left) + width, :]
    image = jax.lax.dynamic_slice_in_dim(image, top, height, -3)
    return jax.lax.dynamic_slice_in_dim(image, left, width, -2)


def pad(
    image: Tensor, left: Tensor | int, top: Tensor | int, right: Tensor | int, bottom: Tensor | int, border: Border,
    fill: tuple[float, ...] = (0,),
) -> Tensor:
    xp, image = space(image)
    left, top, right, bottom = map(known_size, (left, top, right, bottom))
    widths = [*[(0, 0)] * (image.ndim - 3), (top, bottom), (left, right), (0, 0)]
    if border != "constant":
        return xp.pad(image, widths, mode=border)
    colors = np.asarray(fill).astype(image.dtype)
    if len(set(fill)) == 1:
        return xp.pad(image, widths, constant_values=colors[0])
    inside = np.pad(np.ones(image.shape[-3:], bool), widths[-3:])
    return xp.where(inside, xp.pad(image, widths), colors)


def flip(image: Tensor, axis: Literal["horizontal", "vertical"]) -> Tensor:
    return image[..., ::-1, :] if axis == "horizontal" else image[..., ::-1, :, :]
