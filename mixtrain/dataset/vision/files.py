"""Functions that read, write and encode image files, and return the size of an image."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.dataset.transforms.operation import read_value
from mixtrain.dataset.transforms.picture import is_picture, to_picture
from mixtrain.dataset.vision.arguments import enum_member
from mixtrain.dataset.vision.enums import ImageReadMode
from mixtrain.typing import TensorLike


def read_file(filename: str) -> np.ndarray:
    """Return the contents of the file `filename` as uint8.

    Example:
        >>> read_file(__file__)[:3].tobytes()
        b'\"""'
    """
    return np.fromfile(checks.instance("read_file", "filename", filename, str, 'filename="a.png"'), np.uint8)


def write_file(filename: str, data: TensorLike) -> None:
    """Write the uint8 vector `data` to the file `filename`.

    Example:
        >>> write_file(os.devnull, np.zeros(3, np.uint8))
    """
    checks.instance("write_file", "filename", filename, str, 'filename="a.png"')
    array = read_value("write_file", data)
    if array.ndim != 1 or array.dtype != np.uint8:
        raise checks.fail_value("write_file", "data must be a vector of uint8", (array.dtype, array.shape),
                                "data.reshape(-1).astype(np.uint8)")
    array.tofile(filename)


def encode_jpeg(image: TensorLike, quality: int = 75) -> np.ndarray:
    """Encode a uint8 `image`, (H, W), (H, W, 1) or (H, W, 3), as JPEG of `quality` 1 to 100, and return the bytes as
    uint8; needs Pillow.

    Example:
        >>> encode_jpeg(np.zeros((4, 5, 3), np.uint8))[:2].tobytes()
        b'\\xff\\xd8'
    """
    checks.integer("encode_jpeg", "quality", quality, at_least=1, example=75)
    if quality > 100:
        raise checks.fail_value("encode_jpeg", "quality must be at most 100", quality, "quality=75")
    return _encoded("encode_jpeg", image, "JPEG", quality=quality)


def encode_png(image: TensorLike, compression_level: int = 6) -> np.ndarray:
    """Encode a uint8 `image`, (H, W), (H, W, 1) or (H, W, 3), as PNG, and return the bytes as uint8; needs Pillow.

    Args: compression_level: From 0 to 9, which gives the smallest file.

    Example:
        >>> encode_png(np.zeros((4, 5, 3), np.uint8))[1:4].tobytes()
        b'PNG'
    """
    checks.integer("encode_png", "compression_level", compression_level, at_least=0, example=6)
    if compression_level > 9:
        raise checks.fail_value("encode_png", "compression_level must be at most 9", compression_level,
                                "compression_level=6")
    return _encoded("encode_png", image, "PNG", compress_level=compression_level)


def write_jpeg(filename: str, image: TensorLike, quality: int = 75) -> None:
    """Write an image to the JPEG file `filename`; `image` and `quality` are those of `encode_jpeg`.

    Example:
        >>> write_jpeg(os.devnull, np.zeros((4, 5, 3), np.uint8))
    """
    write_file(filename, encode_jpeg(image, quality))


def write_png(filename: str, image: TensorLike, compression_level: int = 6) -> None:
    """Write an image to the PNG file `filename`; `image` and `compression_level` are those of `encode_png`.

    Example:
        >>> write_png(os.devnull, np.zeros((4, 5, 3), np.uint8))
    """
    write_file(filename, encode_png(image, compression_level))


def read_image(filename: str, mode: ImageReadMode = ImageReadMode.UNCHANGED) -> np.ndarray:
    """Return the image in the file `filename` as uint8 (H, W, C), in the channels that `mode` names; needs Pillow.

    Example:
        >>> import tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "a.png")
        >>> write_png(path, np.zeros((4, 5), np.uint8))
        >>> read_image(path).shape, read_image(path, ImageReadMode.COLOR).shape
        ((4, 5, 1), (4, 5, 3))
    """
    checks.instance("read_image", "filename", filename, str, 'filename="a.png"')
    enum_member("read_image", "mode", mode, ImageReadMode)
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("read_image: expected Pillow; got no package PIL. Write: pip install pillow.") from error
    with Image.open(os.fspath(filename)) as picture:
        new_mode = {ImageReadMode.GRAYSCALE: "L", ImageReadMode.COLOR: "RGB"}.get(mode)
        if new_mode is None and picture.mode not in ("L", "RGB", "RGBA"):
            new_mode = "RGB"
        array = np.array(picture.convert(new_mode) if new_mode else picture)
    return array if array.ndim == 3 else array[..., None]


def get_image_size(image: Any) -> list[int]:
    """Return [height, width] of an image. `image`: (..., H, W, C) or (H, W), or a Pillow image.

    Example:
        >>> get_image_size(np.zeros((4, 5, 3)))
        [4, 5]
    """
    if is_picture(image):
        return [image.size[1], image.size[0]]
    shape = read_value("get_image_size", image).shape
    if len(shape) < 2:
        raise checks.fail_value("get_image_size", "image must have two axes or more", shape, "an image (H, W, C)")
    return list(shape) if len(shape) == 2 else list(shape[-3:-1])


def get_image_num_channels(image: Any) -> int:
    """Return the number of channels of an image. `image`: (..., H, W, C) or (H, W), or a Pillow image.

    Example:
        >>> get_image_num_channels(np.zeros((4, 5, 3))), get_image_num_channels(np.zeros((4, 5)))
        (3, 1)
    """
    if is_picture(image):
        return len(image.getbands())
    shape = read_value("get_image_num_channels", image).shape
    if len(shape) < 2:
        raise checks.fail_value("get_image_num_channels", "image must have two axes or more", shape, "(H, W, C)")
    return 1 if len(shape) == 2 else int(shape[-1])


def _encoded(where: str, image: TensorLike, file_format: str, **options: int) -> np.ndarray:
    array = read_value(where, image)
    if array.dtype != np.uint8 or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3)):
        raise checks.fail_value(where, "image must be uint8, (H, W), (H, W, 1) or (H, W, 3)",
                                (array.dtype, array.shape), "image.astype(np.uint8)")
    stream = io.BytesIO()
    to_picture(where, array).save(stream, file_format, **options)
    return np.frombuffer(stream.getvalue(), np.uint8)
