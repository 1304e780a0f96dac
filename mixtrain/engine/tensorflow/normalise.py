"""Batch normalisation by TensorFlow's fused kernel: half or float32 in and out, arithmetic in float32."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def fused_batch_norm(
    x: Any, gamma: Any, beta: Any, mean: Any, variance: Any, *, epsilon: float, training: bool
) -> tuple[Any, Any, Any]:
    """Normalise a channels-last batch of rank 4.

    Args:
        x: Activations (N, H, W, C), float32, float16 or bfloat16.
        gamma: Scale (C,), float32.
        beta: Shift (C,), float32.
        mean: Moving mean (C,), float32; used where `training` is False.
        variance: Moving variance (C,), float32; used where `training` is False.
        epsilon: Added to the variance.
        training: Whether to normalise by the batch's own statistics.

    Returns:
        ``(y, batch_mean, batch_variance)``: `y` has the shape and dtype of `x`; the statistics are float32 (C,), the
        variance with Bessel's correction (divided by n - 1; 0 where n is 1). Outside training they are the moving ones.
    """
    empty = tf.zeros([0], tf.float32)
    y, batch_mean, batch_variance, *_ = tf.raw_ops.FusedBatchNormV3(
        x=x,
        scale=gamma,
        offset=beta,
        mean=empty if training else mean,
        variance=empty if training else variance,
        epsilon=epsilon,
        is_training=training,
    )
    if not training:
        return y, mean, variance
    if x.shape[:3].num_elements() == 1:
        # Bessel's correction would divide by zero, and not every device's kernel guards against that.
        batch_variance = tf.zeros_like(batch_variance)
    return y, batch_mean, batch_variance
