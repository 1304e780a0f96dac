"""Images as tensors (..., height, width, channels): decoding, resizing, cropping, padding and flipping."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from mixtrain.data_backend.interface.images import Border, Method
from mixtrain.data_backend.resize_weights import weights
from mixtrain.data_backend.tensorflow.array_namespace import saturate, size_of
from mixtrain.data_backend.tensorflow.encoded import DCT, decoded, is_jpeg
from mixtrain.data_backend.tensorflow.op_errors import reason_of
from mixtrain.typing import Tensor

_MAX_FILES = 32  # The maximum number of files that one call decodes.


def decode(contents: Any) -> Tensor:
    if isinstance(contents, np.ndarray):
        return decode_files([contents])[0]
    text = _text(contents)
    image = tf.cond(tf.io.is_jpeg(text), lambda: tf.io.decode_jpeg(text, 3, dct_method=DCT), lambda: _decode_any(text))
    return tf.ensure_shape(image, (None, None, 3))


def _decode_eagerly(contents: bytes) -> np.ndarray:
    try:
        # Converted explicitly: for bytes TensorFlow would search for a conversion in each call.
        image = decoded(tf.constant(contents), is_jpeg(contents))
    except tf.errors.OpError as error:
        raise ValueError(reason_of(error)) from error
    return image.numpy()  # type: ignore[no-any-return]


def decode_files(files: Sequence[np.ndarray]) -> list[np.ndarray]:
    images: list[np.ndarray] = []
    for jpeg, group in itertools.groupby((file.tobytes() for file in files), key=is_jpeg):
        contents = list(group)
        while len(contents) > 1:
            count = 1 << (min(len(contents), _MAX_FILES).bit_length() - 1)
            images.extend(_decode_together(contents[:count], jpeg))
            del contents[:count]
        images.extend(map(_decode_eagerly, contents))
    return images


def _decode_together(files: Sequence[bytes], jpeg: bool) -> list[np.ndarray]:
    """Return the images of several files, decoded by one call without Python's global lock."""
    try:
        images = _decoder(len(files), jpeg)(tf.constant(files))
    except tf.errors.OpError as error:
        raise ValueError(reason_of(error)) from error
    return [image.numpy() for image in images]


@functools.lru_cache
def _decoder(count: int, jpeg: bool) -> Any:
    """Return a compiled function that decodes `count` files; `tf.map_fn` would need images of one size."""

    def run(files: Any) -> list[Any]:
        return [decoded(contents, jpeg) for contents in tf.unstack(files)]

    with tf.device("CPU"):
        return tf.function(run, autograph=False).get_concrete_function(tf.TensorSpec([count], tf.string))


def decode_part(contents: Any, choose: Callable[[Any, Any], tuple[Any, Any, Any, Any]]) -> Tensor:
    """Of a JPEG only that part is decoded."""
    text = _text(contents)

    def decode_jpeg() -> Any:
        shape = tf.io.extract_jpeg_shape(text)
        window = tf.stack(choose(shape[0], shape[1]))
        return tf.io.decode_and_crop_jpeg(text, window, channels=3, dct_method=DCT)

    def decode_other() -> Any:
        image = _decode_any(text)
        return crop(image, *choose(*size_of(image)))

    return tf.ensure_shape(tf.cond(tf.io.is_jpeg(text), decode_jpeg, decode_other), (None, None, 3))


def _decode_any(text: Tensor) -> Tensor:
    return tf.ensure_shape(tf.io.decode_image(text, channels=3, expand_animations=False), (None, None, 3))


def _text(contents: Tensor) -> Tensor:
    """Return a vector of uint8 as a string: the values are the last bytes of a serialized tensor."""
    count = tf.size(contents)
    return tf.strings.substr(tf.io.serialize_tensor(contents), -count, count)


def resize(image: Tensor, height: Tensor | int, width: Tensor | int, method: Method) -> Tensor:
    leading = tf.shape(image)[:-3]
    batch = tf.reshape(image, tf.concat([[-1], tf.shape(image)[-3:]], 0)) if image.shape.rank != 4 else image
    batch = tf.ensure_shape(batch, [None, *image.shape[-3:]])
    size = tf.stack([height, width])
    if method in ("nearest", "pil_nearest"):
        result = tf.raw_ops.ResizeNearestNeighbor(
            images=batch, size=size, half_pixel_centers=method == "pil_nearest"
        )
    elif method == "linear":
        supported = image.dtype in (tf.uint8, tf.uint16, tf.int8, tf.int16, tf.int32, tf.float16, tf.float32)
        source = batch if supported else tf.cast(batch, tf.float32)
        result = tf.raw_ops.ResizeBilinear(images=source, size=size, half_pixel_centers=True)
    else:
        rows, columns = size_of(batch)
        column_weights = weights(method, width, columns, height, rows)
        result = tf.einsum("ow,nhwc->nhoc", column_weights, tf.cast(batch, tf.float32))
        if method.startswith("pil_"):  # Pillow rounds after each axis.
            result = tf.cast(saturate(result, image.dtype), tf.float32)
        result = tf.einsum("oh,nhwc->nowc", weights(method, height, rows, width, columns), result)
    if method == "linear" and image.dtype in (tf.uint8, tf.uint16):
        result = tf.cast(result + 0.5, image.dtype)  # In range, so only rounded, half up as in OpenCV.
    elif result.dtype != image.dtype:
        result = saturate(result, image.dtype)
    if image.shape.rank != 4:
        result = tf.reshape(result, tf.concat([leading, tf.shape(result)[1:]], 0))
    sizes = [value if isinstance(value, int) else None for value in (height, width)]
    return tf.ensure_shape(result, [*image.shape[:-3], *sizes, image.shape[-1]])


def crop(image: Tensor, top: Tensor | int, left: Tensor | int, height: Tensor | int, width: Tensor | int) -> Tensor:
    if all(isinstance(value, int) for value in (top, left, height, width)):
        return image[..., top : top + height, left : left + width, :]
    return _slice(image, top, left, height, width)


def _slice(image: Tensor, top: Tensor | int, left: Tensor | int, height: Tensor | int, width: Tensor | int) -> Tensor:
    shape, rank = tf.shape(image), image.shape.rank
    begin = tf.stack([*[0] * (rank - 3), top, left, 0])
    size = tf.stack([*(shape[axis] for axis in range(rank - 3)), height, width, shape[-1]])
    sizes = [value if isinstance(value, int) else None for value in (height, width)]
    return tf.ensure_shape(tf.slice(image, begin, size), [*image.shape[:-3], *sizes, image.shape[-1]])


def pad(
    image: Tensor, left: Tensor | int, top: Tensor | int, right: Tensor | int, bottom: Tensor | int, border: Border,
    fill: tuple[float, ...] = (0,),
) -> Tensor:
    if border == "edge":
        rows, columns = size_of(image)
        image = tf.gather(image, tf.clip_by_value(tf.range(-top, rows + bottom), 0, rows - 1), axis=-3)
        return tf.gather(image, tf.clip_by_value(tf.range(-left, columns + right), 0, columns - 1), axis=-2)
    widths = [*[[0, 0]] * (image.shape.rank - 3), [top, bottom], [left, right], [0, 0]]
    if border != "constant":
        return tf.pad(image, widths, mode=border.upper())
    if len(set(fill)) == 1:
        return tf.pad(image, widths, constant_values=tf.cast(fill[0], image.dtype))
    inside = tf.pad(tf.ones_like(image, dtype=tf.bool), widths)
    return tf.where(inside, tf.pad(image, widths), tf.cast(list(fill), image.dtype))


def flip(image: Tensor, axis: Literal["horizontal", "vertical"]) -> Tensor:
    return tf.reverse(image, axis=[-2 if axis == "horizontal" else -3])
