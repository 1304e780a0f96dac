"""Normalization in float32 of half or float32 tensors, which holds no float32 copy of them for the backward pass."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from mixtrain.backend.tensorflow.by_float32 import has_kernels, widened
from mixtrain.backend.tensorflow.device import describe_device


def fused_batch_norm(
    x: Any, gamma: Any, beta: Any, mean: Any, variance: Any, *, epsilon: float, training: bool
) -> tuple[Any, Any, Any]:
    """Normalize a channels-last batch of rank 4.

    Args:
        x: Activations (N, H, W, C), float32, float16 or bfloat16.
        gamma: Scale (C,), float32.
        beta: Shift (C,), float32.
        mean: Moving mean (C,), float32; used where `training` is False.
        variance: Moving variance (C,), float32; used where `training` is False.
        epsilon: Added to the variance.
        training: Whether to normalize by the batch's own statistics.

    Returns:
        ``(y, batch_mean, batch_variance)``: `y` has the shape and dtype of `x`; the statistics are float32 (C,), the
        variance with Bessel's correction (divided by n - 1; 0 where n is 1). Outside training they are the moving ones.
    """
    # Where the device has no kernel for half values the float32 kernel takes them: its own would run in one thread.
    wide = not has_kernels(x.dtype.name, describe_device())
    single = x.shape[:3].num_elements() == 1

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def normalize(x: Any, gamma: Any, beta: Any) -> tuple[Any, Any]:
        y, batch_mean, batch_variance, *held = tf.raw_ops.FusedBatchNormV3(
            x=widened([x])[0] if wide else x, scale=gamma, offset=beta, epsilon=epsilon, is_training=training,
            mean=tf.zeros([0]) if training else mean, variance=tf.zeros([0]) if training else variance,
        )
        if not training:
            held[:2] = [mean, variance]
        elif single:
            # Bessel's correction would divide by zero, and not every device's kernel guards against that.
            batch_variance = tf.zeros_like(batch_variance)

        def gradient(upstream: Any, *_: Any) -> tuple[Any, Any, Any]:
            # A variance that overflowed would give gradients of 0, and statistics that are not finite go unseen.
            unseen = tf.where(tf.math.is_finite(batch_variance), 0.0, math.nan) if training else 0.0
            of_x, of_gamma, of_beta, *_ = tf.raw_ops.FusedBatchNormGradV3(
                y_backprop=tf.cast(upstream, tf.float32) if wide else upstream,
                x=widened([x], after=upstream)[0] if wide else x, scale=gamma + unseen, epsilon=epsilon,
                reserve_space_1=held[0], reserve_space_2=held[1], reserve_space_3=held[2], is_training=training,
            )
            return tf.cast(of_x, x.dtype), of_gamma + unseen, of_beta

        return (tf.cast(y, x.dtype), batch_mean, batch_variance), gradient

    y, *statistics = normalize(x, gamma, beta)
    return (y, *statistics) if training else (y, mean, variance)


def normalize_axes(
    x: Any, gamma: Any, beta: Any, *, axes: tuple[int, ...], epsilon: float
) -> tuple[Any, Any, Any]:
    """Normalize a tensor over some of its axes, by a gradient of its own: held is `x` itself, and one number a mean.

    Args:
        x: Tensor, float32, float16 or bfloat16.
        gamma: Scale, float32, of a known shape that broadcasts to that of `x`.
        beta: Shift, float32, of the shape of `gamma`.
        axes: Axes that each mean goes over, counted from the front.
        epsilon: Added to the variance.

    Returns:
        ``(y, mean, variance)``: `y` has the shape and dtype of `x`; the statistics are float32, keep the axes with size
        1 and have no gradient.
    """
    y, mean, variance = _normalized(x, gamma, beta, axes, epsilon)
    return y, tf.stop_gradient(mean), tf.stop_gradient(variance)


def _normalized(x: Any, gamma: Any, beta: Any, axes: tuple[int, ...], epsilon: float) -> tuple[Any, Any, Any]:
    statistics = []

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def normalize(x: Any, gamma: Any, beta: Any) -> tuple[Any, Any]:
        wide = tf.cast(x, tf.float32)
        mean = tf.reduce_mean(wide, axes, keepdims=True)
        # The rounding errors of the sum, taken out: over equal numbers the mean is then that number, whatever the order
        # in which the device adds. What is left of them is multiplied by up to rsqrt(epsilon), in the gradient by more.
        mean += tf.reduce_mean(wide - mean, axes, keepdims=True)
        centered = wide - mean
        variance = tf.reduce_mean(tf.square(centered), axes, keepdims=True)
        scale = tf.math.rsqrt(variance + epsilon)
        statistics.extend([mean, variance])

        def gradient(upstream: Any) -> tuple[Any, Any, Any]:
            wide = widened([x], after=upstream)[0] - mean
            seen = tf.where(tf.math.is_finite(variance), scale, math.nan)
            normal, upstream = wide * seen, tf.cast(upstream, tf.float32)
            of_normal = upstream * gamma
            along = tf.reduce_mean(of_normal * normal, axes, keepdims=True)
            of_x = seen * (of_normal - tf.reduce_mean(of_normal, axes, keepdims=True) - normal * along)
            return tf.cast(of_x, x.dtype), _summed_to(gamma, upstream * normal), _summed_to(beta, upstream)

        return tf.cast(centered * scale * gamma + beta, x.dtype), gradient

    return normalize(x, gamma, beta), *statistics


def _summed_to(parameter: Any, values: Any) -> Any:
    """Return the sum over the axes along which a parameter was repeated, in its shape."""
    shape = (1,) * (values.shape.rank - parameter.shape.rank) + tuple(parameter.shape)
    axes = [axis for axis, size in enumerate(shape) if size == 1]
    return tf.reshape(tf.reduce_sum(values, axes), parameter.shape)
