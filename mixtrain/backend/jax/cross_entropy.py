"""Softmax cross entropy in float32."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from mixtrain.typing import Tensor


def sparse_softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    """Compute the cross entropy of class numbers.

    Args:
        labels: Class numbers (...), int32 or int64.
        logits: Scores (..., C), float32.

    Returns:
        Losses (...), float32; NaN for a label outside [0, C).
    """
    labels = jnp.asarray(labels)[..., None]
    classes = logits.shape[-1]
    log_probabilities = jnp.take_along_axis(jax.nn.log_softmax(logits), jnp.clip(labels, 0, classes - 1), axis=-1)
    return jnp.where((labels >= 0) & (labels < classes), -log_probabilities, jnp.nan)[..., 0]


def softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    """Compute the cross entropy of class probabilities.

    Args:
        labels: Probabilities (..., C), float32; each row sums to 1.
        logits: Scores (..., C), float32.

    Returns:
        Losses (...), float32.
    """
    return -jnp.sum(labels * jax.nn.log_softmax(logits), axis=-1)
