"""Colors of images (H, W, C): brightness, contrast, saturation, hue, tone curves, blurs, with OpenCV's rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from mixtrain.backend.tensorflow.images import saturate

_GREY_BITS = 15
_GREY = (9798, 19235, 3735)


def scale_values(values: Any, factor: Any, shift: Any) -> Any:
    """Return ``values * factor + shift`` in float32."""
    return tf.cast(values, tf.float32) * factor + shift


def normalize(values: Any, mean: np.ndarray, deviation: np.ndarray) -> Any:
    """Return ``(values - mean) / deviation`` in float32, the two in a shape that fits the last axes of `values`."""
    values = tf.cast(values, tf.float32)
    width = values.shape[-2]
    if mean.shape != (3,) or width is None or tf.executing_eagerly():
        return (values - mean) / deviation
    # In graphs TensorFlow multiplies by the reciprocal; it is rough where it takes one of many numbers, and slow
    # where it repeats three along all others.
    return (values - np.tile(mean, (width, 1))) * np.tile(np.float32(1) / deviation, (width, 1))


def blend(first: Any, second: Any, share: Any) -> Any:
    """Return ``first * share + second * (1 - share)`` in the first's dtype; `share` may be beyond 0 and 1."""
    mixed = tf.cast(first, tf.float32) * share + tf.cast(second, tf.float32) * (1.0 - share)
    return saturate(mixed, first.dtype)


def brighten(image: Any, factor: Any) -> Any:
    """Return the image with all values times `factor`."""
    return saturate(tf.cast(image, tf.float32) * factor, image.dtype)


def grey(image: Any) -> Any:
    """Return the brightness of red, green and blue, (..., 1), in the image's dtype."""
    if image.dtype.is_integer:
        total = tf.reduce_sum(tf.cast(image[..., :3], tf.int32) * tf.constant(_GREY), axis=-1, keepdims=True)
        return tf.cast((total + (1 << (_GREY_BITS - 1))) // (1 << _GREY_BITS), image.dtype)
    weights = tf.constant((0.299, 0.587, 0.114), image.dtype)
    return tf.reduce_sum(image[..., :3] * weights, axis=-1, keepdims=True)


def contrast(image: Any, factor: Any) -> Any:
    """Return the image farther from its mean brightness by `factor`."""
    mean = tf.floor(tf.reduce_mean(tf.cast(grey(image), tf.float32)) + 0.5)
    return blend(image, mean, factor)


def saturation(image: Any, factor: Any) -> Any:
    """Return the image with its colors stronger by `factor`; 0 leaves greys."""
    return blend(image, grey(image), factor)


def hue(image: Any, turn: Any) -> Any:
    """Return the image with its hues turned by a share `turn` of the circle, from -0.5 to 0.5.

    Of integer images hues are kept in 256 steps and saturations in 255, as OpenCV keeps them.
    """
    whole = image.dtype.is_integer
    values = tf.image.rgb_to_hsv(tf.cast(image, tf.float32) / 255.0 if whole else tf.cast(image, tf.float32))
    angle, strength = values[..., 0], values[..., 1]
    if whole:
        steps = tf.cast(tf.cast(turn, tf.float32) * 255.0, tf.int32)  # Cut off towards 0.
        angle = tf.math.floormod(tf.round(angle * 256.0) + tf.cast(steps, tf.float32), 256.0) / 255.0
        turn, strength = 0.0, tf.round(strength * 255.0) / 255.0
    turned = tf.stack([tf.math.floormod(angle + turn, 1.0), strength, values[..., 2]], axis=-1)
    result = tf.image.hsv_to_rgb(turned)
    return saturate(result * 255.0 if whole else result, image.dtype)


def rgb_to_hsv(image: Any) -> Any:
    """Return hue, saturation and value, each from 0 to 1, of red, green and blue from 0 to 1."""
    return tf.image.rgb_to_hsv(image)


def hsv_to_rgb(image: Any) -> Any:
    """Return red, green and blue of hue, saturation and value."""
    return tf.image.hsv_to_rgb(image)


def invert(image: Any) -> Any:
    """Return 255 minus the values."""
    return tf.cast(255, image.dtype) - image


def solarize(image: Any, low: Any, high: Any) -> Any:
    """Return the image with the values from `low` to `high` inverted."""
    whole = tf.cast(image, tf.float32)
    inside = tf.logical_and(whole >= tf.cast(low, tf.float32), whole <= tf.cast(high, tf.float32))
    return tf.where(inside, invert(image), image)


def posterize(image: Any, bits: Any) -> Any:
    """Return a uint8 image with only the `bits` highest bits of each value kept."""
    step = tf.bitwise.left_shift(tf.constant(1, tf.int32), 8 - tf.cast(bits, tf.int32))
    return tf.cast(tf.cast(image, tf.int32) // step * step, image.dtype)


def equalize(image: Any, *, like_pillow: bool = False) -> Any:
    """Return a uint8 image each channel of which uses all values about equally often.

    Args:
        image: (H, W, C).
        like_pillow: Whether with Pillow's steps instead of OpenCV's.
    """
    def by_pillow(counts: Any) -> Any:
        last = tf.reduce_max(tf.where(counts > 0, tf.range(256), 0))
        step = (tf.reduce_sum(counts) - counts[last]) // 255
        before = tf.cumsum(counts, exclusive=True)
        made = tf.minimum((step // 2 + before) // tf.maximum(step, 1), 255)
        return tf.where(step == 0, tf.range(256), made)

    def by_opencv(counts: Any) -> Any:
        first = tf.reduce_min(tf.where(counts > 0, tf.range(256), 255))
        others = tf.reduce_sum(counts) - counts[first]
        scale = 255.0 / tf.cast(tf.maximum(others, 1), tf.float32)
        made = tf.round(tf.cast(tf.cumsum(counts) - counts[first], tf.float32) * scale)
        return tf.where(others == 0, tf.range(256), tf.cast(tf.clip_by_value(made, 0.0, 255.0), tf.int32))

    return _by_table(image, by_pillow if like_pillow else by_opencv)


def auto_contrast(image: Any, cutoff: float, ignore: Sequence[int]) -> Any:
    """Return a uint8 image each channel of which is stretched to 0 to 255.

    Args:
        image: (H, W, C).
        cutoff: How many per cent of the darkest and of the lightest pixels do not count.
        ignore: Values that do not count.
    """
    def table(counts: Any) -> Any:
        for value in ignore:
            counts = tf.where(tf.range(256) == value, 0, counts)
        cut = tf.cast(tf.cast(tf.reduce_sum(counts), tf.float32) * (cutoff / 100.0), tf.int32)
        low = tf.reduce_min(tf.where(tf.cumsum(counts) > cut, tf.range(256), 255))
        high = tf.reduce_max(tf.where(tf.cumsum(counts, reverse=True) > cut, tf.range(256), 0))
        scale = 255.0 / tf.cast(tf.maximum(high - low, 1), tf.float64)
        made = tf.cast(tf.cast(tf.range(256), tf.float64) * scale - tf.cast(low, tf.float64) * scale, tf.int32)
        return tf.where(high <= low, tf.range(256), tf.clip_by_value(made, 0, 255))

    return _by_table(image, table)


def _by_table(image: Any, table: Any) -> Any:
    """Return the image with each channel's values replaced by the table that its histogram gives."""
    planes = tf.transpose(image, (2, 0, 1))

    def one(plane: Any) -> Any:
        whole = tf.cast(plane, tf.int32)
        counts = tf.math.bincount(tf.reshape(whole, [-1]), minlength=256, maxlength=256)
        return tf.cast(tf.gather(table(counts), whole), image.dtype)

    result = tf.map_fn(one, planes, fn_output_signature=tf.TensorSpec(planes.shape[1:], image.dtype))
    return tf.ensure_shape(tf.transpose(result, (1, 2, 0)), image.shape)


def smooth(image: Any) -> Any:
    """Return the image averaged over 3 x 3 pixels, the middle one five times; its edge stays."""
    kernel = tf.constant([[1.0, 1, 1], [1, 5, 1], [1, 1, 1]]) / 13.0
    values = tf.cast(image, tf.float32)
    kernels = tf.tile(kernel[:, :, None, None], tf.stack([1, 1, tf.shape(image)[-1], 1]))
    averaged = tf.nn.depthwise_conv2d(values[None], kernels, [1, 1, 1, 1], "SAME")[0]
    rows, columns = tf.shape(image)[0], tf.shape(image)[1]
    mixed = tf.where(_inside(image, 1, 1, rows - 1, columns - 1), averaged, values)
    return tf.ensure_shape(saturate(mixed, image.dtype), image.shape)


def blur(image: Any, across: Sequence[float], down: Sequence[float]) -> Any:
    """Return the image averaged with weights from left to right and from top to bottom, mirrored at its edge."""
    sides, ends = len(across) // 2, len(down) // 2
    values = tf.pad(tf.cast(image, tf.float32), [[ends, ends], [sides, sides], [0, 0]], mode="REFLECT")
    channels = tf.shape(image)[-1]
    for weights, shape in ((across, (1, len(across), 1, 1)), (down, (len(down), 1, 1, 1))):
        kernel = tf.tile(tf.reshape(tf.constant(weights, tf.float32), shape), tf.stack([1, 1, channels, 1]))
        values = tf.nn.depthwise_conv2d(values[None], kernel, [1, 1, 1, 1], "VALID")[0]
    return tf.ensure_shape(saturate(values, image.dtype), image.shape)


def fill_box(image: Any, top: Any, left: Any, bottom: Any, right: Any, value: Any) -> Any:
    """Return (H, W, C) with the rows `top` to `bottom` and columns `left` to `right` (without the last) replaced."""
    return tf.where(_inside(image, top, left, bottom, right), tf.cast(value, image.dtype), image)


def _inside(image: Any, top: Any, left: Any, bottom: Any, right: Any) -> Any:
    """Return where in (H, W, C) rows and columns are in a range, as bools (H, W, 1)."""
    rows = tf.range(tf.shape(image)[0])[:, None, None]
    columns = tf.range(tf.shape(image)[1])[None, :, None]
    return (rows >= top) & (rows < bottom) & (columns >= left) & (columns < right)


# The directions in which the colors of photographs differ, and by how much (ImageNet's principal components).
_DIRECTIONS = ((-0.5675, 0.7192, 0.4009), (-0.5808, -0.0045, -0.8140), (-0.5836, -0.6948, 0.4203))
_LENGTHS = (55.46, 4.794, 1.148)


def light(image: Any, amounts: Any) -> Any:
    """Return the image with an amount of each of three colors added."""
    added = tf.linalg.matvec(tf.constant(_DIRECTIONS), amounts * tf.constant(_LENGTHS))
    return saturate(tf.cast(image, tf.float32) + added, image.dtype)
