"""Colors of images (H, W, C): the kernels that TensorFlow has, or computes in a way of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from mixtrain.data_backend.tensorflow.array_namespace import saturate
from mixtrain.typing import Tensor


def normalize(values: Tensor, mean: np.ndarray, deviation: np.ndarray) -> Tensor:
    values = tf.cast(values, tf.float32)
    width = values.shape[-2]
    if mean.shape != (3,) or width is None or tf.executing_eagerly():
        return (values - mean) / deviation
    # In graphs TensorFlow multiplies by the reciprocal, which is inexact if it computes many at once, and slow if it
    # broadcasts three values. So both are repeated along a row here.
    return (values - np.tile(mean, (width, 1))) * np.tile(np.float32(1) / deviation, (width, 1))


def rgb_to_hsv(image: Tensor) -> Tensor:
    return tf.image.rgb_to_hsv(image)


def hsv_to_rgb(image: Tensor) -> Tensor:
    return tf.image.hsv_to_rgb(image)


def by_table(image: Tensor, table: Callable[[Tensor], Tensor]) -> Tensor:
    planes = tf.transpose(image, (2, 0, 1))

    def map_plane(plane: Tensor) -> Tensor:
        values = tf.cast(plane, tf.int32)
        counts = tf.math.bincount(tf.reshape(values, [-1]), minlength=256, maxlength=256)
        return tf.cast(tf.gather(table(counts), values), image.dtype)

    result = tf.map_fn(map_plane, planes, fn_output_signature=tf.TensorSpec(planes.shape[1:], image.dtype))
    return tf.ensure_shape(tf.transpose(result, (1, 2, 0)), image.shape)


def stretched(low: Tensor, high: Tensor) -> Tensor:
    scale = 255.0 / tf.cast(tf.maximum(high - low, 1), tf.float64)
    return tf.cast(tf.cast(tf.range(256), tf.float64) * scale - tf.cast(low, tf.float64) * scale, tf.int32)


def smoothed(values: Tensor) -> Tensor:
    kernel = tf.constant([[1.0, 1, 1], [1, 5, 1], [1, 1, 1]]) / 13.0
    kernels = tf.tile(kernel[:, :, None, None], tf.stack([1, 1, tf.shape(values)[-1], 1]))
    return tf.nn.depthwise_conv2d(values[None], kernels, [1, 1, 1, 1], "SAME")[0]


def blur(image: Tensor, across: Sequence[float], down: Sequence[float]) -> Tensor:
    sides, ends = len(across) // 2, len(down) // 2
    values = tf.pad(tf.cast(image, tf.float32), [[ends, ends], [sides, sides], [0, 0]], mode="REFLECT")
    channels = tf.shape(image)[-1]
    for weights, shape in ((across, (1, len(across), 1, 1)), (down, (len(down), 1, 1, 1))):
        kernel = tf.tile(tf.reshape(tf.constant(weights, tf.float32), shape), tf.stack([1, 1, channels, 1]))
        values = tf.nn.depthwise_conv2d(values[None], kernel, [1, 1, 1, 1], "VALID")[0]
    return tf.ensure_shape(saturate(values, image.dtype), image.shape)


def weighted_sum(matrix: np.ndarray, vector: Tensor) -> Tensor:
    return tf.linalg.matvec(tf.constant(matrix), vector)
