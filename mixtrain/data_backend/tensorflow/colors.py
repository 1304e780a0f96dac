"""Colors of images (H, W, C): brightness, contrast, saturation, hue, tone curves, blurs, with OpenCV's rounding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from mixtrain.data_backend.tensorflow.images import saturate
from mixtrain.typing import Tensor

# OpenCV's weights of red, green and blue in fixed point, with so many fractional bits.
_GREY_BITS = 15
_GREY = (9798, 19235, 3735)


def scale_values(values: Tensor, factor: Tensor | float, shift: Tensor | float) -> Tensor:
    return tf.cast(values, tf.float32) * factor + shift


def normalize(values: Tensor, mean: np.ndarray, deviation: np.ndarray) -> Tensor:
    values = tf.cast(values, tf.float32)
    width = values.shape[-2]
    if mean.shape != (3,) or width is None or tf.executing_eagerly():
        return (values - mean) / deviation
    # In graphs TensorFlow multiplies by the reciprocal, which is inexact if it computes many at once, and slow if it
    # broadcasts three values. So both are repeated along a row here.
    return (values - np.tile(mean, (width, 1))) * np.tile(np.float32(1) / deviation, (width, 1))


def blend(first: Tensor, second: Tensor, share: Tensor | float) -> Tensor:
    mixed = tf.cast(first, tf.float32) * share + tf.cast(second, tf.float32) * (1.0 - share)
    return saturate(mixed, first.dtype)


def brighten(image: Tensor, factor: Tensor | float) -> Tensor:
    return saturate(tf.cast(image, tf.float32) * factor, image.dtype)


def grayscale(image: Tensor) -> Tensor:
    if image.dtype.is_integer:
        total = tf.reduce_sum(tf.cast(image[..., :3], tf.int32) * tf.constant(_GREY), axis=-1, keepdims=True)
        return tf.cast((total + (1 << (_GREY_BITS - 1))) // (1 << _GREY_BITS), image.dtype)
    weights = tf.constant((0.299, 0.587, 0.114), image.dtype)
    return tf.reduce_sum(image[..., :3] * weights, axis=-1, keepdims=True)


def contrast(image: Tensor, factor: Tensor | float) -> Tensor:
    mean = tf.floor(tf.reduce_mean(tf.cast(grayscale(image), tf.float32)) + 0.5)
    return blend(image, mean, factor)


def saturation(image: Tensor, factor: Tensor | float) -> Tensor:
    return blend(image, grayscale(image), factor)


def hue(image: Tensor, turn: Tensor | float) -> Tensor:
    is_integer = image.dtype.is_integer
    values = tf.image.rgb_to_hsv(tf.cast(image, tf.float32) / 255.0 if is_integer else tf.cast(image, tf.float32))
    angle, strength = values[..., 0], values[..., 1]
    if is_integer:
        steps = tf.cast(tf.cast(turn, tf.float32) * 255.0, tf.int32)  # Truncated towards 0.
        angle = tf.math.floormod(tf.round(angle * 256.0) + tf.cast(steps, tf.float32), 256.0) / 255.0
        turn, strength = 0.0, tf.round(strength * 255.0) / 255.0
    hsv = tf.stack([tf.math.floormod(angle + turn, 1.0), strength, values[..., 2]], axis=-1)
    result = tf.image.hsv_to_rgb(hsv)
    return saturate(result * 255.0 if is_integer else result, image.dtype)


def rgb_to_hsv(image: Tensor) -> Tensor:
    return tf.image.rgb_to_hsv(image)


def hsv_to_rgb(image: Tensor) -> Tensor:
    return tf.image.hsv_to_rgb(image)


def invert(image: Tensor) -> Tensor:
    return tf.cast(255, image.dtype) - image


def solarize(image: Tensor, low: Tensor | float, high: Tensor | float) -> Tensor:
    values = tf.cast(image, tf.float32)
    inside = tf.logical_and(values >= tf.cast(low, tf.float32), values <= tf.cast(high, tf.float32))
    return tf.where(inside, invert(image), image)


def posterize(image: Tensor, bits: Tensor) -> Tensor:
    step = tf.bitwise.left_shift(tf.constant(1, tf.int32), 8 - tf.cast(bits, tf.int32))
    return tf.cast(tf.cast(image, tf.int32) // step * step, image.dtype)


def equalize(image: Tensor, *, like_pillow: bool = False) -> Tensor:
    def by_pillow(counts: Tensor) -> Tensor:
        last = tf.reduce_max(tf.where(counts > 0, tf.range(256), 0))
        step = (tf.reduce_sum(counts) - counts[last]) // 255
        previous = tf.cumsum(counts, exclusive=True)
        equalized = tf.minimum((step // 2 + previous) // tf.maximum(step, 1), 255)
        return tf.where(step == 0, tf.range(256), equalized)

    def by_opencv(counts: Tensor) -> Tensor:
        first = tf.reduce_min(tf.where(counts > 0, tf.range(256), 255))
        others = tf.reduce_sum(counts) - counts[first]
        scale = 255.0 / tf.cast(tf.maximum(others, 1), tf.float32)
        equalized = tf.round(tf.cast(tf.cumsum(counts) - counts[first], tf.float32) * scale)
        return tf.where(others == 0, tf.range(256), tf.cast(tf.clip_by_value(equalized, 0.0, 255.0), tf.int32))

    return _by_table(image, by_pillow if like_pillow else by_opencv)


def auto_contrast(image: Tensor, cutoff: float, ignore: Sequence[int]) -> Tensor:
    def table(counts: Tensor) -> Tensor:
        for value in ignore:
            counts = tf.where(tf.range(256) == value, 0, counts)
        cut = tf.cast(tf.cast(tf.reduce_sum(counts), tf.float32) * (cutoff / 100.0), tf.int32)
        low = tf.reduce_min(tf.where(tf.cumsum(counts) > cut, tf.range(256), 255))
        high = tf.reduce_max(tf.where(tf.cumsum(counts, reverse=True) > cut, tf.range(256), 0))
        scale = 255.0 / tf.cast(tf.maximum(high - low, 1), tf.float64)
        stretched = tf.cast(tf.cast(tf.range(256), tf.float64) * scale - tf.cast(low, tf.float64) * scale, tf.int32)
        return tf.where(high <= low, tf.range(256), tf.clip_by_value(stretched, 0, 255))

    return _by_table(image, table)


def _by_table(image: Tensor, table: Callable[[Tensor], Tensor]) -> Tensor:
    """Map the values of each channel by the table that `table` computes from its histogram."""
    planes = tf.transpose(image, (2, 0, 1))

    def map_plane(plane: Tensor) -> Tensor:
        values = tf.cast(plane, tf.int32)
        counts = tf.math.bincount(tf.reshape(values, [-1]), minlength=256, maxlength=256)
        return tf.cast(tf.gather(table(counts), values), image.dtype)

    result = tf.map_fn(map_plane, planes, fn_output_signature=tf.TensorSpec(planes.shape[1:], image.dtype))
    return tf.ensure_shape(tf.transpose(result, (1, 2, 0)), image.shape)


def smooth(image: Tensor) -> Tensor:
    kernel = tf.constant([[1.0, 1, 1], [1, 5, 1], [1, 1, 1]]) / 13.0
    values = tf.cast(image, tf.float32)
    kernels = tf.tile(kernel[:, :, None, None], tf.stack([1, 1, tf.shape(image)[-1], 1]))
    mean = tf.nn.depthwise_conv2d(values[None], kernels, [1, 1, 1, 1], "SAME")[0]
    rows, columns = tf.shape(image)[0], tf.shape(image)[1]
    mixed = tf.where(_inside(image, 1, 1, rows - 1, columns - 1), mean, values)
    return tf.ensure_shape(saturate(mixed, image.dtype), image.shape)


def blur(image: Tensor, across: Sequence[float], down: Sequence[float]) -> Tensor:
    sides, ends = len(across) // 2, len(down) // 2
    values = tf.pad(tf.cast(image, tf.float32), [[ends, ends], [sides, sides], [0, 0]], mode="REFLECT")
    channels = tf.shape(image)[-1]
    for weights, shape in ((across, (1, len(across), 1, 1)), (down, (len(down), 1, 1, 1))):
        kernel = tf.tile(tf.reshape(tf.constant(weights, tf.float32), shape), tf.stack([1, 1, channels, 1]))
        values = tf.nn.depthwise_conv2d(values[None], kernel, [1, 1, 1, 1], "VALID")[0]
    return tf.ensure_shape(saturate(values, image.dtype), image.shape)


def fill_box(
    image: Tensor, top: Tensor | int, left: Tensor | int, bottom: Tensor | int, right: Tensor | int,
    value: Tensor | float,
) -> Tensor:
    return tf.where(_inside(image, top, left, bottom, right), tf.cast(value, image.dtype), image)


def _inside(image: Tensor, top: Tensor | int, left: Tensor | int, bottom: Tensor | int, right: Tensor | int) -> Tensor:
    """Whether the pixels of (H, W, C) are in a range of rows and columns, bools (H, W, 1)."""
    rows = tf.range(tf.shape(image)[0])[:, None, None]
    columns = tf.range(tf.shape(image)[1])[None, :, None]
    return (rows >= top) & (rows < bottom) & (columns >= left) & (columns < right)


# The principal components of the colors in ImageNet, and their magnitudes.
_COMPONENTS = ((-0.5675, 0.7192, 0.4009), (-0.5808, -0.0045, -0.8140), (-0.5836, -0.6948, 0.4203))
_MAGNITUDES = (55.46, 4.794, 1.148)


def pca_lighting(image: Tensor, amounts: Tensor) -> Tensor:
    added = tf.linalg.matvec(tf.constant(_COMPONENTS), amounts * tf.constant(_MAGNITUDES))
    return saturate(tf.cast(image, tf.float32) + added, image.dtype)
