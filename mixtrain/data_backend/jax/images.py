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
from mixtrain.data_backend.jax.array_namespace import exact, known_size, saturate, size_of, space
from mixtrain.data_backend.resize_weights import weights
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
    column_weights = exact(weights(method, width, columns, height, rows))
    row_weights = exact(weights(method, height, rows, width, columns))
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
