"""Normalization in float32 of half or float32 tensors, without float32 copies kept for the backward pass."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from mixtrain.backend.tensorflow.device import describe_device
from mixtrain.backend.tensorflow.kernels import has_kernels, widened
from mixtrain.typing import Tensor


def fused_batch_norm(
    x: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, variance: Tensor, *, epsilon: float, training: bool
) -> tuple[Tensor, Tensor, Tensor]:
    # Without fast half kernels the float32 kernel is used: the half kernel of a CPU would run in one thread.
    wide = not has_kernels(x.dtype.name, describe_device())
    single = x.shape[:3].num_elements() == 1

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def normalize(x: Tensor, gamma: Tensor, beta: Tensor) -> tuple[Any, Any]:
        y, batch_mean, batch_variance, *saved = tf.raw_ops.FusedBatchNormV3(
            x=widened([x])[0] if wide else x, scale=gamma, offset=beta, epsilon=epsilon, is_training=training,
            mean=tf.zeros([0]) if training else mean, variance=tf.zeros([0]) if training else variance,
        )
        if not training:
            saved[:2] = [mean, variance]
        elif single:
            # Bessel's correction would divide by zero, and not every device's kernel guards against that.
            batch_variance = tf.zeros_like(batch_variance)

        def gradient(upstream: Tensor, *_: Any) -> tuple[Any, Any, Any]:
            # NaN for an overflowed variance: its gradients would be 0, and the overflow would go unnoticed.
            overflow = tf.where(tf.math.is_finite(batch_variance), 0.0, math.nan) if training else 0.0
            d_x, d_gamma, d_beta, *_ = tf.raw_ops.FusedBatchNormGradV3(
                y_backprop=tf.cast(upstream, tf.float32) if wide else upstream,
                x=widened([x], after=upstream)[0] if wide else x, scale=gamma + overflow, epsilon=epsilon,
                reserve_space_1=saved[0], reserve_space_2=saved[1], reserve_space_3=saved[2], is_training=training,
            )
            return tf.cast(d_x, x.dtype), d_gamma + overflow, d_beta

        return (tf.cast(y, x.dtype), batch_mean, batch_variance), gradient

    y, *statistics = normalize(x, gamma, beta)
    return (y, *statistics) if training else (y, mean, variance)


def normalize_axes(
    x: Tensor, gamma: Tensor, beta: Tensor, *, axes: tuple[int, ...], epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    y, mean, variance = _normalized(x, gamma, beta, axes, epsilon)
    return y, tf.stop_gradient(mean), tf.stop_gradient(variance)


def _normalized(
    x: Tensor, gamma: Tensor, beta: Tensor, axes: tuple[int, ...], epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    statistics = []

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def normalize(x: Tensor, gamma: Tensor, beta: Tensor) -> tuple[Any, Any]:
        wide = tf.cast(x, tf.float32)
        mean = tf.reduce_mean(wide, axes, keepdims=True)
        # Corrects the rounding error of the sum, so that the mean of equal values is that value in any order of
        # summation: the remaining error is multiplied by up to rsqrt(epsilon), in the gradient by more.
        mean += tf.reduce_mean(wide - mean, axes, keepdims=True)
        centered = wide - mean
        variance = tf.reduce_mean(tf.square(centered), axes, keepdims=True)
        scale = tf.math.rsqrt(variance + epsilon)
        statistics.extend([mean, variance])

        def gradient(upstream: Tensor) -> tuple[Any, Any, Any]:
            centered = widened([x], after=upstream)[0] - mean
            safe_scale = tf.where(tf.math.is_finite(variance), scale, math.nan)
            normal, upstream = centered * safe_scale, tf.cast(upstream, tf.float32)
            d_normal = upstream * gamma
            projection = tf.reduce_mean(d_normal * normal, axes, keepdims=True)
            d_x = safe_scale * (d_normal - tf.reduce_mean(d_normal, axes, keepdims=True) - normal * projection)
            return tf.cast(d_x, x.dtype), _sum_to(gamma, upstream * normal), _sum_to(beta, upstream)

        return tf.cast(centered * scale * gamma + beta, x.dtype), gradient

    return normalize(x, gamma, beta), *statistics


def _sum_to(parameter: Tensor, values: Tensor) -> Tensor:
    """Sum over the axes along which a parameter was broadcast, to its shape."""
    shape = (1,) * (values.shape.rank - parameter.shape.rank) + tuple(parameter.shape)
    axes = [axis for axis, size in enumerate(shape) if size == 1]
    return tf.reshape(tf.reduce_sum(values, axes), parameter.shape)
