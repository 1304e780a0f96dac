"""Softmax cross entropy in float32."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from mixtrain.typing import Tensor


def sparse_softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    labels = jnp.asarray(labels)[..., None]
    classes = logits.shape[-1]
    log_probabilities = jnp.take_along_axis(jax.nn.log_softmax(logits), jnp.clip(labels, 0, classes - 1), axis=-1)
    return jnp.where((labels >= 0) & (labels < classes), -log_probabilities, jnp.nan)[..., 0]


def softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    return -jnp.sum(labels * jax.nn.log_softmax(logits), axis=-1)
